//! Upstream behaviors 275, 280 and 282: what is decided is asked once more before it is done.

use joiner_disruption::{Command, Method, confirm};
use joiner_testkit::{World, pod};

use crate::stage::{LARGE, MEDIUM, SMALL, Stage, budget, dollars, own};

fn decided(stage: &Stage) -> Command {
    stage.clone().decide().commands.remove(0)
}

fn rejected(stage: &Stage, command: &Command) -> String {
    let rejection = confirm(&stage.fleet(), command).expect_err("it is dropped");
    format!("{}: {rejection}", rejection.as_str())
}

#[test]
fn core_275_emptiness_goes_on_with_those_still_empty() {
    let world = World::standard().add([own("n0", SMALL), own("n1", SMALL)]);
    let stage = Stage::of(&world);
    let command = decided(&stage);
    let busy = Stage::of(&world.clone().add(pod("late").on("n0")));
    let now = confirm(&busy.fleet(), &command).unwrap();
    assert_eq!(now.claims, ["claim-n1".into()]);
    assert_eq!(now.price_before, dollars(0.1));
    let both = world.add([pod("a").on("n0"), pod("b").on("n1")]);
    assert!(rejected(&Stage::of(&both), &command).starts_with("churn"));
    let none = Stage::of(&World::standard());
    assert!(rejected(&none, &command).contains("claim-n0 is gone"));
    let tight = stage.terms(|t| t.budgets = vec![budget("0")]);
    assert!(rejected(&tight, &command).starts_with("budget"));
}

fn shrinking() -> World {
    World::standard()
        .add(own("n0", LARGE))
        .add(pod("web").cpu("1500m").on("n0"))
}

#[test]
fn core_280_what_holds_is_carried_out() {
    let stage = Stage::of(&shrinking());
    let command = decided(&stage);
    let now = confirm(&stage.fleet(), &command).unwrap();
    assert_eq!(now.price_after, command.price_after);
    assert_eq!(now.method, Method::Single);
    stage.verify(&now);
}

#[test]
fn core_280_what_changed_is_dropped() {
    let stage = Stage::of(&shrinking());
    let command = decided(&stage);
    type Change = fn(&mut Stage);
    let figures: [(&str, Change); 7] = [
        ("churn", |s| {
            s.member("n0").protected_pod = Some("default/web".into())
        }),
        ("churn", |s| {
            s.member("n0").blocking_budget = Some("default/web".to_owned())
        }),
        ("churn", |s| s.member("n0").nominated = true),
        ("churn", |s| s.member("n0").consolidatable = false),
        ("budget", |s| s.pools[0].budgets = vec![budget("0")]),
        ("scheduling", |s| {
            s.problem.pools[0].closed = Some("gone".into())
        }),
        ("scheduling", |s| {
            // All that is left of the market is dearer.
            let cheap = |name: &str| matches!(name, "small" | "medium");
            let types = s.problem.types.iter_mut();
            for ty in types.filter(|ty| cheap(&ty.name)) {
                ty.offerings.iter_mut().for_each(|o| o.available = false);
            }
        }),
    ];
    for (n, (word, change)) in figures.into_iter().enumerate() {
        let mut later = stage.clone();
        change(&mut later);
        let said = rejected(&later, &command);
        assert!(said.starts_with(word), "{n}: {said}");
    }
}

#[test]
fn core_280_pods_that_arrive() {
    let stage = Stage::of(&shrinking());
    let command = decided(&stage);
    let later = Stage::of(&shrinking().add(pod("more").replicas(3).cpu("1500m").on("n0")));
    assert!(rejected(&later, &command).starts_with("scheduling"));
}

#[test]
fn what_saves_half_as_much_as_before_is_carried_out() {
    let stage = Stage::of(&shrinking());
    let command = decided(&stage);
    let sells = |prices: [(&str, f64); 2]| {
        let mut later = stage.clone();
        for ty in &mut later.problem.types {
            if let Some((_, price)) = prices.iter().find(|(name, _)| *name == &*ty.name) {
                ty.offerings
                    .iter_mut()
                    .for_each(|own| own.price = dollars(*price));
            }
        }
        later
    };
    let saved = command.savings().get() as f64 / 1e9;
    let before = command.price_before.get() as f64 / 1e9;
    let half = sells([("small", before - saved / 2.0), ("medium", before)]);
    let now = confirm(&half.fleet(), &command).unwrap();
    assert_eq!(now.savings().get(), command.savings().get() / 2);
    let less = sells([("small", before - saved / 2.1), ("medium", before)]);
    assert!(rejected(&less, &command).starts_with("scheduling"));
    let strict = half.settings(|own| *own = own.as_upstream());
    assert!(rejected(&strict, &command).starts_with("scheduling"));
}

#[test]
fn drift_holds_as_long_as_pods_have_a_place() {
    let world = World::standard()
        .add(own("n0", MEDIUM))
        .add(pod("web").cpu("3").on("n0"));
    let since = jiff::Timestamp::UNIX_EPOCH;
    let stage = Stage::of(&world).with("n0", |m| {
        m.drifted = Some(since);
        m.consolidatable = false;
    });
    let command = decided(&stage);
    assert_eq!(command.method, Method::Drift);
    assert!(confirm(&stage.fleet(), &command).is_ok());
    let healed = stage.with("n0", |m| m.drifted = None);
    assert!(confirm(&healed.fleet(), &command).is_err());
}
