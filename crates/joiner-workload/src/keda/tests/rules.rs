use super::*;

/// What is wrong with a ScaledObject after a change.
fn wrong(triggers: &Value, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let errors = complaints(&object(triggers, change));
    errors.iter().map(ToString::to_string).collect()
}

fn sizes(idle: Value, min: Value, max: Value) -> Vec<String> {
    wrong(&json!([redis("")]), |object| {
        object["spec"]["idleReplicaCount"] = idle;
        object["spec"]["minReplicaCount"] = min;
        object["spec"]["maxReplicaCount"] = max;
    })
}

#[test]
fn keda_24_sizes_must_be_in_order() {
    let null = || Value::Null;
    assert_eq!(
        sizes(null(), json!(5), json!(2)),
        ["spec.minReplicaCount: must be at most maxReplicaCount, which is 2, not 5"]
    );
    assert_eq!(
        sizes(json!(6), json!(5), json!(9)),
        ["spec.idleReplicaCount: must be less than minReplicaCount, which is 5, not 6"]
    );
    assert_eq!(sizes(json!(6), null(), json!(5)).len(), 1);
    assert!(sizes(json!(0), json!(1), json!(1)).is_empty());
}

#[test]
fn keda_25_triggers_must_be_there_and_have_names_of_their_own() {
    assert_eq!(
        wrong(&json!([redis("a"), redis("a")]), |_| {}),
        ["spec.triggers[1].name: must be another name, a is taken"]
    );
    assert_eq!(
        wrong(&json!([]), |_| {}),
        ["spec.triggers: must have at least one trigger"]
    );
    let mut cached = redis("a");
    cached["type"] = json!("cron");
    cached["useCachedMetrics"] = json!(true);
    assert_eq!(
        wrong(&json!([cached]), |_| {}),
        ["spec.triggers[0].useCachedMetrics: must be left out of a trigger of type cron"]
    );
}

fn with_min(object: &mut Value) {
    object["spec"]["minReplicaCount"] = json!(1);
}

#[test]
fn keda_29_a_fallback_needs_a_trigger_that_can_fail() {
    let fallback = |triggers: &Value, failures: i32| {
        wrong(triggers, |object| {
            with_min(object);
            object["spec"]["fallback"] = json!({"failureThreshold": failures, "replicas": 3});
        })
    };
    assert_eq!(fallback(&json!([cpu()]), 1).len(), 1);
    assert!(fallback(&json!([cpu(), redis("")]), 1).is_empty());
    assert_eq!(
        fallback(&json!([redis("")]), -1),
        ["spec.fallback.failureThreshold: must be 0 or more, not -1"]
    );
}

#[test]
fn keda_31_usage_alone_needs_a_pod() {
    assert!(wrong(&json!([cpu(), redis("")]), |_| {}).is_empty());
    assert_eq!(wrong(&json!([cpu()]), |_| {}).len(), 1);
    assert!(wrong(&json!([cpu()]), with_min).is_empty());
}

#[test]
fn keda_33_names_are_also_values_of_labels() {
    let named = |length: usize, other: bool| {
        wrong(&json!([redis("")]), |object| {
            object["metadata"]["name"] = json!("a".repeat(length));
            if other {
                let config = json!({"name": "short"});
                object["spec"]["advanced"]["horizontalPodAutoscalerConfig"] = config;
            }
        })
    };
    assert_eq!(
        named(64, true),
        ["metadata.name: must have at most 63 characters"]
    );
    assert!(named(63, true).is_empty());
    assert_eq!(named(55, false).len(), 1);
    assert!(named(54, false).is_empty());
}

fn formula(triggers: &Value, formula: &str, target: &str) -> Vec<String> {
    wrong(triggers, |object| {
        object["spec"]["advanced"]["scalingModifiers"] =
            json!({"formula": formula, "target": target});
    })
}

#[test]
fn keda_35_formulas_need_a_target_and_names() {
    let named = json!([redis("one"), redis("two")]);
    assert!(formula(&named, "one + two", "2").is_empty());
    assert!(formula(&named, "one + two", "")[0].contains("scalingModifiers.target"));
    assert!(formula(&named, "one + two", "0")[0].contains("a number above 0"));
    assert!(formula(&named, "", "2")[0].contains("formula: is missing"));
    let error = formula(&json!([redis("one"), redis("")]), "one + two", "2");
    assert!(
        error[0].contains("\"two\" is no name of a trigger"),
        "{error:?}"
    );
    assert!(formula(&json!([redis("one"), redis("")]), "one * 2", "2").is_empty());
    assert!(formula(&json!([redis("one"), cpu()]), "one + cpu", "2")[0].contains("formula"));
}

#[test]
fn keda_36_formulas_choose_count_and_cast() {
    let triggers = json!([redis("one"), redis("two")]);
    for text in [
        "one > two ? one : two",
        "count([one, two], {# > 1}) > 1 ? 5 : 0",
        "one < 2 ? one : two > 2 ? 5 : 0",
        "float(one)",
        "float(float(one) + two)",
    ] {
        assert_eq!(formula(&triggers, text, "2"), [""; 0], "{text}");
    }
}

#[test]
fn keda_37_settings_that_do_nothing_are_told() {
    let warned = |change: fn(&mut Value)| {
        let object = object(&json!([redis("")]), change);
        warnings(&object, true, true).len()
    };
    assert_eq!(warned(with_min), 2);
    assert_eq!(warned(|_| {}), 0);
    assert_eq!(
        warned(|object| {
            with_min(object);
            object["spec"]["idleReplicaCount"] = json!(0);
        }),
        0
    );
    assert_eq!(
        warned(|object| {
            with_min(object);
            object["spec"]["triggers"][0]["useCachedMetrics"] = json!(true);
        }),
        1
    );
    let object = object(&json!([redis("")]), with_min);
    assert!(warnings(&object, true, false)[0].starts_with("pollingInterval"));
    assert!(warnings(&object, false, true)[0].starts_with("cooldownPeriod"));
    assert!(warnings(&object, false, false).is_empty());
}

#[test]
fn keda_38_a_fallback_of_the_formula_needs_one() {
    let fallback = |has_formula: bool| {
        wrong(&json!([redis("one")]), |object| {
            object["spec"]["fallback"] = json!({
                "failureThreshold": 1, "replicas": 3, "behavior": "scalingModifiers",
            });
            if has_formula {
                object["spec"]["advanced"]["scalingModifiers"] =
                    json!({"formula": "one ?? 1", "target": "2"});
            }
        })
    };
    assert!(fallback(true).is_empty());
    assert_eq!(
        fallback(false),
        ["spec.fallback.behavior: must not be scalingModifiers without a formula"]
    );
}

#[test]
fn fields_that_cannot_be_read_are_named() {
    let error = |spec: Value| {
        let object = json!({"metadata": {"name": "web"}, "spec": spec});
        ScaledObject::read(&object).unwrap_err().to_string()
    };
    assert_eq!(
        error(json!({})),
        "spec.scaleTargetRef.name: is missing; set it"
    );
    let target = json!({"name": "web"});
    assert_eq!(
        error(json!({"scaleTargetRef": target, "pollingInterval": 0})),
        "spec.pollingInterval: must be 1 or more, not 0"
    );
    assert_eq!(
        error(json!({"scaleTargetRef": target, "triggers": [{"metadata": {}}]})),
        "spec.triggers[0].type: is missing; set it"
    );
}
