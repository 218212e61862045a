use super::*;

fn object(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    change(&mut object);
    object
}

/// What is wrong with a VPA after a change.
fn wrong(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let errors = complaints(&object(change), None, VpaGates::default());
    errors.iter().map(ToString::to_string).collect()
}

fn policy(policy: Value) -> Vec<String> {
    wrong(|vpa| vpa["spec"]["resourcePolicy"] = json!({"containerPolicies": [policy]}))
}

#[test]
fn what_is_wrong_with_a_vpa_is_named_by_its_field() {
    let update = |policy: Value| wrong(|vpa| vpa["spec"]["updatePolicy"] = policy);
    assert_eq!(wrong(|_| {}), [""; 0]);
    for (errors, expected) in [
        (
            update(json!({"minReplicas": 1})),
            "spec.updatePolicy.updateMode: is missing; set it",
        ),
        (
            update(json!({"updateMode": "Always"})),
            "spec.updatePolicy.updateMode: must be Off, Initial, Recreate, InPlaceOrRecreate, \
             InPlace or Auto, not \"Always\"",
        ),
        (
            update(json!({"updateMode": "InPlace"})),
            "spec.updatePolicy.updateMode: must not be InPlace: the feature gate InPlace is off",
        ),
        (
            update(json!({"updateMode": "Off", "minReplicas": 0})),
            "spec.updatePolicy.minReplicas: must be 1 or more, not 0",
        ),
        (
            policy(json!({"mode": "Auto"})),
            "spec.resourcePolicy.containerPolicies[0].containerName: is missing; set it",
        ),
        (
            policy(
                json!({"containerName": "a", "minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}}),
            ),
            "spec.resourcePolicy.containerPolicies[0].maxAllowed.cpu: must be at least minAllowed, \
             which is 2",
        ),
        (
            policy(json!({"containerName": "a", "minAllowed": {"cpu": "1u"}})),
            "spec.resourcePolicy.containerPolicies[0].minAllowed.cpu: must be a whole number of \
             millicores, not \"1u\"",
        ),
        (
            policy(json!({"containerName": "a", "maxAllowed": {"memory": "1m"}})),
            "spec.resourcePolicy.containerPolicies[0].maxAllowed.memory: must be a whole number of \
             bytes, not \"1m\"",
        ),
        (
            policy(
                json!({"containerName": "a", "mode": "Off", "controlledValues": "RequestsAndLimits"}),
            ),
            "spec.resourcePolicy.containerPolicies[0].controlledValues: must not be \
             RequestsAndLimits where mode is Off",
        ),
        (
            wrong(|vpa| vpa["spec"]["recommenders"] = json!([{"name": "a"}, {"name": "b"}])),
            "spec.recommenders: must have at most one recommender",
        ),
        (
            policy(json!({"containerName": "a", "oomBumpUpRatio": "1.5"})),
            "spec.resourcePolicy.containerPolicies[0].oomBumpUpRatio: must be left out: the \
             feature gate PerVPAConfig is off",
        ),
        (
            wrong(|vpa| {
                vpa["spec"]["startupBoost"] = json!({"cpu": {"type": "Factor", "factor": 2}});
            }),
            "spec.startupBoost: must be left out: the feature gate CPUStartupBoost is off",
        ),
    ] {
        assert_eq!(errors, [expected]);
    }
}

#[test]
fn what_was_there_may_stay() {
    let mode = |vpa: &mut Value| vpa["spec"]["updatePolicy"] = json!({"updateMode": "InPlace"});
    let old = object(mode);
    assert!(complaints(&old, Some(&old), VpaGates::default()).is_empty());
    let gates = VpaGates {
        in_place: true,
        ..VpaGates::default()
    };
    assert!(complaints(&old, None, gates).is_empty());
}

#[test]
fn boosts_are_at_least_once_as_much() {
    let gates = VpaGates {
        startup_boost: true,
        ..VpaGates::default()
    };
    let boost = |boost: Value| {
        let vpa = object(|vpa| vpa["spec"]["startupBoost"] = json!({"cpu": boost}));
        let errors = complaints(&vpa, None, gates);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(boost(json!({"type": "Factor", "factor": 2})).is_empty());
    assert_eq!(
        boost(json!({"type": "Factor", "factor": 0})),
        ["spec.startupBoost.cpu.factor: must be 1 or more, not 0"]
    );
    assert_eq!(
        boost(json!({"type": "Factor"})),
        ["spec.startupBoost.cpu.factor: is missing; set it"]
    );
    assert_eq!(
        boost(json!({"type": "Quantity", "quantity": "1u"})),
        ["spec.startupBoost.cpu.quantity: must be a whole number of millicores, not \"1u\""]
    );
    assert_eq!(
        boost(json!({"type": "Twice"})),
        ["spec.startupBoost.cpu.type: must be Factor or Quantity, not \"Twice\""]
    );
}

#[test]
fn a_vpa_evicts_where_nothing_is_said() {
    let mut vpa = object(|_| {});
    fill_in(&mut vpa);
    assert_eq!(
        vpa["spec"]["updatePolicy"],
        json!({"updateMode": "Recreate"})
    );
}
