//! Waiting after a refusal, longer each time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::fields;
use crate::view::Action;

/// First wait, in seconds.
const FIRST_SECS: i64 = 1;
/// Longest wait, in seconds.
const LONGEST_SECS: i64 = 300;

/// Refusals by the uid of the workload that asked.
#[derive(Default)]
pub(crate) struct Backoffs(BTreeMap<String, Backoff>);

/// What a workload remembers of refusals.
#[derive(Clone)]
pub(crate) struct Backoff {
    /// Why the last one was refused.
    pub(crate) message: String,
    /// Ask again then.
    pub(crate) until: Timestamp,
    /// True until users have been told.
    pub(crate) untold: bool,
    wait_secs: i64,
}

impl Backoffs {
    /// Notes a refused creation under the controller of the object. One wait per moment: a batch of
    /// pods that are all refused counts once.
    pub(crate) fn note(&mut self, action: &Action, message: &str, now: Timestamp) {
        let Action::Create(_, object) = action else {
            return;
        };
        let Some(owner) = joiner_machinery::meta::controller(object) else {
            return;
        };
        let uid = owner["uid"].as_str().unwrap_or_default();
        let before = self.0.get(uid);
        let wait_secs = match before {
            Some(before) if before.until > now => before.wait_secs,
            Some(before) => (before.wait_secs * 2).min(LONGEST_SECS),
            None => FIRST_SECS,
        };
        let backoff = Backoff {
            message: message.to_owned(),
            until: fields::after(now, wait_secs),
            untold: true,
            wait_secs,
        };
        self.0.insert(uid.to_owned(), backoff);
    }

    /// What is remembered of a workload; reading it is telling users.
    pub(crate) fn read(&mut self, uid: &str) -> Option<Backoff> {
        let backoff = self.0.get_mut(uid)?;
        let read = backoff.clone();
        backoff.untold = false;
        Some(read)
    }

    /// Forgets a workload that has what it asked for.
    pub(crate) fn clear(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    /// Forgets workloads that are gone.
    pub(crate) fn keep<'v>(&mut self, objects: impl Iterator<Item = &'v Value>) {
        if self.0.is_empty() {
            return;
        }
        let there: std::collections::BTreeSet<&str> =
            objects.map(joiner_machinery::meta::uid).collect();
        self.0.retain(|uid, _| there.contains(uid.as_str()));
    }
}
