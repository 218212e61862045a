//! Topology spread: the numbered behaviors 149 to 162, on a catalog of three zones.

use joiner_testkit::{HOSTNAME, Outcome, PodBuilder, World, ZONE, instance_type, node, pod, pool};
use serde_json::{Value, json};

/// A catalog without pools: 2, 4 and 8 cores, on demand in zones a, b and c.
fn catalog() -> World {
    let sizes = [
        ("small", "2", 0.1),
        ("medium", "4", 0.2),
        ("large", "8", 0.4),
    ];
    let types = sizes.map(|(name, cpu, dollars)| instance_type(name).cpu(cpu).price(dollars));
    World::new().add(types)
}

/// The catalog and a pool that buys in these zones only.
fn zones(zones: &str) -> World {
    catalog().add(pool("default").zones(zones))
}

/// Adds a node of one core, which a running pod of this app fills.
fn resident(world: World, name: &str, app: &str, zone: &str) -> World {
    let host = format!("node-{name}");
    world
        .add(node(&host).zone(zone).cpu("1"))
        .add(pod(name).label("app", app).cpu("1").on(&host))
}

/// Pods with a hard spread over zones.
fn web(replicas: usize, max_skew: u32) -> PodBuilder {
    let web = pod("web").replicas(replicas).cpu("1");
    web.spread_over_zones(max_skew)
}

/// Pods per domain, the fullest first.
fn profile(outcome: &Outcome, key: &str, app: &str) -> Vec<usize> {
    let mut counts: Vec<usize> = outcome.count_by(key, app).into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

fn left_over(outcome: &Outcome) -> usize {
    outcome.plan.unplaced.len()
}

/// The pods left over are so many, and all of them say this.
fn assert_left(outcome: &Outcome, count: usize, reason: &str) {
    assert_eq!(left_over(outcome), count, "{outcome}");
    for left in &outcome.plan.unplaced {
        let name = &outcome.problem[left.pod].name;
        outcome.assert_left_over(name, reason);
    }
}

/// A hard spread over zones whose selector is this, or missing when it is null.
fn spread_selecting(selector: Value) -> Value {
    let mut spread =
        json!({"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"});
    if !selector.is_null() {
        spread["labelSelector"] = selector;
    }
    json!({"spec": {"topologySpreadConstraints": [spread]}})
}

#[test]
fn core_149_four_pods_over_three_zones() {
    let outcome = zones("a b c").add(web(4, 1)).solve();
    outcome.assert_all_placed().assert_price(0.3);
    assert_eq!(profile(&outcome, ZONE, "web"), [2, 1, 1]);

    let by_expression = json!({"matchExpressions": [
        {"key": "app", "operator": "In", "values": ["web", "other"]}]});
    let selector = json!({"labelSelector": by_expression});
    let web = pod("web").replicas(4).cpu("1");
    let outcome = zones("a b c")
        .add(web.spread_with(ZONE, 1, selector))
        .solve();
    outcome.assert_all_placed().assert_price(0.3);
    assert_eq!(profile(&outcome, ZONE, "web"), [2, 1, 1]);
}

#[test]
fn core_149_a_node_under_a_spread_has_one_zone() {
    let outcome = zones("a b c").add(web(3, 1)).solve();
    for ix in 0..3 {
        assert_eq!(
            outcome.open(&format!("web-{ix}"), ZONE).len(),
            1,
            "{outcome}"
        );
    }
}

#[test]
fn core_150_the_pool_limits_the_zones() {
    let outcome = zones("a b").add(web(4, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2")
        .assert_price(0.2);
    let outcome = zones("b").add(web(4, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:4")
        .assert_price(0.2);
}

#[test]
fn core_151_zones_of_two_pools() {
    let world = catalog()
        .add(pool("one").label(ZONE, "a"))
        .add(pool("two").label(ZONE, "b"));
    let outcome = world.add(web(4, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2");
    outcome.assert_counts("karpenter.sh/nodepool", "web", "one:2 two:2");

    let world = catalog()
        .add(pool("one").zones("a"))
        .add(pool("two").zones("b c").weight(9));
    let outcome = world.add(web(6, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");
    outcome.assert_counts("karpenter.sh/nodepool", "web", "one:2 two:4");
}

#[test]
fn core_152_a_zone_that_only_a_full_node_has() {
    let outcome = resident(zones("a b"), "old", "web", "c")
        .add(web(6, 1))
        .solve();
    outcome.assert_counts(ZONE, "web", "a:2 b:2");
    assert_left(&outcome, 2, "skew");
    assert_left(&outcome, 2, ZONE);
}

#[test]
fn core_153_the_only_zone_there_is_fills_up_to_the_skew() {
    let world = resident(resident(zones("c"), "one", "web", "a"), "two", "web", "b");
    let outcome = world.clone().add(web(10, 5)).solve();
    outcome.assert_counts(ZONE, "web", "c:6");
    assert_left(&outcome, 4, "skew");
    // Pods that may go to this zone only are not measured against the others.
    let outcome = world.add(web(10, 5).node_affinity(ZONE, "In", "c")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "c:10");
}

#[test]
fn core_154_a_skew_that_is_broken_is_mended_first() {
    let mut world = zones("a b c");
    for name in ["one", "two", "three"] {
        world = resident(world, name, "web", "a");
    }
    world = resident(world, "four", "web", "b");
    let outcome = world.clone().add(web(1, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "c:1");
    let outcome = world.clone().add(web(5, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:2 c:3");
    // The two empty zones take turns; the full one waits for them.
    let outcome = world.add(web(3, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:1 c:2");
}

#[test]
fn core_155_hard_spread_holds_and_soft_spread_gives_way() {
    let world = resident(zones("a b"), "old", "other", "c");
    let outcome = world.clone().add(web(6, 1)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
    assert_left(&outcome, 4, "skew");
    let soft = pod("web").replicas(6).cpu("1").prefer_spread_over(ZONE, 1);
    let outcome = world.add(soft).solve();
    outcome.assert_all_placed();
}

#[test]
fn core_155_soft_spread_is_kept_while_it_can_be() {
    let soft = pod("web").replicas(6).cpu("1").prefer_spread_over(ZONE, 1);
    let outcome = zones("a b c").add(soft).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");
}

#[test]
fn core_156_domains_of_nodes_without_pods() {
    let full = resident(zones("a b"), "old", "other", "c");
    let outcome = full.add(web(4, 1)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
    assert_left(&outcome, 2, "skew");

    let with_room = zones("a b").add(node("spare").zone("c").cpu("2"));
    let outcome = with_room.add(web(6, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2")
        .assert_price(0.2);

    let closed = zones("a b").add(node("closed").zone("c").cordoned());
    let outcome = closed.add(web(4, 1)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
}

#[test]
fn core_157_pods_that_do_not_count() {
    let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "nowhere",
            "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "110"},
            "capacity": {"cpu": "1", "memory": "1Gi", "pods": "110"}}});
    let noise = |name: &str| pod(name).label("app", "web").on("there");
    let world = resident(zones("a b"), "counted", "web", "a")
        .add(node("there").zone("b").cpu("0"))
        .add(bare)
        .add(noise("elsewhere").namespace("other"))
        .add(noise("different").label("app", "other"))
        .add(noise("done").phase("Succeeded"))
        .add(noise("failed").phase("Failed"))
        .add(noise("leaving").deleting())
        .add(pod("lost").label("app", "web").on("nowhere"))
        .add(pod("ghost").label("app", "web").on("no-such-node"));
    let outcome = world.clone().add(web(1, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:1");
    let outcome = world.add(web(3, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:2");
}

#[test]
fn core_157_a_pod_that_is_bound_and_not_yet_running_counts() {
    let world = zones("a b").add(node("there").zone("a").cpu("1"));
    let starting = pod("old")
        .label("app", "web")
        .cpu("1")
        .on("there")
        .phase("Pending");
    let outcome = world.add(starting).add(web(1, 1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:1");
}

#[test]
fn core_158_an_empty_selector_matches_all_pods() {
    let any = || json!({"labelSelector": {}});
    let one = pod("one").replicas(2).cpu("1").spread_with(ZONE, 1, any());
    let two = pod("two").replicas(2).cpu("1").spread_with(ZONE, 1, any());
    let outcome = zones("a b").add(one).add(two).solve();
    outcome.assert_all_placed();
    let total = |zone: &str| -> usize {
        let of = |app| outcome.count_by(ZONE, app).get(zone).copied().unwrap_or(0);
        of("one") + of("two")
    };
    assert_eq!((total("a"), total("b")), (2, 2), "{outcome}");
}

#[test]
fn core_158_no_selector_spreads_nothing() {
    // A selector with an unknown operator does not get this far: reading it is an error.
    let pods = pod("web")
        .replicas(2)
        .cpu("1")
        .patch(spread_selecting(Value::Null));
    let outcome = zones("a b c").add(pods).solve();
    outcome.assert_all_placed().assert_new_nodes(1);
}

#[test]
fn core_158_no_selector_counts_every_pod_there_is() {
    let world = resident(resident(zones("a b"), "one", "x", "a"), "two", "y", "a");
    let pods = pod("web")
        .replicas(2)
        .cpu("1")
        .patch(spread_selecting(Value::Null));
    let outcome = world.add(pods).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:2");
}

#[test]
fn core_159_a_key_that_nothing_has() {
    let lost = pod("lost").cpu("1").spread_over("example.com/rack", 1);
    let outcome = zones("a b").add(lost).add(pod("fine").cpu("1")).solve();
    outcome
        .assert_left_over("lost", "example.com/rack")
        .assert_on_new_node("fine");
}

#[test]
fn core_160_selectors_that_depend_on_each_other() {
    let other = |app: &str| json!({"labelSelector": {"matchLabels": {"app": app}}});
    for key in [ZONE, HOSTNAME] {
        let a = pod("a")
            .replicas(3)
            .cpu("500m")
            .spread_with(key, 1, other("b"));
        let b = pod("b")
            .replicas(3)
            .cpu("500m")
            .spread_with(key, 1, other("a"));
        let outcome = zones("a b c").add(a).add(b).solve();
        outcome.assert_all_placed();
    }
}

#[test]
fn core_160_pods_that_do_not_count_themselves_stay_together() {
    let other = json!({"labelSelector": {"matchLabels": {"app": "nobody"}}});
    let pods = pod("web")
        .replicas(5)
        .cpu("1")
        .spread_with(HOSTNAME, 1, other);
    let outcome = zones("a b c").add(pods).solve();
    outcome.assert_all_placed();
    assert!(outcome.plan.cost.price.get() <= 300_000_000, "{outcome}");
}

#[test]
fn core_161_min_domains() {
    let at_least = |replicas: usize, domains: u32| {
        let web = pod("web").replicas(replicas).cpu("1");
        web.spread_with(ZONE, 1, json!({"minDomains": domains}))
    };
    let outcome = zones("a b").add(at_least(3, 3)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
    assert_left(&outcome, 1, "skew");

    let outcome = zones("a b c").add(at_least(6, 3)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");
    let outcome = zones("a b c").add(at_least(6, 2)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");
}

#[test]
fn core_162_spread_over_nodes() {
    let outcome = zones("a b c")
        .add(pod("web").replicas(4).cpu("500m").spread_over_hosts(1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(4)
        .assert_price(0.4);
    assert_eq!(profile(&outcome, HOSTNAME, "web"), [1, 1, 1, 1]);

    let outcome = zones("a b c")
        .add(pod("web").replicas(4).cpu("500m").spread_over_hosts(4))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.1);
}

#[test]
fn core_162_spread_over_nodes_that_are_there() {
    let world = zones("a b c").add(node("one")).add(node("two"));
    let outcome = world
        .add(pod("web").replicas(3).cpu("500m").spread_over_hosts(1))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(1);
    assert_eq!(profile(&outcome, HOSTNAME, "web"), [1, 1, 1]);
}
