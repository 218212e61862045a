use joiner_cluster::{Deployments, DisruptionBudgets, ReplicaSets};
use serde_json::{Value, json};

use crate::controllers::world::{BUDGETS, DEPLOYMENTS, PODS, World};

fn world() -> World {
    World::new(vec![
        Box::<Deployments>::default(),
        Box::<ReplicaSets>::default(),
        Box::<DisruptionBudgets>::default(),
    ])
}

fn web(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
    })
}

fn budget(field: &str, value: Value) -> Value {
    let mut budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    budget["spec"][field] = value;
    budget
}

fn counts(world: &World) -> [i64; 4] {
    let status = &world.get(BUDGETS, "b")["status"];
    let fields = [
        "expectedPods",
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
    ];
    fields.map(|field| status[field].as_i64().unwrap())
}

#[test]
fn budgets_count_as_upstream_does() {
    for (replicas, field, value, expected) in [
        (4, "minAvailable", json!(3), [4, 4, 3, 1]),
        (4, "minAvailable", json!("50%"), [4, 4, 2, 2]),
        (3, "minAvailable", json!("50%"), [3, 3, 2, 1]),
        (3, "maxUnavailable", json!(1), [3, 3, 2, 1]),
        (3, "maxUnavailable", json!("30%"), [3, 3, 2, 1]),
        (3, "maxUnavailable", json!(0), [3, 3, 3, 0]),
        (1, "minAvailable", json!(5), [1, 1, 5, 0]),
        (0, "minAvailable", json!(0), [0, 0, 0, 0]),
    ] {
        let mut world = world();
        world.create(DEPLOYMENTS, web(replicas));
        world.create(BUDGETS, budget(field, value.clone()));
        world.settle();
        assert_eq!(
            counts(&world),
            expected,
            "{replicas} replicas, {field} {value}"
        );
        let status = &world.get(BUDGETS, "b")["status"];
        let (holds, reason) = match expected[3] {
            0 => ("False", "InsufficientPods"),
            _ => ("True", "SufficientPods"),
        };
        assert_eq!(status["conditions"][0]["status"], holds);
        assert_eq!(status["conditions"][0]["reason"], reason);
        assert_eq!(status["observedGeneration"], 1);
    }
}

#[test]
fn the_scale_counts_pods_that_are_still_missing() {
    let mut world = world();
    world.create(BUDGETS, budget("maxUnavailable", json!(1)));
    world.create(DEPLOYMENTS, web(4));
    world.settle();
    world.pods_start = false;
    let name = world.names(PODS)[0].clone();
    world.delete(PODS, &name, None);
    world.settle();
    assert_eq!(counts(&world), [4, 3, 3, 0]);
}

#[test]
fn a_granted_eviction_counts_until_it_is_overdue() {
    let mut world = world();
    world.create(DEPLOYMENTS, web(3));
    world.create(BUDGETS, budget("maxUnavailable", json!(1)));
    world.settle();
    let name = world.names(PODS)[0].clone();
    let now = world.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    world.patch_status(BUDGETS, "b", json!({"disruptedPods": {name: now}}));
    world.settle();
    assert_eq!(counts(&world), [3, 2, 2, 0]);
    world.wait();
    assert_eq!(counts(&world), [3, 3, 2, 1]);
    assert!(world.get(BUDGETS, "b")["status"]["disruptedPods"].is_null());
    assert_eq!(world.events("NotDeleted").len(), 1);
}

#[test]
fn pods_of_an_unknown_controller_allow_nothing() {
    let mut world = world();
    let owner =
        json!({"apiVersion": "own/v1", "kind": "Own", "name": "o", "uid": "u", "controller": true});
    world.create(
        PODS,
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {},
        "metadata": {"name": "p", "labels": {"app": "web"}, "ownerReferences": [owner]}}),
    );
    world.create(BUDGETS, budget("maxUnavailable", json!(1)));
    world.settle();
    assert_eq!(counts(&world)[3], 0);
    let condition = &world.get(BUDGETS, "b")["status"]["conditions"][0];
    assert_eq!(condition["reason"], "SyncFailed");
    assert_eq!(condition["message"], "found no controllers for pod \"p\"");
}
