use joiner_model::{NanoDollars, ResourceName};

use super::*;

#[test]
fn a_type_in_full() {
    let types = types();
    let small = &types[0];
    assert_eq!(&*small.name, "small");
    assert_eq!(small.capacity.to_string(), "cpu 2, memory 4Gi, pods 110");
    let labels: Vec<String> = small
        .labels
        .iter()
        .map(|(k, v)| format!("{k}={}", v.join("|")))
        .collect();
    assert_eq!(
        labels,
        [
            "example.com/tier=gold",
            "kubernetes.io/arch=amd64",
            "kubernetes.io/os=linux",
            "node.kubernetes.io/instance-type=small"
        ]
    );
    assert_eq!(small.offerings[0].price, NanoDollars::new(100_000_000));
    assert!(small.offerings[0].available);
    let large = &types[1];
    assert_eq!(large.capacity.get(&ResourceName::Pods), 30);
    assert_eq!(large.allocatable().unwrap().get(&ResourceName::Cpu), 7900);
    assert!(!large.offerings[0].available);
    assert_eq!(
        large.offerings[0]
            .labels
            .get("topology.kubernetes.io/zone")
            .map(|z| &**z),
        Some("a")
    );
}

fn one(rest: &str) -> String {
    format!(r#"[{{"name":"t","architecture":"amd64"{rest}}}]"#)
}

#[test]
fn offerings_and_systems() {
    let text = one(
        r#","operatingSystems":["linux","windows"],"offerings":[{"Price":1e-9,"ReservationCapacity":3,"Requirements":[
            {"key":"karpenter.sh/capacity-type","operator":"In","values":["reserved"]},
            {"key":"failure-domain.beta.kubernetes.io/zone","operator":"In","values":["z"]},
            {"key":"karpenter.k8s.aws/capacity-reservation-id","operator":"In","values":["cr-1"]}]}]"#,
    );
    let types = parse_instance_types("t.json", &text).unwrap();
    assert_eq!(types[0].labels["kubernetes.io/os"].len(), 2);
    let offering = &types[0].offerings[0];
    assert_eq!(offering.price, NanoDollars::new(1));
    assert_eq!(offering.reservation, Some(("cr-1".into(), 3)));
    assert!(offering.labels.contains_key("topology.kubernetes.io/zone"));
}

#[test]
fn messages() {
    let offering = |rest: &str| one(&format!(r#","offerings":[{{{rest}}}]"#));
    for (text, expected) in [
        (
            "{}".into(),
            "t.json:1: must be a JSON list of instance types, such as joiner catalog -o json prints",
        ),
        (
            "[{}]".into(),
            "t.json:1: instance type number 1: name: there is no name",
        ),
        (
            r#"[{"name":"t"}]"#.into(),
            "t.json:1: instance type t: architecture: there is no architecture",
        ),
        (
            one("").replace("\"t\"", "\"a b\""),
            "t.json:1: instance type a b: name: \"node.kubernetes.io/instance-type=a b\" is not a label: it must be letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        ),
        (
            one(r#","labels":{"a":"b c"}"#),
            "t.json:1: instance type t: labels: \"a=b c\" is not a label: it must be letters, digits, '-', '_' and '.', with a letter or digit at both ends",
        ),
        (
            one(r#","resources":{"cpu":"x"}"#),
            "t.json:1:58: instance type t: resources.cpu: \"x\" is not a quantity (write for example 500m, 2 or 1.5Gi)",
        ),
        (
            offering(""),
            "t.json:1: instance type t: offerings[0].Price: there is no price",
        ),
        (
            offering(r#""Price":-1"#),
            "t.json:1: instance type t: offerings[0].Price: -1 is not a price",
        ),
        (
            offering(
                r#""Price":1,"Requirements":[{"key":"z","operator":"In","values":["a","b"]}]"#,
            ),
            "t.json:1: instance type t: offerings[0].Requirements[0]: an offering has exactly one value of each label; \"z\" In with 2 values is not that",
        ),
        (
            offering(r#""Price":1,"Requirements":[{"key":"z","operator":"Exists"}]"#),
            "t.json:1: instance type t: offerings[0].Requirements[0]: an offering has exactly one value of each label; \"z\" Exists with 0 values is not that",
        ),
        (
            r#"[{"name":"t","architecture":"a"},{"name":"t","architecture":"a"}]"#.into(),
            "t.json:1: instance type t: is there twice; remove one of them",
        ),
        (
            "[] x".into(),
            "t.json:1:4: there is more text after the end",
        ),
        (
            one(r#","offerings":[{"Price":"0.1"}]"#),
            "t.json:1:63: instance type t: offerings[0].Price: must be a number, not \"0.1\"",
        ),
        (
            one(r#","name":"u""#),
            "t.json:1:43: instance type u: name: is there twice in one object; remove one of them",
        ),
    ] {
        let error = parse_instance_types("t.json", &text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}
