//! Jobs whose indexes fail each on its own account.

use joiner_machinery::meta;
use serde_json::Value;

use super::counting::{has_failed, index_of};
use super::indexes::Indexes;
use super::{End, Job};
use crate::workloads::owned::Child;
use crate::workloads::pods::Phase;

/// How often an index had failed when a pod was made for it.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

impl Job<'_, '_> {
    /// Failures that each index may have, of a Job that counts them so.
    pub(super) fn limit_per_index(&self) -> Option<i64> {
        self.object["spec"]["backoffLimitPerIndex"].as_i64()
    }

    /// Failures of an index so far.
    pub(super) fn failures_of(&self, index: i64) -> i64 {
        let own = self
            .pods
            .iter()
            .filter(|pod| index_of(&pod.object) == Some(index));
        let counts = own.map(|pod| self.failures_with(pod));
        counts.max().unwrap_or(0)
    }

    /// Failures of a pod's index, up to this pod and with it.
    fn failures_with(&self, pod: &Child) -> i64 {
        let failed = has_failed(&pod.facts, self.waits_for_end()) && !self.is_ignored(pod);
        let before = meta::annotation(&pod.object, FAILURES);
        before.and_then(|count| count.parse().ok()).unwrap_or(0) + i64::from(failed)
    }

    /// Indexes that are given up.
    pub(super) fn given_up(&self) -> Option<Indexes> {
        let limit = self.limit_per_index()?;
        let mut given_up = Indexes::read(&self.object["status"]["failedIndexes"]);
        for pod in self
            .pods
            .iter()
            .filter(|pod| pod.facts.phase != Phase::Succeeded)
        {
            let is_over = self.failures_with(pod) > limit || self.fails_index(pod);
            if let Some(index) = index_of(&pod.object).filter(|_| is_over) {
                given_up.insert(index);
            }
        }
        Some(given_up)
    }

    /// The end of a Job that has given up too many indexes, or has none left to try.
    pub(super) fn given_up_enough(&self) -> Option<End> {
        let given_up = self.given_up.as_ref().map(Indexes::len)?;
        let spec = &self.object["spec"];
        if spec["maxFailedIndexes"]
            .as_i64()
            .is_some_and(|most| given_up > most)
        {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(End::failure("MaxFailedIndexesExceeded", message));
        }
        let completions = spec["completions"].as_i64()?;
        let is_over = given_up > 0 && given_up + self.succeeded() >= completions;
        is_over.then(|| End::failure("FailedIndexes", "Job has failed indexes"))
    }

    /// The text of the status.
    pub(super) fn failed_indexes(&self) -> Value {
        let Some(given_up) = &self.given_up else {
            return Value::Null;
        };
        match given_up.len() {
            0 => Value::String(String::new()),
            _ => given_up.text(),
        }
    }
}
