//! What was decided about a node, written on its NodeClaim: a restart goes on from there.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use joiner_disruption::Reason;
use joiner_model::Name;
pub use joiner_state::live::COMMAND;
use joiner_state::live::{LiveClaim, PLANNED, Snapshot};
use serde::{Deserialize, Serialize};

use crate::nodeclaim::template::claim_name;

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

    /// Members that carry it. Some may have been released already, when the rest of it could not be undone,
    /// and belong to another one by now.
    pub(super) fn carriers<'s>(
        &'s self,
        snapshot: &'s Snapshot,
    ) -> impl Iterator<Item = &'s Arc<LiveClaim>> {
        let members = self.members.iter();
        let members = members.filter_map(|name| snapshot.claim(name));
        members.filter(|own| Self::of(own).is_some_and(|own| own.id == self.id))
    }

    /// True when it can be seen what takes the place of its members: otherwise it would be bought again.
    fn is_visible(&self, snapshot: &Snapshot) -> bool {
        self.replacements.iter().all(|name| {
            let claim = snapshot.claim(name).filter(|own| !own.is_going());
            claim.is_some_and(|own| {
                own.provider_id.is_some() || own.meta.annotation(PLANNED).is_some()
            })
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
