//! What one pass tells the next. Losing it costs time, never truth.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_model::Name;

use crate::fleet::Fleet;
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
    /// Claims that were looked at one by one.
    tried: BTreeSet<Name>,
    /// Claims whose turn is over until all others had theirs.
    seen: BTreeSet<Name>,
    /// Why claims stayed when they were last looked at.
    kept: BTreeMap<Name, Why>,
}

impl Memory {
    /// True when nothing changed since consolidation found nothing to do.
    #[must_use]
    pub fn is_idle(&self, fleet: &Fleet<'_>) -> bool {
        self.idle == Some(fleet.changed)
    }

    /// Drops what is about another state of the cluster, and claims that are gone.
    pub(crate) fn for_fleet(&self, fleet: &Fleet<'_>) -> Self {
        let claims: BTreeSet<&Name> = fleet.members.iter().map(|m| &m.claim).collect();
        let mut next = self.clone();
        if next.about != Some(fleet.changed) {
            next.about = Some(fleet.changed);
            next.searched = false;
            next.tried.clear();
        }
        next.seen.retain(|claim| claims.contains(claim));
        next.tried.retain(|claim| claims.contains(claim));
        next.kept.retain(|claim, _| claims.contains(claim));
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

    /// True when a claim was looked at in this state of the cluster.
    pub(crate) fn tried(&self, claim: &Name) -> bool {
        self.tried.contains(claim)
    }

    /// True when others should be looked at first.
    pub(crate) fn seen(&self, claim: &Name) -> bool {
        self.seen.contains(claim)
    }

    /// A claim was looked at, and stays.
    pub(crate) fn note_kept(&mut self, claim: &Name, why: Why) {
        self.tried.insert(claim.clone());
        self.seen.insert(claim.clone());
        self.kept.insert(claim.clone(), why);
    }

    /// Everybody had a turn.
    pub(crate) fn start_round(&mut self) {
        self.seen.clear();
    }

    /// There is nothing to do in this state of the cluster.
    pub(crate) fn note_idle(&mut self, changed: Timestamp) {
        self.idle = Some(changed);
    }

    /// Why a claim stayed when it was last looked at.
    pub(crate) fn kept(&self, claim: &Name) -> Option<&Why> {
        self.kept.get(claim)
    }
}
