use super::*;

fn composed(formula: &str, change: impl FnOnce(&mut Value)) -> ScaledObject {
    object(
        &json!([redis("trigger_one"), redis("trigger_two")]),
        |object| {
            object["spec"]["advanced"]["scalingModifiers"] =
                json!({"formula": formula, "target": "2"});
            change(object);
        },
    )
}

#[test]
fn keda_61_a_formula_makes_one_metric_of_all() {
    let object = composed("trigger_one + trigger_two", |_| {});
    let poll = look(&object, &[Some(2.0), Some(5.0)]);
    assert_eq!(poll.values, BTreeMap::from([(COMPOSITE.to_owned(), 7.0)]));
    assert!(poll.is_active);
    let hpa = hpa(&object, &specs(&object), &Pause::default(), "1.0").unwrap();
    let metrics = hpa["spec"]["metrics"].as_array().unwrap();
    assert_eq!(metrics.len(), 1);
    assert_eq!(metrics[0]["external"]["metric"]["name"], COMPOSITE);
    assert_eq!(metrics[0]["external"]["target"]["averageValue"], "2");
}

#[test]
fn keda_62_what_failed_too_often_is_nothing_to_a_formula() {
    let object = composed("(trigger_one ?? 1) + (trigger_two ?? 2)", |object| {
        object["spec"]["fallback"] = json!({
            "failureThreshold": 3, "replicas": 7, "behavior": "scalingModifiers",
        });
    });
    let failing = |object: &ScaledObject, n_failures| {
        let health = Health {
            n_failures,
            is_failing: true,
        };
        let names = ["s0-redis", "s1-redis"];
        let health = names
            .map(|name| (name.to_owned(), health))
            .into_iter()
            .collect();
        let findings = findings(object, &[None, None]);
        poll(object, &findings, &health, THREE)
    };
    assert_eq!(failing(&object, 2).errors.len(), 2);
    let due = failing(&object, 3);
    assert_eq!(due.values[COMPOSITE], 3.0);
    assert!(!due.in_fallback);
    let nothing = composed("trigger_one ?? trigger_two", |object| {
        object["spec"]["fallback"] = json!({
            "failureThreshold": 3, "replicas": 7, "behavior": "scalingModifiers",
        });
    });
    assert_eq!(failing(&nothing, 3).values[COMPOSITE], 14.0);
}

#[test]
fn keda_63_metrics_are_asked_for_without_regard_to_capitals() {
    let object = object(&json!([redis("a"), redis("b")]), |_| {});
    let found = trigger_of(&object, &specs(&object), "S1-Redis").unwrap();
    assert_eq!(found.name, "b");
    assert_eq!(trigger_of(&object, &specs(&object), "s2-redis"), None);
}

#[test]
fn triggers_of_a_formula_are_not_active_themselves() {
    let object = composed("trigger_one - trigger_two", |object| {
        object["spec"]["advanced"]["scalingModifiers"]["activationTarget"] = json!("3");
    });
    assert!(!look(&object, &[Some(5.0), Some(2.0)]).is_active);
    assert!(look(&object, &[Some(6.0), Some(2.0)]).is_active);
    let failed = look(&object, &[Some(9.0), None]);
    assert!(!failed.is_active && failed.values.is_empty());
}

#[test]
fn figures_are_given_in_thousandths() {
    for (figure, millis_of) in [
        (1.0004, 1000),
        (0.0006, 1),
        (-1.0, 0),
        (f64::NAN, 0),
        (f64::INFINITY, 0),
        (1e30, i64::MAX),
    ] {
        assert_eq!(millis(figure), millis_of, "{figure}");
    }
    assert_eq!(quantity(1.5).to_string(), "1500m");
}
