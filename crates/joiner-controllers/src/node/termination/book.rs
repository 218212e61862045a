//! Pods that have to leave, and when each is to be tried next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::{Name, Precedence};
use joiner_state::live::LivePod;

use super::drain::{Evictee, due_at, is_due, is_waited_for};
use joiner_engine::retry::{PAUSE_MAX, PAUSE_MIN, pause_after};

/// How long a pod that was told to go may look as if it were not going: the watch may lag.
const SETTLES_AFTER: Duration = Duration::from_secs(5);
/// Pods that wait; a drain asks again for those beyond.
const PODS_MAX: usize = 100_000;

/// A pod: `namespace/name` and uid.
pub(super) type Key = (Name, Name);

/// What is to be done about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing, ever: it is gone, going, or stays to the end.
    Drop,
    /// Nothing before this time: it must not be disturbed.
    Hold(Timestamp),
    /// Evict it.
    Evict,
    /// Delete it, with so many seconds to go.
    Delete(u32),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    /// There is nothing more to do.
    Done,
    /// It was told to go.
    Told,
    /// It was told to go by force.
    Forced,
    /// Nothing before this time.
    Until(Timestamp),
    /// It did not work.
    Failed,
}

/// One pod that has to leave.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// When its node goes.
    pub(super) deadline: Option<Timestamp>,
    /// When its turn came.
    pub(super) turn: Timestamp,
    failures: u32,
    precedence: Precedence,
    /// It was deleted by force already.
    forced: bool,
    /// When it is tried next; none while it is being tried.
    at: Option<Timestamp>,
}

/// Pods that have to leave.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: BTreeMap<Key, Entry>,
    /// By time; of those whose time is the same the greatest come first.
    waiting: BTreeSet<(Timestamp, Reverse<Precedence>, Key)>,
}

impl Book {
    /// Takes in a pod. One that is known keeps the earlier deadline, and its pause unless it is due.
    pub(super) fn add(&mut self, evictee: &Evictee, now: Timestamp) {
        let key = (evictee.pod.clone(), evictee.uid.clone());
        if let Some(entry) = self.entries.get_mut(&key) {
            let deadlines = [entry.deadline, evictee.deadline];
            entry.deadline = deadlines.into_iter().flatten().min();
            let hasten = evictee.is_due && !entry.forced && entry.at.is_some();
            if hasten {
                self.schedule(&key, now);
            }
        } else if self.entries.len() < PODS_MAX {
            let entry = Entry {
                deadline: evictee.deadline,
                turn: now,
                failures: 0,
                precedence: evictee.precedence,
                forced: false,
                at: None,
            };
            self.entries.insert(key.clone(), entry);
            self.schedule(&key, now);
        }
    }

    /// The next pod to be tried, if one is.
    pub(super) fn take(&mut self, now: Timestamp) -> Option<(Key, Entry)> {
        let (at, _, key) = self.waiting.first()?.clone();
        if at > now {
            return None;
        }
        self.waiting.pop_first();
        let entry = self.entries.get_mut(&key)?;
        entry.at = None;
        Some((key, entry.clone()))
    }

    /// When the next pod is to be tried.
    pub(super) fn next_time(&self) -> Option<Timestamp> {
        self.waiting.first().map(|(at, ..)| *at)
    }

    /// What came of a try; `pod` is the pod as it is known now.
    pub(super) fn done(
        &mut self,
        key: &Key,
        outcome: Eviction,
        pod: Option<&LivePod>,
        now: Timestamp,
    ) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let mut at = match outcome {
            Eviction::Done => {
                self.entries.remove(key);
                return;
            }
            Eviction::Told => after(now, SETTLES_AFTER),
            Eviction::Forced => {
                entry.forced = true;
                after(now, SETTLES_AFTER)
            }
            Eviction::Until(at) => at.min(after(now, PAUSE_MAX)).max(after(now, PAUSE_MIN)),
            Eviction::Failed => {
                entry.failures = entry.failures.saturating_add(1);
                after(now, pause_after(entry.failures))
            }
        };
        // A pause does not outlast the moment from which force is used.
        if let (Some(deadline), Some(pod)) = (entry.deadline, pod)
            && !entry.forced
        {
            let due = after(due_at(pod, deadline), Duration::from_millis(1));
            at = at.min(due.max(after(now, PAUSE_MIN)));
        }
        self.schedule(key, at);
    }

    fn schedule(&mut self, key: &Key, at: Timestamp) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if let Some(before) = entry.at.replace(at) {
            let before = (before, Reverse(entry.precedence), key.clone());
            self.waiting.remove(&before);
        }
        let first = Reverse(entry.precedence);
        self.waiting.insert((at, first, key.clone()));
    }
}

fn after(at: Timestamp, pause: Duration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// What is to be done about a pod that has to leave; `pod` is what has its name now.
pub(super) fn action(
    pod: Option<&LivePod>,
    uid: &str,
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Action {
    let Some(pod) = pod.filter(|pod| &*pod.uid == uid && is_waited_for(pod, now)) else {
        return Action::Drop;
    };
    if let Some(deadline) = deadline.filter(|_| is_due(pod, deadline, now)) {
        let left = deadline.duration_since(now).as_secs().max(1);
        return Action::Delete(u32::try_from(left).unwrap_or(u32::MAX));
    }
    if pod.deleting.is_some() {
        return Action::Drop;
    }
    match pod.protected_until(now) {
        Some(until) => Action::Hold(until),
        None => Action::Evict,
    }
}
