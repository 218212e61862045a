//! Pods that the scheduler has not come to yet, and will turn down.

use super::*;

/// A pod that was created a moment ago.
fn fresh(name: &str, more: Value) -> Value {
    let mut own = pod(name, 1, more);
    own["status"] = json!({"phase": "Pending"});
    own
}

#[test]
fn pods_like_those_that_were_turned_down_are_planned_for_with_them() {
    let mut state = ClusterState::default();
    state.apply(Kind::Pod, &fresh("b", json!({})));
    assert!(state.snapshot().doomed().is_empty(), "nobody was tried");
    assert_eq!(asked(&state.snapshot()).problem.pods.len(), 0);
    state.apply(Kind::Pod, &pod("a", 1, json!({})));
    let other = json!({"spec": {"containers": [{"name": "c", "image": "i",
        "resources": {"requests": {"cpu": "1m"}}}]}});
    state.apply(Kind::Pod, &fresh("c", other));
    let now = state.snapshot();
    let doomed: Vec<&str> = now.doomed().iter().map(|pod| &*pod.name).collect();
    assert_eq!(doomed, ["default/b"], "the other one is smaller");
    assert_eq!(now.fresh().count(), 2);
    let problem = asked(&now).problem;
    let names: Vec<&str> = problem.pods.iter().map(|pod| &*pod.name).collect();
    assert_eq!(names, ["default/a", "default/b"]);
}

#[test]
fn pods_that_are_harder_to_place_than_those_turned_down_are_planned_for_with_them() {
    let of = |name: &str, spec: Value| fresh(name, json!({"spec": spec}));
    let asks =
        |cpu: &str| json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]);
    let mut state = ClusterState::default();
    for own in [
        of("larger", json!({"containers": asks("3")})),
        of("smaller", json!({"containers": asks("100m")})),
        of(
            "choosy",
            json!({"containers": asks("3"), "nodeSelector": {"a": "b"}}),
        ),
        of("dear", json!({"containers": asks("3"), "priority": 5})),
        of(
            "tolerant",
            json!({"containers": asks("3"), "tolerations": [{"operator": "Exists"}]}),
        ),
        of(
            "foreign",
            json!({"containers": asks("3"), "schedulerName": "another"}),
        ),
    ] {
        state.apply(Kind::Pod, &own);
    }
    let mut tried = pod("tried", 1, json!({"spec": {"containers": asks("2")}}));
    state.apply(Kind::Pod, &tried);
    let doomed = |state: &mut ClusterState| -> Vec<String> {
        let now = state.snapshot();
        now.doomed()
            .iter()
            .map(|pod| pod.name.to_string())
            .collect()
    };
    assert_eq!(doomed(&mut state), ["default/choosy", "default/larger"]);
    // A pod that asks for a certain node says nothing about others.
    tried["spec"]["nodeSelector"] = json!({"a": "c"});
    tried["metadata"]["resourceVersion"] = json!("2");
    state.apply(Kind::Pod, &tried);
    assert!(doomed(&mut state).is_empty());
}
