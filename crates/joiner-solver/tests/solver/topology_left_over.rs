//! Small clusters that random ones were shrunk to: each of them once had a plan that left a pod over
//! without need, or cost more than it had to.

use joiner_testkit::{HOSTNAME, Outcome, PodBuilder, World, ZONE, instance_type, node, pod, pool};

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
fn a_limited_pool_takes_its_share_of_a_spread() {
    let world = World::new()
        .add(instance_type("machine").cpu("4").price(0.1))
        .add(pool("heavy").weight(10).limit("cpu", "4").zones("a"))
        .add(pool("light").zones("b"));
    let outcome = world
        .add(pod("web").replicas(6).cpu("2").spread_over_zones(1))
        .solve();
    outcome.assert_counts(ZONE, "web", "a:2 b:3");
}

#[test]
fn a_spread_over_a_key_that_only_nodes_have() {
    let rack = "example.com/rack";
    let there = |name: &str, value: &str| node(name).cpu("1").label(rack, value);
    let web = || pod("web").replicas(3).cpu("500m").spread_over(rack, 1);
    let outcome = world().add(there("one", "r1")).add(web()).solve();
    assert_eq!(left_over(&outcome), 1, "{outcome}");
    let outcome = world()
        .add(there("one", "r1"))
        .add(there("two", "r2"))
        .add(web())
        .solve();
    outcome.assert_all_placed().assert_new_nodes(0);
}

#[test]
fn followers_of_a_pinned_pod_under_a_spread() {
    let follower = app("follower").affinity_to(ZONE, "target");
    let target = app("target").zone("a").spread_over_zones(2);
    let outcome = world().add(follower).add(target).solve();
    outcome
        .assert_all_placed()
        .assert_zone("follower", "a")
        .assert_new_nodes(1);
}

#[test]
fn followers_of_a_pod_with_anti_affinity() {
    let follower = app("follower").zone("b").affinity_to(ZONE, "target");
    let target = app("target").anti_affinity_to(ZONE, "target");
    world()
        .add(follower)
        .add(target)
        .solve()
        .assert_all_placed()
        .assert_zone("target", "b");
}

#[test]
fn followers_join_a_new_pod_when_the_old_one_has_no_room() {
    let old = pod("old").label("app", "web").on("full");
    let world = world().add(node("full").cpu("0")).add(old);
    let follower = app("follower").affinity_to(HOSTNAME, "web");
    let outcome = world.add(app("web")).add(follower).solve();
    outcome
        .assert_all_placed()
        .assert_together("web", "follower");
}

#[test]
fn followers_share_the_nodes_of_their_targets() {
    // One node takes four; the loose pod makes a second one possible.
    let follower = app("follower")
        .label("app", "web")
        .replicas(5)
        .affinity_to(HOSTNAME, "web");
    let outcome = world()
        .add(follower)
        .add(app("loose").label("app", "web"))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(2);
}

#[test]
fn a_zone_free_for_two_kinds() {
    let machine = instance_type("machine").cpu("4").price(0.1);
    let world = World::new().add(machine).add(pool("default").zones("a b"));
    let red = |name: &str| app(name).label("app", "red").anti_affinity_to(ZONE, "blue");
    let outcome = world
        .add(red("one"))
        .add(app("blue"))
        .add(red("two").spread_over_zones(1))
        .solve();
    outcome.assert_all_placed();
}

#[test]
fn a_spread_with_slack_uses_a_node_that_is_there() {
    let old = pod("old").label("app", "web").on("there");
    let there = world().add(node("there").zone("b")).add(old);
    let outcome = there.add(app("web").spread_over_zones(2)).solve();
    outcome.assert_on("web", "there");

    let outcome = world()
        .add(node("there").zone("c"))
        .add(app("web").replicas(2).spread_over_zones(1));
    outcome.solve().assert_all_placed().assert_new_nodes(1);
}

#[test]
fn a_spread_with_slack_buys_fewer_nodes() {
    let outcome = world()
        .add(app("web").replicas(3).spread_over_zones(2))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(2);
}

#[test]
fn followers_and_their_target_use_a_node_that_is_there() {
    let follower = app("follower").affinity_to(ZONE, "target");
    let outcome = world()
        .add(node("there").zone("b"))
        .add(follower)
        .add(app("target"))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(0);
}

#[test]
fn followers_join_a_pod_that_has_to_be_bought_for_anyway() {
    let old = pod("old").label("app", "web").on("full");
    let world = world().add(node("full").zone("b").cpu("0")).add(old);
    let near = app("near").label("app", "web").affinity_to(ZONE, "web");
    let outcome = world
        .add(app("pinned").label("app", "web").zone("c"))
        .add(near)
        .solve();
    outcome.assert_all_placed().assert_new_nodes(1);
}

#[test]
fn a_spread_takes_zones_that_are_paid_for_anyway() {
    let pinned = app("pinned").zone("c");
    let outcome = world()
        .add(pinned)
        .add(app("web").replicas(2).spread_over_zones(1))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(2);
}

#[test]
fn a_spread_takes_the_cheapest_zones() {
    let dear = instance_type("machine")
        .cpu("4")
        .zone_price("a", "on-demand", 0.3);
    let dear = dear
        .zone_price("b", "on-demand", 0.1)
        .zone_price("c", "on-demand", 0.1);
    let world = World::new().add(dear).add(pool("default"));
    let outcome = world
        .add(app("web").replicas(2).spread_over_zones(1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:1 c:1")
        .assert_price(0.2);
}
