//! What a controller remembers of an HPA between decisions: recommendations and changes of size.
//!
//! Entries that are too old are overwritten instead of removed, one at a time, as upstream does it: how
//! many there are is never more than what a window of time had.

use jiff::{SignedDuration, Timestamp};

use crate::durations::before;

/// What was recommended, before stabilization and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recommendation {
    /// How many replicas.
    pub replicas: i32,
    /// When.
    pub time: Timestamp,
}

/// A change of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleEvent {
    /// By how many replicas, whichever way.
    pub change: i32,
    /// When.
    pub time: Timestamp,
    /// Whether it is older than any policy of its direction looks back.
    pub outdated: bool,
}

/// What is remembered of an HPA. It is lost with the process that held it, and goes with the HPA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Recommendations; `None` until the scale was first read.
    pub recommendations: Option<Vec<Recommendation>>,
    /// Changes towards more.
    pub ups: Vec<ScaleEvent>,
    /// Changes towards fewer.
    pub downs: Vec<ScaleEvent>,
}

impl Memory {
    /// Begins with the size that is there: nothing shrinks until a whole window has passed.
    pub(crate) fn begin(&mut self, replicas: i32, time: Timestamp) {
        let first = Recommendation { replicas, time };
        self.recommendations.get_or_insert_with(|| vec![first]);
    }

    /// Writes down a recommendation, over the last one that `is_old`, if any.
    pub(crate) fn record(
        &mut self,
        recommendation: Recommendation,
        is_old: impl Fn(&Recommendation) -> bool,
    ) {
        let all = self.recommendations.get_or_insert_default();
        match all.iter_mut().rev().find(|r| is_old(r)) {
            Some(old) => *old = recommendation,
            None => all.push(recommendation),
        }
    }

    /// The recommendations.
    pub(crate) fn recommended(&self) -> impl Iterator<Item = &Recommendation> {
        self.recommendations.iter().flatten()
    }
}

/// Writes down a change of size, over the last one that is older than the longest policy.
pub(crate) fn note(events: &mut Vec<ScaleEvent>, change: i32, longest_secs: i32, now: Timestamp) {
    let cutoff = before(now, SignedDuration::from_secs(longest_secs.into()));
    for event in events.iter_mut().filter(|event| event.time < cutoff) {
        event.outdated = true;
    }
    let event = ScaleEvent {
        change,
        time: now,
        outdated: false,
    };
    match events.iter_mut().rev().find(|event| event.outdated) {
        Some(old) => *old = event,
        None => events.push(event),
    }
}

/// How much changed in the last so many seconds.
pub(crate) fn changed(events: &[ScaleEvent], period_secs: i32, now: Timestamp) -> i32 {
    let cutoff = before(now, SignedDuration::from_secs(period_secs.into()));
    let recent = events.iter().filter(|event| event.time > cutoff);
    recent.fold(0, |sum, event| sum.wrapping_add(event.change))
}
