//! What was decided about a node, written on its NodeClaim: a restart goes on from there.

use jiff::Timestamp;
use joiner_disruption::Reason;
use joiner_model::Name;
pub use joiner_state::live::{COMMAND, CommandIntent as Intent};

use crate::nodeclaim::template::claim_name;

/// True when its moves are for money, so that workloads count them. Drift is not.
#[must_use]
pub(super) fn counts_moves(intent: &Intent) -> bool {
    Reason::parse(&intent.reason).is_some_and(Reason::is_for_money)
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
