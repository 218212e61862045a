//! How commands under way go on, and how they end.

use joiner_state::live::{Kind, Snapshot};
use serde_json::json;

use super::compat_tests::{UP, annotated};
use super::queue::{CommandStep, next_step, speaker, time_limit};
use super::{COMMAND, Intent};
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched};

pub(super) fn intent(members: &[&str], replacements: &[&str]) -> Intent {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Intent {
        id: "command-1".to_owned(),
        reason: "Underutilized".to_owned(),
        method: "single".to_owned(),
        started: at(0),
        members: names(members),
        replacements: names(replacements),
        saves: 1,
        moves: 0,
    }
}

/// Claims of these names with these conditions.
fn claims(all: &[(&str, &[&str])]) -> Snapshot {
    let mut own = Cluster::default();
    for (name, conditions) in all {
        let named = json!({"metadata": {"name": name, "uid": name},
            "status": {"providerID": format!("kwok://{name}")}});
        own.put(Kind::NodeClaim, launched(conditions, &named));
    }
    own.snapshot()
}

#[test]
fn core_301_a_replacement_that_cannot_be_launched_undoes_the_command() {
    let own = intent(&["old"], &["new"]);
    let step = next_step(&own, &claims(&[("old", UP)]), 1, at(30));
    assert!(matches!(step, CommandStep::Undo(why) if why.contains("new is gone")));
}

#[test]
fn core_304_all_replacements_are_up_before_anything_goes() {
    let own = intent(&["old"], &["new-1", "new-2"]);
    let step = |second: &[&str]| {
        let all = [("old", UP), ("new-1", UP), ("new-2", second)];
        next_step(&own, &claims(&all), 1, at(30))
    };
    assert_eq!(step(&["Launched"]), CommandStep::Wait);
    assert_eq!(step(&["Launched", "Registered"]), CommandStep::Wait);
    assert_eq!(step(UP), CommandStep::Delete);
}

#[test]
fn core_305_a_replacement_that_is_lost_undoes_the_command() {
    let own = intent(&["old"], &["new-1", "new-2"]);
    let step = next_step(&own, &claims(&[("old", UP), ("new-1", UP)]), 1, at(30));
    assert!(matches!(step, CommandStep::Undo(_)), "{step:?}");
    let mut going = Cluster::default();
    for name in ["old", "new-1", "new-2"] {
        let named = json!({"metadata": {"name": name, "uid": name}});
        going.put(Kind::NodeClaim, launched(UP, &named));
    }
    going.delete(Kind::NodeClaim, "new-2", at(20));
    let step = next_step(&own, &going.snapshot(), 1, at(30));
    assert!(matches!(step, CommandStep::Undo(why) if why.contains("new-2 is going")));
}

#[test]
fn core_306_a_command_has_time_in_proportion_to_the_queue() {
    let figures = [
        (100, 600),
        (4_000, 600),
        (10_000, 800),
        (40_000, 3_200),
        (80_000, 3_600),
        (1_000_000, 3_600),
    ];
    for (n, secs) in figures {
        assert_eq!(time_limit(n).as_secs(), secs, "{n}");
    }
    let own = intent(&["old"], &["new"]);
    let slow = claims(&[("old", UP), ("new", &["Launched"])]);
    assert_eq!(next_step(&own, &slow, 1, at(599)), CommandStep::Wait);
    assert!(matches!(
        next_step(&own, &slow, 1, at(601)),
        CommandStep::Undo(_)
    ));
    assert_eq!(next_step(&own, &slow, 10_000, at(601)), CommandStep::Wait);
}

#[test]
fn core_307_nothing_is_waited_for_without_replacements() {
    let deleting = intent(&["old"], &[]);
    let replacing = intent(&["other"], &["new"]);
    let now = claims(&[("old", UP), ("other", UP), ("new", &["Launched"])]);
    assert_eq!(
        next_step(&deleting, &now, 2, at(1)),
        CommandStep::Delete,
        "whatever others wait for"
    );
    assert_eq!(next_step(&replacing, &now, 2, at(1)), CommandStep::Wait);
}

#[test]
fn what_is_left_of_a_command_that_was_half_undone_is_undone_by_another_member() {
    let marked = |name: &str| {
        json!({"metadata": {"name": name, "uid": name,
            "annotations": {COMMAND: intent(&["a", "b"], &["new"]).text()}},
            "status": {"providerID": format!("kwok://{name}")}})
    };
    let mut own = Cluster::default();
    own.put(Kind::NodeClaim, launched(UP, &marked("a")));
    own.put(Kind::NodeClaim, launched(UP, &marked("b")));
    let speaker = |own: &Cluster| speaker(&own.snapshot(), &intent(&["a", "b"], &["new"]));
    assert_eq!(speaker(&own).as_deref(), Some("a"));
    let bare = json!({"metadata": {"annotations": {COMMAND: null}}});
    own.change(Kind::NodeClaim, "a", &bare);
    assert_eq!(speaker(&own).as_deref(), Some("b"));
    // The next command may be about it before that: it is left alone.
    let other = Intent {
        id: "another".to_owned(),
        ..intent(&["a"], &[])
    };
    own.change(Kind::NodeClaim, "a", &annotated(COMMAND, &other.text()));
    assert_eq!(speaker(&own).as_deref(), Some("b"));
    own.change(Kind::NodeClaim, "b", &bare);
    assert_eq!(speaker(&own), None);
}
