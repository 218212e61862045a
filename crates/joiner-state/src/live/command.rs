//! What was decided about a node, as its claim carries it.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use joiner_model::Name;
use serde::{Deserialize, Serialize};

use super::{LiveClaim, Snapshot};

/// Annotation of a claim that a command takes away: written when what takes its place has been made,
/// long before it is deleted.
pub use joiner_api::labels::ours::COMMAND;

/// A command, as each of its claims carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandIntent {
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

impl CommandIntent {
    /// Reads the value of [`COMMAND`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// What a claim carries, if it can be understood.
    #[must_use]
    pub fn of(claim: &LiveClaim) -> Option<Arc<Self>> {
        claim.command.clone()
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Members that carry it. Some may have been released already, when the rest of it could not be undone,
    /// and belong to another one by now.
    pub fn carriers<'s>(
        &'s self,
        snapshot: &'s Snapshot,
    ) -> impl Iterator<Item = &'s Arc<LiveClaim>> {
        let members = self.members.iter();
        let members = members.filter_map(|name| snapshot.claim(name));
        members.filter(|claim| {
            let carried = claim.command.as_ref();
            carried.is_some_and(|command| command.id == self.id)
        })
    }

    /// True when it can be seen what takes the place of its members: otherwise it would be bought again.
    #[must_use]
    pub fn is_visible(&self, snapshot: &Snapshot) -> bool {
        self.replacements.iter().all(|name| {
            let claim = snapshot.claim(name).filter(|claim| !claim.is_going());
            claim.is_some_and(|claim| claim.provider_id.is_some() || claim.is_planned())
        })
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

impl Snapshot {
    /// Nodes that are to go, but not before others are up that cannot be seen yet, or not any more. Their pods
    /// stay as long as that is so: such a command is undone, and nothing is to be bought for them.
    #[must_use]
    pub fn awaiting_replacements(&self) -> BTreeSet<Name> {
        let nodes = self.leaving_nodes().filter(|node| {
            let claim = self.claim_of(node);
            let claim = claim.filter(|claim| claim.meta.deleting.is_none());
            let command = claim.and_then(|claim| claim.command.as_ref());
            command.is_some_and(|command| !command.is_visible(self))
        });
        nodes.map(|node| node.name().clone()).collect()
    }
}
