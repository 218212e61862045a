//! Topology spread: the numbered behaviors 163 to 170, constraints that meet other constraints.

use std::collections::BTreeMap;

use joiner_testkit::{
    ARCH, CAPACITY_TYPE, HOSTNAME, Outcome, PodBuilder, World, ZONE, instance_type, node, pod, pool,
};
use serde_json::json;

/// Two cores, on demand and spot in zones a, b and c; no pools.
fn catalog() -> World {
    let small = instance_type("small").cpu("2").price(0.1).spot_price(0.04);
    World::new().add(small)
}

fn zones(zones: &str) -> World {
    catalog().add(pool("default").zones(zones).capacity_types("on-demand"))
}

fn resident(world: World, name: &str, app: &str, zone: &str) -> World {
    let host = format!("node-{name}");
    world
        .add(node(&host).zone(zone).cpu("1"))
        .add(pod(name).label("app", app).cpu("1").on(&host))
}

fn web(replicas: usize) -> PodBuilder {
    pod("web").replicas(replicas).cpu("1")
}

fn profile(outcome: &Outcome, key: &str, app: &str) -> Vec<usize> {
    let mut counts: Vec<usize> = outcome.count_by(key, app).into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

fn left_over(outcome: &Outcome) -> usize {
    outcome.plan.unplaced.len()
}

#[test]
fn core_163_two_deployments_share_their_nodes() {
    let app = |name| pod(name).replicas(2).cpu("500m").spread_over_hosts(1);
    let outcome = zones("a b c").add(app("one")).add(app("two")).solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_price(0.2);
    assert_eq!(profile(&outcome, HOSTNAME, "one"), [1, 1]);
    assert_eq!(profile(&outcome, HOSTNAME, "two"), [1, 1]);
}

#[test]
fn core_163_two_deployments_of_two_architectures() {
    let arm = instance_type("arm").cpu("2").arch("arm64").price(0.08);
    let app = |name, arch| {
        pod(name)
            .replicas(2)
            .cpu("500m")
            .arch(arch)
            .spread_over_hosts(1)
    };
    let world = zones("a b c")
        .add(arm)
        .add(app("one", "amd64"))
        .add(app("two", "arm64"));
    let outcome = world.solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(4)
        .assert_price(0.36);
    assert_eq!(profile(&outcome, HOSTNAME, "one"), [1, 1]);
    assert_eq!(profile(&outcome, HOSTNAME, "two"), [1, 1]);
}

#[test]
fn core_163_one_deployment_spread_over_architectures() {
    let arm = instance_type("arm").cpu("2").arch("arm64").price(0.08);
    let outcome = zones("a b c")
        .add(arm)
        .add(web(4).spread_over(ARCH, 1))
        .solve();
    outcome.assert_all_placed().assert_counts(
        "node.kubernetes.io/instance-type",
        "web",
        "arm:2 small:2",
    );
    outcome.assert_price(0.18);
}

#[test]
fn core_164_spread_over_capacity_types() {
    let outcome = catalog()
        .add(pool("any"))
        .add(web(4).spread_over(CAPACITY_TYPE, 1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(CAPACITY_TYPE, "web", "on-demand:2 spot:2");
    outcome.assert_price(0.14);

    let spot = catalog().add(pool("spot").capacity_types("spot"));
    let outcome = spot
        .clone()
        .add(web(4).spread_over(CAPACITY_TYPE, 1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(CAPACITY_TYPE, "web", "spot:4");

    let pinned = web(4).capacity_type("spot").spread_over(CAPACITY_TYPE, 1);
    let outcome = catalog().add(pool("any")).add(pinned).solve();
    outcome
        .assert_all_placed()
        .assert_counts(CAPACITY_TYPE, "web", "spot:4");

    // A full node on demand is a domain that the pool cannot add to.
    let world = resident(spot, "old", "web", "a");
    let outcome = world.add(web(4).spread_over(CAPACITY_TYPE, 1)).solve();
    outcome.assert_counts(CAPACITY_TYPE, "web", "spot:2");
    assert_eq!(left_over(&outcome), 2, "{outcome}");
    outcome.assert_left_over("web-3", CAPACITY_TYPE);
}

#[test]
fn core_164_a_soft_spread_over_capacity_types_outranks_price() {
    let soft = web(4).prefer_spread_over(CAPACITY_TYPE, 1);
    let outcome = catalog().add(pool("any")).add(soft).solve();
    outcome
        .assert_all_placed()
        .assert_counts(CAPACITY_TYPE, "web", "on-demand:2 spot:2");
}

#[test]
fn core_165_nodes_and_zones_together() {
    let both = |replicas| web(replicas).spread_over_zones(1).spread_over_hosts(3);
    for replicas in 1..=8 {
        let outcome = zones("a b c").add(both(replicas)).solve();
        outcome.assert_all_placed();
        let zones = profile(&outcome, ZONE, "web");
        let low = if zones.len() < 3 { 0 } else { zones[2] };
        assert!(zones[0] <= low + 1, "{outcome}");
        assert!(profile(&outcome, HOSTNAME, "web")[0] <= 3, "{outcome}");
    }
}

#[test]
fn core_165_nodes_zones_and_capacity_types_together() {
    let all = |replicas| {
        let pods = web(replicas)
            .spread_over_zones(1)
            .spread_over(CAPACITY_TYPE, 1);
        pods.spread_over_hosts(2)
    };
    for replicas in 1..=9 {
        let outcome = catalog().add(pool("any")).add(all(replicas)).solve();
        outcome.assert_all_placed();
        let types = profile(&outcome, CAPACITY_TYPE, "web");
        let low = if types.len() < 2 { 0 } else { types[1] };
        assert!(types[0] <= low + 1, "{outcome}");
    }
    let one_each = web(6)
        .spread_over_zones(1)
        .spread_over(CAPACITY_TYPE, 1)
        .spread_over_hosts(1);
    let outcome = catalog().add(pool("any")).add(one_each).solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(6)
        .assert_price(0.42);
    outcome.assert_counts(ZONE, "web", "a:2 b:2 c:2");
}

#[test]
fn core_166_a_ratio_of_spot_by_a_custom_label() {
    let key = "example.com/share";
    let spot = pool("spot")
        .capacity_types("spot")
        .requirement(key, "In", "2 3 4 5");
    let fixed = pool("fixed")
        .capacity_types("on-demand")
        .requirement(key, "In", "1");
    let world = catalog().add(spot).add(fixed);
    let outcome = world
        .add(pod("web").replicas(20).cpu("500m").spread_over(key, 1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(CAPACITY_TYPE, "web", "on-demand:4 spot:16");
    outcome.assert_price(0.26);
    let mut per_value: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in &outcome.plan.launches {
        let pool = &outcome.problem[launch.pool];
        let rules = || launch.requirements.iter().chain(pool.requirements.iter());
        let allowed = |value: &&str| rules().filter(|r| &**r.key() == key).all(|r| r.has(value));
        let values: Vec<&str> = ["1", "2", "3", "4", "5"]
            .into_iter()
            .filter(allowed)
            .collect();
        assert_eq!(values.len(), 1, "{outcome}");
        *per_value.entry(values[0]).or_default() += launch.pods.len();
    }
    assert_eq!(
        per_value.into_values().collect::<Vec<_>>(),
        [4; 5],
        "{outcome}"
    );
}

#[test]
fn core_167_each_revision_is_spread_on_its_own() {
    let by = |key: &str| json!({"matchLabelKeys": [key]});
    let mut world = zones("a b");
    for name in ["one", "two"] {
        let host = format!("node-{name}");
        let old = pod(name)
            .label("app", "web")
            .label("revision", "1")
            .cpu("1")
            .on(&host);
        world = world.add(node(&host).zone("a").cpu("1")).add(old);
    }
    let pods = |key: &str| web(2).label("revision", "2").spread_with(ZONE, 1, by(key));
    let outcome = world.clone().add(pods("revision")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1");
    let outcome = world.add(pods("unknown")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:2");
}

#[test]
fn core_167_two_revisions_in_one_batch() {
    let pods = |revision: &str| {
        let by_revision = json!({"matchLabelKeys": ["revision"],
            "labelSelector": {"matchLabels": {"app": "web"}}});
        let named = pod(&format!("web{revision}"))
            .replicas(2)
            .cpu("1")
            .label("app", "web");
        named
            .label("revision", revision)
            .spread_with(ZONE, 1, by_revision)
    };
    let outcome = zones("a b").add(pods("1")).add(pods("2")).solve();
    outcome.assert_all_placed().assert_price(0.2);
    for revision in ["1", "2"] {
        let zone = |ix: u32| outcome.seat(&format!("web{revision}-{ix}")).zone.clone();
        assert_ne!(zone(0), zone(1), "{outcome}");
    }
}

#[test]
fn core_168_taints_of_nodes() {
    let world = zones("a b").add(node("tainted").zone("c").taint("team=x:NoSchedule"));
    let outcome = world.clone().add(web(4).spread_over_zones(1)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
    assert_eq!(left_over(&outcome), 2, "{outcome}");

    let honor = || json!({"nodeTaintsPolicy": "Honor"});
    let outcome = world
        .clone()
        .add(web(4).spread_with(ZONE, 1, honor()))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2");

    let tolerant = web(6).tolerate("team").spread_with(ZONE, 1, honor());
    let outcome = world.add(tolerant).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");
    outcome.assert_price(0.2);
}

#[test]
fn core_168_taints_of_pools() {
    let tainted = pool("tainted")
        .zones("c")
        .capacity_types("on-demand")
        .taint("team=x:NoSchedule");
    let world = zones("a b").add(tainted);
    let outcome = world.clone().add(web(4).spread_over_zones(1)).solve();
    outcome.assert_counts(ZONE, "web", "a:1 b:1");
    assert_eq!(left_over(&outcome), 2, "{outcome}");

    let honor = || json!({"nodeTaintsPolicy": "Honor"});
    let outcome = world
        .clone()
        .add(web(4).spread_with(ZONE, 1, honor()))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2");

    let tolerant = web(3).tolerate("team").spread_with(ZONE, 1, honor());
    let outcome = world.add(tolerant).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1 c:1");
}

#[test]
fn core_169_nodes_that_the_selection_excludes() {
    let rack = "example.com/rack";
    let world = catalog()
        .add(pool("default").label(rack, "baz").label("team", "x"))
        .add(node("one").label(rack, "foo").label("team", "y"))
        .add(node("two").label(rack, "bar").label("team", "y"));
    let pods = |policy: &str| {
        let policy = json!({"nodeAffinityPolicy": policy});
        web(5)
            .node_selector("team", "x")
            .spread_with(rack, 1, policy)
    };
    let outcome = world.clone().add(pods("Ignore")).solve();
    assert_eq!(left_over(&outcome), 4, "{outcome}");
    outcome.assert_left_over("web-4", rack);
    let outcome = world.add(pods("Honor")).solve();
    outcome.assert_all_placed();
}

#[test]
fn core_169_pods_on_nodes_that_the_selection_excludes() {
    let old = |name: &str| pod(name).label("app", "web").cpu("1").on("other");
    let world = zones("a b")
        .add(node("other").zone("a").cpu("2").label("team", "y"))
        .add(old("one"))
        .add(old("two"))
        .add(
            pool("default-x")
                .zones("a b")
                .capacity_types("on-demand")
                .label("team", "x"),
        );
    let pods = |policy: &str| {
        let policy = json!({"nodeAffinityPolicy": policy});
        web(2)
            .node_selector("team", "x")
            .spread_with(ZONE, 1, policy)
    };
    let outcome = world.clone().add(pods("Ignore")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:2");
    let outcome = world.add(pods("Honor")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1");
}

#[test]
fn core_170_selection_limits_the_domains() {
    let outcome = zones("a b c")
        .add(web(4).zone("b").spread_over_zones(1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:4");

    let two = web(4).node_affinity(ZONE, "In", "a b").spread_over_zones(1);
    let outcome = zones("a b c").add(two).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2");

    let not_one = web(4)
        .node_affinity(ZONE, "NotIn", "a")
        .spread_over_zones(1);
    let outcome = zones("a b c").add(not_one).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:2 c:2");

    let either = web(4)
        .node_affinity(ZONE, "In", "a")
        .or_node_affinity(ZONE, "In", "c");
    let outcome = zones("a b c").add(either.spread_over_zones(1)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 c:2");
}

#[test]
fn core_170_wishes_do_not_limit_the_domains() {
    let wish = web(6)
        .prefer_node(100, ZONE, "In", "a")
        .spread_over_zones(1);
    let outcome = zones("a b c").add(wish).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2");

    let wish = web(1)
        .prefer_node(100, ZONE, "In", "b")
        .spread_over_zones(1);
    let outcome = zones("a b c").add(wish).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "b:1");
}
