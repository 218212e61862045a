//! Node overlays: the numbered behaviors 343 to 351, as far as they change what is bought.

use joiner_model::keys::NODE_POOL;
use joiner_testkit::{CAPACITY_TYPE, INSTANCE_TYPE, World, ZONE, instance_type, pod, pool};
use serde_json::{Value, json};

const GPU: &str = "example.com/gpu";

/// Two types alike, `one` for 0.10 and `two` for 0.20, in zones a, b and c.
fn world() -> World {
    catalog().add(pool("default"))
}

fn catalog() -> World {
    World::new()
        .add(instance_type("one").cpu("2").price(0.1))
        .add(instance_type("two").cpu("2").price(0.2))
}

fn is(key: &str, value: &str) -> Value {
    json!([{"key": key, "operator": "In", "values": [value]}])
}

fn overlay(name: &str, requirements: Value, change: Value) -> Value {
    let mut spec = change;
    spec["requirements"] = requirements;
    json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
        "metadata": {"name": name}, "spec": spec})
}

/// An overlay of one instance type.
fn of_type(name: &str, instance_type: &str, change: Value) -> Value {
    overlay(name, is(INSTANCE_TYPE, instance_type), change)
}

fn warnings(world: &World) -> String {
    world
        .read()
        .expect("input that can be read")
        .warnings
        .join("\n")
}

/// The price of one pod that fills a node.
fn price(world: World) -> f64 {
    world.add(pod("web").cpu("2")).solve().price()
}

fn assert_price(world: World, expected: f64) {
    let found = price(world);
    assert!((found - expected).abs() < 1e-8, "{found} is not {expected}");
}

#[test]
fn core_343_overlays_change_what_is_cheapest() {
    let outcome = world().add(pod("web").cpu("2")).solve();
    outcome.assert_type("web", "one").assert_price(0.1);

    let cheap = of_type("cheap", "two", json!({"price": "0.05"}));
    let world = world().add(cheap);
    assert_eq!(warnings(&world), "");
    let outcome = world.add(pod("web").cpu("2")).solve();
    outcome.assert_type("web", "two").assert_price(0.05);
}

#[test]
fn core_343_overlays_add_resources() {
    let gpus = of_type("gpus", "two", json!({"capacity": {GPU: "2"}}));
    let pods = || pod("web").replicas(3).cpu("500m").request(GPU, "1");
    let outcome = world().add(pods()).solve();
    outcome.assert_left_over("web-0", GPU);
    let outcome = world().add(gpus).add(pods()).solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_counts(INSTANCE_TYPE, "web", "two:3");
    outcome.assert_price(0.4);
}

#[test]
fn core_344_overlays_that_are_not_valid_are_not_applied() {
    let changes = [
        json!({"capacity": {"cpu": "64"}}),
        json!({"price": "0.01", "priceAdjustment": "-50%"}),
        json!({"price": "-1"}),
        json!({"priceAdjustment": "50%"}),
        json!({"priceAdjustment": "-101%"}),
    ];
    for change in changes {
        let bad = world().add(of_type("bad", "one", change.clone()));
        // Refused when it is read, or set aside with a warning: never applied.
        if let Ok(input) = bad.read() {
            assert!(input.warnings.join("\n").contains("bad"), "{change}");
            assert_price(bad, 0.1);
        }
    }
    let no_values = json!([{"key": INSTANCE_TYPE, "operator": "NotIn", "values": []}]);
    let bad = world().add(overlay("bad", no_values, json!({"price": "0.01"})));
    if let Ok(input) = bad.read() {
        assert!(input.warnings.join("\n").contains("bad"));
        assert_price(bad, 0.1);
    }
}

#[test]
fn core_345_equal_weights_conflict_and_the_later_name_stays() {
    for (first, second, expected) in [("0.05", "0.07", 0.07), ("0.05", "0.05", 0.05)] {
        let world = world()
            .add(of_type("alpha", "one", json!({"price": first})))
            .add(of_type("beta", "one", json!({"price": second})));
        assert!(warnings(&world).contains("alpha"), "{}", warnings(&world));
        assert!(
            !warnings(&world).contains("NodeOverlay beta"),
            "{}",
            warnings(&world)
        );
        assert_price(world, expected);
    }
    let gpus = |name: &str, count: &str| of_type(name, "one", json!({"capacity": {GPU: count}}));
    let world = world().add(gpus("alpha", "1")).add(gpus("beta", "2"));
    let outcome = world.add(pod("web").replicas(2).request(GPU, "1")).solve();
    outcome.assert_all_placed().assert_new_nodes(1);
}

#[test]
fn core_346_overlays_that_do_not_meet() {
    let by_type = world()
        .add(of_type("alpha", "one", json!({"price": "0.5"})))
        .add(of_type("beta", "two", json!({"price": "0.4"})));
    assert_eq!(warnings(&by_type), "");
    assert_price(by_type, 0.4);

    let zone = |name: &str, zone: &str, price: &str| {
        overlay(name, is(ZONE, zone), json!({"price": price}))
    };
    let by_zone = world()
        .add(zone("alpha", "a", "0.3"))
        .add(zone("beta", "b", "0.02"));
    assert_eq!(warnings(&by_zone), "");
    let outcome = by_zone.add(pod("web").cpu("2")).solve();
    outcome.assert_zone("web", "b").assert_price(0.02);

    let by_weight = world()
        .add(of_type(
            "alpha",
            "one",
            json!({"price": "0.03", "weight": 10}),
        ))
        .add(of_type("beta", "one", json!({"price": "0.07"})));
    assert_eq!(warnings(&by_weight), "");
    assert_price(by_weight, 0.03);

    let by_key = world()
        .add(of_type("alpha", "one", json!({"capacity": {GPU: "1"}})))
        .add(of_type(
            "beta",
            "one",
            json!({"capacity": {"example.com/fpga": "1"}}),
        ));
    assert_eq!(warnings(&by_key), "");
    let both = pod("web")
        .request(GPU, "1")
        .request("example.com/fpga", "1");
    by_key
        .add(both)
        .solve()
        .assert_all_placed()
        .assert_type("web", "one");
}

#[test]
fn core_346_capacity_types_that_do_not_meet() {
    let catalog = World::new().add(pool("default"));
    let both = instance_type("one").cpu("2").price(0.1).spot_price(0.04);
    let paid = |name: &str, how: &str, price: &str| {
        overlay(name, is(CAPACITY_TYPE, how), json!({"price": price}))
    };
    let world = catalog.add(both).add(paid("alpha", "spot", "0.09"));
    let world = world.add(paid("beta", "on-demand", "0.06"));
    assert_eq!(warnings(&world), "");
    let outcome = world.add(pod("web").cpu("2")).solve();
    outcome
        .assert_capacity_type("web", "on-demand")
        .assert_price(0.06);
}

#[test]
fn core_347_the_heavier_overlay_wins_where_both_apply() {
    let everywhere = overlay(
        "everywhere",
        json!([]),
        json!({"price": "0.5", "weight": 1}),
    );
    let zone_b = overlay(
        "zone-b",
        is(ZONE, "b"),
        json!({"price": "0.9", "weight": 7}),
    );
    let world = world().add(everywhere).add(zone_b);
    assert_eq!(warnings(&world), "");
    let outcome = world.clone().add(pod("web").cpu("2").zone("b")).solve();
    outcome.assert_price(0.9);
    let outcome = world.add(pod("web").cpu("2").zone("a")).solve();
    outcome.assert_price(0.5);
}

#[test]
fn core_348_overlays_of_one_pool() {
    let two_pools = || {
        catalog()
            .add(pool("x").label("team", "x"))
            .add(pool("y").label("team", "y"))
    };
    let by_pool = overlay("only-y", is(NODE_POOL, "y"), json!({"price": "0.01"}));
    let by_label = overlay("only-y", is("team", "y"), json!({"price": "0.01"}));
    for overlay in [by_pool, by_label] {
        let world = two_pools().add(overlay);
        let outcome = world.clone().add(pod("web").cpu("2")).solve();
        outcome.assert_pool("web", "y").assert_price(0.01);
        let outcome = world
            .add(pod("web").cpu("2").node_selector("team", "x"))
            .solve();
        outcome.assert_pool("web", "x").assert_price(0.1);
    }
}

#[test]
fn core_349_a_conflict_in_one_place_drops_the_overlay_everywhere() {
    let world = world()
        .add(overlay("alpha", json!([]), json!({"price": "0.01"})))
        .add(of_type("beta", "two", json!({"price": "0.3"})));
    assert!(warnings(&world).contains("alpha"), "{}", warnings(&world));
    // Type `one` has its own price again.
    assert_price(world, 0.1);

    let pools = catalog().add(pool("x")).add(pool("y"));
    let world = pools
        .add(of_type("alpha", "one", json!({"price": "0.01"})))
        .add(overlay("beta", is(NODE_POOL, "y"), json!({"price": "0.3"})));
    let outcome = world.add(pod("web").cpu("2")).solve();
    outcome.assert_pool("web", "x").assert_price(0.1);
}

#[test]
fn core_351_adjusted_prices() {
    let hundred = || {
        let big = instance_type("big").cpu("2").price(100.0);
        World::new().add(pool("default")).add(big)
    };
    for (change, expected) in [
        (json!({"priceAdjustment": "-10%"}), 90.0),
        (json!({"priceAdjustment": "+100%"}), 200.0),
        (json!({"priceAdjustment": "-2.5"}), 97.5),
        (json!({"priceAdjustment": "+0.25"}), 100.25),
        (json!({"priceAdjustment": "-200"}), 0.0),
        (json!({"priceAdjustment": "-100%"}), 0.0),
        (json!({"price": "80.25"}), 80.25),
        (json!({}), 100.0),
    ] {
        let world = hundred().add(of_type("change", "big", change));
        assert_price(world, expected);
    }
}

#[test]
fn core_351_free_nodes_are_not_bought_without_need() {
    let free = of_type("free", "one", json!({"priceAdjustment": "-100%"}));
    let outcome = world()
        .add(free)
        .add(pod("web").replicas(4).cpu("500m"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.0);
    assert!(outcome.gap().abs() < 1e-9, "{outcome}");
}
