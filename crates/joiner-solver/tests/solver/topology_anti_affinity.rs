//! Pod anti-affinity: the numbered behaviors 180 to 183, and 186 for its namespaces.

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

/// A required term of anti-affinity on zones, with namespace fields laid over it.
fn namespaced(app: &str, fields: &Value) -> Value {
    let mut term = json!({"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}});
    for (key, value) in fields.as_object().expect("namespace fields") {
        term[key] = value.clone();
    }
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    json!({"spec": {"affinity": {"podAntiAffinity": required}}})
}

#[test]
fn core_180_anti_affinity_on_nodes() {
    let outcome = world()
        .add(app("one").anti_affinity_to(HOSTNAME, "two"))
        .add(app("two"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_apart("one", "two")
        .assert_new_nodes(2);

    let outcome = world()
        .add(app("web").replicas(4).anti_affinity_to(HOSTNAME, "web"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(4)
        .assert_price(0.4);
}

#[test]
fn core_181_pods_in_every_zone() {
    let world = world().add(
        [
            app("in-a").zone("a"),
            app("in-b").zone("b"),
            app("in-c").zone("c"),
        ]
        .map(|pod| pod.label("app", "pinned").priority(10)),
    );
    let outcome = world
        .clone()
        .add(app("apart").anti_affinity_to(ZONE, "pinned"))
        .solve();
    outcome
        .assert_left_over("apart", "anti-affinity")
        .assert_left_over("apart", ZONE);
    assert_eq!(placed(&outcome, "pinned"), 3, "{outcome}");

    let large = app("apart").cpu("4").anti_affinity_to(ZONE, "pinned");
    let outcome = world.add(large).solve();
    outcome.assert_left_over("apart", "anti-affinity");
    assert_eq!(placed(&outcome, "pinned"), 3, "{outcome}");
}

#[test]
fn core_181_the_other_way_around() {
    let pinned = ["a", "b", "c"].map(|zone| {
        let pod = app(&format!("in-{zone}")).label("app", "pinned").zone(zone);
        pod.priority(10).anti_affinity_to(ZONE, "apart")
    });
    let outcome = world().add(pinned).add(app("apart")).solve();
    outcome.assert_left_over("apart", "anti-affinity");
    assert_eq!(placed(&outcome, "pinned"), 3, "{outcome}");
}

#[test]
fn core_181_the_single_pod_first() {
    // It costs its zone one of the others.
    let pinned = ["a", "b", "c"].map(|zone| {
        let pod = app(&format!("in-{zone}")).label("app", "pinned").zone(zone);
        pod.priority(10).anti_affinity_to(ZONE, "apart")
    });
    let outcome = world().add(pinned).add(app("apart").priority(99)).solve();
    outcome.assert_on_new_node("apart");
    assert_eq!(
        (placed(&outcome, "pinned"), outcome.plan.unplaced.len()),
        (2, 1),
        "{outcome}"
    );
}

#[test]
fn core_181_one_of_four_has_to_wait() {
    let pinned =
        || ["a", "b", "c"].map(|zone| app(&format!("in-{zone}")).label("app", "pinned").zone(zone));
    let apart = || app("apart").anti_affinity_to(ZONE, "pinned");
    for world in [
        world().add(pinned()).add(apart()),
        world().add(apart()).add(pinned()),
    ] {
        let outcome = world.solve();
        assert_eq!(outcome.plan.unplaced.len(), 1, "{outcome}");
    }
}

#[test]
fn core_181_pods_that_run_in_every_zone() {
    let mut there = world();
    for zone in ["a", "b", "c"] {
        let old = app(&format!("in-{zone}")).label("app", "pinned");
        there = on_full_node(there, &format!("node-{zone}"), zone, old);
    }
    let outcome = there
        .add(app("apart").anti_affinity_to(ZONE, "pinned"))
        .solve();
    outcome.assert_left_over("apart", "anti-affinity");
}

#[test]
fn core_182_one_batch_is_enough_for_zonal_anti_affinity() {
    let outcome = world()
        .add(app("one").anti_affinity_to(ZONE, "two"))
        .add(app("two"))
        .solve();
    outcome.assert_all_placed();
    assert_ne!(
        zone_of(&outcome, "one"),
        zone_of(&outcome, "two"),
        "{outcome}"
    );

    let outcome = world()
        .add(app("web").replicas(3).anti_affinity_to(ZONE, "web"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:1 b:1 c:1");

    let outcome = world()
        .add(app("web").replicas(4).anti_affinity_to(ZONE, "web"))
        .solve();
    assert_eq!(
        (placed(&outcome, "web"), outcome.plan.unplaced.len()),
        (3, 1),
        "{outcome}"
    );
}

#[test]
fn core_183_what_running_pods_exclude() {
    let only_a = || catalog().add(pool("default").zones("a"));
    let guard = || app("guard").anti_affinity_to(ZONE, "web");
    let outcome = on_full_node(world(), "full", "a", guard())
        .add(app("web").replicas(3))
        .solve();
    outcome.assert_all_placed();
    assert!(
        !outcome.count_by(ZONE, "web").contains_key("a"),
        "{outcome}"
    );
    let outcome = on_full_node(only_a(), "full", "a", guard())
        .add(app("web"))
        .solve();
    outcome.assert_left_over("web", "anti-affinity");

    let host_guard = app("guard").anti_affinity_to(HOSTNAME, "web").on("roomy");
    let outcome = world()
        .add(node("roomy"))
        .add(host_guard)
        .add(app("web"))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(1);

    let wish = app("guard").prefer_anti_affinity_to(100, ZONE, "web");
    let outcome = on_full_node(only_a(), "full", "a", wish)
        .add(app("web"))
        .solve();
    outcome.assert_all_placed();
    let wish = app("guard")
        .prefer_anti_affinity_to(100, HOSTNAME, "web")
        .on("roomy");
    let outcome = world().add(node("roomy")).add(wish).add(app("web")).solve();
    outcome.assert_on("web", "roomy");
}

#[test]
fn core_186_namespaces_of_anti_affinity() {
    let apart = |fields: &Value| {
        let pod = app("apart").zone("c").patch(namespaced("target", fields));
        let running = app("running").label("app", "target").namespace("other");
        on_full_node(world(), "full", "c", running).add(pod).solve()
    };
    apart(&json!({})).assert_all_placed();
    for fields in [
        json!({"namespaces": ["other"]}),
        json!({"namespaceSelector": {}}),
    ] {
        apart(&fields).assert_left_over("apart", "anti-affinity");
    }
}
