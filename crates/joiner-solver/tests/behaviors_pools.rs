//! Upstream behaviors 105, 106, 110 and 112 to 120: pools, their limits and their weights.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{
    HOSTNAME, InstanceTypeBuilder, Outcome, PoolBuilder, World, ZONE, daemon, instance_type, node,
    node_claim, pod, pool,
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

/// How many of the pods are placed.
fn placed(outcome: &Outcome) -> usize {
    outcome.problem.pending().count() - outcome.plan.unplaced.len()
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
fn core_112_limits_that_are_used_up() {
    world(pool("default").limit("cpu", "20"))
        .add(node("old").cpu("100").pool("default").instance_type("huge"))
        .add(pod("there").cpu("100").on("old"))
        .add(pod("web").cpu("1"))
        .solve()
        .assert_left_over("web", "cpu")
        .assert_left_over("web", "20")
        .assert_new_nodes(0);
}

#[test]
fn core_112_limits_count_what_is_coming_but_not_strangers() {
    let full = |cpu: &str| pod("there").cpu(cpu);
    world(pool("default").limit("cpu", "8"))
        .add(node_claim("coming", "default").cpu("8"))
        .add(pod("web").cpu("1").zone("b"))
        .solve()
        .assert_left_over("web", "cpu");
    world(pool("default").limit("cpu", "8"))
        .add(node("stranger").cpu("8"))
        .add(full("8").on("stranger"))
        .add(pod("web").cpu("1"))
        .solve()
        .assert_all_placed();
    world(pool("default").limit("cpu", "8"))
        .add(pool("other"))
        .add(node("neighbor").cpu("8").pool("other"))
        .add(full("8").on("neighbor"))
        .add(pod("web").cpu("1").node_selector(POOL, "default"))
        .solve()
        .assert_all_placed();
}

#[test]
fn core_112_existing_nodes_are_used_beyond_limits() {
    world(pool("default").limit("cpu", "2"))
        .add(node("old").cpu("8").pool("default"))
        .add(pod("web").cpu("4"))
        .solve()
        .assert_on("web", "old");
}

#[test]
fn core_113_the_second_pod_is_over_the_limit() {
    let outcome = world(pool("default").limit("cpu", "2"))
        .add(pod("web").replicas(2).cpu("1750m"))
        .solve();
    outcome.assert_new_nodes(1);
    assert_eq!(placed(&outcome), 1, "{outcome}");
    let left = if outcome.find("web-0").is_some() {
        "web-1"
    } else {
        "web-0"
    };
    outcome
        .assert_left_over(left, "limited")
        .assert_left_over(left, "cpu");
}

#[test]
fn core_113_the_limit_is_about_capacity() {
    world(pool("default").limit("cpu", "1900m"))
        .add(pod("web").cpu("1"))
        .solve()
        .assert_left_over("web", "limited")
        .assert_new_nodes(0);
    // Whichever type is launched, the limit holds.
    let outcome = world(pool("default").limit("cpu", "5"))
        .add(pod("web").cpu("1"))
        .solve();
    outcome.assert_all_placed();
    assert_eq!(outcome.plan.launches[0].types.len(), 2, "{outcome}");
}

#[test]
fn core_113_the_more_important_pod_comes_first() {
    let outcome = world(pool("default").limit("cpu", "2"))
        .add(pod("batch").cpu("2"))
        .add(pod("vital").cpu("1").priority(1000))
        .solve();
    outcome
        .assert_on_new_node("vital")
        .assert_left_over("batch", "limited");
}

#[test]
fn core_114_limits_are_not_exceeded_by_anti_affine_pods() {
    let outcome = world(pool("default").limit("cpu", "3"))
        .add(
            pod("web")
                .replicas(2)
                .cpu("1500m")
                .anti_affinity_to(HOSTNAME, "web"),
        )
        .solve();
    outcome.assert_new_nodes(1);
    assert_eq!(placed(&outcome), 1, "{outcome}");
}

#[test]
fn core_114_limits_that_allow_both_pods_give_both() {
    // Upstream counts the largest type that the first node could become, and waits a round.
    let outcome = world(pool("default").limit("cpu", "4"))
        .add(
            pod("web")
                .replicas(2)
                .cpu("1500m")
                .anti_affinity_to(HOSTNAME, "web"),
        )
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_price(0.2);
    for launch in &outcome.plan.launches {
        assert_eq!(
            launch.types.len(),
            1,
            "a larger type breaks the limit\n{outcome}"
        );
    }
}

#[test]
fn core_114_limits_of_several_resources() {
    let outcome = world(pool("default").limit("cpu", "16").limit("memory", "64Gi"))
        .add(pod("web").replicas(4).cpu("1500m").spread_over_hosts(1))
        .solve();
    outcome.assert_new_nodes(2);
    assert_eq!(placed(&outcome), 2, "{outcome}");
}

#[test]
fn core_115_limits_on_nodes() {
    let pods = || pod("web").replicas(3).anti_affinity_to(HOSTNAME, "web");
    let outcome = world(pool("default").limit("nodes", "2"))
        .add(pods())
        .solve();
    outcome.assert_new_nodes(2);
    assert_eq!(placed(&outcome), 2, "{outcome}");
    let left = ["web-0", "web-1", "web-2"].map(|pod| outcome.find(pod).is_none());
    let ix = left.iter().position(|left| *left).unwrap_or_default();
    outcome.assert_left_over(&format!("web-{ix}"), "nodes");
    let outcome = world(pool("default").limit("nodes", "2"))
        .add(node("old").pool("default"))
        .add(pods())
        .solve();
    outcome.assert_new_nodes(1);
    assert_eq!(placed(&outcome), 2, "{outcome}");
}

#[test]
fn core_115_one_node_is_made_large_enough() {
    // Two small nodes cost the same; only one is allowed.
    World::standard()
        .add(pool("one").limit("nodes", "1").label(TEAM, "red"))
        .add(pod("web").replicas(8).cpu("1").node_selector(TEAM, "red"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web-0", "large");
    let dear = instance_type("dear").cpu("16").price(5.0);
    world(pool("one").limit("nodes", "1"))
        .add(dear)
        .add(pod("web").replicas(9).cpu("1"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web-0", "dear");
    world(pool("none").limit("nodes", "0"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "nodes");
}

#[test]
fn core_116_a_limit_below_every_type() {
    world(pool("default").limit("pods", "1"))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "pods")
        .assert_new_nodes(0);
    world(pool("default").limit("example.com/gpu", "1"))
        .add(
            instance_type("gpu")
                .resource("example.com/gpu", "2")
                .price(0.01),
        )
        .add(pod("plain"))
        .add(pod("gpu").request("example.com/gpu", "1"))
        .solve()
        .assert_left_over("gpu", "example.com/gpu")
        .assert_type("plain", "small");
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
        .assert_left_over("web", "nowhere")
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
        .assert_left_over("web", "sold out")
        .assert_left_over("there", "sold out")
        .assert_left_over("elsewhere", ZONE)
        .assert_new_nodes(0);
}
