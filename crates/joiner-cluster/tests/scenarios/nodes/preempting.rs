//! Who makes room for a more important pod?

use joiner_cluster::{Kubelets, Resource, Scheduler};
use serde_json::{Value, json};

use crate::nodes::world::{NODES, PODS, World, merge, node, pod};

const BUDGETS: Resource = ("policy", "poddisruptionbudgets");

fn ranked(name: &str, cpu: &str, priority: i64, more: Value) -> Value {
    let mut made = pod(name, cpu, json!({"spec": {"priority": priority}}));
    merge(&mut made, &more);
    made
}

/// On a node, and slow to leave it.
fn on(node: &str) -> Value {
    json!({
        "metadata": {"annotations": {"joiner.dev/stop-seconds": "20"}},
        "spec": {"nodeName": node},
    })
}

fn labeled(node: &str, app: &str) -> Value {
    let mut more = on(node);
    more["metadata"]["labels"] = json!({"app": app});
    more
}

fn world(nodes: &[&str]) -> World {
    let mut world = World::new(vec![
        Box::new(Scheduler::default()),
        Box::new(Kubelets::default()),
    ]);
    for name in nodes {
        world.create(NODES, node(name, json!({})));
    }
    world
}

/// Pods that were told to leave.
fn leaving(world: &World) -> Vec<String> {
    let pods = world.list(PODS).into_iter();
    let gone = pods.filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
    gone.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_placeholder_makes_room_and_the_pod_follows() {
    let mut world = world(&["a"]);
    world.create(PODS, ranked("filler", "3", -10, on("a")));
    world.create(PODS, ranked("other", "1", 5, on("a")));
    world.pass(5);
    world.create(PODS, ranked("web", "2", 0, json!({})));
    world.settle();
    assert_eq!(leaving(&world), ["filler"]);
    let web = world.get(PODS, "web");
    assert_eq!(web["status"]["nominatedNodeName"], "a");
    let [_, reason, message] = world.condition(PODS, "web", "PodScheduled");
    assert_eq!(reason, "Unschedulable");
    assert_eq!(message, "0/1 nodes are available: 1 Insufficient cpu.");
    assert_eq!(
        world.condition(PODS, "filler", "DisruptionTarget"),
        [
            "True",
            "PreemptionByScheduler",
            "default-scheduler: preempting to accommodate a higher priority pod",
        ]
    );
    let uid = web["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        world.events("Preempted"),
        [format!("Preempted by pod {uid} on node a")]
    );

    // A lesser pod that comes along meanwhile does not get the room; nobody is told twice.
    world.create(PODS, ranked("late", "1", -1, json!({})));
    world.pass(40);
    assert_eq!(world.node_of("web").as_deref(), Some("a"));
    assert!(world.get(PODS, "web")["status"]["nominatedNodeName"].is_null());
    assert_eq!(world.node_of("late").as_deref(), Some("a"));
    assert_eq!(world.events("FailedScheduling").len(), 2, "one for each");
    assert_eq!(world.events("Preempted").len(), 1);
}

#[test]
fn room_that_is_promised_is_kept() {
    let mut world = world(&["a"]);
    world.create(PODS, ranked("filler", "2", -10, on("a")));
    world.pass(5);
    world.create(PODS, ranked("big", "4", 0, json!({})));
    world.settle();
    assert_eq!(leaving(&world), ["filler"]);
    world.create(PODS, ranked("small", "1", -1, json!({})));
    world.pass(40);
    assert_eq!(world.node_of("big").as_deref(), Some("a"));
    assert_eq!(world.node_of("small"), None);
}

#[test]
fn the_node_that_hurts_least_is_chosen() {
    let busy = |world: &mut World| {
        world.create(PODS, ranked("a-high", "4", 3, on("a")));
        world.create(PODS, ranked("b-one", "2", 1, on("b")));
        world.create(PODS, ranked("b-two", "2", 1, on("b")));
        world.create(PODS, ranked("c-low", "3", 1, on("c")));
        world.create(PODS, ranked("c-lower", "1", 0, on("c")));
    };
    let cases = [
        ("4", 10, vec!["c-low", "c-lower"]),
        ("3", 10, vec!["c-low"]),
        ("1", 10, vec!["c-lower"]),
        ("1", 0, vec![]),
    ];
    for (cpu, priority, expected) in cases {
        let mut world = world(&["a", "b", "c"]);
        busy(&mut world);
        world.pass(5);
        world.create(PODS, ranked("web", cpu, priority, json!({})));
        world.settle();
        assert_eq!(leaving(&world), expected, "{cpu} at {priority}");
    }
}

#[test]
fn budgets_are_kept_where_there_is_a_choice() {
    let budget = |allowed: i64| {
        json!({"metadata": {"name": "db"}, "spec": {"selector": {"matchLabels": {"app": "db"}}},
            "status": {"disruptionsAllowed": allowed}})
    };
    for (allowed, expected) in [(0, "plain"), (1, "db")] {
        let mut world = world(&["a", "b"]);
        world.create(PODS, ranked("db", "4", 0, labeled("a", "db")));
        world.create(PODS, ranked("plain", "4", 1, labeled("b", "web")));
        world.create(BUDGETS, budget(allowed));
        world.pass(5);
        world.create(PODS, ranked("boss", "4", 9, json!({})));
        world.settle();
        assert_eq!(leaving(&world), [expected], "{allowed} allowed");
    }
    let mut world = world(&["a"]);
    world.create(PODS, ranked("db", "4", 0, labeled("a", "db")));
    world.create(BUDGETS, budget(0));
    world.pass(5);
    world.create(PODS, ranked("boss", "4", 9, json!({})));
    world.settle();
    assert_eq!(leaving(&world), ["db"], "priority has the last word");
}

#[test]
fn the_message_says_why_nobody_has_to_go() {
    let cases = [
        (
            json!({"spec": {"priority": 9, "preemptionPolicy": "Never"}}),
            "3",
            "preemption: not eligible due to preemptionPolicy=Never.",
        ),
        (
            json!({"spec": {"priority": 0}}),
            "3",
            "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, \
             1 Preemption is not helpful for scheduling.",
        ),
        (
            json!({"spec": {"priority": 9}}),
            "4",
            "preemption: 0/2 nodes are available: 1 Insufficient cpu, \
             1 Preemption is not helpful for scheduling.",
        ),
    ];
    for (more, cpu, expected) in cases {
        let mut world = world(&["a"]);
        world.create(NODES, node("b", json!({"spec": {"unschedulable": true}})));
        world.create(PODS, ranked("king", "1", 100, on("a")));
        world.create(PODS, ranked("serf", "2", 0, on("a")));
        world.create(PODS, pod("web", cpu, more));
        world.settle();
        let [_, _, message] = world.condition(PODS, "web", "PodScheduled");
        let start = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.";
        assert_eq!(message, format!("{start} {expected}"));
        assert!(leaving(&world).is_empty());
    }
}

#[test]
fn rules_between_pods_can_be_what_is_in_the_way() {
    let term = json!({
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    });
    let away = json!({"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let mut world = world(&["a"]);
    world.create(PODS, ranked("db", "1", 0, labeled("a", "db")));
    world.create(PODS, ranked("bystander", "1", 0, on("a")));
    world.pass(5);
    world.create(
        PODS,
        ranked("web", "1", 9, json!({"spec": {"affinity": away}})),
    );
    world.settle();
    assert_eq!(leaving(&world), ["db"]);
    world.pass(40);
    assert_eq!(world.node_of("web").as_deref(), Some("a"));
}

#[test]
fn several_pods_displace_several() {
    let mut world = world(&["a", "b"]);
    for node in ["a", "b"] {
        for ix in 0..4 {
            world.create(PODS, ranked(&format!("{node}-{ix}"), "1", -1, on(node)));
        }
    }
    world.pass(5);
    for ix in 0..6 {
        world.create(PODS, ranked(&format!("web-{ix}"), "1", 0, json!({})));
    }
    world.settle();
    assert_eq!(leaving(&world).len(), 6);
    world.pass(40);
    let placed = (0..6).filter(|ix| world.node_of(&format!("web-{ix}")).is_some());
    assert_eq!(placed.count(), 6);
}
