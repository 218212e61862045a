//! Creates and deletes the pods of a Job.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use super::counting::{has_failed, index_of};
use super::indexes::Indexes;
use super::per_index::FAILURES;
use super::{Backoff, Job, TRACKING, is_tracked, untracked};
use crate::fields;
use crate::names::Fresh;
use crate::view::Action;
use crate::workloads::owned::Child;
use crate::workloads::pods::{self, PODS, Phase};

/// The index of a pod, as label and annotation.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// First wait after a failed pod, in seconds; it doubles with each one.
const WAIT_SECS: i64 = 10;
/// Longest wait.
const WAIT_MAX_SECS: i64 = 600;
/// Pods created or deleted for one Job in one step.
const BURST: i64 = 500;

impl Job<'_, '_> {
    /// Keeps as many pods active as parallelism and completions ask for.
    pub(super) fn manage(&mut self, suspended: bool, backoff: Option<&Backoff>) {
        let active = self.active.len() as i64;
        let wanted = if suspended { 0 } else { self.wanted(active) };
        let surplus = usize::try_from((active - wanted).clamp(0, BURST)).unwrap_or(0);
        if surplus > 0 {
            self.remove(surplus);
            return;
        }
        let waits_for = |pod: &&&Child| pod.facts.is_terminating();
        let leaving = match self.waits_for_end() {
            true => self.pods.iter().filter(waits_for).count() as i64,
            false => 0,
        };
        let missing = (wanted - active - leaving).clamp(0, BURST);
        self.is_whole = missing == 0;
        if missing == 0 {
            return;
        }
        let refused = backoff.map(|backoff| backoff.until);
        // Where indexes fail on their own account they also wait on their own.
        let failures = match self.limit_per_index() {
            None => self.retry_time(None),
            Some(_) => None,
        };
        let until = failures.into_iter().chain(refused).max();
        match until.filter(|until| *until > self.view.now) {
            Some(until) => self.wake_at(until),
            None => self.create(missing),
        }
    }

    fn wanted(&self, active: i64) -> i64 {
        let spec = &self.object["spec"];
        let parallelism = fields::count(&spec["parallelism"], 1);
        match spec["completions"].as_i64() {
            Some(completions) => {
                let given_up = self.given_up.as_ref().map_or(0, Indexes::len);
                (completions - self.succeeded() - given_up).clamp(0, parallelism.max(0))
            }
            None if self.succeeded() > 0 => active,
            None => parallelism,
        }
    }

    /// When the next pod may follow those that failed since the last success, for one index or all.
    fn retry_time(&self, index: Option<i64>) -> Option<Timestamp> {
        let is_meant =
            |pod: &&&Child| index.is_none_or(|index| index_of(&pod.object) == Some(index));
        let pods = || self.pods.iter().filter(is_meant);
        let waits = self.waits_for_end();
        let succeeded = |pod: &&&Child| pod.facts.phase == Phase::Succeeded;
        let failed = |pod: &&&Child| has_failed(&pod.facts, waits) && !self.is_ignored(pod);
        let end = |pod: &&Child| end_of(&pod.object);
        let success = pods().filter(succeeded).map(end).max();
        let failures: Vec<Timestamp> = (pods().filter(failed).map(end))
            .filter(|end| success.is_none_or(|success| *end > success))
            .collect();
        let last = failures.iter().max()?;
        let doublings = u32::try_from(failures.len() - 1)
            .unwrap_or(u32::MAX)
            .min(16);
        let wait = (WAIT_SECS << doublings).min(WAIT_MAX_SECS);
        Some(fields::after(*last, wait))
    }

    fn create(&mut self, missing: i64) {
        let (object, name) = (self.object, meta::name(self.object));
        let indexes: Vec<Option<i64>> = match &self.indexes {
            None => (0..missing).map(|_| None).collect(),
            Some(_) => self.free_indexes(missing).into_iter().map(Some).collect(),
        };
        let names = |base: &str| Fresh::new(self.view, PODS, object, base);
        let plain = format!("{name}-");
        let mut plain_names = names(&plain);
        let named: Vec<_> = indexes
            .into_iter()
            .map(|index| match index {
                Some(number) => {
                    let base = format!("{name}-{number}-");
                    (index, names(&base).name(), base)
                }
                None => (index, plain_names.name(), plain.clone()),
            })
            .collect();
        for (index, name, base) in named {
            let message = format!("Created pod: {name}");
            let pod = self.new_pod(index, &base, name);
            self.actions.push(Action::Create(PODS, pod));
            let event = self.recorder.normal(object, "SuccessfulCreate", &message);
            self.actions.push(event);
            self.active_after += 1;
        }
    }

    /// The lowest indexes that have neither succeeded nor have an active pod.
    fn free_indexes(&mut self, missing: i64) -> Vec<i64> {
        let taken: BTreeSet<i64> = self
            .active
            .iter()
            .filter_map(|pod| index_of(&pod.object))
            .collect();
        let completions = fields::count(&self.object["spec"]["completions"], 0);
        let ended = [&self.indexes, &self.given_up];
        let is_over = |index: i64| ended.into_iter().flatten().any(|set| set.has(index));
        let mut free: Vec<i64> = (0..completions)
            .filter(|index| !taken.contains(index) && !is_over(*index))
            .collect();
        if self.limit_per_index().is_some() {
            let mut times: BTreeMap<i64, Timestamp> = BTreeMap::new();
            times.extend(
                free.iter()
                    .filter_map(|ix| Some((*ix, self.retry_time(Some(*ix))?))),
            );
            times.retain(|_, time| *time > self.view.now);
            free.retain(|index| !times.contains_key(index));
            times.into_values().for_each(|time| self.wake_at(time));
        }
        free.truncate(usize::try_from(missing).unwrap_or(0));
        free
    }

    fn new_pod(&self, index: Option<i64>, base: &str, name: String) -> Value {
        let object = self.object;
        let mut pod = pods::from_template(&object["spec"]["template"], &self.owner, name);
        pod["metadata"]["generateName"] = json!(base);
        for prefix in ["", "batch.kubernetes.io/"] {
            pods::label(&mut pod, &format!("{prefix}job-name"), meta::name(object));
            pods::label(
                &mut pod,
                &format!("{prefix}controller-uid"),
                meta::uid(object),
            );
        }
        let finalizers = pod["metadata"]["finalizers"].as_array();
        let mut finalizers = finalizers.cloned().unwrap_or_default();
        finalizers.push(json!(TRACKING));
        pod["metadata"]["finalizers"] = Value::Array(finalizers);
        if let Some(index) = index {
            pods::label(&mut pod, INDEX, &index.to_string());
            pods::annotate(&mut pod, INDEX, &index.to_string());
            if self.limit_per_index().is_some() {
                let failures = self.failures_of(index).to_string();
                pods::annotate(&mut pod, FAILURES, &failures);
            }
            pod["spec"]["hostname"] = json!(base.trim_end_matches('-'));
            for list in ["initContainers", "containers"] {
                let containers = pod["spec"][list].as_array_mut();
                containers.into_iter().flatten().for_each(tell_index);
            }
        }
        pod
    }

    /// Deletes active pods that are not needed; they count neither as succeeded nor as failed.
    fn remove(&mut self, surplus: usize) {
        let mut leaving = self.active.clone();
        leaving.sort_by_cached_key(|pod| {
            let is_placed = pod.object["spec"]["nodeName"].is_string();
            let youth = std::cmp::Reverse(fields::created(&pod.object));
            (
                is_placed,
                pod.facts.is_ready,
                youth,
                meta::name(&pod.object).to_owned(),
            )
        });
        for pod in leaving.into_iter().take(surplus) {
            if is_tracked(&pod.object) {
                self.actions.push(untracked(&pod.object));
            }
            self.delete(pod);
        }
    }

    /// Deletes all active pods of a Job that has come to its end.
    pub(super) fn stop_active(&mut self) {
        for pod in self.active.clone() {
            self.delete(pod);
        }
    }

    fn delete(&mut self, pod: &Child) {
        self.actions.push(fields::delete(PODS, &pod.object, None));
        let message = format!("Deleted pod: {}", meta::name(&pod.object));
        let event = self
            .recorder
            .normal(self.object, "SuccessfulDelete", &message);
        self.actions.push(event);
        self.active_after -= 1;
        self.terminating_after += 1;
        self.ready_after -= i64::from(pod.facts.is_ready);
    }
}

/// Gives a container its index in the environment.
fn tell_index(container: &mut Value) {
    let name = "JOB_COMPLETION_INDEX";
    let env = container["env"].as_array();
    let mut env = env.cloned().unwrap_or_default();
    if env.iter().any(|variable| variable["name"] == name) {
        return;
    }
    let path = format!("metadata.labels['{INDEX}']");
    env.push(json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
    container["env"] = Value::Array(env);
}

/// When a pod ended, as well as its status says.
fn end_of(pod: &Value) -> Timestamp {
    let statuses = pod["status"]["containerStatuses"].as_array();
    let ends = statuses.into_iter().flatten();
    let last = ends
        .filter_map(|status| fields::instant(&status["state"]["terminated"]["finishedAt"]))
        .max();
    let ready = fields::condition(pod, "Ready").filter(|ready| ready["status"] == "False");
    let unready = || ready.and_then(|ready| fields::instant(&ready["lastTransitionTime"]));
    let deleted = || fields::instant(&pod["metadata"]["deletionTimestamp"]);
    last.or_else(unready)
        .or_else(deleted)
        .unwrap_or_else(|| fields::created(pod))
}
