//! Counts every pod of a Job once.

use std::collections::BTreeSet;

use joiner_machinery::meta;
use serde_json::{Map, Value, json};

use super::{Job, is_tracked, untracked};
use crate::fields;
use crate::workloads::owned::Child;
use crate::workloads::pods::{Facts, Phase};

/// Counts of a status, and pods that are listed but not yet part of the numbers.
pub(super) struct Uncounted {
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    new_succeeded: BTreeSet<String>,
    new_failed: BTreeSet<String>,
}

impl Uncounted {
    pub(super) fn read(status: &Value) -> Self {
        let lists = &status["uncountedTerminatedPods"];
        let uids = |list: &Value| {
            let uids = list.as_array().into_iter().flatten();
            uids.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            succeeded: fields::count(&status["succeeded"], 0),
            failed: fields::count(&status["failed"], 0),
            new_succeeded: uids(&lists["succeeded"]),
            new_failed: uids(&lists["failed"]),
        }
    }

    pub(super) fn succeeded_total(&self) -> i64 {
        self.succeeded + self.new_succeeded.len() as i64
    }

    pub(super) fn failed_total(&self) -> i64 {
        self.failed + self.new_failed.len() as i64
    }

    /// True when the numbers are all there is.
    pub(super) fn is_settled(&self) -> bool {
        self.new_succeeded.is_empty() && self.new_failed.is_empty()
    }

    /// The lists as the status has them.
    pub(super) fn list(&self) -> Value {
        let mut lists = Map::new();
        for (field, uids) in [
            ("succeeded", &self.new_succeeded),
            ("failed", &self.new_failed),
        ] {
            if !uids.is_empty() {
                lists.insert(field.to_owned(), json!(uids));
            }
        }
        Value::Object(lists)
    }

    fn has(&self, uid: &str) -> bool {
        self.new_succeeded.contains(uid) || self.new_failed.contains(uid)
    }

    /// Listed pods without our finalizer become part of the numbers.
    fn absorb(&mut self, tracked: &BTreeSet<&str>) {
        let absorb = |uids: &mut BTreeSet<String>| {
            let before = uids.len();
            uids.retain(|uid| tracked.contains(uid.as_str()));
            (before - uids.len()) as i64
        };
        self.succeeded += absorb(&mut self.new_succeeded);
        self.failed += absorb(&mut self.new_failed);
    }
}

impl Job<'_, '_> {
    /// Lists pods that have ended, frees those that are listed, and counts those that are free.
    pub(super) fn count(&mut self) {
        let tracked: Vec<&Child> = self
            .pods
            .iter()
            .copied()
            .filter(|pod| is_tracked(&pod.object))
            .collect();
        let uids: BTreeSet<&str> = tracked.iter().map(|pod| meta::uid(&pod.object)).collect();
        self.counts.absorb(&uids);
        let completions = self.object["spec"]["completions"]
            .as_i64()
            .unwrap_or(i64::MAX);
        let waits_for_end = self.waits_for_end();
        for pod in tracked {
            let object = &pod.object;
            let index = index_of(object).filter(|index| *index < completions);
            let has_succeeded = pod.facts.phase == Phase::Succeeded;
            let stored = match (&self.indexes, index) {
                (Some(indexes), Some(index)) if has_succeeded => indexes.has(index),
                (Some(_), None) => true,
                (Some(_) | None, _) => self.counts.has(meta::uid(object)),
            };
            if !has_succeeded && !has_failed(&pod.facts, waits_for_end) {
                continue;
            }
            if stored || (!has_succeeded && self.is_ignored(pod)) {
                self.actions.push(untracked(object));
                continue;
            }
            match (&mut self.indexes, index) {
                (Some(indexes), Some(index)) if has_succeeded => indexes.insert(index),
                (Some(_) | None, _) => {
                    let list = match has_succeeded {
                        true => &mut self.counts.new_succeeded,
                        false => &mut self.counts.new_failed,
                    };
                    list.insert(meta::uid(object).to_owned());
                }
            }
        }
    }

    /// Frees all pods of a Job that has said its last word.
    pub(super) fn untrack_all(&mut self) {
        let tracked = self.pods.iter().filter(|pod| is_tracked(&pod.object));
        self.actions
            .extend(tracked.map(|pod| untracked(&pod.object)));
    }
}

/// The index of a pod of an indexed Job.
pub(super) fn index_of(pod: &Value) -> Option<i64> {
    meta::annotation(pod, super::making::INDEX)?.parse().ok()
}

/// A pod that is deleted before it ends never gets to fail in so many words, unless the Job waits
/// for its end.
pub(super) fn has_failed(pod: &Facts, waits_for_end: bool) -> bool {
    match pod.phase {
        Phase::Failed => true,
        Phase::Succeeded => false,
        Phase::Pending | Phase::Unknown | Phase::Running => pod.is_deleting && !waits_for_end,
    }
}
