use super::*;

/// An object with a fallback to ten replicas.
fn fallen(behavior: &str, change: impl FnOnce(&mut Value)) -> ScaledObject {
    object(&json!([redis("a")]), |object| {
        object["spec"]["fallback"] =
            json!({"failureThreshold": 3, "replicas": 10, "behavior": behavior});
        change(object);
    })
}

/// After so many failures, one more.
fn failing(object: &ScaledObject, n_failures: i32, replicas: Replicas) -> Poll {
    let health = Health {
        n_failures,
        is_failing: true,
    };
    let health = HealthByMetric::from([("s0-redis".to_owned(), health)]);
    poll(object, &findings(object, &[None]), &health, replicas)
}

fn at(current: i32) -> Replicas {
    Replicas {
        current,
        ready: current,
    }
}

#[test]
fn keda_50_without_a_fallback_errors_are_errors() {
    let object = object(&json!([redis("a")]), |_| {});
    let failed = look(&object, &[None]);
    assert_eq!(failed.errors, ["trigger a: it is away"]);
    assert!(failed.health.is_empty() && failed.values.is_empty());
    assert_eq!(look(&object, &[Some(4.0)]).values["s0-redis"], 4.0);
}

#[test]
fn keda_51_failures_are_counted() {
    let object = fallen("static", |_| {});
    let fine = look(&object, &[Some(4.0)]).health["s0-redis"];
    assert_eq!((fine.n_failures, fine.as_str()), (0, "Happy"));
    let failed = failing(&object, 1, THREE).health["s0-redis"];
    assert_eq!((failed.n_failures, failed.as_str()), (2, "Failing"));
    let again = poll(
        &object,
        &findings(&object, &[Some(4.0)]),
        &failing(&object, 1, THREE).health,
        THREE,
    );
    assert_eq!(again.health["s0-redis"], Health::default());
}

#[test]
fn keda_52_after_too_many_a_figure_stands_in() {
    let object = fallen("static", |_| {});
    let not_yet = failing(&object, 2, THREE);
    assert!(not_yet.values.is_empty() && !not_yet.is_active);
    let due = failing(&object, 3, THREE);
    assert_eq!(due.values["s0-redis"], 100.0);
    assert!(due.in_fallback && due.is_active && due.errors.is_empty());
}

#[test]
fn keda_54_numbers_below_zero_are_no_fallback() {
    let object = fallen("static", |object| {
        object["spec"]["fallback"]["failureThreshold"] = json!(-1);
    });
    assert_eq!(valid(&object), None);
    assert_eq!(failing(&object, 9, THREE).errors, ["trigger a: it is away"]);
}

#[test]
fn keda_55_a_target_with_a_fraction_is_no_fallback_for_a_formula() {
    let with_target = |target: &str| {
        fallen("static", |object| {
            object["spec"]["advanced"]["scalingModifiers"] =
                json!({"formula": "a", "target": target});
        })
    };
    assert!(valid(&with_target("2")).is_some());
    assert_eq!(valid(&with_target("2.5")), None);
    let due = failing(&with_target("2"), 3, THREE);
    assert_eq!(due.values[COMPOSITE], 20.0);
}

#[test]
fn keda_56_the_current_size_can_count() {
    for (behavior, current, figure) in [
        ("currentReplicasIfHigher", 4, 100.0),
        ("currentReplicasIfHigher", 12, 120.0),
        ("currentReplicasIfLower", 4, 40.0),
        ("currentReplicas", 6, 60.0),
        ("static", 6, 100.0),
    ] {
        let object = fallen(behavior, |_| {});
        let due = failing(&object, 3, at(current));
        assert_eq!(due.values["s0-redis"], figure, "{behavior}");
    }
}

#[test]
fn figures_in_all_are_shared_by_ready_pods() {
    let object = fallen("static", |object| {
        object["spec"]["triggers"][0]["metricType"] = json!("Value");
    });
    assert_eq!(failing(&object, 3, at(4)).values["s0-redis"], 25.0);
    let none = Replicas {
        current: 4,
        ready: 0,
    };
    assert!(failing(&object, 3, none).errors[0].contains("no pod of the target is ready"));
}
