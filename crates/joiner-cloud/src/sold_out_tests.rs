use super::*;

const LASTS: Duration = Duration::from_secs(180);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(secs).unwrap()
}

fn key(capacity_type: &str, instance_type: &str, zone: &str) -> OfferingKey {
    let labels = Labels::from([
        (keys::CAPACITY_TYPE.into(), capacity_type.into()),
        (keys::ZONE.into(), zone.into()),
    ]);
    OfferingKey::of(&instance_type.into(), &labels)
}

/// Which of these are sold out: a mark of each kind leaves its own pattern.
fn seen(sold_out: &SoldOut, now: Timestamp) -> Vec<String> {
    let mut seen = Vec::new();
    for capacity_type in ["spot", "on-demand"] {
        for instance_type in ["m5.large", "c5.large"] {
            for zone in ["a", "b"] {
                if sold_out.is_sold_out(&key(capacity_type, instance_type, zone), None, now) {
                    seen.push(format!("{capacity_type} {instance_type} {zone}"));
                }
            }
        }
    }
    seen
}

#[test]
fn a_mark_covers_what_the_refusal_was_about() {
    let offering = SoldOutScope::Offering(key("spot", "m5.large", "a"));
    let zone = SoldOutScope::Zone {
        capacity_type: "spot".into(),
        zone: "b".into(),
    };
    let capacity_type = SoldOutScope::CapacityType("on-demand".into());
    let cases: [(SoldOutScope, &[&str]); 4] = [
        (offering, &["spot m5.large a"]),
        (zone, &["spot m5.large b", "spot c5.large b"]),
        (
            capacity_type,
            &[
                "on-demand m5.large a",
                "on-demand m5.large b",
                "on-demand c5.large a",
                "on-demand c5.large b",
            ],
        ),
        (SoldOutScope::Subnet("subnet-1".into()), &[]),
    ];
    for (scope, expected) in cases {
        let mut sold_out = SoldOut::new(LASTS);
        sold_out.mark(scope.clone(), at(0));
        assert_eq!(seen(&sold_out, at(0)), expected, "{scope:?}");
        assert!(sold_out.is_marked(&scope, at(179)));
        assert!(!sold_out.is_marked(&scope, at(180)), "{scope:?}");
    }
}

#[test]
fn a_refusal_within_a_placement_group_is_of_that_group_alone() {
    let mut sold_out = SoldOut::new(LASTS);
    let (key, group) = (key("spot", "m5.large", "a"), Name::from("pg-1"));
    sold_out.mark(SoldOutScope::InGroup(key.clone(), group.clone()), at(0));
    assert!(sold_out.is_sold_out(&key, Some(&group), at(1)));
    assert!(!sold_out.is_sold_out(&key, Some(&"pg-2".into()), at(1)));
    assert!(!sold_out.is_sold_out(&key, None, at(1)));
    sold_out.mark(SoldOutScope::Offering(key.clone()), at(1));
    assert!(sold_out.is_sold_out(&key, Some(&"pg-2".into()), at(1)));
}

#[test]
fn marks_end_after_their_time_and_last_anew_when_made_anew() {
    let mut sold_out = SoldOut::new(LASTS);
    let offering = key("spot", "m5.large", "a");
    sold_out.mark(SoldOutScope::Offering(offering.clone()), at(0));
    assert!(!sold_out.is_empty(at(179)));
    sold_out.mark(SoldOutScope::Offering(offering.clone()), at(100));
    assert!(sold_out.is_sold_out(&offering, None, at(279)));
    assert!(!sold_out.is_empty(at(279)));
    assert!(!sold_out.is_sold_out(&offering, None, at(280)));
    assert!(sold_out.is_empty(at(280)));
}

#[test]
fn the_sequence_changes_when_an_answer_does() {
    let mut sold_out = SoldOut::new(LASTS);
    let first = sold_out.sequence(at(0));
    sold_out.mark(SoldOutScope::Offering(key("spot", "m5.large", "a")), at(0));
    let marked = sold_out.sequence(at(0));
    assert_ne!(marked, first);
    // The same mark again changes when it ends, and no answer of now.
    sold_out.mark(SoldOutScope::Offering(key("spot", "m5.large", "a")), at(60));
    assert_eq!(sold_out.sequence(at(239)), marked);
    // That it ends is a change, too, though nothing was said.
    let ended = sold_out.sequence(at(240));
    assert_ne!(ended, marked);
    assert_ne!(ended, first);
    assert_eq!(sold_out.sequence(at(100_000)), ended);
}

#[test]
fn each_type_has_its_sequence() {
    let mut sold_out = SoldOut::new(LASTS);
    let both = |sold_out: &mut SoldOut, now| {
        ["m5.large", "c5.large"].map(|name| sold_out.sequence_of(name, now))
    };
    let [m5, c5] = both(&mut sold_out, at(0));
    sold_out.mark(SoldOutScope::Offering(key("spot", "m5.large", "a")), at(0));
    let [m5_marked, c5_marked] = both(&mut sold_out, at(0));
    assert_ne!(m5_marked, m5);
    assert_eq!(c5_marked, c5);
    sold_out.mark(SoldOutScope::CapacityType("spot".into()), at(10));
    let [m5_all, c5_all] = both(&mut sold_out, at(10));
    assert_ne!(m5_all, m5_marked);
    assert_ne!(c5_all, c5_marked);
    // The offering ends ten seconds before the capacity type does.
    let [m5_ended, c5_ended] = both(&mut sold_out, at(180));
    assert_ne!(m5_ended, m5_all);
    assert_eq!(c5_ended, c5_all);
    let [m5_free, c5_free] = both(&mut sold_out, at(190));
    assert_ne!(m5_free, m5_ended);
    assert_ne!(c5_free, c5_ended);
}

#[test]
fn equal_sequences_mean_equal_answers() {
    let mut sold_out = SoldOut::new(Duration::from_secs(7));
    let scopes = [
        SoldOutScope::Offering(key("spot", "m5.large", "a")),
        SoldOutScope::CapacityType("on-demand".into()),
        SoldOutScope::Offering(key("on-demand", "c5.large", "b")),
        SoldOutScope::Zone {
            capacity_type: "spot".into(),
            zone: "b".into(),
        },
    ];
    let mut known: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for second in 0..200 {
        let now = at(second);
        // Some seconds mark nothing, some mark two things.
        for (ix, scope) in scopes.iter().enumerate() {
            if (second * second + second) % (9 + ix as i64) == 0 {
                sold_out.mark(scope.clone(), now);
            }
        }
        let sequence = sold_out.sequence(now);
        let answers = seen(&sold_out, now);
        let before = known.entry(sequence).or_insert_with(|| answers.clone());
        assert_eq!(*before, answers, "second {second}");
    }
    assert!(known.len() > 20, "{} sequences", known.len());
}

#[test]
fn too_many_marks_cost_the_one_that_would_end_first() {
    let mut sold_out = SoldOut::new(LASTS);
    let subnet = |n: usize| SoldOutScope::Subnet(format!("subnet-{n}").into());
    for n in 0..MARKS_MAX {
        sold_out.mark(subnet(n), at(i64::from(n != 7)));
    }
    assert!(sold_out.is_marked(&subnet(7), at(2)));
    let before = sold_out.sequence(at(2));
    sold_out.mark(subnet(MARKS_MAX), at(2));
    assert!(!sold_out.is_marked(&subnet(7), at(2)));
    assert!(sold_out.is_marked(&subnet(8), at(2)));
    assert!(sold_out.is_marked(&subnet(MARKS_MAX), at(2)));
    assert_ne!(sold_out.sequence(at(2)), before);
}

#[test]
fn too_many_types_all_count_as_changed() {
    let mut sold_out = SoldOut::new(LASTS);
    let unrelated = sold_out.sequence_of("c5.large", at(0));
    for n in 0..TYPES_MAX {
        sold_out.mark(
            SoldOutScope::Offering(key("spot", &format!("t{n}"), "a")),
            at(0),
        );
    }
    assert_eq!(sold_out.sequence_of("c5.large", at(0)), unrelated);
    let first = sold_out.sequence_of("t0", at(0));
    sold_out.mark(SoldOutScope::Offering(key("spot", "one more", "a")), at(0));
    assert_ne!(sold_out.sequence_of("c5.large", at(0)), unrelated);
    assert_ne!(sold_out.sequence_of("t0", at(0)), first);
}
