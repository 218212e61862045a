//! Nodes that pods were told to expect a place on: nothing disrupts them for a while.
//!
//! It is memory on purpose: after a restart the next plan nominates anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Name;

/// The least time that a nomination lasts.
const LASTS_MIN: Duration = Duration::from_secs(10);

/// Nodes and claims that are nominated, and until when; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Nominations {
    until: Arc<Mutex<BTreeMap<Name, Timestamp>>>,
}

impl Nominations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Timestamp>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All nominations end.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    /// How long a nomination lasts when batches take at most `batch_max`.
    #[must_use]
    pub fn lasting(batch_max: Duration) -> Duration {
        (batch_max * 2).max(LASTS_MIN)
    }

    /// A node, or the claim of one to come, is nominated.
    pub fn nominate(&self, name: &Name, now: Timestamp, lasting: Duration) {
        let until = now.checked_add(lasting).unwrap_or(Timestamp::MAX);
        let mut all = self.lock();
        all.retain(|_, until| *until > now);
        all.insert(name.clone(), until);
    }

    /// True while it is nominated.
    #[must_use]
    pub fn is_nominated(&self, name: &str, now: Timestamp) -> bool {
        self.lock().get(name).is_some_and(|until| *until > now)
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
