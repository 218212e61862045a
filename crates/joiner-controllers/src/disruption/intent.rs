//! What was decided about a node, written on its NodeClaim: a restart goes on from there.

use jiff::Timestamp;
use joiner_disruption::Reason;
use joiner_model::Name;
use joiner_state::live::LiveClaim;
use serde::{Deserialize, Serialize};

use crate::claim_template::claim_name;

/// Annotation of claims that are to go.
pub const COMMAND: &str = "joiner.dev/command";

/// A command, as each of its claims carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The same on all claims of one command.
    pub id: String,
    /// `Empty`, `Drifted` or `Underutilized`.
    pub reason: String,
    /// `empty`, `multi`, `single`, or nothing for drift.
    pub method: String,
    /// When it began.
    pub started: Timestamp,
    /// Claims that go.
    pub members: Vec<String>,
    /// Claims that take their place.
    pub replacements: Vec<String>,
    /// What is saved an hour, in nano-dollars.
    pub saves: u64,
    /// Pods that move.
    #[serde(default)]
    pub moves: u32,
}

impl Intent {
    /// What a claim carries, if it can be understood.
    #[must_use]
    pub fn of(claim: &LiveClaim) -> Option<Self> {
        serde_json::from_str(claim.meta.annotation(COMMAND)?).ok()
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// True when its moves are for money, so that workloads count them. Drift is not.
    #[must_use]
    pub(super) fn counts_moves(&self) -> bool {
        Reason::parse(&self.reason).is_some_and(Reason::is_for_money)
    }

    /// `replace` or `delete`, for metrics.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        if self.replacements.is_empty() {
            "delete"
        } else {
            "replace"
        }
    }
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
