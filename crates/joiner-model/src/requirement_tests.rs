//! The numbered behaviors 41 to 51 of requirements, and the laws of the algebra.

use super::*;

fn req(text: &str) -> Requirement {
    let mut words = text.split_whitespace();
    let key = words.next().unwrap();
    let operator = Operator::parse(words.next().unwrap()).unwrap();
    Requirement::new(key, operator, words.map(Name::from)).unwrap()
}

fn set(texts: &[&str]) -> Requirements {
    texts.iter().map(|t| req(t)).collect()
}

fn well_known(key: &str) -> bool {
    keys::WELL_KNOWN.contains(&key)
}

#[test]
fn core_041_old_spellings_are_normalized() {
    assert_eq!(
        req("beta.kubernetes.io/arch In amd64"),
        req("kubernetes.io/arch In amd64")
    );
    assert_eq!(
        req("failure-domain.beta.kubernetes.io/zone Exists")
            .key()
            .as_ref(),
        keys::ZONE
    );
    assert_eq!(
        req("beta.kubernetes.io/instance-type Exists")
            .key()
            .as_ref(),
        keys::INSTANCE_TYPE
    );
}

#[test]
fn core_042_043_intersections() {
    for (a, b, both) in [
        ("k In A", "k NotIn A", "k DoesNotExist"),
        ("k In A B", "k NotIn A", "k In B"),
        ("k NotIn A", "k NotIn B", "k NotIn A B"),
        ("k Exists", "k In A", "k In A"),
        ("k In 1 9", "k Gt 1", "k In 9"),
        ("k Gt 9", "k Lt 9", "k DoesNotExist"),
        ("k In x 5", "k Gt 1", "k In 5"),
        ("k Gt 3", "k Gte 2", "k Gte 4"),
        ("k Lt 3", "k Lte 7", "k Lte 2"),
    ] {
        assert_eq!(req(a).and(&req(b)), req(both), "{a} and {b}");
        assert_eq!(req(b).and(&req(a)), req(both), "{b} and {a}");
    }
}

#[test]
fn core_044_a_range_serializes_to_two_entries() {
    let range = req("k Gte 5").and(&req("k Lte 10"));
    assert_eq!(
        range.entries(),
        [
            (Operator::Gte, vec!["5".into()]),
            (Operator::Lte, vec!["10".into()])
        ]
    );
    assert!(range.has("5") && range.has("10") && !range.has("11") && !range.has("x"));
}

#[test]
fn core_045_046_bounds() {
    assert_eq!(req("k Gt 4"), req("k Gte 5"));
    assert_eq!(req("k Gt 9223372036854775807"), req("k DoesNotExist"));
    assert_eq!(req("k Lt -9223372036854775808"), req("k DoesNotExist"));
}

#[test]
fn core_047_048_undefined_keys() {
    let none = Requirements::new();
    for wanted in ["In a", "Exists", "Gt 1", "Lt 1"] {
        let known = set(&[&format!("{} {wanted}", keys::ZONE)]);
        assert!(none.compatible(&known, well_known, &[]).is_ok());
        assert!(none.compatible(&known, |_| false, &[]).is_err());
        let custom = set(&[&format!("team {wanted}")]);
        assert!(none.compatible(&custom, well_known, &[]).is_err());
    }
    for wanted in ["team NotIn a", "team DoesNotExist"] {
        assert!(none.compatible(&set(&[wanted]), well_known, &[]).is_ok());
        assert!(none.compatible(&set(&[wanted]), |_| false, &[]).is_ok());
    }
}

#[test]
fn core_049_does_not_exist() {
    let in_a = set(&["k In A"]);
    assert!(
        in_a.compatible(&set(&["k DoesNotExist"]), |_| false, &[])
            .is_err()
    );
    let absent = set(&["k DoesNotExist"]);
    assert!(
        absent
            .compatible(&set(&["k DoesNotExist"]), |_| false, &[])
            .is_ok()
    );
    assert!(
        absent
            .compatible(&set(&["k NotIn A"]), |_| false, &[])
            .is_ok()
    );
}

#[test]
fn core_050_a_typo_gets_a_hint() {
    let known: Vec<Name> = keys::WELL_KNOWN.iter().map(|k| Name::from(*k)).collect();
    for (typed, meant) in [
        ("zone", keys::ZONE),
        ("regio", keys::REGION),
        ("nodepool", keys::NODE_POOL),
    ] {
        let wanted = set(&[&format!("{typed} In a")]);
        let refused = Requirements::new().compatible(&wanted, well_known, &known);
        let expected = Incompatible::Undefined {
            key: typed.into(),
            hint: Some(meant.into()),
        };
        assert_eq!(refused, Err(expected));
    }
    let wanted = set(&["unrelated In a"]);
    let refused = Requirements::new().compatible(&wanted, well_known, &known);
    assert_eq!(
        refused,
        Err(Incompatible::Undefined {
            key: "unrelated".into(),
            hint: None
        })
    );
}

#[test]
fn core_051_text_is_short_and_stable() {
    assert_eq!(
        req("k In a b c d e f g").to_string(),
        "k In [a b c d e and 2 others]"
    );
    let all = set(&["z In 1", "a Exists", "kubernetes.io/hostname In me"]);
    assert_eq!(all.to_string(), "a Exists, z In [1]");
}

#[test]
fn min_values_take_the_larger() {
    let a = req("k In a b").with_min_values(Some(1));
    let b = req("k NotIn a").with_min_values(Some(2));
    assert_eq!(a.and(&b).min_values(), Some(2));
    assert_eq!(a.and(&b).to_string(), "k In [b] minValues 2");
}

#[test]
fn what_holds_for_both_holds_for_the_intersection() {
    let all = [
        "k In 1 2 3",
        "k NotIn 2",
        "k Exists",
        "k DoesNotExist",
        "k Gt 1",
        "k Lt 3",
        "k Gte 2",
        "k Lte 2",
        "k In x",
        "k NotIn x 1",
    ];
    for a in all {
        for b in all {
            for value in ["1", "2", "3", "x", "7"] {
                let (a, b) = (req(a), req(b));
                assert_eq!(
                    a.has(value) && b.has(value),
                    a.and(&b).has(value),
                    "{a} {b} {value}"
                );
            }
        }
    }
}

#[test]
fn bad_values_are_named() {
    let none = Requirement::new("k", Operator::Gt, []).unwrap_err();
    assert_eq!(none.to_string(), "operator Gt does not take 0 values");
    let text = Requirement::new("k", Operator::Lte, ["ten".into()]).unwrap_err();
    assert_eq!(
        text.to_string(),
        "operator Lte needs an integer, not \"ten\""
    );
}
