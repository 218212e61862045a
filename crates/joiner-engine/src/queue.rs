//! Keys that wait, and when each of them is due.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use joiner_model::Name;

use crate::controller::{Failure, Next};
use crate::retry::pause_after_failure;

/// Conflicts in a row after which a key waits like after any other failure.
pub(crate) const CONFLICTS_MAX: u32 = 3;

/// What went wrong with a key, in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trouble {
    conflicts: u32,
    failures: u32,
}

impl Trouble {
    /// When to try again after this failure: at once after the first conflicts.
    pub(crate) fn next(&mut self, failure: &Failure, now: Timestamp) -> Option<Timestamp> {
        if failure.is_conflict() && self.conflicts < CONFLICTS_MAX {
            self.conflicts += 1;
            return None;
        }
        self.failures += 1;
        let at = now.checked_add(pause_after_failure(failure, self.failures));
        Some(at.unwrap_or(Timestamp::MAX))
    }
}

/// Keys that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Due now, in order of name: no chance in it.
    due: BTreeSet<Name>,
    /// Due later; a key is here at most once.
    later: BTreeSet<(Timestamp, Name)>,
    when: BTreeMap<Name, Timestamp>,
    /// Being reconciled.
    busy: BTreeSet<Name>,
    /// What went wrong with keys.
    troubles: HashMap<Name, Trouble>,
}

impl Queue {
    /// Something changed: the key is due now, unless it waits because it failed.
    pub(crate) fn add(&mut self, key: Name) {
        if self.troubles.contains_key(&key) && self.when.contains_key(&key) {
            return;
        }
        self.forget_time(&key);
        self.due.insert(key);
    }

    fn add_at(&mut self, key: Name, at: Timestamp) {
        if self.due.contains(&key) || self.when.get(&key).is_some_and(|when| *when <= at) {
            return;
        }
        self.forget_time(&key);
        self.when.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    fn forget_time(&mut self, key: &Name) {
        if let Some(at) = self.when.remove(key) {
            self.later.remove(&(at, key.clone()));
        }
    }

    /// Moves what has become due.
    pub(crate) fn ripen(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.later.first().cloned() {
            if at > now {
                return;
            }
            self.forget_time(&key);
            self.due.insert(key);
        }
    }

    /// The next key that is due and not being reconciled.
    pub(crate) fn take(&mut self) -> Option<Name> {
        let key = self.due.iter().find(|key| !self.busy.contains(*key))?;
        let key = key.clone();
        self.due.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    /// How many keys are due.
    pub(crate) fn n_due(&self) -> usize {
        self.due.len()
    }

    /// When the next key becomes due.
    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.later.first().map(|(at, _)| *at)
    }

    /// A key was reconciled.
    pub(crate) fn done(&mut self, key: Name, result: &Result<Next, Failure>, now: Timestamp) {
        self.busy.remove(&key);
        match result {
            Ok(next) => {
                self.troubles.remove(&key);
                if let Next::Again(after) = next {
                    let at = now.checked_add(*after).unwrap_or(Timestamp::MAX);
                    self.add_at(key, at);
                }
            }
            Err(failure) => {
                let trouble = self.troubles.entry(key.clone()).or_default();
                let Some(at) = trouble.next(failure, now) else {
                    self.due.insert(key);
                    return;
                };
                self.due.remove(&key);
                self.add_at(key, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use joiner_runtime::ApiFailure;

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    #[test]
    fn a_key_is_reconciled_by_one_at_a_time_and_again_if_it_changed_meanwhile() {
        let mut queue = Queue::default();
        queue.add("a".into());
        assert_eq!(queue.take().as_deref(), Some("a"));
        queue.add("a".into());
        assert_eq!(queue.take(), None);
        queue.done("a".into(), &Ok(Next::Done), at(0));
        assert_eq!(queue.take().as_deref(), Some("a"));
        queue.done("a".into(), &Ok(Next::Done), at(0));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn failures_wait_longer_and_longer_and_changes_do_not_shorten_it() {
        let mut queue = Queue::default();
        let mut now = at(0);
        queue.add("a".into());
        for pause in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            assert!(queue.take().is_some(), "after {now}");
            let failed = Err(Failure::Other("no".to_owned()));
            queue.done("a".into(), &failed, now);
            queue.add("a".into());
            queue.ripen(now + Duration::from_millis(pause - 1));
            assert_eq!(queue.take(), None, "too early after {now}");
            now += Duration::from_millis(pause);
            queue.ripen(now);
        }
        assert!(queue.take().is_some());
        let later = Duration::from_secs(5);
        queue.done("a".into(), &Ok(Next::Again(later)), now);
        assert_eq!(queue.next_time(), Some(now + later));
    }

    #[test]
    fn the_first_conflicts_cost_no_time_and_later_ones_do() {
        let mut queue = Queue::default();
        queue.add("a".into());
        let conflict = Err(Failure::Api(ApiFailure::Conflict("changed".to_owned())));
        for _ in 0..CONFLICTS_MAX {
            assert!(queue.take().is_some());
            queue.done("a".into(), &conflict, at(0));
        }
        assert!(queue.take().is_some());
        queue.done("a".into(), &conflict, at(0));
        assert_eq!(queue.take(), None);
        queue.ripen(at(1));
        assert!(queue.take().is_some());
    }

    #[test]
    fn the_earlier_of_two_times_counts() {
        let mut queue = Queue::default();
        queue.add_at("a".into(), at(9));
        queue.add_at("a".into(), at(5));
        queue.add_at("a".into(), at(7));
        queue.ripen(at(5));
        assert_eq!(queue.take().as_deref(), Some("a"));
        assert_eq!(queue.next_time(), None);
    }
}
