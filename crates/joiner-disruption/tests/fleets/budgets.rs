//! Upstream behaviors 32 to 40 and 255 to 257: how many nodes may go.

use jiff::SignedDuration;
use joiner_disruption::budget::{allowed, complaints};
use joiner_disruption::{Budget, Member, Reason, UNLIMITED};
use joiner_testkit::World;

use crate::stage::{MEDIUM, Stage, at, budget, own};

const NOON: &str = "2026-03-02T12:00:00Z";

/// In force for an hour after each firing of a schedule.
fn window(nodes: &str, schedule: &str, hours: i64) -> Budget {
    Budget {
        schedule: Some(schedule.to_owned()),
        duration: Some(SignedDuration::from_hours(hours)),
        ..budget(nodes)
    }
}

fn about(nodes: &str, reasons: &[Reason]) -> Budget {
    Budget {
        reasons: Some(reasons.to_vec()),
        ..budget(nodes)
    }
}

fn all_reasons(budgets: &[Budget], n_nodes: u32, now: &str) -> [u32; 3] {
    Reason::ALL.map(|reason| allowed(budgets, reason, n_nodes, at(now)))
}

#[test]
fn core_32_nothing_for_any_reason() {
    assert_eq!(all_reasons(&[budget("0")], 100, NOON), [0; 3]);
    assert_eq!(all_reasons(&[budget("0%")], 100, NOON), [0; 3]);
}

#[test]
fn core_33_no_budget_in_force() {
    assert_eq!(all_reasons(&[], 100, NOON), [UNLIMITED; 3]);
    let night = window("0", "0 2 * * *", 1);
    assert_eq!(all_reasons(&[night], 100, NOON), [UNLIMITED; 3]);
    assert_eq!(UNLIMITED, 2_147_483_647);
}

#[test]
fn core_34_a_budget_of_another_time_is_not_about_its_reason() {
    let night = Budget {
        reasons: Some(vec![Reason::Drifted]),
        ..window("0", "0 2 * * *", 1)
    };
    assert_eq!(all_reasons(&[night, budget("7")], 100, NOON), [7; 3]);
}

#[test]
fn core_35_the_least_of_those_that_apply() {
    let budgets = [
        budget("10"),
        about("3", &[Reason::Drifted]),
        about("20", &[Reason::Empty]),
        about("0", &[]),
        about("5", &[Reason::Drifted, Reason::Underutilized]),
    ];
    // Empty, drifted, underutilized.
    assert_eq!(all_reasons(&budgets, 100, NOON), [10, 3, 5]);
    let only_drift = [about("3", &[Reason::Drifted])];
    let expected = [UNLIMITED, 3, UNLIMITED];
    assert_eq!(all_reasons(&only_drift, 100, NOON), expected);
}

#[test]
fn core_36_what_cannot_be_read_allows_nothing() {
    let no_duration = Budget {
        schedule: Some("0 2 * * *".to_owned()),
        ..budget("5")
    };
    let wrong = [
        window("5", "@sometimes", 1),
        window("5", "every day", 1),
        window("5", "61 * * * *", 1),
        window("5", "0 2 * * * *", 1),
        budget("many"),
        budget("-1"),
        budget("%"),
        budget(""),
        no_duration,
    ];
    for one in wrong {
        let budgets = [budget("50"), one.clone()];
        assert_eq!(all_reasons(&budgets, 100, NOON), [0; 3], "{one:?}");
        assert_eq!(complaints(&budgets, at(NOON)).len(), 1, "{one:?}");
    }
}

#[test]
fn core_37_percentages_round_up() {
    let figures = [
        ("10%", 100, 10),
        ("10%", 1, 1),
        ("10%", 11, 2),
        ("33%", 10, 4),
        ("100%", 7, 7),
        ("0%", 7, 0),
        ("10%", 0, 0),
        ("5", 3, 5),
    ];
    for (nodes, n_nodes, expected) in figures {
        let found = all_reasons(&[budget(nodes)], n_nodes, NOON);
        assert_eq!(found, [expected; 3], "{nodes} of {n_nodes}");
    }
}

#[test]
fn core_38_and_39_windows_are_in_utc_and_start_inclusive() {
    let figures = [
        ("2026-03-02T08:59:59Z", false),
        ("2026-03-02T09:00:00Z", true),
        ("2026-03-02T12:30:00Z", true),
        ("2026-03-02T16:59:59Z", true),
        ("2026-03-02T17:00:00Z", false),
        // Half past eight in UTC, whatever the clock on the wall says.
        ("2026-03-02T09:30:00+01:00", false),
        // A Sunday.
        ("2026-03-01T12:00:00Z", false),
    ];
    for (now, active) in figures {
        let budgets = [window("0", "0 9 * * 1-5", 8)];
        let expected = if active { 0 } else { UNLIMITED };
        assert_eq!(all_reasons(&budgets, 10, now), [expected; 3], "{now}");
    }
}

#[test]
fn core_40_longer_than_its_recurrence_is_always() {
    for minute in [0, 1, 29, 59] {
        let now = format!("2026-03-02T12:{minute:02}:30Z");
        let hourly = [window("3", "@hourly", 2)];
        assert_eq!(all_reasons(&hourly, 10, &now), [3; 3]);
        let every = [window("3", "@every 1h", 2)];
        assert_eq!(all_reasons(&every, 10, &now), [3; 3]);
    }
    let rarely = [window("3", "@every 3h", 2)];
    assert_eq!(all_reasons(&rarely, 10, NOON), [UNLIMITED; 3]);
}

fn ten_nodes(nodes: &str) -> Stage {
    let nodes_of = |n| own(&format!("n{n}"), MEDIUM);
    let all: Vec<_> = (0..10).map(nodes_of).collect();
    let world = World::standard().add(all);
    Stage::of(&world).terms(|terms| terms.budgets = vec![budget(nodes)])
}

#[test]
fn core_255_who_is_counted() {
    let stage = ten_nodes("50%")
        .with("n0", |m| m.initialized = false)
        .with("n1", |m| m.terminating_instance = true);
    // Half of eight.
    let decision = stage.clone().decide();
    assert_eq!(decision.allowed[0], (0, Reason::Empty, 4));
    assert_eq!(decision.commands[0].members.len(), 4);
}

type Change = fn(&mut Member);

#[test]
fn core_256_and_257_who_uses_a_budget_up() {
    let figures: [(&str, Change); 3] = [
        ("not ready", |m| m.ready = false),
        ("deleting", |m| m.deleting = true),
        ("in a command", |m| m.in_command = true),
    ];
    for (what, change) in figures {
        let mut stage = ten_nodes("3").with("n0", change).with("n1", change);
        let decision = stage.decide();
        assert_eq!(decision.allowed[0].2, 3, "{what}");
        assert_eq!(decision.commands[0].members.len(), 1, "{what}");
        let mut stage = ten_nodes("1").with("n0", change).with("n1", change);
        assert_eq!(stage.gone(), None, "{what}: never below zero");
    }
}
