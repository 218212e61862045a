use joiner_cluster::{DaemonSets, GarbageCollector};
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::controllers::world::{DAEMON_SETS, NODES, PODS, REVISIONS, World};

fn world(nodes: usize) -> World {
    let mut world = World::new(vec![Box::<DaemonSets>::default()]);
    for n in 0..nodes {
        world.create(NODES, node(&format!("n{n}"), json!([])));
    }
    world
}

fn node(name: &str, taints: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"name": name}}, "spec": {"taints": taints}})
}

fn agent(strategy: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "updateStrategy": strategy,
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]},
            },
        },
    })
}

fn rolling(unavailable: Value, surge: Value) -> Value {
    let limits = json!({"maxUnavailable": unavailable, "maxSurge": surge});
    json!({"type": "RollingUpdate", "rollingUpdate": limits})
}

fn set_image(world: &mut World, image: &str) {
    let containers = json!([{"name": "c", "image": image}]);
    let spec = json!({"template": {"spec": {"containers": containers}}});
    world.patch(DAEMON_SETS, "agent", json!({"spec": spec}));
}

fn nodes_of_pods(world: &World) -> Vec<String> {
    let pods = world.list(PODS);
    let mut nodes: Vec<String> = pods
        .iter()
        .map(|pod| pod["spec"]["nodeName"].as_str().unwrap().to_owned())
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn every_eligible_node_gets_a_pinned_pod() {
    let mut world = world(2);
    let taint = |effect: &str| json!([{"key": "own", "effect": effect}]);
    world.create(NODES, node("tainted", taint("NoSchedule")));
    world.create(NODES, node("soft", taint("PreferNoSchedule")));
    let cordon = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    world.create(NODES, node("cordoned", cordon));
    let sick = json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]);
    world.create(NODES, node("unreachable", sick));
    world.create(DAEMON_SETS, agent(rolling(json!(1), json!(0))));
    world.settle();
    assert_eq!(
        nodes_of_pods(&world),
        ["cordoned", "n0", "n1", "soft", "unreachable"]
    );
    let status = &world.get(DAEMON_SETS, "agent")["status"];
    for field in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ] {
        assert_eq!(status[field], 5, "{field}");
    }
    assert_eq!(status["numberMisscheduled"], 0);
    assert!(status["numberUnavailable"].is_null());
    let pod = &world.list(PODS)[0];
    let required = &pod["spec"]["affinity"]["nodeAffinity"];
    let required = &required["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        required["nodeSelectorTerms"][0]["matchFields"][0]["key"],
        "metadata.name"
    );
    assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 6);
    let [revision] = &world.list(REVISIONS)[..] else {
        panic!("one revision")
    };
    assert_eq!(revision["revision"], 1);
    assert_eq!(
        meta::label(pod, "controller-revision-hash"),
        meta::label(revision, "controller-revision-hash")
    );
}

#[test]
fn pods_follow_nodes_selectors_and_taints() {
    let mut world = world(3);
    world.create(DAEMON_SETS, agent(rolling(json!(1), json!(0))));
    world.settle();
    world.create(NODES, node("n3", json!([])));
    world.settle();
    assert_eq!(nodes_of_pods(&world).len(), 4);
    // A new taint keeps new pods away, but only NoExecute drives out the one that is there.
    world.patch(
        NODES,
        "n3",
        json!({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}}),
    );
    world.settle();
    assert_eq!(nodes_of_pods(&world).len(), 4);
    let status = &world.get(DAEMON_SETS, "agent")["status"];
    assert_eq!(
        (
            &status["desiredNumberScheduled"],
            &status["numberMisscheduled"]
        ),
        (&json!(3), &json!(1))
    );
    world.patch(
        NODES,
        "n3",
        json!({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}),
    );
    world.settle();
    assert_eq!(nodes_of_pods(&world), ["n0", "n1", "n2"]);
    let selector = json!({"name": "n1"});
    world.patch(
        DAEMON_SETS,
        "agent",
        json!({"spec": {"template": {"spec": {"nodeSelector": selector}}}}),
    );
    world.settle();
    assert_eq!(nodes_of_pods(&world), ["n1"]);
}

#[test]
fn a_rolling_update_stays_within_its_limits() {
    for (unavailable, surge, least, most) in [
        (json!(1), json!(0), 9, 10),
        (json!("25%"), json!(0), 7, 10),
        (json!(0), json!(2), 10, 12),
    ] {
        let mut world = world(10);
        world.create(
            DAEMON_SETS,
            agent(rolling(unavailable.clone(), surge.clone())),
        );
        world.settle();
        set_image(&mut world, "v2");
        let case = format!("unavailable {unavailable}, surge {surge}");
        world.settle_and(|world| {
            let pods = world.list(PODS);
            let up = pods
                .iter()
                .filter(|p| p["status"]["phase"] == "Running" && !meta::is_deleting(p));
            let up = up.count();
            assert!(up >= least, "{case}: only {up} are up");
            let alive = pods.iter().filter(|pod| !meta::is_deleting(pod)).count();
            assert!(alive <= most, "{case}: {alive} pods");
        });
        let updated = |pod: &Value| pod["spec"]["containers"][0]["image"] == "v2";
        assert!(world.list(PODS).iter().all(updated), "{case}");
        assert_eq!(world.list(PODS).len(), 10, "{case}");
        assert_eq!(
            world.get(DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"],
            10
        );
    }
}

#[test]
fn undo_reuses_the_revision() {
    let mut world = world(1);
    world.create(DAEMON_SETS, agent(rolling(json!(1), json!(0))));
    world.settle();
    for image in ["v2", "v1"] {
        set_image(&mut world, image);
        world.settle();
    }
    let mut numbers: Vec<i64> = world
        .list(REVISIONS)
        .iter()
        .map(|r| r["revision"].as_i64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
    assert_eq!(world.list(PODS)[0]["spec"]["containers"][0]["image"], "v1");
}

#[test]
fn on_delete_leaves_old_pods_alone() {
    let mut world = world(2);
    world.create(DAEMON_SETS, agent(json!({"type": "OnDelete"})));
    world.settle();
    set_image(&mut world, "v2");
    world.settle();
    assert!(world.get(DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"].is_null());
    let name = world.names(PODS)[0].clone();
    world.delete(PODS, &name, None);
    world.settle();
    assert_eq!(
        world.get(DAEMON_SETS, "agent")["status"]["updatedNumberScheduled"],
        1
    );
}

#[test]
fn a_failed_pod_is_replaced_after_a_while() {
    let mut world = world(1);
    world.create(DAEMON_SETS, agent(rolling(json!(1), json!(0))));
    world.settle();
    let name = world.names(PODS)[0].clone();
    world.patch_status(PODS, &name, json!({"phase": "Failed"}));
    world.settle();
    world.wait();
    assert_eq!(world.events("FailedDaemonPod").len(), 1);
    assert_ne!(world.names(PODS), [name]);
    assert_eq!(world.get(DAEMON_SETS, "agent")["status"]["numberReady"], 1);
}

#[test]
fn one_that_goes_last_makes_nothing_new() {
    let mut world = World::new(vec![
        Box::<GarbageCollector>::default(),
        Box::<DaemonSets>::default(),
    ]);
    world.create(NODES, node("n0", json!([])));
    world.create(DAEMON_SETS, agent(rolling(json!(1), json!(0))));
    world.settle();
    assert_eq!(world.list(REVISIONS).len(), 1);
    world.delete(DAEMON_SETS, "agent", Some("Foreground"));
    world.settle();
    assert_eq!(world.list(DAEMON_SETS), Vec::<Value>::new());
    assert_eq!(world.list(REVISIONS), Vec::<Value>::new());
}
