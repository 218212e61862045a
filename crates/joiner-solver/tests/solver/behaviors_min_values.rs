//! Upstream behaviors 95 to 102: flexibility that a pool insists on (`minValues`).
//!
//! Each test is named after the number of the behavior that it pins.

use std::collections::BTreeSet;

use joiner_model::MinValuesPolicy;
use joiner_testkit::{
    ARCH, INSTANCE_TYPE, InstanceTypeBuilder, Outcome, PoolBuilder, World, ZONE, instance_type,
    pod, pool,
};

const CORES: &str = "example.com/cores";
const FAMILY: &str = "example.com/family";

fn sizes() -> [InstanceTypeBuilder; 3] {
    [
        ("small", "2", 0.1),
        ("medium", "4", 0.2),
        ("large", "8", 0.4),
    ]
    .map(|(name, cpu, price)| instance_type(name).cpu(cpu).label(CORES, cpu).price(price))
}

fn world(pool: PoolBuilder) -> World {
    World::new().add(pool).add(sizes())
}

/// The distinct values of a label over the types of the first new node.
fn values(outcome: &Outcome, key: &str) -> BTreeSet<String> {
    let types = outcome.plan.launches[0].types.iter();
    let types = types.map(|ty| &outcome.problem[*ty]);
    let found = types.flat_map(|ty| ty.labels.get(key).into_iter().flatten());
    found.map(ToString::to_string).collect()
}

/// The pod is not placed. What the refusal says is a test of its own.
fn refused(outcome: &Outcome, pod: &str) {
    assert!(outcome.find(pod).is_none(), "{pod} is placed\n{outcome}");
}

#[test]
fn core_095_types_stay_open() {
    let pool = pool("default").min_values(INSTANCE_TYPE, "In", "large small medium", 2);
    let outcome = world(pool).add(pod("web").cpu("1")).solve();
    outcome.assert_all_placed().assert_type("web", "small");
    let types = &outcome.plan.launches[0].types;
    assert!(types.len() >= 2, "{outcome}");
    assert_eq!(&*outcome.problem.types[types[0].0 as usize].name, "small");
    assert_eq!(&*outcome.problem.types[types[1].0 as usize].name, "medium");
}

#[test]
fn core_095_packing_leaves_enough_types() {
    // Both pods fit the large type, but only two nodes have two types to choose from.
    let pool = pool("default").min_values(INSTANCE_TYPE, "Exists", "", 2);
    let outcome = world(pool).add(pod("web").replicas(2).cpu("3")).solve();
    outcome.assert_all_placed().assert_new_nodes(2);
    for launch in &outcome.plan.launches {
        assert!(launch.types.len() >= 2, "{outcome}");
    }
}

#[test]
fn core_095_a_pod_that_leaves_too_few_types() {
    let pool = pool("default").min_values(INSTANCE_TYPE, "Exists", "", 2);
    let outcome = world(pool)
        .add(pod("picky").node_affinity(INSTANCE_TYPE, "In", "small"))
        .add(pod("big").cpu("7"))
        .add(pod("fine").cpu("4"))
        .solve();
    refused(&outcome, "picky");
    refused(&outcome, "big");
    outcome.assert_on_new_node("fine");
}

#[test]
fn core_096_bounds_count_what_remains() {
    let more = pool("default").min_values(CORES, "Gt", "2", 2);
    let outcome = world(more).add(pod("web")).solve();
    outcome.assert_type("web", "medium");
    assert_eq!(values(&outcome, CORES).len(), 2, "{outcome}");
    let less = pool("default").min_values(CORES, "Lt", "8", 2);
    let outcome = world(less).add(pod("web")).solve();
    outcome.assert_type("web", "small");
    assert_eq!(values(&outcome, CORES).len(), 2, "{outcome}");
    for (operator, bound) in [("Gt", "4"), ("Lt", "4"), ("Gte", "8"), ("Lte", "2")] {
        let pool = pool("default").min_values(CORES, operator, bound, 2);
        refused(&world(pool).add(pod("web")).solve(), "web");
    }
}

#[test]
fn core_097_the_larger_of_two_numbers() {
    let lists = |one, other| {
        pool("default")
            .min_values(INSTANCE_TYPE, "In", "small medium large", one)
            .min_values(INSTANCE_TYPE, "NotIn", "large", other)
    };
    let bounds = |one, other| {
        pool("default")
            .min_values(CORES, "Gt", "1", one)
            .min_values(CORES, "Lt", "8", other)
    };
    for (one, other) in [(1, 2), (2, 1), (2, 2)] {
        for pool in [lists(one, other), bounds(one, other)] {
            let outcome = world(pool).add(pod("web")).solve();
            outcome.assert_all_placed();
            assert_eq!(values(&outcome, INSTANCE_TYPE).len(), 2, "{outcome}");
        }
    }
    for (one, other) in [(1, 3), (3, 1)] {
        refused(&world(lists(one, other)).add(pod("web")).solve(), "web");
        refused(&world(bounds(one, other)).add(pod("web")).solve(), "web");
    }
    // The cheap type alone would do for the pods, were it not for the larger number.
    let outcome = world(lists(1, 2)).add(pod("web").cpu("3")).solve();
    refused(&outcome, "web");
}

#[test]
fn core_098_several_keys_hold_together() {
    let pool = || {
        pool("default")
            .min_values(INSTANCE_TYPE, "Exists", "", 3)
            .min_values(ARCH, "In", "amd64 arm64", 2)
    };
    refused(&world(pool()).add(pod("web")).solve(), "web");
    let arm = || instance_type("arm").arch("arm64").cpu("4").price(0.9);
    let outcome = world(pool()).add(arm()).add(pod("web")).solve();
    outcome.assert_type("web", "small");
    assert_eq!(values(&outcome, ARCH).len(), 2, "{outcome}");
    let outcome = world(pool())
        .add(arm())
        .add(pod("one-arch").arch("amd64"))
        .add(pod("too-big").cpu("6"))
        .add(pod("fits").cpu("2"))
        .solve();
    refused(&outcome, "one-arch");
    refused(&outcome, "too-big");
    outcome.assert_on_new_node("fits");
}

/// 600 types of one family and a dear one of another.
fn crowd() -> World {
    let cheap = (0..600_u32).map(|ix| {
        let price = 0.1 + f64::from(ix) / 10_000.0;
        instance_type(&format!("cheap-{ix:03}"))
            .label(FAMILY, "cheap")
            .zone_price("a", "on-demand", price)
    });
    let dear = instance_type("dear").label(FAMILY, "dear");
    let types: Vec<_> = cheap.collect();
    World::new()
        .add(types)
        .add(dear.zone_price("a", "on-demand", 9.0))
}

#[test]
fn core_099_what_is_kept_of_many_types_still_counts() {
    // Upstream keeps the 600 cheapest and refuses; keeping one of each family is as good an answer.
    let outcome = crowd()
        .add(pool("default").min_values(FAMILY, "Exists", "", 2))
        .add(pod("web"))
        .solve();
    if outcome.find("web").is_some() {
        assert!(outcome.plan.launches[0].types.len() <= 600, "{outcome}");
        assert_eq!(values(&outcome, FAMILY).len(), 2, "{outcome}");
    }
}

#[test]
fn core_099_at_most_600_types() {
    let outcome = crowd().add(pool("default")).add(pod("web")).solve();
    outcome.assert_all_placed().assert_type("web", "cheap-000");
    assert_eq!(outcome.plan.launches[0].types.len(), 600, "{outcome}");
}

#[test]
fn core_100_strict() {
    let pool = |key, count| pool("default").min_values(key, "Exists", "", count);
    refused(
        &world(pool(INSTANCE_TYPE, 4)).add(pod("web")).solve(),
        "web",
    );
    refused(&world(pool(ZONE, 4)).add(pod("web")).solve(), "web");
    let outcome = world(pool(ZONE, 3)).add(pod("web")).solve();
    outcome.assert_all_placed();
    assert_eq!(outcome.open("web", ZONE).len(), 3, "{outcome}");
}

#[test]
fn core_100_the_refusal_names_the_key() {
    for (key, count) in [(INSTANCE_TYPE, 4), (ZONE, 4), (ARCH, 2), (CORES, 5)] {
        world(pool("default").min_values(key, "Exists", "", count))
            .add(pod("web"))
            .solve()
            .assert_left_over("web", key)
            .assert_left_over("web", "different values");
    }
}

#[test]
fn core_100_strict_falls_to_the_next_pool() {
    world(
        pool("flexible")
            .min_values(INSTANCE_TYPE, "Exists", "", 4)
            .weight(90),
    )
    .add(pool("plain").weight(10))
    .add(pod("web"))
    .solve()
    .assert_all_placed()
    .assert_pool("web", "plain");
}

#[test]
fn core_101_best_effort_lowers_the_number() {
    let outcome = world(pool("default").min_values(INSTANCE_TYPE, "Exists", "", 5))
        .min_values(MinValuesPolicy::BestEffort)
        .add(pod("web").cpu("3"))
        .solve();
    outcome.assert_all_placed().assert_type("web", "medium");
    let launch = &outcome.plan.launches[0];
    assert!(launch.min_values_relaxed, "{outcome}");
    assert_eq!(launch.types.len(), 2, "{outcome}");
    let mut requirements = launch.requirements.iter();
    let types = requirements.find(|requirement| &**requirement.key() == INSTANCE_TYPE);
    let number = types.and_then(|requirement| requirement.min_values());
    assert!(number.is_none_or(|number| number <= 2), "{number:?}");
}

#[test]
fn core_101_best_effort_lowers_nothing_without_need() {
    let outcome = world(pool("default").min_values(INSTANCE_TYPE, "Exists", "", 2))
        .min_values(MinValuesPolicy::BestEffort)
        .add(pod("web").replicas(2).cpu("3"))
        .solve();
    outcome.assert_all_placed().assert_new_nodes(2);
    for launch in &outcome.plan.launches {
        assert!(!launch.min_values_relaxed, "{outcome}");
    }
}

#[test]
fn core_102_best_effort_before_a_lighter_pool() {
    world(
        pool("flexible")
            .min_values(INSTANCE_TYPE, "Exists", "", 5)
            .weight(90),
    )
    .add(pool("plain").weight(10))
    .min_values(MinValuesPolicy::BestEffort)
    .add(pod("web"))
    .solve()
    .assert_all_placed()
    .assert_pool("web", "flexible");
}
