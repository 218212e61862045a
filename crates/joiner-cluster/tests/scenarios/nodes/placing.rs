//! Which node, or why none?

use joiner_cluster::Scheduler;
use serde_json::{Value, json};

use crate::nodes::world::{EVENTS, NODES, PODS, World, node, pod, zone};

fn world(nodes: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new(vec![Box::new(Scheduler::default())]);
    for node in nodes {
        world.create(NODES, node);
    }
    world
}

/// The start of the message when a pod cannot be placed.
fn refusal(world: &World, pod: &str) -> String {
    let [status, reason, message] = world.condition(PODS, pod, "PodScheduled");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "Unschedulable"),
        "{pod}"
    );
    message.split(". preemption:").next().unwrap().to_owned()
}

fn taint(key: &str, value: &str, effect: &str) -> Value {
    json!({"spec": {"taints": [{"key": key, "value": value, "effect": effect}]}})
}

fn require(expression: Value) -> Value {
    let terms = json!([{"matchExpressions": [expression]}]);
    let required = json!({"nodeSelectorTerms": terms});
    json!({"spec": {"affinity": {"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": required}}}})
}

#[test]
fn filters_say_why() {
    let cases: Vec<(&str, Value, Value, &str)> = vec![
        (
            "cpu",
            json!({}),
            pod("p", "5", json!({})),
            "1 Insufficient cpu",
        ),
        (
            "cpu and pods",
            json!({"status": {"allocatable": {"pods": "0"}}}),
            pod("p", "5", json!({})),
            "1 Insufficient cpu, 1 Too many pods",
        ),
        (
            "extended",
            json!({}),
            pod(
                "p",
                "1",
                json!({"spec": {"overhead": {"nvidia.com/gpu": "1"}}}),
            ),
            "1 Insufficient nvidia.com/gpu",
        ),
        (
            "cordon",
            json!({"spec": {"unschedulable": true}}),
            pod("p", "1", json!({})),
            "1 node(s) were unschedulable",
        ),
        (
            "taint",
            taint("team", "a", "NoSchedule"),
            pod("p", "1", json!({})),
            "1 node(s) had untolerated taint(s)",
        ),
        (
            "taint, other value",
            taint("team", "a", "NoExecute"),
            pod(
                "p",
                "1",
                json!({"spec": {"tolerations": [{"key": "team", "value": "b"}]}}),
            ),
            "1 node(s) had untolerated taint(s)",
        ),
        (
            "selector",
            json!({}),
            pod("p", "1", json!({"spec": {"nodeSelector": {"disk": "ssd"}}})),
            "1 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            "affinity",
            zone("a"),
            pod(
                "p",
                "1",
                require(json!({
                    "key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"],
                })),
            ),
            "1 node(s) didn't match Pod's node affinity/selector",
        ),
        (
            "claim",
            json!({}),
            pod(
                "p",
                "1",
                json!({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}}),
            ),
            "persistentvolumeclaim \"data\" not found",
        ),
    ];
    for (what, of_node, pod, expected) in cases {
        let mut world = world([node("n", of_node)]);
        world.create(PODS, pod);
        world.settle();
        let expected = format!("0/1 nodes are available: {expected}");
        assert_eq!(refusal(&world, "p"), expected, "{what}");
        assert_eq!(world.events("FailedScheduling").len(), 1, "{what}");
    }
}

#[test]
fn what_is_tolerated_is_no_obstacle() {
    let tolerations = [
        json!({"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}),
        json!({"key": "team", "operator": "Exists"}),
        json!({"operator": "Exists"}),
    ];
    for toleration in tolerations {
        let mut world = world([node("n", taint("team", "a", "NoSchedule"))]);
        world.create(
            PODS,
            pod("p", "1", json!({"spec": {"tolerations": [toleration]}})),
        );
        world.settle();
        assert_eq!(world.node_of("p").as_deref(), Some("n"), "{toleration}");
    }
}

#[test]
fn a_placed_pod_is_bound_and_told_of() {
    let mut world = world([node("n", json!({}))]);
    world.create(PODS, pod("p", "1", json!({})));
    world.create(
        PODS,
        pod("other", "1", json!({"spec": {"schedulerName": "mine"}})),
    );
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("n"));
    assert_eq!(world.node_of("other"), None, "not ours");
    assert_eq!(
        world.events("Scheduled"),
        ["Successfully assigned default/p to n"]
    );
}

#[test]
fn no_nodes_at_all() {
    let mut world = world([]);
    world.create(PODS, pod("p", "1", json!({})));
    world.settle();
    assert_eq!(refusal(&world, "p"), "no nodes available to schedule pods");
}

#[test]
fn the_message_counts_nodes() {
    let mut world = world([
        node("a", json!({})),
        node("b", taint("x", "y", "NoSchedule")),
        node("c", taint("x", "z", "NoSchedule")),
    ]);
    world.create(PODS, pod("p", "8", json!({})));
    world.settle();
    let [_, _, message] = world.condition(PODS, "p", "PodScheduled");
    assert_eq!(
        message,
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). \
         preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    );
}

#[test]
fn pods_of_one_step_see_each_other() {
    let mut world = world([node("a", json!({})), node("b", json!({}))]);
    for ix in 0..5 {
        world.create(PODS, pod(&format!("p{ix}"), "1500m", json!({})));
    }
    world.settle();
    let on = |name: &str| {
        (0..5)
            .filter(|ix| world.node_of(&format!("p{ix}")).as_deref() == Some(name))
            .count()
    };
    assert_eq!((on("a"), on("b")), (2, 2), "four fit, the fifth does not");
    assert_eq!(
        refusal(&world, "p4"),
        "0/2 nodes are available: 2 Insufficient cpu"
    );
}

#[test]
fn ports_clash() {
    let port = |ip: &str| {
        let ports = json!([{"containerPort": 80, "hostPort": 80, "hostIP": ip}]);
        let container = json!({"name": "main", "ports": ports});
        json!({"spec": {"containers": [container]}})
    };
    let mut world = world([node("a", json!({}))]);
    world.create(PODS, pod("p0", "0", port("10.0.0.1")));
    world.create(PODS, pod("p1", "0", port("10.0.0.2")));
    world.create(PODS, pod("p2", "0", port("")));
    world.settle();
    assert!(world.node_of("p0").is_some() && world.node_of("p1").is_some());
    let expected = "1 node(s) didn't have free ports for the requested pod ports";
    assert_eq!(
        refusal(&world, "p2"),
        format!("0/1 nodes are available: {expected}")
    );
}

#[test]
fn important_pods_go_first_then_older_ones() {
    let mut world = world([]);
    world.create(PODS, pod("a-late", "3", json!({"spec": {"priority": 0}})));
    world.create(
        PODS,
        pod("z-important", "3", json!({"spec": {"priority": 10}})),
    );
    world.create(NODES, node("n", json!({})));
    world.settle();
    assert_eq!(world.node_of("z-important").as_deref(), Some("n"));
    assert_eq!(world.node_of("a-late"), None);
}

#[test]
fn gates_hold_pods_back() {
    let mut world = world([node("n", json!({}))]);
    world.create(
        PODS,
        pod(
            "p",
            "1",
            json!({"spec": {"schedulingGates": [{"name": "quota"}]}}),
        ),
    );
    world.settle();
    assert_eq!(
        world.condition(PODS, "p", "PodScheduled")[1],
        "SchedulingGated"
    );
    world.patch(PODS, "p", json!({"spec": {"schedulingGates": null}}));
    world.settle();
    assert!(world.node_of("p").is_some());
}

#[test]
fn failures_are_told_once_and_retried_when_nodes_change() {
    let mut world = world([node(
        "small",
        json!({"status": {"allocatable": {"cpu": "1"}}}),
    )]);
    world.create(PODS, pod("p", "2", json!({})));
    world.settle();
    world.pass(30);
    assert_eq!(world.list(EVENTS)[0]["count"], 1, "told once");
    world.create(NODES, node("large", json!({})));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("large"));
}

#[test]
fn a_nominated_node_is_taken_if_it_fits() {
    let mut world = world(["a", "b", "c", "d"].map(|name| node(name, json!({}))));
    world.create(PODS, pod("load", "3", json!({"spec": {"nodeName": "c"}})));
    world.create(
        PODS,
        pod("p", "1", json!({"status": {"nominatedNodeName": "c"}})),
    );
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("c"));
    world.create(
        PODS,
        pod("q", "3", json!({"status": {"nominatedNodeName": "c"}})),
    );
    world.settle();
    assert_ne!(world.node_of("q").as_deref(), Some("c"));
}

#[test]
fn room_that_was_promised_is_not_for_others_who_come_first() {
    let mut world = world(["a"].map(|name| node(name, json!({}))));
    // It does not go there yet, for another reason than room.
    let late = json!({"spec": {"nodeSelector": {"open": "yes"}},
        "status": {"nominatedNodeName": "a"}});
    world.create(PODS, pod("a-late", "3", late));
    world.create(PODS, pod("b", "2", json!({})));
    world.create(PODS, pod("c", "1", json!({})));
    world.settle();
    assert_eq!(world.node_of("a-late"), None);
    assert_eq!(world.node_of("b"), None, "the room is promised");
    assert_eq!(world.node_of("c").as_deref(), Some("a"));
}

#[test]
fn pods_that_name_their_node_get_it_or_nothing() {
    let name = |name: &str| {
        let field = json!({"key": "metadata.name", "operator": "In", "values": [name]});
        let required = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        json!({"spec": {"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": required}}}})
    };
    let mut world = world(["a", "b", "c"].map(|name| node(name, json!({}))));
    world.create(PODS, pod("p", "1", name("b")));
    world.create(PODS, pod("q", "9", name("b")));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("b"));
    assert_eq!(
        refusal(&world, "q"),
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]"
    );
}

#[test]
fn wishes_decide_between_nodes_that_will_do() {
    let soft = taint("old", "", "PreferNoSchedule");
    let mut world = world([node("a", soft), node("b", zone("x")), node("c", json!({}))]);
    let wish = json!([{"weight": 10, "preference": {"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["x"]},
    ]}}]);
    let wish = json!({"spec": {"affinity": {"nodeAffinity":
        {"preferredDuringSchedulingIgnoredDuringExecution": wish}}}});
    world.create(PODS, pod("p", "1", wish));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("b"));
    for ix in 0..6 {
        world.create(PODS, pod(&format!("q{ix}"), "100m", json!({})));
    }
    world.settle();
    let avoided = (0..6).all(|ix| world.node_of(&format!("q{ix}")).as_deref() != Some("a"));
    assert!(avoided, "a taint to avoid weighs more than a bit of room");
}

#[test]
fn the_emptier_node_wins_and_ties_depend_on_the_pod() {
    let mut world = world(["a", "b"].map(|name| node(name, json!({}))));
    world.create(PODS, pod("load", "2", json!({"spec": {"nodeName": "a"}})));
    world.create(PODS, pod("p", "100m", json!({})));
    world.settle();
    assert_eq!(world.node_of("p").as_deref(), Some("b"));

    let place = || {
        let mut world = self::world(["a", "b", "c", "d"].map(|name| node(name, json!({}))));
        for ix in 0..4 {
            world.create(PODS, pod(&format!("p{ix}"), "1", json!({})));
        }
        world.settle();
        (0..4)
            .map(|ix| world.node_of(&format!("p{ix}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(place(), place());
}
