//! What one pass tells the next. Losing it costs time, never truth.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::fleet::{Fleet, Leaver, Member};
use crate::why::Why;

/// What earlier passes found out.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The state of the cluster for which consolidation found nothing to do.
    idle: Option<Timestamp>,
    /// The state of the cluster that `searched` and `tried` are about.
    about: Option<Timestamp>,
    /// Sets of nodes were looked at.
    searched: bool,
    /// Nodes that were looked at one by one.
    tried: BTreeSet<Leaver>,
    /// Nodes whose turn is over until all others had theirs.
    seen: BTreeSet<Leaver>,
    /// Why nodes stayed when they were last looked at.
    kept: BTreeMap<Leaver, Why>,
}

impl Memory {
    /// True when nothing changed since consolidation found nothing to do.
    #[must_use]
    pub fn is_idle(&self, fleet: &Fleet<'_>) -> bool {
        self.idle == Some(fleet.changed)
    }

    /// Drops what is about another state of the cluster, and nodes that are gone.
    pub(crate) fn for_fleet(&self, fleet: &Fleet<'_>) -> Self {
        let there: BTreeSet<Leaver> = fleet.members.iter().map(Member::leaver).collect();
        let mut next = self.clone();
        if next.about != Some(fleet.changed) {
            next.about = Some(fleet.changed);
            next.searched = false;
            next.tried.clear();
        }
        next.seen.retain(|leaver| there.contains(leaver));
        next.tried.retain(|leaver| there.contains(leaver));
        next.kept.retain(|leaver, _| there.contains(leaver));
        next
    }

    /// True when sets of nodes were looked at in this state of the cluster.
    pub(crate) fn searched(&self) -> bool {
        self.searched
    }

    /// Sets of nodes have been looked at.
    pub(crate) fn note_searched(&mut self) {
        self.searched = true;
    }

    /// True when a node was looked at in this state of the cluster.
    pub(crate) fn tried(&self, node: &Leaver) -> bool {
        self.tried.contains(node)
    }

    /// True when others should be looked at first.
    pub(crate) fn seen(&self, node: &Leaver) -> bool {
        self.seen.contains(node)
    }

    /// A node was looked at, and stays.
    pub(crate) fn note_kept(&mut self, node: &Leaver, why: Why) {
        self.tried.insert(node.clone());
        self.seen.insert(node.clone());
        self.kept.insert(node.clone(), why);
    }

    /// Everybody had a turn.
    pub(crate) fn start_round(&mut self) {
        self.seen.clear();
    }

    /// There is nothing to do in this state of the cluster.
    pub(crate) fn note_idle(&mut self, changed: Timestamp) {
        self.idle = Some(changed);
    }

    /// Why a node stayed when it was last looked at.
    pub(crate) fn kept(&self, node: &Leaver) -> Option<&Why> {
        self.kept.get(node)
    }
}
