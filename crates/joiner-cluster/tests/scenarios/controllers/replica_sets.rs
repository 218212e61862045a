use joiner_cluster::{Action, ReplicaSets};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{PODS, REPLICA_SETS, World};

fn world() -> World {
    World::new(vec![Box::<ReplicaSets>::default()])
}

fn set(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "extra": "yes"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]},
            },
        },
    })
}

/// A pod without an owner, ready for so many seconds (none: not ready).
fn pod(name: &str, node: &str, phase: &str, ready_secs: Option<i64>) -> Value {
    let at =
        |seconds: i64| meta::time(jiff::Timestamp::from_second(1_767_225_600 - seconds).unwrap());
    let (status, since) = match ready_secs {
        Some(seconds) => ("True", at(seconds)),
        None => ("False", at(0)),
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": []},
        "status": {"phase": phase, "conditions":
            [{"type": "Ready", "status": status, "lastTransitionTime": since}]},
    });
    if !node.is_empty() {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

fn with(mut pod: Value, path: &str, value: Value) -> Value {
    match path {
        "cost" => {
            pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] = value
        }
        "restarts" => pod["status"]["containerStatuses"] = json!([{"restartCount": value}]),
        other => panic!("{other}"),
    }
    pod
}

#[test]
fn the_surplus_leaves_in_upstreams_order() {
    let ready = Some(3600);
    let cases = [
        (
            "no node",
            pod("a", "n1", "Pending", None),
            pod("b", "", "Pending", None),
        ),
        (
            "pending",
            pod("a", "n1", "Running", None),
            pod("b", "n2", "Pending", None),
        ),
        (
            "unknown",
            pod("a", "n1", "Running", None),
            pod("b", "n2", "Unknown", None),
        ),
        (
            "not ready",
            pod("a", "n1", "Running", ready),
            pod("b", "n2", "Running", None),
        ),
        (
            "cheaper",
            with(pod("a", "n1", "Running", ready), "cost", json!("10")),
            with(pod("b", "n2", "Running", ready), "cost", json!("-5")),
        ),
        (
            "cost before readiness time",
            pod("a", "n1", "Running", Some(1)),
            with(pod("b", "n2", "Running", ready), "cost", json!("-1")),
        ),
        (
            "shorter",
            pod("a", "n1", "Running", ready),
            pod("b", "n2", "Running", Some(60)),
        ),
        (
            "more restarts",
            pod("a", "n1", "Running", ready),
            with(pod("b", "n2", "Running", ready), "restarts", json!(3)),
        ),
    ];
    for (case, stays, leaves) in cases {
        let mut world = world();
        world.pods_start = false;
        world.create(PODS, leaves);
        world.create(PODS, stays);
        world.create(REPLICA_SETS, set(1));
        world.settle();
        assert_eq!(world.names(PODS), ["a"], "{case}");
        assert_eq!(
            world.events("SuccessfulDelete"),
            ["Deleted pod: b"],
            "{case}"
        );
    }
}

#[test]
fn crowded_nodes_are_thinned_out_first() {
    let mut world = world();
    for (name, node) in [("a", "n1"), ("b", "n2"), ("c", "n2"), ("d", "n2")] {
        world.create(PODS, pod(name, node, "Running", Some(100)));
    }
    world.create(REPLICA_SETS, set(2));
    world.settle();
    assert!(
        world.names(PODS).contains(&"a".to_owned()),
        "{:?}",
        world.names(PODS)
    );
    assert_eq!(world.list(PODS).len(), 2);
}

#[test]
fn pods_are_adopted_and_released_by_label() {
    let mut world = world();
    world.create(PODS, pod("a", "n1", "Running", Some(100)));
    world.create(REPLICA_SETS, set(2));
    world.settle();
    let adopted = world.get(PODS, "a");
    assert_eq!(meta::controller(&adopted).unwrap()["name"], "web");
    assert_eq!(world.list(PODS).len(), 2);
    let status = &world.get(REPLICA_SETS, "web")["status"];
    assert_eq!(status["replicas"], 2);
    assert_eq!(status["fullyLabeledReplicas"], 1);

    world.patch(PODS, "a", json!({"metadata": {"labels": {"app": "other"}}}));
    world.settle();
    assert!(meta::controller(&world.get(PODS, "a")).is_none());
    assert_eq!(world.list(PODS).len(), 3);
}

#[test]
fn finished_pods_are_replaced() {
    let mut world = world();
    world.create(REPLICA_SETS, set(1));
    world.settle();
    let name = world.names(PODS)[0].clone();
    world.patch_status(PODS, &name, json!({"phase": "Failed"}));
    world.settle();
    assert_eq!(world.list(PODS).len(), 2);
    assert_eq!(world.get(REPLICA_SETS, "web")["status"]["replicas"], 1);
}

#[test]
fn a_refused_pod_shows_on_the_set_and_is_tried_again_later() {
    let mut world = world();
    world.refuse = |action| {
        let is_pod = matches!(action, Action::Create(("", "pods"), _));
        is_pod.then(|| "no more room".to_owned())
    };
    world.create(REPLICA_SETS, set(2));
    world.settle();
    assert_eq!(world.events("SuccessfulCreate").len(), 0);
    assert_eq!(
        world.events("FailedCreate"),
        ["Error creating: no more room"]
    );
    let condition = &world.get(REPLICA_SETS, "web")["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("ReplicaFailure"), &json!("FailedCreate"))
    );
    world.wait();
    let first = world.now;
    world.wait();
    assert_eq!(world.now.as_second() - first.as_second(), 2);
    world.refuse = |_| None;
    world.wait();
    assert_eq!(world.list(PODS).len(), 2);
    assert!(world.get(REPLICA_SETS, "web")["status"]["conditions"].is_null());
}

#[test]
fn names_are_the_same_in_every_run() {
    let run = || {
        let mut world = world();
        world.create(REPLICA_SETS, set(20));
        world.settle();
        world.names(PODS)
    };
    assert_eq!(run(), run());
    assert_eq!(run().len(), 20);
}
