//! The life of nodes and pods through time.

use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::nodes::world::{LEASES, NODES, PODS, World, node, pod};

fn annotated(pairs: Value) -> Value {
    json!({"metadata": {"annotations": pairs}})
}

/// Keys of a node's taints with their effects.
fn taints(world: &World, node: &str) -> Vec<String> {
    let node = world.get(NODES, node);
    let taints = node["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |taint: &Value| {
        let key = taint["key"]
            .as_str()
            .unwrap()
            .trim_start_matches("node.kubernetes.io/");
        format!("{key}:{}", taint["effect"].as_str().unwrap())
    };
    taints.iter().map(text).collect()
}

#[test]
fn a_bare_node_boots() {
    let mut world = World::whole();
    let bare = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "annotations": {"joiner.dev/boot-seconds": "30"}},
    });
    world.create(NODES, bare);
    world.create(PODS, pod("p", "1", json!({})));
    world.pass(29);
    assert_eq!(
        world.condition(NODES, "n", "Ready")[..2],
        ["False", "KubeletNotReady"]
    );
    assert_eq!(
        taints(&world, "n"),
        ["not-ready:NoSchedule", "not-ready:NoExecute"]
    );
    assert_eq!(world.node_of("p"), None);
    world.pass(1);
    assert_eq!(
        world.condition(NODES, "n", "Ready")[..2],
        ["True", "KubeletReady"]
    );
    assert_eq!(world.condition(NODES, "n", "DiskPressure")[0], "False");
    assert!(taints(&world, "n").is_empty());
    assert_eq!(world.node_of("p").as_deref(), Some("n"));
    let booted = world.get(NODES, "n");
    assert_eq!(meta::label(&booted, "kubernetes.io/hostname"), Some("n"));
    assert_eq!(meta::label(&booted, "kubernetes.io/os"), Some("linux"));
    assert_eq!(booted["status"]["allocatable"]["cpu"], "4");
    let version = booted["status"]["nodeInfo"]["kubeletVersion"].as_str();
    assert!(version.unwrap().starts_with("v1.36.3-eks-"), "{version:?}");
    assert!(
        booted["status"]["addresses"][0]["address"]
            .as_str()
            .unwrap()
            .starts_with("10.0.")
    );
    assert_eq!(
        world.events("NodeReady"),
        ["Node n status is now: NodeReady"]
    );
}

#[test]
fn leases_are_renewed_and_status_is_posted_rarely() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    world.pass(3);
    let posted = world.get(NODES, "n")["metadata"]["resourceVersion"].clone();
    world.pass(250);
    let renewed = world.get(LEASES, "n")["spec"]["renewTime"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(renewed, "2026-01-01T00:04:10.000000Z");
    assert_eq!(
        world.get(NODES, "n")["metadata"]["resourceVersion"],
        posted,
        "no news"
    );
    world.pass(100);
    let ready = world.get(NODES, "n")["status"]["conditions"]
        .as_array()
        .unwrap()
        .clone();
    let ready = ready.iter().find(|one| one["type"] == "Ready").unwrap();
    assert_eq!(ready["lastHeartbeatTime"], "2026-01-01T00:05:00Z");
    assert_eq!(ready["lastTransitionTime"], "2026-01-01T00:00:00Z");
}

#[test]
fn a_pod_starts() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    let more = json!({"spec": {
        "initContainers": [{"name": "setup", "image": "tool:1"}],
        "readinessGates": [{"conditionType": "example.com/go"}],
    }});
    world.create(PODS, pod("p", "1", more));
    world.settle();
    let status = world.get(PODS, "p")["status"].clone();
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["startTime"], "2026-01-01T00:00:00Z");
    assert_eq!(
        status["containerStatuses"][0]["state"]["waiting"]["reason"],
        "PodInitializing"
    );
    assert_eq!(
        world.condition(PODS, "p", "Initialized")[1],
        "ContainersNotInitialized"
    );
    world.pass(1);
    let status = world.get(PODS, "p")["status"].clone();
    assert!(
        status["initContainerStatuses"][0]["state"]["running"].is_object(),
        "{status}"
    );
    assert_eq!(
        world.condition(PODS, "p", "PodReadyToStartContainers")[0],
        "True"
    );
    world.pass(1);
    let status = world.get(PODS, "p")["status"].clone();
    assert_eq!(status["phase"], "Running");
    assert!(status["podIP"].as_str().unwrap().starts_with("10.244."));
    assert_eq!(status["containerStatuses"][0]["ready"], true);
    assert_eq!(
        world.condition(PODS, "p", "PodScheduled")[0],
        "True",
        "others' conditions stay"
    );
    assert_eq!(world.condition(PODS, "p", "ContainersReady")[0], "True");
    assert_eq!(
        world.condition(PODS, "p", "Ready")[..2],
        ["False", "ReadinessGatesNotReady"]
    );
    let mut conditions = status["conditions"].as_array().unwrap().clone();
    conditions.push(json!({"type": "example.com/go", "status": "True"}));
    world
        .apply(&joiner_cluster::Action::Patch {
            resource: PODS,
            key: ("default".to_owned(), "p".to_owned()),
            subresource: Some("status"),
            patch: json!({"status": {"conditions": conditions}}),
        })
        .unwrap();
    world.settle();
    assert_eq!(world.condition(PODS, "p", "Ready")[0], "True");
    assert_eq!(world.events("Started"), ["Container started"]);
    assert_eq!(world.events("Pulled").len(), 2, "one per image");
}

#[test]
fn addresses_differ() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    for ix in 0..8 {
        world.create(PODS, pod(&format!("p{ix}"), "100m", json!({})));
    }
    world.create(
        PODS,
        pod("host", "100m", json!({"spec": {"hostNetwork": true}})),
    );
    world.pass(5);
    let pods = world.list(PODS);
    let ips: std::collections::BTreeSet<&str> = pods
        .iter()
        .map(|pod| pod["status"]["podIP"].as_str().unwrap())
        .collect();
    assert_eq!(ips.len(), 9);
    let host = world.get(PODS, "host")["status"].clone();
    assert_eq!(host["podIP"], host["hostIP"]);
}

#[test]
fn jobs_end() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    let job = |pairs| {
        let mut more = annotated(pairs);
        more["spec"] = json!({"restartPolicy": "Never"});
        more
    };
    world.create(PODS, pod("short", "100m", job(json!({}))));
    world.create(
        PODS,
        pod("long", "100m", job(json!({"joiner.dev/run-seconds": "60"}))),
    );
    world.create(
        PODS,
        pod("bad", "100m", job(json!({"joiner.dev/exit-code": "3"}))),
    );
    world.pass(11);
    assert_eq!(world.phase("short"), "Succeeded");
    assert_eq!(
        world.condition(PODS, "short", "Ready")[..2],
        ["False", "PodCompleted"]
    );
    assert_eq!(world.phase("long"), "Running");
    assert_eq!(world.phase("bad"), "Failed");
    let ended = &world.get(PODS, "bad")["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 3);
    assert_eq!(ended["startedAt"], "2026-01-01T00:00:01Z");
    assert_eq!(ended["finishedAt"], "2026-01-01T00:00:11Z");
    world.pass(50);
    assert_eq!(world.phase("long"), "Succeeded");
}

#[test]
fn deleted_pods_go_in_their_own_time() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    let stop = |seconds: &str, grace: i64| {
        let mut more = annotated(json!({"joiner.dev/stop-seconds": seconds}));
        more["spec"] = json!({"terminationGracePeriodSeconds": grace});
        more
    };
    world.create(PODS, pod("quick", "100m", json!({})));
    world.create(PODS, pod("slow", "100m", stop("5", 30)));
    world.create(PODS, pod("stubborn", "100m", stop("500", 10)));
    let mut held = stop("0", 30);
    held["metadata"]["finalizers"] = json!(["example.com/count"]);
    world.create(PODS, pod("held", "100m", held));
    world.pass(5);
    for name in ["quick", "slow", "stubborn", "held"] {
        assert_eq!(world.phase(name), "Running", "{name}");
        world.delete(PODS, name);
    }
    world.pass(1);
    assert!(world.find(PODS, "quick").is_none());
    assert!(world.find(PODS, "slow").is_some());
    assert_eq!(
        world.phase("held"),
        "Failed",
        "whoever holds it sees how it ended"
    );
    world.pass(4);
    assert!(world.find(PODS, "slow").is_none());
    assert!(world.find(PODS, "stubborn").is_some());
    world.pass(5);
    assert!(world.find(PODS, "stubborn").is_none());
    assert_eq!(world.events("Killing").len(), 4);
}

#[test]
fn a_lost_node_is_noticed_and_its_pods_are_evicted() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    let patient = json!({"spec": {"tolerations": [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 60},
    ]}});
    let daemon = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    world.create(PODS, pod("usual", "100m", json!({})));
    world.create(PODS, pod("patient", "100m", patient));
    world.create(PODS, pod("daemon", "100m", daemon));
    world.pass(10);
    world.patch(
        NODES,
        "n",
        annotated(json!({"joiner.dev/kubelet": "stopped"})),
    );
    world.pass(39);
    assert_eq!(world.condition(NODES, "n", "Ready")[0], "True");
    world.pass(6);
    assert_eq!(
        world.condition(NODES, "n", "Ready")[..2],
        ["Unknown", "NodeStatusUnknown"]
    );
    assert_eq!(
        taints(&world, "n"),
        ["unreachable:NoSchedule", "unreachable:NoExecute"]
    );
    assert_eq!(world.condition(PODS, "usual", "Ready")[0], "False");
    let deleting = |world: &World, name: &str| meta::is_deleting(&world.get(PODS, name));
    world.pass(60);
    assert!(deleting(&world, "patient") && !deleting(&world, "usual"));
    let [_, reason, _] = world.condition(PODS, "patient", "DisruptionTarget");
    assert_eq!(reason, "DeletionByTaintManager");
    world.pass(240);
    assert!(deleting(&world, "usual") && !deleting(&world, "daemon"));
    // Nobody is there to end them, until the node is back.
    world.patch(NODES, "n", annotated(json!({"joiner.dev/kubelet": null})));
    world.pass(2);
    assert_eq!(world.condition(NODES, "n", "Ready")[0], "True");
    assert!(taints(&world, "n").is_empty());
    assert!(world.find(PODS, "usual").is_none() && world.find(PODS, "patient").is_none());
    assert_eq!(world.condition(PODS, "daemon", "Ready")[0], "True");
}

#[test]
fn pods_of_a_deleted_node_are_collected() {
    let mut world = World::whole();
    world.create(NODES, node("n", json!({})));
    world.create(PODS, pod("p", "100m", json!({})));
    world.pass(5);
    world.delete(NODES, "n");
    world.pass(39);
    assert!(world.find(PODS, "p").is_some(), "the node may be late");
    world.pass(1);
    assert!(world.find(PODS, "p").is_none());
}

#[test]
fn somebody_elses_nodes_are_left_alone() {
    let mut world = World::whole();
    world.create(
        NODES,
        node("n", annotated(json!({"joiner.dev/kubelet": "false"}))),
    );
    world.pass(59);
    assert!(world.find(LEASES, "n").is_none());
    assert_eq!(world.condition(NODES, "n", "Ready")[0], "");
    world.pass(5);
    assert_eq!(
        world.condition(NODES, "n", "Ready")[1],
        "NodeStatusNeverUpdated"
    );
}

#[test]
fn a_day_is_the_same_twice() {
    let play = || {
        let mut world = World::whole();
        for ix in 0..3 {
            world.create(NODES, node(&format!("n{ix}"), json!({})));
        }
        for ix in 0..10 {
            world.create(PODS, pod(&format!("p{ix}"), "100m", json!({})));
        }
        world.pass(3600);
        world.kinds
    };
    assert!(play() == play());
}
