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

/// Four cores a machine, a pool with a limit, and a node of one core in a zone of its own.
fn limited(cpu: &str) -> World {
    World::new()
        .add(instance_type("machine").cpu("4").price(0.1))
        .add(pool("default").limit("cpu", cpu))
        .add(node("there").zone("d").cpu("1"))
}

#[test]
fn a_node_is_not_filled_beyond_its_room_when_the_pool_is_limited() {
    let outcome = limited("4").add(pod("web").replicas(9).cpu("900m")).solve();
    assert_eq!(left_over(&outcome), 4, "{outcome}");

    let world = World::new()
        .add(instance_type("large").cpu("8").price(0.36))
        .add(pool("default").limit("cpu", "8"))
        .add(node("there").cpu("4"));
    let outcome = world
        .add(pod("one").cpu("3"))
        .add(pod("web").replicas(6).cpu("1500m"))
        .solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
}

#[test]
fn a_node_takes_one_pod_of_a_kind_when_the_pool_is_limited() {
    let web = || pod("web").replicas(5).cpu("100m");
    let outcome = limited("4")
        .add(web().anti_affinity_to(HOSTNAME, "web"))
        .solve();
    assert_eq!(left_over(&outcome), 3, "{outcome}");
    let outcome = limited("4").add(web().host_port(80)).solve();
    assert_eq!(left_over(&outcome), 3, "{outcome}");
    let zonal = web().anti_affinity_to(HOSTNAME, "web").spread_over_zones(1);
    limited("16").add(zonal).solve().assert_all_placed();
}

#[test]
fn a_spread_over_a_key_without_known_values() {
    let rack = "example.com/rack";
    let open = pool("open").requirement(rack, "Exists", "");
    let machine = instance_type("machine").cpu("4").price(0.1);
    let web = pod("web").replicas(2).cpu("1").spread_over(rack, 1);
    let outcome = World::new().add(machine).add(open).add(web).solve();
    outcome
        .assert_left_over("web-0", rack)
        .assert_left_over("web-1", rack);
}

#[test]
fn anti_affinity_of_a_running_pod_counts_for_pods_under_a_spread() {
    let guard = || pod("guard").anti_affinity_to(ZONE, "web").on("there");
    let other = json!({"labelSelector": {"matchLabels": {"app": "other"}}});
    let web = app("web").spread_with(ZONE, 2, other);
    let outcome = world()
        .add(node("there").zone("b"))
        .add(guard())
        .add(web)
        .solve();
    outcome.assert_all_placed().assert_new_nodes(1);
    assert_ne!(outcome.seat("web").zone, "b", "{outcome}");

    let full = world().add(node("there").zone("a").cpu("0")).add(guard());
    let outcome = full.add(app("web").spread_over_zones(1)).solve();
    outcome.assert_all_placed();
    assert_ne!(outcome.seat("web").zone, "a", "{outcome}");
}

#[test]
fn one_app_whose_pods_want_and_shun_each_other() {
    let wants = app("wants").label("app", "web").affinity_to(ZONE, "web");
    let shuns = app("shuns")
        .label("app", "web")
        .anti_affinity_to(ZONE, "web");
    let outcome = world().add(wants).add(shuns).solve();
    // Either order works, but never in one zone.
    for (one, other) in [("wants", "shuns"), ("shuns", "wants")] {
        if let (Some(one), Some(other)) = (outcome.find(one), outcome.find(other)) {
            assert_ne!(one.zone, other.zone, "{outcome}");
        }
    }
}

#[test]
fn anti_affinity_over_two_keys() {
    // The rule of the first pod about itself must not hide the rule of the second.
    let sizes = [("small", "2", 0.1), ("medium", "4", 0.2)];
    let types = sizes.map(|(name, cpu, dollars)| {
        let both = instance_type(name).cpu(cpu).price(dollars);
        both.spot_price(dollars / 2.0)
    });
    let arm = instance_type("arm").cpu("4").arch("arm64").price(0.4);
    let world = World::new()
        .add(types)
        .add(arm)
        .add(pool("default").zones("a"));
    let gray = || app("gray").cpu("3").anti_affinity_to(ZONE, "gray");
    for key in [ARCH, CAPACITY_TYPE] {
        let blue = app("blue").anti_affinity_to(key, "gray");
        let outcome = world.clone().add(gray()).add(blue).solve();
        outcome.assert_all_placed().assert_new_nodes(2);
    }
}

#[test]
fn a_wish_does_not_lead_to_a_node_without_the_key_of_a_spread() {
    let rack = "example.com/rack";
    let web = app("web")
        .prefer_affinity_to(1, HOSTNAME, "old")
        .spread_over(rack, 3);
    let there = World::new().add(node("there")).add(app("old").on("there"));
    let outcome = there.add(web).solve();
    outcome.assert_left_over("web", rack);
}

#[test]
fn a_wish_does_not_lead_to_a_node_that_anti_affinity_forbids() {
    let web = app("web").prefer_affinity_to(1, HOSTNAME, "old");
    let web = web.anti_affinity_to(CAPACITY_TYPE, "old");
    let outcome = World::new()
        .add(node("there"))
        .add(app("old").on("there"))
        .add(web)
        .solve();
    outcome.assert_left_over("web", "anti-affinity");
}
