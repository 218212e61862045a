//! Upstream behaviors 290 to 296: the policy Balanced.

use joiner_disruption::Policy;
use joiner_testkit::{World, pod, pool};

use crate::stage::{LARGE, MEDIUM, SMALL, Stage, budget, dollars, of_pool, own};

fn balanced(world: &World) -> Stage {
    Stage::of(world).terms(|t| t.policy = Policy::Balanced)
}

/// A large node with little on it beside nine full ones.
fn oversized(n_pods: usize) -> World {
    let mut world = World::standard().add(own("big", LARGE)).add(
        pod("few")
            .replicas(n_pods)
            .request("cpu", &format!("{}m", 1500 / n_pods))
            .on("big"),
    );
    for n in 0..9 {
        world = world.add(own(&format!("n{n}"), MEDIUM)).add(
            pod(&format!("full{n}"))
                .replicas(4)
                .cpu("1")
                .on(&format!("n{n}")),
        );
    }
    world
}

#[test]
fn core_290_much_saved_for_little_disruption() {
    // 0.30 of 2.20 dollars, for 2 of 47 units of disruption.
    assert_eq!(balanced(&oversized(1)).gone().as_deref(), Some("big"));
}

#[test]
fn core_290_a_well_packed_node_stays() {
    // A node of four pods among such: what it would save is far less than its share.
    let world = World::standard()
        .add([own("n0", MEDIUM), own("n1", LARGE)])
        .add(pod("a").replicas(20).cpu("100m").on("n0"))
        .add(pod("b").replicas(2).cpu("3500m").on("n1"));
    let mut greedy = Stage::of(&world);
    assert_eq!(greedy.gone().as_deref(), Some("n0"));
    let mut stage = balanced(&world).with("n1", |m| m.do_not_disrupt = true);
    assert_eq!(stage.gone(), None);
    let why = stage.why("n0");
    assert!(why.contains("is Balanced, and a score of 0."), "{why}");
}

#[test]
fn core_291_exactly_one_half_is_enough() {
    let world = World::standard()
        .add(own("n0", LARGE))
        .add(pod("a").cpu("1500m").on("n0"));
    // 0.30 of a cost, over 2 of a total.
    let with_totals = |cost: f64, disruption: u64| {
        let mut stage = balanced(&world);
        stage.pools[0].total_cost = dollars(cost);
        stage.pools[0].total_disruption = disruption * 1_000_000_000;
        stage.gone()
    };
    assert_eq!(with_totals(3.0, 10).as_deref(), Some("n0"), "exactly 0.5");
    assert_eq!(with_totals(3.01, 10), None, "just below");
    assert_eq!(with_totals(3.0, 9), None, "just below");
    // 293: only ratios count.
    assert_eq!(with_totals(300.0, 1000).as_deref(), Some("n0"));
    // 292: without totals there is no score.
    assert_eq!(with_totals(0.0, 10), None);
    assert_eq!(with_totals(3.0, 0), None);
}

#[test]
fn core_294_every_balanced_pool_must_approve() {
    // Two nodes of two pools that only make sense together.
    let world = World::standard()
        .add(pool("other"))
        .add([own("n0", MEDIUM), of_pool("n1", "other", MEDIUM)])
        .add(pod("a").cpu("1").memory("3Gi").on("n0"))
        .add(pod("b").cpu("1").memory("3Gi").on("n1"));
    let stage = |policy: Policy, total_cost: f64| {
        let mut stage = Stage::of(&world).settings(|s| s.nodes_max = 2);
        for terms in &mut stage.pools {
            if terms.name.as_ref() == "other" {
                terms.policy = policy;
                terms.total_cost = dollars(total_cost);
            }
        }
        stage
    };
    let gone = |mut stage: Stage| stage.gone();
    assert_eq!(
        gone(stage(Policy::WhenEmptyOrUnderutilized, 100.0)).as_deref(),
        Some("n0 n1")
    );
    assert_eq!(gone(stage(Policy::Balanced, 0.2)).as_deref(), Some("n0 n1"));
    let refused = gone(stage(Policy::Balanced, 100.0));
    assert!(!refused.unwrap_or_default().contains("n1"));
}

#[test]
fn core_295_empty_nodes_go_first_and_unscored() {
    let world = oversized(1).add(own("bare", SMALL));
    let mut stage = balanced(&world).terms(|t| {
        t.budgets = vec![budget("1")];
        t.total_cost = dollars(0.0);
    });
    assert_eq!(stage.gone().as_deref(), Some("bare"));
    let mut stage = balanced(&world).terms(|t| t.budgets = vec![budget("0%")]);
    assert_eq!(stage.gone(), None);
}
