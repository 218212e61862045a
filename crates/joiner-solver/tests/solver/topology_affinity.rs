//! Pod affinity: the numbered behaviors 174 to 179 and 184 to 186.

use joiner_testkit::{
    ARCH, HOSTNAME, Outcome, PodBuilder, World, ZONE, instance_type, node, pod, pool,
};
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

fn world() -> World {
    catalog().add(pool("default"))
}

/// A pod of one core.
fn app(name: &str) -> PodBuilder {
    pod(name).cpu("1")
}

/// A node without room, and a pod that runs there.
fn on_full_node(world: World, host: &str, zone: &str, pod: PodBuilder) -> World {
    world
        .add(node(host).zone(zone).cpu("1"))
        .add(pod.cpu("1").on(host))
}

fn zone_of(outcome: &Outcome, pod: &str) -> String {
    outcome.seat(pod).zone.clone()
}

/// Pods placed per app.
fn placed(outcome: &Outcome, app: &str) -> usize {
    outcome.count_by(HOSTNAME, app).values().sum()
}

/// A required term on zones with namespace fields laid over it.
fn namespaced(app: &str, fields: &Value) -> Value {
    let mut term = json!({"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}});
    for (key, value) in fields.as_object().expect("namespace fields") {
        term[key] = value.clone();
    }
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    json!({"spec": {"affinity": {"podAffinity": required}}})
}

#[test]
fn core_174_empty_affinity_changes_nothing() {
    let empty = json!({"spec": {"affinity": {
        "podAffinity": {}, "podAntiAffinity": {}, "nodeAffinity": {}}}});
    let lists = json!({"spec": {"affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [],
            "preferredDuringSchedulingIgnoredDuringExecution": []},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [],
            "preferredDuringSchedulingIgnoredDuringExecution": []}}}});
    for patch in [empty, lists] {
        let outcome = world().add(app("web").replicas(2).patch(patch)).solve();
        outcome
            .assert_all_placed()
            .assert_new_nodes(1)
            .assert_price(0.1);
    }
}

#[test]
fn core_175_affinity_to_a_pod_of_the_batch() {
    // The target fills a node of its own price; the follower must be with it all the same.
    let follower = app("follower").affinity_to(HOSTNAME, "target");
    let others = app("other").replicas(5);
    let outcome = world().add(follower).add(others).add(app("target")).solve();
    outcome
        .assert_all_placed()
        .assert_together("follower", "target");
}

#[test]
fn core_175_affinity_on_architecture() {
    let arm = instance_type("arm").cpu("2").arch("arm64").price(0.9);
    let follower = app("follower").replicas(3).affinity_to(ARCH, "target");
    let outcome = world()
        .add(arm)
        .add(app("target").arch("arm64"))
        .add(follower)
        .solve();
    outcome.assert_all_placed().assert_price(1.8);
    for ix in 0..3 {
        outcome.assert_type(&format!("follower-{ix}"), "arm");
    }
}

#[test]
fn core_176_self_affinity_on_a_node() {
    let outcome = world()
        .add(app("web").replicas(3).affinity_to(HOSTNAME, "web"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.2);

    // Eight cores hold five of them: the rest has nowhere to go, now or later.
    let web = |name: &str| {
        pod(name)
            .label("app", "web")
            .cpu("1500m")
            .affinity_to(HOSTNAME, "web")
    };
    let outcome = world().add(web("web").replicas(10)).solve();
    outcome.assert_new_nodes(1);
    assert_eq!(
        (placed(&outcome, "web"), outcome.plan.unplaced.len()),
        (5, 5),
        "{outcome}"
    );
    for left in &outcome.plan.unplaced {
        let name = &outcome.problem[left.pod].name;
        outcome.assert_left_over(name, "affinity");
    }
    let full = world()
        .add(node("full").cpu("8"))
        .add(web("old").replicas(5).on("full"));
    let outcome = full.add(web("late")).solve();
    outcome
        .assert_left_over("late", "affinity")
        .assert_left_over("late", HOSTNAME);
}

#[test]
fn core_177_self_affinity_on_a_zone() {
    let web = |name: &str| app(name).label("app", "web").affinity_to(ZONE, "web");
    let outcome = world().add(web("web").replicas(10)).solve();
    outcome.assert_all_placed().assert_price(0.5);
    assert_eq!(outcome.count_by(ZONE, "web").len(), 1, "{outcome}");
    assert_eq!(outcome.open("web-0", ZONE).len(), 1, "{outcome}");

    let outcome = world().add(web("web").replicas(10).zone("c")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "c:10");

    // One pod cannot go just anywhere: all the others follow it, whatever their order.
    for (first, second) in [("x", "y"), ("y", "x")] {
        let pinned = web(second).node_affinity(ZONE, "In", "b");
        let outcome = world().add(web(first).replicas(4)).add(pinned).solve();
        outcome
            .assert_all_placed()
            .assert_counts(ZONE, "web", "b:5");
    }
}

#[test]
fn core_177_self_affinity_follows_pods_that_are_there() {
    let web = |name: &str| app(name).label("app", "web").affinity_to(ZONE, "web");
    let world = on_full_node(world(), "full", "c", web("old"));
    let outcome = world.clone().add(web("web").replicas(3)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "c:3");
}

#[test]
fn core_178_groups_that_exclude_each_other() {
    let group = |name: &str, zone: &str| app(name).zone(zone).affinity_to(HOSTNAME, name);
    let outcome = world()
        .add(group("one", "a").replicas(2))
        .add(group("two", "b").replicas(2));
    let outcome = outcome.solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_price(0.2);
}

#[test]
fn core_178_halves_that_can_never_meet() {
    // One group in two zones: the scheduler lets a group start once, so one half has to wait.
    let half = |name: &str, zone: &str| {
        app(name)
            .label("app", "web")
            .zone(zone)
            .affinity_to(ZONE, "web")
    };
    let outcome = world().add(half("one", "a")).add(half("two", "b")).solve();
    outcome.assert_zone("one", "a");
    assert!(outcome.find("two").is_none(), "{outcome}");
}

#[test]
fn core_179_wishes_that_cannot_be() {
    let near = app("near").prefer_affinity_to(50, HOSTNAME, "nobody");
    let outcome = world().add(near).solve();
    outcome.assert_all_placed();

    let apart = app("web")
        .replicas(5)
        .prefer_anti_affinity_to(50, ZONE, "web");
    let outcome = world().add(apart).solve();
    outcome.assert_all_placed();
    assert_eq!(outcome.count_by(ZONE, "web").len(), 3, "{outcome}");

    let both = app("both").prefer_affinity_to(9, ZONE, "target");
    let both = both.prefer_anti_affinity_to(50, ZONE, "target");
    let outcome = world().add(app("target")).add(both).solve();
    outcome.assert_all_placed();
}

#[test]
fn core_179_wishes_that_can_be_outrank_price() {
    let apart = app("apart").prefer_anti_affinity_to(1, HOSTNAME, "target");
    let outcome = world().add(app("target")).add(apart).solve();
    outcome.assert_apart("apart", "target");

    let near = app("near").prefer_affinity_to(1, ZONE, "target");
    let cheap_elsewhere = instance_type("tiny")
        .cpu("1")
        .zone_price("a", "on-demand", 0.01);
    let target = app("target").zone("b").cpu("2");
    let outcome = world().add(cheap_elsewhere).add(target).add(near).solve();
    outcome.assert_all_placed().assert_zone("near", "b");
}

#[test]
fn core_184_affinity_to_nobody() {
    let outcome = world()
        .add(app("lonely").affinity_to(ZONE, "nobody"))
        .add(app("fine"))
        .solve();
    outcome
        .assert_left_over("lonely", "affinity")
        .assert_left_over("lonely", ZONE);
    outcome.assert_on_new_node("fine");
}

#[test]
fn core_184_chains() {
    let link = |name: &str, next: &str| pod(name).cpu("500m").affinity_to(HOSTNAME, next);
    let chain = || {
        [
            link("one", "two"),
            link("two", "three"),
            link("three", "four"),
        ]
    };
    let outcome = world().add(chain()).add(pod("four").cpu("500m")).solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.1);
    let outcome = world()
        .add(chain())
        .add(pod("four").cpu("500m"))
        .reversed()
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.1);

    let outcome = world().add(chain()).solve();
    assert_eq!(outcome.plan.unplaced.len(), 3, "{outcome}");
    outcome.assert_left_over("one", "affinity");
}

#[test]
fn core_184_a_chain_whose_links_need_each_other() {
    // Neither can go first: a scheduler would never place them.
    let one = app("one").affinity_to(ZONE, "two");
    let two = app("two").affinity_to(ZONE, "one");
    let outcome = world().add(one).add(two).solve();
    assert_eq!(outcome.plan.unplaced.len(), 2, "{outcome}");
}

#[test]
fn core_185_followers_of_a_target() {
    let follower = || app("follower").replicas(10).affinity_to(ZONE, "target");
    let outcome = world().add(follower()).add(app("target").zone("c")).solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "follower", "c:10")
        .assert_price(0.6);

    // A target without a zone of its own gets one in the same batch.
    let outcome = world().add(follower()).add(app("target")).solve();
    outcome.assert_all_placed().assert_price(0.6);
    let zone = zone_of(&outcome, "target");
    outcome.assert_counts(ZONE, "follower", &format!("{zone}:10"));
    assert_eq!(outcome.open("target", ZONE).len(), 1, "{outcome}");
}

#[test]
fn core_185_followers_that_are_pinned_lead_the_target() {
    let follower = app("follower").zone("b").affinity_to(ZONE, "target");
    let outcome = world().add(follower).add(app("target")).solve();
    outcome.assert_all_placed().assert_zone("target", "b");
}

/// A world with a target in another namespace, in zone c.
fn two_namespaces() -> World {
    let namespace = |name: &str, team: &str| {
        json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"team": team}}})
    };
    let world = world().add([namespace("default", "x"), namespace("other", "y")]);
    world.add(app("target").namespace("other").zone("c"))
}

#[test]
fn core_186_namespaces_of_affinity() {
    let own = json!({});
    let wrong_list = json!({"namespaces": ["third"]});
    let wrong_labels = json!({"namespaceSelector": {"matchLabels": {"team": "x"}}});
    for fields in [own, wrong_list, wrong_labels] {
        let near = app("near").patch(namespaced("target", &fields));
        let outcome = two_namespaces().add(near).solve();
        outcome.assert_left_over("near", "affinity");
    }
    let list = json!({"namespaces": ["other"]});
    let labels = json!({"namespaceSelector": {"matchLabels": {"team": "y"}}});
    let union =
        json!({"namespaceSelector": {"matchLabels": {"team": "z"}}, "namespaces": ["other"]});
    let all = json!({"namespaceSelector": {}});
    for fields in [list, labels, union, all] {
        let near = app("near").patch(namespaced("target", &fields));
        let outcome = two_namespaces().add(near).solve();
        outcome.assert_all_placed().assert_zone("near", "c");
    }
}
