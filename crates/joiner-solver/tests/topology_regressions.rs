//! Small clusters that random ones were shrunk to: each of them once had a plan that broke a rule,
//! left a pod over without need, or cost more than it had to.

use joiner_testkit::{
    ARCH, CAPACITY_TYPE, HOSTNAME, Outcome, PodBuilder, World, ZONE, instance_type, node, pod, pool,
};
use serde_json::json;

/// Four cores on demand for 0.10, in zones a, b and c.
fn world() -> World {
    World::new()
        .add(instance_type("machine").cpu("4").price(0.1))
        .add(pool("default"))
}

fn app(name: &str) -> PodBuilder {
    pod(name).cpu("1")
}

fn left_over(outcome: &Outcome) -> usize {
    outcome.plan.unplaced.len()
}

#[test]
fn a_host_port_keeps_pods_apart_that_want_one_node() {
    let web = app("web")
        .replicas(2)
        .host_port(80)
        .affinity_to(HOSTNAME, "web");
    let outcome = world().add(web).solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");

    let wish = app("web")
        .replicas(2)
        .host_port(80)
        .prefer_affinity_to(50, HOSTNAME, "web");
    world()
        .add(wish)
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2);
}

#[test]
fn host_ports_of_a_node_with_a_soft_spread() {
    let limited = World::new()
        .add(instance_type("machine").cpu("4").price(0.1))
        .add(pool("default").zones("c").limit("cpu", "8"));
    let web = pod("web")
        .replicas(3)
        .cpu("100m")
        .host_port(80)
        .prefer_spread_over(ZONE, 2);
    let outcome = limited
        .add(node("there").zone("d").cpu("2"))
        .add(web)
        .solve();
    outcome.assert_all_placed().assert_new_nodes(2);
}

#[test]
fn one_node_and_two_zones_at_once_cannot_be() {
    let torn = app("torn")
        .affinity_to(HOSTNAME, "web")
        .anti_affinity_to(ZONE, "web");
    let outcome = world().add(app("web")).add(torn).solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
    let torn = app("web")
        .replicas(2)
        .affinity_to(HOSTNAME, "web")
        .anti_affinity_to(ZONE, "web");
    let outcome = world().add(torn).solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
}

#[test]
fn a_wish_for_one_node_yields_to_anti_affinity() {
    let web = app("web")
        .prefer_affinity_to(50, HOSTNAME, "web")
        .anti_affinity_to(ZONE, "web");
    let outcome = world().add(web.replicas(3)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1 c:1");
}

#[test]
fn one_node_limits_a_spread_over_zones() {
    for skew in [1, 2] {
        let web = app("web")
            .replicas(3)
            .affinity_to(HOSTNAME, "web")
            .spread_over_zones(skew);
        let outcome = world().add(web).solve();
        assert_eq!(left_over(&outcome), 3 - skew as usize, "{outcome}");
    }
}

#[test]
fn one_node_limits_a_spread_over_architectures() {
    let arm = instance_type("arm").cpu("4").arch("arm64").price(0.09);
    let web = app("web")
        .replicas(2)
        .affinity_to(HOSTNAME, "web")
        .spread_over(ARCH, 1);
    let outcome = world().add(arm).add(web).solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");

    // A pod that is there counts for the node that the others have to join.
    let arm = instance_type("arm").cpu("4").arch("arm64").price(0.09);
    let old = |name: &str| app(name).on("there");
    let green = app("green")
        .affinity_to(HOSTNAME, "gray")
        .spread_over(ARCH, 1);
    let there = world().add(arm).add(node("there")).add(old("gray"));
    let outcome = there
        .add(old("old").label("app", "green"))
        .add(green)
        .solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
}

#[test]
fn a_wish_for_one_node_yields_to_too_few_domains() {
    let both = instance_type("both").cpu("4").price(0.1).spot_price(0.04);
    let web = app("web")
        .replicas(2)
        .prefer_affinity_to(1, HOSTNAME, "web");
    let web = web.spread_with(CAPACITY_TYPE, 1, json!({"minDomains": 3}));
    let outcome = World::new().add(both).add(pool("default")).add(web).solve();
    outcome
        .assert_all_placed()
        .assert_counts(CAPACITY_TYPE, "web", "on-demand:1 spot:1");
}

#[test]
fn anti_affinity_against_a_pod_under_a_spread() {
    for skew in [1, 2] {
        let spread = app("web").spread_over_zones(skew);
        let apart = app("apart").anti_affinity_to(ZONE, "web");
        let outcome = world().add(spread).add(apart).solve();
        outcome.assert_all_placed().assert_new_nodes(2);
        assert_ne!(
            outcome.seat("web").zone,
            outcome.seat("apart").zone,
            "{outcome}"
        );
    }
}

#[test]
fn anti_affinity_of_a_running_pod_counts_on_its_own_node() {
    let guard = pod("guard")
        .label("app", "red")
        .anti_affinity_to(ZONE, "green")
        .on("there");
    let near = app("green").affinity_to(HOSTNAME, "red");
    let outcome = world()
        .add(node("there").zone("b"))
        .add(guard)
        .add(near)
        .solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
}

#[test]
fn a_pod_with_room_to_choose_leaves_the_zone_to_one_without() {
    let apart = app("apart").anti_affinity_to(ZONE, "pinned");
    let pinned = app("pinned").zone("a");
    world()
        .add(pinned)
        .add(apart)
        .solve()
        .assert_all_placed()
        .assert_zone("pinned", "a");
}

#[test]
fn the_only_pod_with_anti_affinity_uses_a_node_that_is_there() {
    let apart = app("apart").anti_affinity_to(ZONE, "nobody");
    let outcome = world().add(node("there").zone("b")).add(apart).solve();
    outcome.assert_on("apart", "there");
}

#[test]
fn anti_affinity_to_nobody_costs_no_second_node() {
    let apart = app("apart").anti_affinity_to(ZONE, "nobody");
    let outcome = world().add(app("pinned").zone("b")).add(apart).solve();
    outcome.assert_all_placed().assert_new_nodes(1);
}

#[test]
fn a_follower_that_keeps_its_own_kind_away() {
    // One zone for the follower and the leader, another for the loose pod of the follower's app.
    let leader = app("leader");
    let follower = app("one").label("app", "red").affinity_to(ZONE, "leader");
    let follower = follower.anti_affinity_to(ZONE, "red");
    let loose = app("two").label("app", "red");
    let outcome = world().add(follower).add(leader).add(loose).solve();
    outcome.assert_all_placed();
}

#[test]
fn two_orders_that_cannot_both_be() {
    // Pods under the spread over zones come first for one rule and last for the other.
    let zonal = app("zonal")
        .label("app", "web")
        .spread_over_zones(2)
        .replicas(2);
    let single = app("single").label("app", "web").spread_over_hosts(1);
    let outcome = world().add(zonal).add(single).solve();
    outcome.assert_all_placed().assert_new_nodes(2);
}

#[test]
fn a_node_is_not_filled_beyond_its_room_when_nothing_can_be_bought() {
    let closed = || {
        let machine = instance_type("machine").cpu("4").price(0.1);
        World::new()
            .add(machine)
            .add(pool("default").taint("team=x:NoSchedule"))
    };
    let outcome = closed()
        .add(node("there").cpu("1"))
        .add(pod("web").replicas(3).cpu("500m"));
    let outcome = outcome.solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
    let rack = "example.com/rack";
    let web = pod("web").replicas(3).cpu("500m").spread_over(rack, 1);
    let outcome = closed()
        .add(node("there").cpu("1").label(rack, "r1"))
        .add(web)
        .solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
}

#[test]
fn a_node_is_not_filled_beyond_its_room_when_the_pool_is_limited() {
    let limited = World::new()
        .add(instance_type("large").cpu("8").price(0.36))
        .add(pool("default").limit("cpu", "8"))
        .add(node("there").cpu("4"));
    let outcome = limited
        .add(pod("one").cpu("3"))
        .add(pod("web").replicas(6).cpu("1500m"))
        .solve();
    // Five of 1.5 fit into eight cores; the other node takes the one of three cores, or two.
    assert_eq!(left_over(&outcome), 1, "{outcome}");
}

#[test]
fn two_spreads_over_one_key_and_one_pod_for_each_node() {
    let limited = World::new()
        .add(instance_type("small").cpu("2").price(0.1))
        .add(pool("default").limit("cpu", "16"))
        .add(node("there").zone("d").cpu("1"));
    let web = pod("web")
        .replicas(5)
        .cpu("100m")
        .anti_affinity_to(HOSTNAME, "web");
    let outcome = limited
        .add(web.spread_over_zones(3).spread_over_zones(1))
        .solve();
    outcome.assert_all_placed();
}
