//! Nodes that pods were told to expect a place on: nothing disrupts them for a while.
//!
//! It is memory on purpose: after a restart the next plan nominates anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Name;

/// The least time that a nomination lasts.
const LASTS_MIN: Duration = Duration::from_secs(10);

/// Nodes and claims, and until when they are spoken for.
#[derive(Clone, Debug, Default)]
pub struct Nominations {
    until: Arc<Mutex<BTreeMap<Name, Timestamp>>>,
    /// Nodes that headroom counts on, as of the last plan.
    headroom: Arc<Mutex<BTreeSet<Name>>>,
}

impl Nominations {
    /// How long a nomination lasts when batches take at most `batch_max`.
    #[must_use]
    pub fn lasting(batch_max: Duration) -> Duration {
        (batch_max * 2).max(LASTS_MIN)
    }

    /// A node, or the claim of one to come, is spoken for.
    pub fn nominate(&self, name: &Name, now: Timestamp, lasting: Duration) {
        let until = now.checked_add(lasting).unwrap_or(Timestamp::MAX);
        let mut all = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, until| *until > now);
        all.insert(name.clone(), until);
    }

    /// Nodes that headroom counts on now.
    pub fn set_headroom(&self, nodes: BTreeSet<Name>) {
        let mut own = self.headroom.lock().unwrap_or_else(PoisonError::into_inner);
        *own = nodes;
    }

    /// True when headroom counts on the node.
    #[must_use]
    pub fn has_headroom(&self, node: &str) -> bool {
        let own = self.headroom.lock().unwrap_or_else(PoisonError::into_inner);
        own.contains(node)
    }

    /// True while it is spoken for.
    #[must_use]
    pub fn is_nominated(&self, name: &str, now: Timestamp) -> bool {
        let all = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nomination_ends_by_itself() {
        let at = |secs| Timestamp::from_second(secs).unwrap();
        let all = Nominations::default();
        let lasting = Nominations::lasting(Duration::from_secs(10));
        assert_eq!(lasting, Duration::from_secs(20));
        assert_eq!(Nominations::lasting(Duration::from_secs(1)), LASTS_MIN);
        all.nominate(&"n".into(), at(100), lasting);
        assert!(all.is_nominated("n", at(119)));
        assert!(!all.is_nominated("n", at(120)));
        assert!(!all.is_nominated("m", at(100)));
    }
}
