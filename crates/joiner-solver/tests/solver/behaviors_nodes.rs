//! Upstream behaviors 135 to 146: nodes that exist, and nodes that are on their way.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{
    HOSTNAME, INSTANCE_TYPE, NodeBuilder, PodBuilder, World, ZONE, instance_type, node, node_claim,
    pod, pool,
};
use serde_json::json;

const TEAM: &str = "example.com/team";

/// A node of pool `default` that has not finished booting, with its claim.
fn booting(name: &str) -> [NodeBuilder; 2] {
    let claim = node_claim(name, "default").patch(json!({"status": {"nodeName": name}}));
    [claim, node(name).booting("default")]
}

#[test]
fn core_135_a_launching_node_is_used() {
    let world = || World::standard().add(node_claim("coming", "default").zone("b"));
    world()
        .add(pod("web").replicas(4).cpu("1"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(0)
        .assert_on("web-3", "coming");
    world()
        .add(pod("zone").zone("b"))
        .add(pod("arch").arch("amd64").capacity_type("on-demand"))
        .add(pod("pool").node_selector("karpenter.sh/nodepool", "default"))
        .solve()
        .assert_new_nodes(0)
        .assert_on("zone", "coming")
        .assert_on("arch", "coming")
        .assert_on("pool", "coming");
}

#[test]
fn core_135_labels_of_a_launching_node() {
    let requirement = json!({"spec": {"requirements": [
        {"key": TEAM, "operator": "In", "values": ["red"]}]}});
    World::standard()
        .add(pool("teams").requirement(TEAM, "In", "red blue"))
        .add(node_claim("coming", "teams").patch(requirement))
        .add(pod("red").node_selector(TEAM, "red"))
        .add(pod("blue").node_selector(TEAM, "blue"))
        .solve()
        .assert_on("red", "coming")
        .assert_on_new_node("blue");
}

#[test]
fn core_136_a_second_node_when_needed() {
    let world = || World::standard().add(node_claim("coming", "default").cpu("2").zone("a"));
    world()
        .add(pod("web").replicas(2).cpu("1500m"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1);
    world()
        .add(pod("far").zone("b"))
        .add(pod("near").zone("a"))
        .solve()
        .assert_on_new_node("far")
        .assert_on("near", "coming")
        .assert_new_nodes(1);
    world()
        .add(pod("spot").node_affinity(INSTANCE_TYPE, "In", "large"))
        .solve()
        .assert_on_new_node("spot");
}

#[test]
fn core_137_a_terminating_node_is_not_used() {
    for gone in [
        node_claim("coming", "default").deleting(),
        node("coming").pool("default").deleting(),
        node("coming").pool("default").cordoned(),
        node("coming")
            .pool("default")
            .taint("karpenter.sh/disrupted:NoSchedule"),
    ] {
        World::standard()
            .add(gone)
            .add(pod("web"))
            .add(pod("tolerant").tolerate(""))
            .solve()
            .assert_all_placed()
            .assert_on_new_node("web")
            .assert_on_new_node("tolerant");
    }
}

#[test]
fn core_138_zonal_spread_counts_nodes_in_flight() {
    World::standard()
        .add(booting("coming"))
        .add(pod("web-old").label("app", "web").on("coming"))
        .add(pod("web").replicas(2).spread_over_zones(1))
        .solve()
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:1 c:1");
    World::standard()
        .add(node_claim("coming", "default").zone("b"))
        .add(pod("web").replicas(3).cpu("1").spread_over_zones(1))
        .solve()
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1 c:1")
        .assert_new_nodes(2);
}

#[test]
fn core_138_a_spread_is_met_by_the_nodes_there_are() {
    for (one, other) in [("a", "b"), ("a", "c"), ("b", "c")] {
        World::standard()
            .add(node("one").zone(one))
            .add(node("other").zone(other))
            .add(pod("web").replicas(2).cpu("500m").spread_over_zones(1))
            .solve()
            .assert_all_placed()
            .assert_new_nodes(0);
    }
}

#[test]
fn core_138_hostname_spread_counts_nodes_in_flight() {
    let outcome = World::standard()
        .add(node_claim("coming", "default"))
        .add(pod("web").replicas(3).cpu("100m").spread_over_hosts(1))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(2);
    assert_eq!(outcome.count_by(HOSTNAME, "web")["coming"], 1, "{outcome}");
    World::standard()
        .add(booting("coming"))
        .add(pod("web-old").label("app", "web").on("coming"))
        .add(pod("web").spread_over_hosts(1))
        .solve()
        .assert_on_new_node("web");
}

const EPHEMERAL: [&str; 6] = [
    "node.kubernetes.io/not-ready:NoSchedule",
    "node.kubernetes.io/not-ready:NoExecute",
    "node.kubernetes.io/unreachable:NoSchedule",
    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    "karpenter.sh/unregistered:NoExecute",
    "readiness.k8s.io/network:NoSchedule",
];

#[test]
fn core_139_taints_that_go_by_themselves() {
    for taint in EPHEMERAL {
        World::standard()
            .add(node("coming").booting("default").taint(taint))
            .add(pod("web"))
            .solve()
            .assert_on("web", "coming");
    }
    World::standard()
        .add(
            node("coming")
                .booting("default")
                .taint("team=red:NoSchedule"),
        )
        .add(pod("web"))
        .add(pod("red").tolerate("team"))
        .solve()
        .assert_on_new_node("web")
        .assert_on("red", "coming");
}

#[test]
fn core_139_startup_taints_of_a_booting_node() {
    let types = || World::new().add(instance_type("only"));
    let pool = || pool("default").startup_taint("boot=x:NoSchedule");
    types()
        .add(pool())
        .add(node("coming").booting("default").taint("boot=x:NoSchedule"))
        .add(pod("web"))
        .solve()
        .assert_on("web", "coming");
    let claim = json!({"spec": {"startupTaints": [{"key": "late", "effect": "NoExecute"}]}});
    types()
        .add(pool())
        .add(node_claim("coming", "default").patch(claim))
        .add(node("coming").booting("default").taint("late:NoExecute"))
        .add(pod("web"))
        .solve()
        .assert_on("web", "coming");
}

#[test]
fn core_139_taints_of_a_claim_count() {
    let taints = json!({"spec": {"taints": [
        {"key": "team", "value": "red", "effect": "NoSchedule"}]}});
    World::standard()
        .add(node_claim("coming", "default").patch(taints))
        .add(pod("web"))
        .add(pod("red").tolerate("team"))
        .solve()
        .assert_on_new_node("web")
        .assert_on("red", "coming");
}

#[test]
fn core_140_the_same_taints_later() {
    for taint in EPHEMERAL {
        World::standard()
            .add(node("old").pool("default").taint(taint))
            .add(pod("web"))
            .solve()
            .assert_on_new_node("web");
    }
    World::new()
        .add(instance_type("only"))
        .add(pool("default").startup_taint("boot=x:NoSchedule"))
        .add(node("old").pool("default").taint("boot=x:NoSchedule"))
        .add(pod("web"))
        .add(pod("tolerant").tolerate("boot"))
        .solve()
        .assert_on_new_node("web")
        .assert_on("tolerant", "old");
}

#[test]
fn core_141_nodes_of_others() {
    let world = || {
        let labeled = node("stranger").label(TEAM, "red");
        World::standard().add(labeled.taint("team=red:NoSchedule"))
    };
    world()
        .add(pod("web").tolerate("team").node_selector(TEAM, "red"))
        .solve()
        .assert_on("web", "stranger")
        .assert_new_nodes(0);
    world()
        .add(pod("web"))
        .add(
            pod("blue")
                .tolerate("team")
                .node_affinity(TEAM, "NotIn", "red"),
        )
        .solve()
        .assert_on_new_node("web")
        .assert_on_new_node("blue");
    world()
        .add(pod("wrong").tolerate("team").node_selector(TEAM, "blue"))
        .solve()
        .assert_left_over("wrong", TEAM);
}

#[test]
fn core_141_a_node_does_not_have_what_it_does_not_say() {
    World::standard()
        .add(node("stranger"))
        .add(pod("web").node_affinity(INSTANCE_TYPE, "Exists", ""))
        .solve()
        .assert_on_new_node("web");
    World::standard()
        .add(node("stranger"))
        .add(pod("web").node_affinity(TEAM, "DoesNotExist", ""))
        .solve()
        .assert_on("web", "stranger");
}

#[test]
fn core_142_finished_nodes_are_filled_first() {
    let world = |cpu: &str| {
        World::standard()
            .add(node("a-coming").booting("default"))
            .add(node_claim("b-coming", "default"))
            .add(node("z-ready").cpu(cpu).pool("default"))
            .add(pod("web").replicas(4).cpu("1"))
    };
    world("4")
        .solve()
        .assert_new_nodes(0)
        .assert_counts(HOSTNAME, "web", "z-ready:4");
    let outcome = world("2").solve();
    outcome.assert_new_nodes(0);
    assert_eq!(outcome.count_by(HOSTNAME, "web")["z-ready"], 2, "{outcome}");
}

#[test]
fn core_142_the_order_does_not_cost_a_node() {
    // The large pod fits only the node that is not up yet.
    World::standard()
        .add(node("coming").booting("default").cpu("4"))
        .add(node("ready").cpu("2").pool("default"))
        .add(pod("small").replicas(2).cpu("1"))
        .add(pod("large").cpu("4"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(0)
        .assert_on("large", "coming")
        .assert_on("small-0", "ready");
}

#[test]
fn core_143_a_pod_that_only_a_new_node_can_hold() {
    World::standard()
        .add(
            node("old")
                .pool("default")
                .label("kubernetes.io/arch", "arm64"),
        )
        .add(pod("web").arch("amd64"))
        .add(pod("big").cpu("5"))
        .solve()
        .assert_all_placed()
        .assert_on_new_node("web")
        .assert_on_new_node("big");
}

#[test]
fn core_144_a_device_that_is_not_up_yet() {
    let gpu = "example.com/gpu";
    let world = |node: NodeBuilder| {
        World::standard()
            .add(instance_type("gpu").resource(gpu, "1").price(3.0))
            .add(node_claim("coming", "default").resource(gpu, "1"))
            .add(node.resource(gpu, "0"))
            .add(pod("web").request(gpu, "1"))
            .solve()
    };
    world(node("coming").booting("default"))
        .assert_on("web", "coming")
        .assert_new_nodes(0);
    world(node("coming").pool("default")).assert_on_new_node("web");
}

#[test]
fn core_145_repeated_solves_agree() {
    let world = World::standard()
        .add(node_claim("coming-1", "default"))
        .add(node_claim("coming-2", "default"))
        .add(pod("web").replicas(7).cpu("1"))
        .add(pod("zone").replicas(3).cpu("500m").spread_over_zones(1));
    let outcome = world.solve();
    outcome.assert_all_placed();
    assert_eq!(world.solve().to_string(), outcome.to_string());
}

#[test]
fn core_145_the_order_of_the_input_does_not_matter() {
    let world = World::standard()
        .add(node_claim("coming-1", "default"))
        .add(node_claim("coming-2", "default"))
        .add(pod("web").replicas(3).cpu("1"));
    let outcome = world.solve();
    outcome.assert_counts(HOSTNAME, "web", "coming-1:3");
    assert_eq!(world.reversed().solve().to_string(), outcome.to_string());
}

fn port(number: u16, protocol: &str, ip: &str) -> PodBuilder {
    let port = json!({"containerPort": number, "hostPort": number, "protocol": protocol,
        "hostIP": ip});
    let container = json!({"name": "main", "image": "registry.example/app:1", "ports": [port]});
    pod("one").patch(json!({"spec": {"containers": [container]}}))
}

fn pair(one: PodBuilder, other: PodBuilder) -> joiner_testkit::Outcome {
    let mut wire = other.wire();
    wire[0]["metadata"]["name"] = json!("other");
    World::standard().add(one).add(wire).solve()
}

#[test]
fn core_146_host_ports_on_new_nodes() {
    for (one, other) in [
        (port(80, "TCP", ""), port(80, "TCP", "")),
        (port(80, "TCP", "10.0.0.1"), port(80, "TCP", "10.0.0.1")),
        (port(80, "TCP", "10.0.0.1"), port(80, "TCP", "")),
        (port(80, "TCP", "0.0.0.0"), port(80, "TCP", "10.0.0.1")),
        (port(80, "UDP", "::"), port(80, "UDP", "10.0.0.1")),
    ] {
        pair(one, other)
            .assert_all_placed()
            .assert_new_nodes(2)
            .assert_apart("one", "other");
    }
    for (one, other) in [
        (port(80, "TCP", ""), port(81, "TCP", "")),
        (port(80, "TCP", ""), port(80, "UDP", "")),
        (port(80, "TCP", "10.0.0.1"), port(80, "TCP", "10.0.0.2")),
    ] {
        pair(one, other)
            .assert_all_placed()
            .assert_new_nodes(1)
            .assert_together("one", "other");
    }
}

#[test]
fn core_146_host_ports_on_nodes_there_are() {
    World::standard()
        .add(node("old"))
        .add(pod("there").host_port(80).on("old"))
        .add(pod("web").host_port(80))
        .add(pod("other").host_port(81))
        .solve()
        .assert_on_new_node("web")
        .assert_on("other", "old");
    World::standard()
        .add([node("old-1"), node("old-2")])
        .add(pod("web").replicas(3).host_port(80))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_apart("web-0", "web-1")
        .assert_apart("web-1", "web-2");
}

#[test]
fn core_147_finished_pods_free_their_node() {
    for phase in ["Succeeded", "Failed"] {
        World::standard()
            .add(node("old").cpu("2"))
            .add(pod("done").cpu("2").on("old").phase(phase))
            .add(pod("web").cpu("2"))
            .solve()
            .assert_on("web", "old");
    }
    World::standard()
        .add(node("old").cpu("2"))
        .add(pod("leaving").cpu("2").on("old").deleting())
        .add(pod("web").cpu("2"))
        .solve()
        .assert_on_new_node("web");
}
