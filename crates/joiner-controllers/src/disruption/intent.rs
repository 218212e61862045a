//! What was decided about a node, written on its NodeClaim: a restart goes on from there.

use std::collections::BTreeSet;

use jiff::Timestamp;
use joiner_disruption::Reason;
use joiner_model::Name;
use joiner_state::live::Snapshot;
pub use joiner_state::live::{COMMAND, CommandIntent as Intent};

use crate::claim_template::claim_name;

/// True when its moves are for money, so that workloads count them. Drift is not.
#[must_use]
pub(super) fn counts_moves(intent: &Intent) -> bool {
    Reason::parse(&intent.reason).is_some_and(Reason::is_for_money)
}

/// Nodes that are to go, but not before others are up that cannot be seen yet, or not any more. Their pods
/// stay as long as that is so: such a command is undone, and nothing is to be bought for them.
#[must_use]
pub(crate) fn spoken_for(snapshot: &Snapshot) -> BTreeSet<Name> {
    let nodes = snapshot.leaving_nodes().filter(|node| {
        let claim = snapshot.claim_of(node);
        let claim = claim.filter(|own| own.meta.deleting.is_none());
        let intent = claim.and_then(|own| Intent::of(own));
        intent.is_some_and(|own| !own.is_visible(snapshot))
    });
    nodes.map(|node| node.name().clone()).collect()
}

/// A name for a command: the same claims at the same time give the same one.
#[must_use]
pub(super) fn id(members: &[Name], started: Timestamp) -> String {
    let second = started.as_second().to_string();
    let parts: Vec<&str> = members
        .iter()
        .map(AsRef::as_ref)
        .chain([second.as_str()])
        .collect();
    claim_name("command", &parts)
}
