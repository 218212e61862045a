//! Upstream behaviors 122 to 134: what DaemonSets take of every node.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{
    INSTANCE_TYPE, PodBuilder, World, ZONE, daemon, instance_type, node, node_claim, pod, pool,
};
use serde_json::{Value, json};

const TEAM: &str = "example.com/team";

/// A pod that just fits the small type alone, and the medium one with a daemon of one core.
fn web() -> PodBuilder {
    pod("web").cpu("2")
}

fn agent() -> PodBuilder {
    daemon("agent").cpu("1")
}

/// The type of the node for [`web`] says whether the daemon was counted.
fn counted(world: World) {
    world.add(web()).solve().assert_type("web", "medium");
}

fn not_counted(world: World) {
    world.add(web()).solve().assert_type("web", "small");
}

#[test]
fn core_122_a_daemon_takes_its_share() {
    World::standard()
        .add(daemon("agent").cpu("2").memory("2Gi"))
        .add(pod("web").cpu("1").memory("1Gi"))
        .solve()
        .assert_all_placed()
        .assert_type("web", "medium");
    counted(World::standard().add(agent()));
    let two = World::standard().add(agent()).add(daemon("logs").cpu("2"));
    two.add(web()).solve().assert_type("web", "large");
}

#[test]
fn core_122_a_daemon_takes_its_share_of_every_node() {
    World::standard()
        .add(agent())
        .add(pod("web").replicas(7).cpu("1").memory("4Gi"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web-0", "large");
}

#[test]
fn core_123_host_ports_of_daemons() {
    let port = daemon("agent").host_port(8080);
    World::standard()
        .add(port.clone())
        .add(pod("web").host_port(8080))
        .add(pod("other").host_port(8081))
        .solve()
        .assert_left_over("web", "8080")
        .assert_on_new_node("other");
    World::standard()
        .add(port.node_affinity(INSTANCE_TYPE, "In", "small large"))
        .add(pod("web").host_port(8080))
        .solve()
        .assert_all_placed()
        .assert_type("web", "medium");
}

#[test]
fn core_123_protocols_and_addresses_of_ports() {
    let port = |protocol: &str, ip: &str| {
        json!({"spec": {"containers": [{"name": "main", "image": "registry.example/app:1",
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": protocol,
                "hostIP": ip}]}]}})
    };
    let world = |daemon_port: Value, pod_port: Value| {
        World::standard()
            .add(daemon("agent").patch(daemon_port))
            .add(pod("web").patch(pod_port))
            .solve()
    };
    world(port("TCP", ""), port("UDP", "")).assert_all_placed();
    world(port("TCP", "10.0.0.1"), port("TCP", "10.0.0.2")).assert_all_placed();
    world(port("TCP", "10.0.0.1"), port("TCP", "")).assert_left_over("web", "80");
    world(port("TCP", "::"), port("TCP", "10.0.0.2")).assert_left_over("web", "80");
}

#[test]
fn core_124_startup_taints_do_not_keep_daemons_out() {
    let pool = pool("default").startup_taint("boot:NoSchedule");
    let types = World::standard();
    counted(types.add(pool_only(pool)).add(agent()));
}

/// A pool that pods must go to, beside the one of the standard world.
fn pool_only(pool: joiner_testkit::PoolBuilder) -> Value {
    let mut wire = pool.wire();
    wire["metadata"]["name"] = json!("only");
    wire["spec"]["weight"] = json!(100);
    wire
}

#[test]
fn core_125_a_daemon_larger_than_any_type() {
    for agent in [
        daemon("agent").cpu("10"),
        daemon("agent").request("example.com/gpu", "1"),
    ] {
        let outcome = World::standard().add(agent).add(pod("web")).solve();
        outcome.assert_new_nodes(0);
        assert!(outcome.find("web").is_none(), "{outcome}");
    }
    World::standard()
        .add(
            daemon("agent")
                .cpu("10")
                .node_selector(INSTANCE_TYPE, "small"),
        )
        .add(pod("web"))
        .solve()
        .assert_type("web", "medium");
}

#[test]
fn core_125_the_refusal_says_what_is_short() {
    World::standard()
        .add(daemon("agent").cpu("10"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "cpu");
    World::standard()
        .add(daemon("agent").request("example.com/gpu", "1"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "example.com/gpu");
}

#[test]
fn core_126_a_live_pod_tells_what_the_daemon_needs() {
    let live = || pod("agent-x").owned_by("DaemonSet", "agent").cpu("1");
    let world = || World::standard().add(daemon("agent").cpu("100m"));
    counted(world().add(node("old").cpu("1")).add(live().on("old")));
    not_counted(
        World::standard()
            .add(daemon("agent"))
            .add(node("old").cpu("1")),
    );
}

#[test]
fn core_127_daemons_that_do_not_land_there() {
    let tainted = || pool_only(pool("only").taint("team=red:NoSchedule"));
    World::standard()
        .add(tainted())
        .add(agent())
        .add(web().tolerate("team"))
        .solve()
        .assert_pool("web", "only")
        .assert_type("web", "small");
    not_counted(World::standard().add(agent().zone("nowhere")));
    not_counted(World::standard().add(agent().node_selector(TEAM, "red")));
    not_counted(World::standard().add(agent().node_selector(INSTANCE_TYPE, "large")));
    not_counted(World::standard().add(agent().arch("arm64")));
    not_counted(World::standard().add(agent().node_affinity(TEAM, "Exists", "")));
}

#[test]
fn core_127_a_daemon_of_one_zone_is_avoided() {
    let outcome = World::standard().add(agent().zone("a")).add(web()).solve();
    outcome.assert_type("web", "small");
    assert!(!outcome.open("web", ZONE).contains("a"), "{outcome}");
}

#[test]
fn core_127_a_daemon_of_one_capacity_type_is_avoided() {
    let ty = instance_type("two").cpu("2").price(0.1).spot_price(0.05);
    World::new()
        .add(pool("default"))
        .add(ty)
        .add(agent().capacity_type("spot"))
        .add(web())
        .solve()
        .assert_capacity_type("web", "on-demand")
        .assert_price(0.1);
}

#[test]
fn core_123_a_port_taken_in_one_zone() {
    let outcome = World::standard()
        .add(daemon("agent").zone("a").host_port(80))
        .add(pod("web").host_port(80))
        .solve();
    outcome.assert_all_placed();
    assert!(!outcome.open("web", ZONE).contains("a"), "{outcome}");
}

#[test]
fn core_128_a_value_that_keeps_the_daemon_away() {
    // On a node with the other value, the pod does not need to share.
    let both = pool_only(pool("only").requirement(TEAM, "In", "red blue"));
    let world = World::standard()
        .add(both)
        .add(agent().node_selector(TEAM, "red"));
    let outcome = world.add(web()).solve();
    outcome
        .assert_pool("web", "only")
        .assert_type("web", "small");
}

#[test]
fn core_128_daemons_that_land_there() {
    let labeled = || pool_only(pool("only").label(TEAM, "red"));
    counted(
        World::standard()
            .add(labeled())
            .add(agent().node_selector(TEAM, "red")),
    );
    counted(World::standard().add(agent().node_affinity(TEAM, "NotIn", "red")));
    counted(World::standard().add(agent().node_affinity(TEAM, "DoesNotExist", "")));
    counted(World::standard().add(agent().node_affinity(ZONE, "Exists", "")));
    not_counted(
        World::standard()
            .add(labeled())
            .add(agent().node_selector(TEAM, "blue")),
    );
}

#[test]
fn core_128_a_daemon_for_one_value_of_a_custom_key() {
    let both = || pool_only(pool("only").requirement(TEAM, "In", "red blue"));
    let picky = || agent().node_selector(TEAM, "red");
    let world = || World::standard().add(both()).add(picky());
    world()
        .add(web().node_selector(TEAM, "red"))
        .solve()
        .assert_type("web", "medium");
    world()
        .add(web().node_selector(TEAM, "blue"))
        .solve()
        .assert_type("web", "small");
}

#[test]
fn core_129_the_hostname_in_a_live_pod_means_nothing() {
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["old"]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchFields": [field]}]}}});
    let live = pod("agent-x")
        .owned_by("DaemonSet", "agent")
        .cpu("1")
        .patch(json!({"spec": {"affinity": affinity}}))
        .on("old");
    counted(
        World::standard()
            .add(agent())
            .add(node("old").cpu("1"))
            .add(live),
    );
}

#[test]
fn core_129_affinity_comes_from_the_template() {
    let live = pod("agent-x")
        .owned_by("DaemonSet", "agent")
        .cpu("1")
        .node_affinity("kubernetes.io/hostname", "In", "old")
        .on("old");
    let template = agent().node_affinity(INSTANCE_TYPE, "NotIn", "small");
    World::standard()
        .add(template)
        .add(node("old").cpu("1"))
        .add(live)
        .add(pod("web").cpu("3500m"))
        .solve()
        .assert_type("web", "large");
}

#[test]
fn core_130_terms_and_wishes_of_daemons() {
    let either = agent()
        .node_affinity(ZONE, "In", "nowhere")
        .or_node_affinity(ZONE, "In", "a b c");
    counted(World::standard().add(either));
    counted(World::standard().add(agent().prefer_node(1, ZONE, "In", "nowhere")));
    counted(World::standard().add(agent().prefer_node(1, INSTANCE_TYPE, "In", "large")));
    let soft = World::new()
        .add(pool("soft").taint("busy:PreferNoSchedule"))
        .add(instance_type("small").cpu("2").price(0.1))
        .add(instance_type("medium").cpu("4").price(0.2));
    counted(soft.add(agent()));
}

#[test]
fn core_131_daemons_that_wait_for_the_node_to_be_up() {
    for key in ["karpenter.sh/registered", "karpenter.sh/initialized"] {
        let world = World::standard().add(agent().node_selector(key, "true"));
        let outcome = world.add(web()).solve();
        outcome.assert_type("web", "medium");
        let said = &outcome.plan.launches[0].requirements;
        assert!(
            said.iter().all(|requirement| &**requirement.key() != key),
            "{outcome}"
        );
    }
    not_counted(World::standard().add(agent().node_selector("karpenter.sh/registered", "no")));
}

#[test]
fn core_132_only_the_rest_is_reserved() {
    let world = || {
        World::standard()
            .add(agent())
            .add(node("old").cpu("3").pool("default"))
    };
    let live = |cpu: &str| {
        pod("agent-x")
            .owned_by("DaemonSet", "agent")
            .cpu(cpu)
            .on("old")
    };
    world().add(web()).solve().assert_on("web", "old");
    world()
        .add(live("1"))
        .add(web())
        .solve()
        .assert_on("web", "old");
    let outcome = world().add(live("1")).add(pod("big").cpu("2100m")).solve();
    outcome.assert_on_new_node("big");
    world()
        .add(pod("big").cpu("2100m"))
        .solve()
        .assert_on_new_node("big");
}

#[test]
fn core_132_a_stranger_is_not_paid_back() {
    // A pod of a DaemonSet that is gone uses the node and reserves nothing back.
    World::standard()
        .add(agent())
        .add(node("old").cpu("4").pool("default"))
        .add(
            pod("ghost-x")
                .owned_by("DaemonSet", "ghost")
                .cpu("2")
                .on("old"),
        )
        .add(pod("fits").cpu("1"))
        .solve()
        .assert_on("fits", "old");
    World::standard()
        .add(agent())
        .add(node("old").cpu("4").pool("default"))
        .add(
            pod("ghost-x")
                .owned_by("DaemonSet", "ghost")
                .cpu("2")
                .on("old"),
        )
        .add(pod("tight").cpu("2"))
        .solve()
        .assert_on_new_node("tight");
}

#[test]
fn core_132_claims_in_flight_reserve_for_daemons() {
    let world = || {
        let claim = node_claim("coming", "default").cpu("2");
        World::standard().add(agent()).add(claim)
    };
    world()
        .add(pod("fits").cpu("1"))
        .solve()
        .assert_on("fits", "coming");
    world().add(web()).solve().assert_on_new_node("web");
}

#[test]
fn core_133_no_reserve_where_the_daemon_does_not_run() {
    let old = || World::standard().add(node("old").cpu("2").zone("a"));
    let fits = |world: World| {
        world.add(web()).solve().assert_on("web", "old");
    };
    fits(old().add(agent().zone("b")));
    fits(old().add(agent().node_selector(TEAM, "red")));
    fits(old().add(agent().node_selector(INSTANCE_TYPE, "small")));
    old()
        .add(agent().node_affinity(TEAM, "NotIn", "red"))
        .add(web())
        .solve()
        .assert_on_new_node("web");
    let tainted = node("old").cpu("2").taint("team=red:NoSchedule");
    World::standard()
        .add(tainted)
        .add(agent())
        .add(web().tolerate("team"))
        .solve()
        .assert_on("web", "old");
}

#[test]
fn core_134_daemons_with_dynamic_resources_are_not_counted() {
    let claims = json!({"spec": {"resourceClaims": [
        {"name": "device", "resourceClaimTemplateName": "device"}]}});
    not_counted(World::standard().add(agent().patch(claims.clone())));
    World::standard()
        .add(pod("web").patch(claims))
        .add(pod("plain"))
        .solve()
        .assert_left_over("web", "resourceClaims")
        .assert_on_new_node("plain");
}
