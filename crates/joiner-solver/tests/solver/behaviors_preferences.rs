//! Upstream behaviors 63 to 72: wishes, and the order in which they are given up.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_model::PreferencePolicy;
use joiner_testkit::{
    ARCH, HOSTNAME, INSTANCE_TYPE, InstanceTypeBuilder, PodBuilder, World, ZONE, instance_type,
    pod, pool,
};
use serde_json::json;

/// Zone `a` is the cheapest, `c` the dearest.
fn sloped() -> InstanceTypeBuilder {
    instance_type("sloped")
        .zone_price("a", "on-demand", 0.1)
        .zone_price("b", "on-demand", 0.2)
        .zone_price("c", "on-demand", 0.4)
}

fn sloped_world() -> World {
    World::new().add(pool("default")).add(sloped())
}

#[test]
fn core_063_a_requirement_beats_a_preference() {
    let outcome = World::standard()
        .add(
            pod("web")
                .node_affinity(ZONE, "In", "a")
                .prefer_node(100, ZONE, "In", "b"),
        )
        .solve();
    outcome.assert_all_placed().assert_zone("web", "a");
}

#[test]
fn core_063_a_preference_outranks_price() {
    sloped_world()
        .add(pod("web").prefer_node(1, ZONE, "In", "c"))
        .add(pod("plain"))
        .solve()
        .assert_all_placed()
        .assert_zone("web", "c")
        .assert_new_nodes(1);
}

#[test]
fn core_064_an_impossible_preference_falls() {
    let outcome = World::standard()
        .add(
            pod("web")
                .node_affinity(ZONE, "In", "a b")
                .prefer_node(1, ZONE, "In", "nowhere"),
        )
        .add(pod("custom").prefer_node(1, "example.com/unknown", "In", "x"))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(1);
    assert!(
        ["a", "b"].contains(&outcome.seat("web").zone.as_str()),
        "{outcome}"
    );
}

#[test]
fn core_065_everything_combines() {
    let arm = instance_type("arm").arch("arm64").cpu("4").price(0.01);
    World::standard()
        .add(arm)
        .add(
            pod("web")
                .arch("amd64")
                .node_affinity(INSTANCE_TYPE, "In", "arm medium large")
                .prefer_node(5, ZONE, "In", "b"),
        )
        .solve()
        .assert_all_placed()
        .assert_type("web", "medium")
        .assert_zone("web", "b")
        .assert_new_nodes(1);
}

#[test]
fn core_065_one_pod_with_every_kind_of_selection_on_one_key() {
    sloped_world()
        .add(
            pod("web")
                .node_affinity(ZONE, "In", "b c")
                .node_affinity(ZONE, "NotIn", "a")
                .prefer_node(1, ZONE, "NotIn", "b"),
        )
        .solve()
        .assert_zone("web", "c");
}

#[test]
fn core_066_pools_that_are_not_ready_or_going() {
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/keep"]}});
    let world = World::standard()
        .add(pool("sick").weight(100).not_ready("the class is missing"))
        .add(pool("going").weight(90).patch(deleting));
    world
        .clone()
        .add(pod("web"))
        .solve()
        .assert_all_placed()
        .assert_pool("web", "default");
    world
        .add(pod("sick").node_selector("karpenter.sh/nodepool", "sick"))
        .add(pod("going").node_selector("karpenter.sh/nodepool", "going"))
        .solve()
        .assert_left_over("sick", "the class is missing")
        .assert_left_over("going", "going")
        .assert_new_nodes(0);
}

#[test]
fn core_067_the_second_term_when_the_first_is_impossible() {
    let outcome = World::standard()
        .add(
            pod("web")
                .node_affinity(ZONE, "In", "nowhere")
                .or_node_affinity(ZONE, "In", "b"),
        )
        .add(
            pod("far")
                .node_affinity("example.com/unknown", "Exists", "")
                .or_node_affinity(ZONE, "In", "neither")
                .or_node_affinity(ZONE, "In", "c"),
        )
        .solve();
    outcome
        .assert_all_placed()
        .assert_zone("web", "b")
        .assert_zone("far", "c");
}

#[test]
fn core_067_the_last_term_never_falls() {
    let both = pod("both")
        .node_affinity(ZONE, "In", "nowhere")
        .or_node_affinity(ZONE, "In", "neither");
    World::standard()
        .add(pod("one").node_affinity(ZONE, "In", "nowhere"))
        .add(both)
        .solve()
        .assert_left_over("one", "nowhere")
        .assert_left_over("both", ZONE)
        .assert_new_nodes(0);
}

#[test]
fn core_067_a_term_too_small_for_the_pod_gives_way() {
    let either = pod("web")
        .cpu("3")
        .node_affinity(INSTANCE_TYPE, "In", "small")
        .or_node_affinity(INSTANCE_TYPE, "In", "large");
    World::standard()
        .add(either)
        .solve()
        .assert_type("web", "large");
}

#[test]
fn core_068_preferences_fall_by_weight() {
    let outcome = sloped_world()
        .add(
            pod("web")
                .prefer_node(1, ZONE, "In", "c")
                .prefer_node(100, ZONE, "In", "nowhere")
                .prefer_node(50, ZONE, "In", "neither"),
        )
        .solve();
    outcome.assert_all_placed().assert_zone("web", "c");
}

#[test]
fn core_068_the_heaviest_feasible_preference_holds() {
    sloped_world()
        .add(
            pod("web")
                .prefer_node(1, ZONE, "In", "a")
                .prefer_node(50, ZONE, "In", "b")
                .prefer_node(100, ZONE, "In", "nowhere"),
        )
        .solve()
        .assert_zone("web", "b");
}

#[test]
fn core_069_contradictory_preferences() {
    sloped_world()
        .add(
            pod("web")
                .prefer_node(10, ZONE, "In", "c")
                .prefer_node(5, ZONE, "NotIn", "c")
                .prefer_node(1, ZONE, "DoesNotExist", ""),
        )
        .solve()
        .assert_all_placed()
        .assert_zone("web", "c");
}

#[test]
fn core_069_pods_with_contradictory_preferences_part() {
    sloped_world()
        .add(pod("left").prefer_node(1, ZONE, "In", "b"))
        .add(pod("right").prefer_node(1, ZONE, "In", "c"))
        .solve()
        .assert_all_placed()
        .assert_zone("left", "b")
        .assert_zone("right", "c");
}

#[test]
fn core_070_a_volume_stays_where_it_is() {
    let manifest = r#"
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 10Gi}
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: topology.kubernetes.io/zone, operator: In, values: [b]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  namespace: default
  annotations: {pv.kubernetes.io/bind-completed: "yes"}
spec: {volumeName: disk, storageClassName: fast}
status: {phase: Bound}
"#;
    let world = sloped_world().add(manifest);
    world
        .clone()
        .add(
            pod("web")
                .volume_claim("data")
                .prefer_node(9, ZONE, "In", "c"),
        )
        .solve()
        .assert_all_placed()
        .assert_zone("web", "b");
    world
        .add(pod("web").volume_claim("data").zone("c"))
        .solve()
        .assert_left_over("web", "volume")
        .assert_new_nodes(0);
}

#[test]
fn core_071_prefer_no_schedule_is_avoided() {
    let cheap = instance_type("cheap").cpu("2").price(0.01);
    let world = World::standard()
        .add(cheap)
        .add(pool("soft").taint("busy:PreferNoSchedule").types("cheap"))
        .add(pool("plain").types("small"));
    let outcome = world.add(pod("web").node_affinity("karpenter.sh/nodepool", "In", "soft plain"));
    outcome
        .solve()
        .assert_all_placed()
        .assert_pool("web", "plain");
}

#[test]
fn core_071_prefer_no_schedule_is_a_taint_before_weight() {
    World::standard()
        .add(pool("soft").taint("busy:PreferNoSchedule").weight(100))
        .add(pod("web"))
        .solve()
        .assert_pool("web", "default");
    World::standard()
        .add(pool("soft").taint("busy:PreferNoSchedule").weight(100))
        .add(pod("tolerant").tolerate("busy"))
        .solve()
        .assert_pool("tolerant", "soft");
}

#[test]
fn core_071_prefer_no_schedule_is_better_than_nothing() {
    World::new()
        .add(pool("soft").taint("busy:PreferNoSchedule"))
        .add(instance_type("only"))
        .add(pod("web"))
        .solve()
        .assert_all_placed()
        .assert_pool("web", "soft");
    World::standard()
        .add(
            pool("soft")
                .taint("busy:PreferNoSchedule")
                .label("example.com/team", "red"),
        )
        .add(pod("web").node_selector("example.com/team", "red"))
        .solve()
        .assert_pool("web", "soft");
}

#[test]
fn core_071_prefer_no_schedule_is_the_last_wish_to_fall() {
    World::new()
        .add(sloped())
        .add(pool("soft").taint("busy:PreferNoSchedule").zones("b"))
        .add(pool("plain").zones("a"))
        .add(pod("web").prefer_node(100, ZONE, "In", "b"))
        .solve()
        .assert_all_placed()
        .assert_pool("web", "plain")
        .assert_zone("web", "a");
}

/// Two pods under some wish, in a world where granting it costs something.
fn wishes() -> [(&'static str, PodBuilder); 4] {
    let web = || pod("web").replicas(2).cpu("500m");
    [
        ("node affinity", web().prefer_node(100, ZONE, "In", "c")),
        ("spread", web().prefer_spread_over(HOSTNAME, 1)),
        ("zonal spread", web().prefer_spread_over(ZONE, 1)),
        (
            "anti-affinity",
            web().prefer_anti_affinity_to(1, HOSTNAME, "web"),
        ),
    ]
}

#[test]
fn core_072_preferences_are_rules_until_they_cannot_hold() {
    for (name, pods) in wishes() {
        let outcome = sloped_world().add(pods).solve();
        outcome.assert_all_placed();
        let price = if name == "node affinity" { 0.4 } else { 0.2 };
        assert!(
            outcome.price() >= price - 1e-9,
            "{name} was not granted\n{outcome}"
        );
    }
}

#[test]
fn core_072_ignored_preferences_have_no_effect() {
    for (name, pods) in wishes() {
        let outcome = sloped_world()
            .preferences(PreferencePolicy::Ignore)
            .add(pods)
            .solve();
        outcome.assert_all_placed().assert_new_nodes(1);
        assert!(
            outcome.price() < 0.1 + 1e-9,
            "{name} was not ignored\n{outcome}"
        );
    }
    let friend = pod("web").cpu("1").prefer_affinity_to(1, ZONE, "friend");
    let outcome = sloped_world()
        .preferences(PreferencePolicy::Ignore)
        .add(pod("friend").zone("c").cpu("4"))
        .add(friend)
        .solve();
    outcome.assert_all_placed().assert_zone("web", "a");
}

#[test]
fn core_072_ignored_preferences_leave_the_zone_open() {
    let outcome = World::standard()
        .preferences(PreferencePolicy::Ignore)
        .add(
            pod("web")
                .prefer_node(1, ZONE, "In", "b")
                .prefer_spread_over(ZONE, 1),
        )
        .solve();
    assert_eq!(outcome.open("web", ZONE).len(), 3, "{outcome}");
    assert_eq!(
        outcome.open("web", ARCH).len(),
        0,
        "the offering has no such label"
    );
}

#[test]
fn core_072_rules_stay_rules() {
    sloped_world()
        .preferences(PreferencePolicy::Ignore)
        .add(
            pod("hosts")
                .replicas(2)
                .spread_over_hosts(1)
                .prefer_node(1, ZONE, "In", "c"),
        )
        .add(pod("zones").replicas(3).spread_over_zones(1))
        .solve()
        .assert_all_placed()
        .assert_apart("hosts-0", "hosts-1")
        .assert_counts(ZONE, "zones", "a:1 b:1 c:1");
}
