//! Upstream behaviors 76 to 79, 86 to 89, 93 and 94: which type is bought.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_model::{ResourceName, Resources};
use joiner_testkit::{
    ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, Outcome, World, ZONE, instance_type, node, pod, pool,
};

#[test]
fn core_076_larger_than_any_type() {
    World::standard()
        .add(pod("cpu").cpu("9"))
        .add(pod("memory").memory("33Gi"))
        .add(pod("gpu").request("example.com/gpu", "1"))
        .add(pod("typo").cpu("2000000"))
        .add(pod("fits").cpu("8").memory("32Gi"))
        .solve()
        .assert_left_over("cpu", "cpu")
        .assert_left_over("memory", "memory")
        .assert_left_over("gpu", "example.com/gpu")
        .assert_left_over("typo", "cpu")
        .assert_type("fits", "large")
        .assert_new_nodes(1);
}

#[test]
fn core_077_architectures_part() {
    World::standard()
        .add(instance_type("arm").arch("arm64").price(0.01))
        .add(pod("amd").arch("amd64"))
        .add(pod("arm").arch("arm64"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_type("arm", "arm")
        .assert_type("amd", "small");
}

#[test]
fn core_078_operating_systems_part() {
    World::standard()
        .add(instance_type("win").os("windows").price(0.2))
        .add(instance_type("dual").os("linux windows").price(0.15))
        .add(pod("linux").node_selector(OS, "linux"))
        .add(pod("windows").node_selector(OS, "windows"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_apart("linux", "windows")
        .assert_type("windows", "dual");
}

#[test]
fn core_078_zones_and_types_part() {
    let pairs = [(ZONE, "a", "b"), (INSTANCE_TYPE, "small", "large")];
    for (key, one, other) in pairs {
        World::standard()
            .add(pod("one").node_selector(key, one))
            .add(pod("other").node_selector(key, other))
            .solve()
            .assert_all_placed()
            .assert_new_nodes(2)
            .assert_apart("one", "other");
    }
}

fn two_vendors() -> World {
    World::standard()
        .add(
            instance_type("red")
                .resource("red.example/gpu", "2")
                .price(0.5),
        )
        .add(
            instance_type("blue")
                .resource("blue.example/gpu", "2")
                .price(0.6),
        )
}

#[test]
fn core_079_extended_resources_of_two_vendors() {
    two_vendors()
        .add(pod("red").request("red.example/gpu", "1"))
        .add(pod("blue").request("blue.example/gpu", "2"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_type("red", "red")
        .assert_type("blue", "blue");
    let both = pod("both").request("red.example/gpu", "1");
    two_vendors()
        .add(both.request("blue.example/gpu", "1"))
        .solve()
        .assert_left_over("both", "example/gpu")
        .assert_new_nodes(0);
}

#[test]
fn core_086_cheap_but_wrong() {
    World::standard()
        .add(instance_type("arm").arch("arm64").cpu("64").price(0.01))
        .add(instance_type("thin").cpu("1").price(0.02))
        .add(instance_type("starved").cpu("64").memory("1Gi").price(0.03))
        .add(
            instance_type("gone")
                .cpu("64")
                .sold_out("a", "on-demand", 0.001),
        )
        .add(pod("web").cpu("2").memory("2Gi").arch("amd64"))
        .solve()
        .assert_type("web", "small")
        .assert_price(0.1);
}

/// Two architectures, two systems, three zones and two capacity types; prices all differ.
fn diverse() -> World {
    let mut world = World::new();
    let kinds = [("amd64", "linux"), ("amd64", "windows"), ("arm64", "linux")];
    for (ix, (arch, os)) in (0u8..).zip(kinds) {
        for (size, cpu) in [(1, "2"), (2, "4")] {
            let mut ty = instance_type(&format!("{arch}-{os}-{cpu}"))
                .arch(arch)
                .os(os)
                .cpu(cpu);
            for (slope, zone) in [(1.0, "a"), (1.1, "b"), (1.2, "c")] {
                let price = f64::from(size) * slope * (1.0 - 0.3 * f64::from(ix) / 2.0);
                ty = ty.zone_price(zone, "on-demand", price);
                if zone != "c" {
                    ty = ty.zone_price(zone, "spot", price / 2.0);
                }
            }
            world = world.add(ty);
        }
    }
    world
}

/// The cheapest offering whose labels have these values, by looking at every one.
fn cheapest(outcome: &Outcome, wanted: &[(&str, &str)]) -> Option<f64> {
    let mut best: Option<f64> = None;
    for ty in &outcome.problem.types {
        for offering in ty.offerings.iter().filter(|offering| offering.available) {
            let fits = wanted.iter().all(|(key, value)| {
                let of_type = ty.labels.get(*key).into_iter().flatten();
                let mut all = of_type.chain(offering.labels.get(*key));
                all.any(|found| &**found == *value)
            });
            let price: f64 = offering
                .price
                .to_string()
                .parse()
                .expect("a price is a number");
            if fits && best.is_none_or(|best| price < best) {
                best = Some(price);
            }
        }
    }
    best
}

#[test]
fn core_087_the_cheapest_that_meets_all() {
    let choices = [
        [(ARCH, "amd64"), (ARCH, "arm64"), (ARCH, "")],
        [(OS, "linux"), (OS, "windows"), (OS, "")],
        [(ZONE, "a"), (ZONE, "c"), (ZONE, "")],
        [
            (CAPACITY_TYPE, "spot"),
            (CAPACITY_TYPE, "on-demand"),
            (CAPACITY_TYPE, ""),
        ],
    ];
    // Every constraint is on the pod, on the pool, or split between the two.
    for combination in 0..81_usize {
        for split in 0..3_usize {
            let (mut pool, mut pod) = (pool("default"), pod("web"));
            let mut wanted = Vec::new();
            for (ix, choice) in choices.iter().enumerate() {
                let digit = [1, 3, 9, 27][ix];
                let (key, value) = choice[combination / digit % 3];
                if value.is_empty() {
                    continue;
                }
                wanted.push((key, value));
                if split == 0 || (split == 2 && ix % 2 == 0) {
                    pool = pool.requirement(key, "In", value);
                } else {
                    pod = pod.node_selector(key, value);
                }
            }
            let outcome = diverse().add(pool).add(pod).solve();
            match cheapest(&outcome, &wanted) {
                Some(price) => outcome.assert_all_placed().assert_price(price),
                None => outcome.assert_left_over("web", ""),
            };
        }
    }
}

#[test]
fn core_088_impossible_combinations() {
    let arm = instance_type("arm")
        .arch("arm64")
        .zone_price("a", "on-demand", 0.1);
    World::standard()
        .add(arm)
        .add(pod("web").arch("arm64").zone("b"))
        .add(pod("spot").capacity_type("spot"))
        .add(pod("fine").arch("arm64").zone("a"))
        .solve()
        .assert_left_over("web", ARCH)
        .assert_left_over("web", ZONE)
        .assert_left_over("spot", CAPACITY_TYPE)
        .assert_type("fine", "arm")
        .assert_new_nodes(1);
}

#[test]
fn core_088_impossible_through_size() {
    let arm = instance_type("arm").arch("arm64").cpu("2").price(0.1);
    World::standard()
        .add(arm)
        .add(pod("web").arch("arm64").cpu("4"))
        .solve()
        .assert_left_over("web", "cpu")
        .assert_new_nodes(0);
}

fn crossed() -> World {
    World::new()
        .add(pool("default"))
        .add(instance_type("one").price(0.1).spot_price(0.2))
        .add(instance_type("two").price(0.3).spot_price(0.15))
}

fn type_order(outcome: &Outcome) -> Vec<&str> {
    let types = outcome.plan.launches[0].types.iter();
    types.map(|ty| &*outcome.problem[*ty].name).collect()
}

#[test]
fn core_089_order_by_the_cheapest_compatible_offering() {
    let any = crossed().add(pod("web")).solve();
    any.assert_type("web", "one")
        .assert_capacity_type("web", "on-demand");
    assert_eq!(type_order(&any), ["one", "two"]);
    let spot = crossed().add(pod("web").capacity_type("spot")).solve();
    spot.assert_type("web", "two").assert_price(0.15);
    assert_eq!(type_order(&spot), ["two", "one"]);
    let paid = crossed().add(pod("web").capacity_type("on-demand")).solve();
    paid.assert_type("web", "one").assert_price(0.1);
    assert_eq!(type_order(&paid), ["one", "two"]);
}

/// A world in which only type `special` in zone `b` has the device.
fn override_world(available: bool) -> joiner_model::Problem {
    let special = instance_type("special").cpu("2");
    let special = if available {
        special.price(1.0)
    } else {
        special
            .zone_price("a", "on-demand", 1.0)
            .sold_out("b", "on-demand", 1.0)
    };
    let mut problem = World::standard()
        .add(special)
        .add(pod("web").request("example.com/fpga", "1"))
        .problem();
    let mut device = Resources::new();
    device.set(ResourceName::parse("example.com/fpga"), 1);
    for ty in problem.types.iter_mut().filter(|ty| &*ty.name == "special") {
        for offering in &mut ty.offerings {
            if offering.labels.get(ZONE).is_some_and(|zone| &**zone == "b") {
                offering.extra_capacity = device.clone();
            }
        }
    }
    problem
}

#[test]
fn core_093_capacity_of_one_offering() {
    let outcome = Outcome::of(override_world(true));
    outcome
        .assert_type("web", "special")
        .assert_zone("web", "b");
    assert_eq!(outcome.open("web", ZONE).len(), 1, "{outcome}");
    Outcome::of(override_world(false))
        .assert_left_over("web", "example.com/fpga")
        .assert_new_nodes(0);
}

#[test]
fn core_094_huge_pages_are_memory() {
    let world = || {
        let ty = instance_type("huge")
            .memory("8Gi")
            .resource("hugepages-2Mi", "4Gi");
        World::new().add(pool("default")).add(ty)
    };
    world()
        .add(pod("web").memory("4Gi").request("hugepages-2Mi", "1Gi"))
        .solve()
        .assert_all_placed();
    world()
        .add(pod("web").memory("5Gi"))
        .solve()
        .assert_left_over("web", "memory");
    let drowned = instance_type("drowned")
        .memory("2Gi")
        .resource("hugepages-1Gi", "4Gi");
    World::new()
        .add(pool("default"))
        .add(drowned)
        .add(pod("plain"))
        .add(pod("web").memory("1Mi"))
        .solve()
        .assert_left_over("web", "memory")
        .assert_on_new_node("plain");
}

#[test]
fn core_094_huge_pages_of_a_node_that_exists_are_its_own_business() {
    World::new()
        .add(node("old").memory("8Gi").resource("hugepages-2Mi", "4Gi"))
        .add(pod("web").memory("6Gi").request("hugepages-2Mi", "4Gi"))
        .solve()
        .assert_on("web", "old");
}
