//! The builders, seen from a test that uses them.

use joiner_model::{MinValuesPolicy, PreferencePolicy};
use joiner_testkit::{
    CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, World, ZONE, daemon, deployment, instance_type, node,
    node_claim, pod, pool, stateful_set,
};
use serde_json::json;

#[test]
fn a_plain_pod_gets_the_smallest_node() {
    World::standard()
        .add(pod("web").cpu("1500m").memory("2Gi"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.1)
        .assert_gap_at_most(0.5)
        .assert_type("web", "small")
        .assert_pool("web", "default")
        .assert_capacity_type("web", "on-demand")
        .assert_on_new_node("web");
}

#[test]
fn nodes_that_exist_are_used_first() {
    let world = World::standard()
        .add(node("old").cpu("2").pool("default").zone("b"))
        .add(node("closed").cordoned())
        .add(node("dying").deleting())
        .add(node_claim("coming", "default").cpu("1").zone("c"))
        .add(pod("there").cpu("500m").on("old"))
        .add(pod("first").cpu("1500m"))
        .add(pod("second").cpu("1"));
    let outcome = world.solve();
    outcome
        .assert_on("first", "old")
        .assert_on("second", "coming")
        .assert_zone("first", "b")
        .assert_price(0.0)
        .assert_plan("place old: first\nplace coming: second");
    assert!(outcome.find("there").is_none(), "it is not to be placed");
    assert_eq!(world.reversed().solve().to_string(), outcome.to_string());
}

#[test]
fn selection_reaches_the_parsers() {
    let arm = instance_type("arm").arch("arm64").label("tier", "gold");
    World::standard()
        .add(arm.zone_price("b", "spot", 0.01))
        .add(pod("selector").arch("arm64").zone("b"))
        .add(pod("term").node_affinity("tier", "Exists", ""))
        .add(
            pod("either")
                .node_affinity(ZONE, "In", "z")
                .or_node_affinity(ZONE, "In", "c"),
        )
        .add(pod("spot").capacity_type("spot"))
        .add(pod("wish").prefer_node(10, INSTANCE_TYPE, "In", "large"))
        .solve()
        .assert_type("selector", "arm")
        .assert_type("term", "arm")
        .assert_zone("either", "c")
        .assert_type("spot", "arm")
        .assert_type("wish", "large");
}

#[test]
fn topology_reaches_the_parsers() {
    let outcome = World::standard()
        .add(pod("web").replicas(4).cpu("100m").spread_over_zones(1))
        .add(pod("db").replicas(2).anti_affinity_to(HOSTNAME, "db"))
        .add(
            pod("cache")
                .affinity_to(ZONE, "db")
                .affinity_to(HOSTNAME, "cache"),
        )
        .add(pod("soft").replicas(2).prefer_spread_over(ZONE, 1))
        .add(pod("shy").prefer_anti_affinity_to(5, HOSTNAME, "web"))
        .add(pod("fond").prefer_affinity_to(5, HOSTNAME, "shy"))
        .solve();
    outcome.assert_all_placed().assert_apart("db-0", "db-1");
    let mut counts: Vec<usize> = outcome.count_by(ZONE, "web").into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 2], "{outcome}");
    assert_eq!(outcome.open("web-0", ZONE).len(), 1);
}

#[test]
fn pools_reach_the_parsers() {
    let world = World::new()
        .add(instance_type("m").cpu("4").price(0.2).spot_price(0.05))
        .add(
            pool("gold")
                .weight(50)
                .limit("cpu", "4")
                .label("tier", "gold"),
        )
        .add(
            pool("team")
                .taint("team=a:NoSchedule")
                .startup_taint("boot:NoSchedule"),
        )
        .add(pool("rest").zones("a b").capacity_types("on-demand"))
        .add(pool("off").weight(99).not_ready("no such subnet"));
    world
        .clone()
        .add(pod("gold").cpu("3").node_selector("tier", "gold"))
        .add(pod("team").cpu("3").tolerate("team=a").zone("c"))
        .add(pod("other").cpu("3"))
        .solve()
        .assert_pool("gold", "gold")
        .assert_pool("team", "team")
        .assert_pool("other", "rest")
        .assert_capacity_type("other", "on-demand");
    world
        .add(
            pod("web")
                .replicas(2)
                .cpu("3")
                .node_selector("tier", "gold"),
        )
        .solve()
        .assert_new_nodes(1)
        .assert_left_over("web-1", "pool \"gold\" is limited to 4 of cpu");
}

#[test]
fn workloads_and_daemons() {
    World::standard()
        .add(daemon("agent").cpu("1"))
        .add(deployment("web", 2).cpu("500m").spread_over_hosts(1))
        .add(stateful_set("db", 1).cpu("1500m"))
        .solve()
        .assert_counts(INSTANCE_TYPE, "db", "medium:1")
        .assert_counts(CAPACITY_TYPE, "web", "on-demand:2")
        .assert_apart("web-0", "web-1");
}

#[test]
fn pods_with_more_to_them() {
    World::standard()
        .add(pod("init").cpu("1").init_container("6", "1Gi"))
        .add(pod("side").cpu("1").sidecar("6", "1Gi"))
        .add(pod("port").replicas(2).host_port(9000))
        .add(pod("limit").limit("cpu", "1900m").namespace("other"))
        .add(pod("done").phase("Succeeded"))
        .add(pod("gone").deleting())
        .solve()
        .assert_type("init", "large")
        .assert_type("side", "large")
        .assert_apart("init", "side")
        .assert_apart("port-0", "port-1")
        .assert_on_new_node("other/limit");
}

#[test]
fn offerings_and_policies() {
    let types = [
        instance_type("near").zone_price("a", "on-demand", 0.2),
        instance_type("cheap").sold_out("a", "on-demand", 0.1),
        instance_type("kept")
            .reserved("a", 1, 0.01)
            .overhead("cpu", "1")
            .pods(3),
    ];
    let world = World::new().add(types).add(pod("web").cpu("3"));
    let plain = world.clone().add(pool("default")).solve();
    plain
        .assert_capacity_type("web", "reserved")
        .assert_type("web", "kept");
    let few = pool("default").min_values(INSTANCE_TYPE, "Exists", "", 5);
    let world = world.add(few);
    world.solve().assert_left_over("web", "pool \"default\"");
    let relaxed = world.min_values(MinValuesPolicy::BestEffort);
    relaxed.solve().assert_all_placed();
    World::standard()
        .add(pod("web").prefer_node(1, ZONE, "In", "c"))
        .preferences(PreferencePolicy::Ignore)
        .solve()
        .assert_zone("web", "a");
}

#[test]
fn wire_objects_and_manifests() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "disk"}});
    World::standard()
        .add(claim)
        .add(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  \
             nodeAffinity:\n    required:\n      nodeSelectorTerms:\n      - matchExpressions:\n        \
             - {key: topology.kubernetes.io/zone, operator: In, values: [b]}\n",
        )
        .add(pod("db").volume_claim("data"))
        .solve()
        .assert_zone("db", "b");
    let error = World::new().add(json!({"kind": "Pod"})).read().unwrap_err();
    assert!(error.to_string().contains("objects:1"), "{error}");
}

#[test]
fn the_built_in_catalog() {
    World::ec2()
        .add(pool("default").capacity_types("on-demand"))
        .add(pod("web").cpu("1"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1);
}

#[test]
#[should_panic(expected = "web is in zone \"a\", not \"b\"\nlaunch default small@a")]
fn a_failed_assertion_shows_the_plan() {
    let outcome = World::standard().add(pod("web").zone("a")).solve();
    outcome.assert_zone("web", "b");
}
