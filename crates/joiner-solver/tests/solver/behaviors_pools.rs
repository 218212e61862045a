//! Upstream behaviors 105, 106, 110 and 117 to 120: pools and their weights.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{
    InstanceTypeBuilder, PoolBuilder, World, ZONE, daemon, instance_type, node, pod, pool,
};
use serde_json::json;

const POOL: &str = "karpenter.sh/nodepool";
const TEAM: &str = "example.com/team";

fn sizes() -> [InstanceTypeBuilder; 3] {
    [
        ("small", "2", 0.1),
        ("medium", "4", 0.2),
        ("large", "8", 0.4),
    ]
    .map(|(name, cpu, price)| instance_type(name).cpu(cpu).memory("32Gi").price(price))
}

fn world(pool: PoolBuilder) -> World {
    World::new().add(pool).add(sizes())
}

#[test]
fn core_105_a_batch_gets_the_fewest_nodes() {
    for count in [2, 4, 8] {
        World::standard()
            .add(pod("web").replicas(count).cpu("1"))
            .solve()
            .assert_all_placed()
            .assert_new_nodes(1);
    }
    let outcome = World::standard()
        .add(pod("web").replicas(16).cpu("1"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_price(0.8);
}

#[test]
fn core_106_no_pools() {
    World::new()
        .add(sizes())
        .add(pod("web").replicas(3))
        .solve()
        .assert_left_over("web-0", "NodePool")
        .assert_left_over("web-2", "NodePool")
        .assert_new_nodes(0);
    World::new().solve().assert_all_placed().assert_new_nodes(0);
    World::new()
        .add(pool("default"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "default")
        .assert_new_nodes(0);
}

#[test]
fn core_110_daemons_count_once_for_all_pods_of_a_node() {
    World::standard()
        .add(daemon("agent").cpu("1"))
        .add(pod("web").replicas(3).cpu("1"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web-0", "medium");
}

#[test]
fn core_117_the_selected_pool() {
    World::standard()
        .add(pool("other"))
        .add(pool("labeled").label(TEAM, "red"))
        .add(pod("by-name").node_selector(POOL, "other"))
        .add(pod("by-label").node_selector(TEAM, "red"))
        .add(pod("not").node_affinity(POOL, "NotIn", "other labeled"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(3)
        .assert_pool("by-name", "other")
        .assert_pool("by-label", "labeled")
        .assert_pool("not", "default");
    World::standard()
        .add(pod("web").node_selector(POOL, "missing"))
        .solve()
        .assert_left_over("web", "missing");
}

fn weighted() -> World {
    let cheap = instance_type("cheap").cpu("64").price(0.01);
    World::new()
        .add(sizes())
        .add(cheap)
        .add(pool("light").weight(20))
        .add(pool("heavy").weight(100).types("medium large"))
        .add(pool("none"))
}

#[test]
fn core_118_the_heaviest_pool() {
    weighted()
        .add(pod("web").replicas(5).cpu("1"))
        .solve()
        .assert_all_placed()
        .assert_counts(POOL, "web", "heavy:5");
    weighted()
        .add(pod("web").cpu("1").node_selector(POOL, "light"))
        .solve()
        .assert_pool("web", "light");
    weighted()
        .add(pod("web").cpu("1").node_affinity(POOL, "In", "none"))
        .solve()
        .assert_pool("web", "none");
}

#[test]
fn core_118_lighter_pools_take_what_heavier_ones_cannot() {
    weighted()
        .add(pod("web").cpu("1"))
        .add(pod("big").cpu("20"))
        .solve()
        .assert_all_placed()
        .assert_pool("big", "light");
    let limited = pool("heavy").weight(50).limit("cpu", "2");
    let outcome = World::standard()
        .add(limited)
        .add(pod("web").replicas(2).cpu("2"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(POOL, "web", "default:1 heavy:1");
}

#[test]
fn core_118_pods_that_can_run_only_there_come_first() {
    let limited = pool("heavy")
        .weight(50)
        .limit("cpu", "2")
        .label(TEAM, "red");
    World::standard()
        .add(limited)
        .add(pod("any").replicas(3).cpu("2"))
        .add(pod("only").cpu("2").node_selector(TEAM, "red"))
        .solve()
        .assert_all_placed()
        .assert_pool("only", "heavy")
        .assert_counts(POOL, "any", "default:3");
}

#[test]
fn core_118_a_lighter_pool_with_limits_of_its_own() {
    // Nothing, one node, or nothing but pods: whatever the heavier pool has left.
    for (resource, limit) in [
        ("cpu", "2"),
        ("cpu", "8"),
        ("nodes", "0"),
        ("memory", "1Gi"),
    ] {
        World::new()
            .add(instance_type("eight").cpu("8"))
            .add(pool("heavy").weight(9).limit(resource, limit))
            .add(pool("light").limit("cpu", "1000"))
            .add(pod("web").replicas(4).cpu("5"))
            .solve()
            .assert_all_placed()
            .assert_new_nodes(4);
    }
}

#[test]
fn core_118_equal_weights_and_price() {
    World::standard()
        .add(instance_type("cheap").cpu("2").price(0.05))
        .add(pool("alpha").types("large"))
        .add(pool("omega").types("medium"))
        .add(
            pod("web")
                .cpu("1")
                .node_affinity(POOL, "In", "alpha omega default"),
        )
        .solve()
        .assert_pool("web", "default")
        .assert_type("web", "cheap");
}

#[test]
fn core_119_static_pools_do_not_grow() {
    let fixed = || pool("fixed").patch(json!({"spec": {"replicas": 2}}));
    world(fixed())
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "static")
        .assert_new_nodes(0);
    World::standard()
        .add(fixed())
        .add(pod("web"))
        .add(pod("there").node_selector(POOL, "fixed"))
        .solve()
        .assert_pool("web", "default")
        .assert_left_over("there", "static");
}

#[test]
fn core_119_nodes_of_static_pools_are_used() {
    let fixed = pool("fixed").patch(json!({"spec": {"replicas": 2}}));
    World::standard()
        .add(fixed)
        .add(node("old").pool("fixed"))
        .add(pod("web"))
        .solve()
        .assert_on("web", "old");
}

#[test]
fn core_120_requirements_that_leave_no_type() {
    world(pool("default").types("missing"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "default")
        .assert_new_nodes(0);
    world(pool("default").zones("nowhere"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "default")
        .assert_new_nodes(0);
    world(pool("empty").types("missing").weight(100))
        .add(pool("fine"))
        .add(pod("web"))
        .solve()
        .assert_pool("web", "fine");
    world(pool("default").types("missing"))
        .add(node("old"))
        .add(pod("web"))
        .solve()
        .assert_on("web", "old");
}

#[test]
fn core_120_a_pool_whose_types_are_sold_out() {
    let gone = instance_type("gone").sold_out("a", "on-demand", 0.1);
    World::new()
        .add(pool("default"))
        .add(gone)
        .add(pod("web"))
        .add(pod("there").zone("a"))
        .add(pod("elsewhere").zone("b"))
        .solve()
        .assert_left_over("web", "default")
        .assert_left_over("there", "default")
        .assert_left_over("elsewhere", ZONE)
        .assert_new_nodes(0);
}

#[test]
fn core_120_the_refusal_says_what_leaves_no_type() {
    world(pool("default").zones("nowhere"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "nowhere");
    world(pool("default").types("missing"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "missing");
}

#[test]
fn core_120_the_refusal_says_sold_out() {
    World::new()
        .add(pool("default"))
        .add(instance_type("gone").sold_out("a", "on-demand", 0.1))
        .add(pod("web"))
        .add(pod("there").zone("a"))
        .solve()
        .assert_left_over("web", "sold out")
        .assert_left_over("there", "sold out");
}
