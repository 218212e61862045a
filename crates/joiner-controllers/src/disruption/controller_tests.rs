//! How long it rests.

use std::time::Duration;

use joiner_state::live::Kind;
use serde_json::json;

use super::controller::{CONFIRM_AFTER, EVERY, Rest, SOON};
use super::{COMMAND, Intent};
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched};

/// A cluster with a command under way.
fn busy() -> Cluster {
    let intent = Intent {
        id: "command-x".to_owned(),
        reason: "Underutilized".to_owned(),
        method: "single".to_owned(),
        started: at(50),
        members: vec!["c".to_owned()],
        replacements: Vec::new(),
        saves: 1,
        moves: 0,
    };
    let marked = json!({"metadata": {"annotations": {COMMAND: intent.text()}}});
    let claim = launched(&["Launched", "Registered", "Initialized"], &marked);
    Cluster::default().with(Kind::NodeClaim, claim)
}

#[test]
fn a_rest_lasts_its_time() {
    let quiet = Cluster::default().snapshot();
    let rest = Rest::new(&quiet, at(100), EVERY);
    assert_eq!(rest.left(&quiet, at(100)), Some(EVERY));
    assert_eq!(rest.left(&quiet, at(109)), Some(Duration::from_secs(1)));
    assert_eq!(rest.left(&quiet, at(110)), None);
    // A command that begins meanwhile does not shorten it.
    assert_eq!(
        rest.left(&busy().snapshot(), at(101)),
        Some(Duration::from_secs(9))
    );
}

#[test]
fn a_rest_ends_with_the_last_command_under_way() {
    let snapshot = busy().snapshot();
    let rest = Rest::new(&snapshot, at(100), CONFIRM_AFTER);
    assert_eq!(rest.left(&snapshot, at(100)), Some(SOON));
    assert_eq!(rest.left(&snapshot, at(114)), Some(SOON));
    assert_eq!(rest.left(&Cluster::default().snapshot(), at(103)), None);
    assert_eq!(rest.left(&snapshot, at(115)), None);
}
