//! Upstream behaviors 112 to 116: limits of pools.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{
    HOSTNAME, INSTANCE_TYPE, InstanceTypeBuilder, Outcome, PodBuilder, PoolBuilder, World,
    instance_type, node, node_claim, pod, pool,
};

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

/// Three pods that want a node each.
fn apart() -> PodBuilder {
    pod("web").replicas(3).anti_affinity_to(HOSTNAME, "web")
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
    let outcome = world(pool("default").limit("nodes", "2"))
        .add(apart())
        .solve();
    outcome.assert_new_nodes(2);
    assert_eq!(placed(&outcome), 2, "{outcome}");
    let left = ["web-0", "web-1", "web-2"].map(|pod| outcome.find(pod).is_none());
    let ix = left.iter().position(|left| *left).unwrap_or_default();
    outcome.assert_left_over(&format!("web-{ix}"), "nodes");
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

/// A node with four cores of a pool that may grow by one more of two cores.
fn limited_beside_a_node() -> World {
    World::new()
        .add(pool("default").limit("cpu", "6"))
        .add(instance_type("two").cpu("2").price(0.1))
        .add(node("old").pool("default"))
}

#[test]
fn core_112_limits_do_not_overfill_nodes_there_are() {
    let outcome = limited_beside_a_node()
        .add(pod("web").replicas(2).cpu("3"))
        .solve();
    outcome.assert_new_nodes(0);
    assert_eq!(placed(&outcome), 1, "{outcome}");
}

#[test]
fn core_115_limits_beside_a_node_that_exists() {
    let outcome = world(pool("default").limit("nodes", "2"))
        .add(node("old").pool("default"))
        .add(apart())
        .solve();
    outcome.assert_new_nodes(1);
    assert_eq!(placed(&outcome), 2, "{outcome}");
}

#[test]
fn core_115_limits_and_pods_that_cannot_share_a_node() {
    for pods in [
        apart(),
        pod("web").replicas(3).spread_over_hosts(1),
        pod("web").replicas(3).host_port(80),
    ] {
        let outcome = limited_beside_a_node().add(pods).solve();
        outcome.assert_new_nodes(1);
        assert_eq!(placed(&outcome), 2, "{outcome}");
    }
}

#[test]
fn core_113_limits_leave_the_types_that_keep_them() {
    let outcome = world(pool("default").limit("cpu", "5"))
        .add(pod("web").cpu("1"))
        .solve();
    outcome.assert_all_placed();
    assert_eq!(outcome.plan.launches[0].types.len(), 2, "{outcome}");
    let outcome = world(pool("default").limit("cpu", "1000"))
        .add(pod("web").cpu("1"))
        .solve();
    assert_eq!(outcome.plan.launches[0].types.len(), 3, "{outcome}");
}

#[test]
fn core_113_limits_and_enough_types() {
    // A node that may be small or medium counts as medium.
    let flexible = |cpu| {
        let pool = pool("default").limit("cpu", cpu);
        pool.min_values(INSTANCE_TYPE, "Exists", "", 2)
    };
    for (limit, expected) in [("3", 0), ("4", 1), ("8", 2), ("1000", 3)] {
        let pods = pod("web").replicas(3).cpu("1500m").spread_over_hosts(1);
        let outcome = world(flexible(limit)).add(pods).solve();
        outcome.assert_new_nodes(expected);
        assert_eq!(placed(&outcome), expected, "limit {limit}\n{outcome}");
    }
}

#[test]
fn core_113_limits_and_enough_types_before_a_lighter_pool() {
    let heavy = pool("heavy").weight(9).limit("cpu", "8");
    world(heavy.min_values(INSTANCE_TYPE, "Exists", "", 2))
        .add(pool("light"))
        .add(pod("web").replicas(2).cpu("1500m").spread_over_hosts(1))
        .add(pod("late").replicas(2).cpu("2").spread_over_hosts(1))
        .solve()
        .assert_all_placed();
}
