//! Behaviors that meet: what one rule does must not break another.

use joiner_testkit::{CAPACITY_TYPE, HOSTNAME, World, ZONE, instance_type, node, pod, pool};

#[test]
fn followers_do_not_go_where_their_leaders_are_not() {
    // Five pods that want one node, which has room for three.
    let outcome = World::new()
        .add(pool("default"))
        .add(instance_type("tight").cpu("8").pods(3))
        .add(
            pod("leader")
                .replicas(2)
                .cpu("2")
                .affinity_to(HOSTNAME, "leader"),
        )
        .add(
            pod("follower")
                .replicas(3)
                .cpu("1")
                .affinity_to(HOSTNAME, "leader"),
        )
        .solve();
    outcome.assert_new_nodes(1);
    assert_eq!(outcome.plan.unplaced.len(), 2, "{outcome}");
}

#[test]
fn followers_of_a_pod_that_cannot_be_placed() {
    for key in [HOSTNAME, ZONE] {
        World::standard()
            .add(pod("huge").cpu("100"))
            .add(pod("near").affinity_to(key, "huge"))
            .add(pod("next").affinity_to(key, "near"))
            .add(pod("plain"))
            .solve()
            .assert_left_over("huge", "cpu")
            .assert_left_over("near", key)
            .assert_left_over("next", key)
            .assert_on_new_node("plain");
    }
}

#[test]
fn a_follower_that_does_not_fit_does_not_hold_its_leader_back() {
    World::standard()
        .add(pod("leader").cpu("2"))
        .add(pod("big").cpu("7").affinity_to(HOSTNAME, "leader"))
        .add(
            pod("shy")
                .affinity_to(HOSTNAME, "leader")
                .anti_affinity_to(HOSTNAME, "leader"),
        )
        .solve()
        .assert_on_new_node("leader")
        .assert_left_over("big", HOSTNAME)
        .assert_left_over("shy", HOSTNAME);
}

#[test]
fn a_spread_holds_among_followers() {
    let outcome = World::standard()
        .add(pod("leader").cpu("1").zone("a"))
        .add(
            pod("web")
                .replicas(4)
                .cpu("100m")
                .spread_over_zones(2)
                .affinity_to(HOSTNAME, "leader"),
        )
        .solve();
    outcome.assert_counts(ZONE, "web", "a:2");
    assert_eq!(outcome.plan.unplaced.len(), 2, "{outcome}");
}

#[test]
fn a_spread_over_a_node_there_is_and_new_ones() {
    // One pod on demand, on the node there is, allows two on spot.
    let outcome = World::new()
        .add(pool("default"))
        .add(instance_type("spot").zone_price("c", "spot", 0.4))
        .add(node("old"))
        .add(
            pod("web")
                .replicas(4)
                .cpu("100m")
                .anti_affinity_to(HOSTNAME, "web")
                .spread_over(CAPACITY_TYPE, 1),
        )
        .solve();
    outcome
        .assert_counts(CAPACITY_TYPE, "web", "on-demand:1 spot:2")
        .assert_new_nodes(2);
}
