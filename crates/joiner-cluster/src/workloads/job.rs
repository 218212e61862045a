//! Runs the pods of a Job until enough have succeeded or too many have failed.
//!
//! As upstream does, every pod carries a finalizer until it has been counted: first the pod's uid
//! goes onto a list in the status, then its finalizer, and only then the list becomes a number. So
//! a pod counts exactly once, whenever somebody deletes it.

mod counting;
mod indexes;
mod making;
mod per_index;
mod policy;

use std::collections::BTreeSet;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use self::counting::Uncounted;
use self::indexes::Indexes;
use super::backoff::{Backoff, Backoffs};
use super::owned::{Child, Children, Owner, selector};
use super::pods::{self, Facts, PODS};
use super::rests::Rests;
use crate::events::Recorder;
use crate::fields::{self, Fields};
use crate::view::{Action, Controller, Resource, Step, View};

/// The kind.
pub(crate) const JOBS: Resource = ("batch", "jobs");
/// Keeps a pod until it has been counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Failures before a Job gives up, when it does not say.
const BACKOFF_LIMIT: i64 = 6;
/// Whoever else manages a Job is left alone.
const OURS: &str = "kubernetes.io/job-controller";

/// The controller of Jobs.
pub struct Jobs {
    pods: Children,
    rests: Rests,
    backoffs: Backoffs,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            pods: Children::new(PODS, "Job"),
            rests: Rests::default(),
            backoffs: Backoffs::default(),
        }
    }
}

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[JOBS, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.backoffs.keep(view.all(JOBS).map(|job| &**job));
        self.pods.refresh(view);
        let mut recorder = Recorder::new(view, self.name());
        let (all_pods, backoffs) = (&self.pods, &mut self.backoffs);
        let is_touched = |job: &Value| all_pods.is_touched(job);
        let mut step = self.rests.look(view, JOBS, is_touched, |object| {
            if object["spec"]["managedBy"]
                .as_str()
                .is_some_and(|by| by != OURS)
            {
                return Step::default();
            }
            let owner = Owner {
                api_version: "batch/v1",
                kind: "Job",
                object,
            };
            let mut actions = Vec::new();
            let pods: Vec<&Child> = match selector(object) {
                None => all_pods.owned(meta::uid(object)).collect(),
                Some(chosen) => all_pods.claim(&owner, &chosen, Facts::is_active, &mut actions),
            };
            let backoff = backoffs.read(meta::uid(object));
            let mut job = Job::new(view, owner, pods, &mut recorder);
            job.actions = actions;
            job.sync(backoff.as_ref());
            if backoff.is_some_and(|backoff| backoff.until <= view.now && job.is_whole) {
                backoffs.clear(meta::uid(object));
            }
            Step {
                actions: job.actions,
                wake: job.wake,
            }
        });
        free_orphans(view, &self.pods, &mut step.actions);
        step
    }

    fn refused(&mut self, action: &Action, message: &str, now: Timestamp) -> Option<Timestamp> {
        self.backoffs.note(action, message, now);
        Some(now)
    }
}

/// Lets go of pods whose Job is gone: nobody will count them any more.
fn free_orphans(view: &View<'_>, pods: &Children, actions: &mut Vec<Action>) {
    let jobs: BTreeSet<&str> = view.all(JOBS).map(|job| meta::uid(job)).collect();
    for (_, group) in pods.groups().filter(|(uid, _)| !jobs.contains(uid)) {
        let tracked = group.filter(|pod| is_tracked(&pod.object));
        actions.extend(tracked.map(|pod| untracked(&pod.object)));
    }
}

/// How a Job ends, in the words of its conditions.
struct End {
    is_success: bool,
    reason: String,
    message: String,
}

impl End {
    fn failure(reason: &str, message: &str) -> Self {
        Self {
            is_success: false,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Enough pods have succeeded.
    fn complete() -> Self {
        Self {
            is_success: true,
            reason: "CompletionsReached".to_owned(),
            message: "Reached expected number of succeeded pods".to_owned(),
        }
    }
}

/// One Job in one step.
struct Job<'a, 's> {
    view: &'s View<'a>,
    owner: Owner<'s>,
    object: &'s Value,
    recorder: &'s mut Recorder<'a>,
    pods: Vec<&'s Child>,
    active: Vec<&'s Child>,
    counts: Uncounted,
    /// Indexes that have succeeded, of a Job with indexes.
    indexes: Option<Indexes>,
    /// Indexes that are given up, of a Job that counts failures by index.
    given_up: Option<Indexes>,
    start: Option<Timestamp>,
    conditions: Vec<Value>,
    /// Active pods once this step is done.
    active_after: i64,
    ready_after: i64,
    terminating_after: i64,
    completion: Value,
    is_whole: bool,
    actions: Vec<Action>,
    wake: Option<Timestamp>,
}

impl<'a, 's> Job<'a, 's> {
    fn new(
        view: &'s View<'a>,
        owner: Owner<'s>,
        pods: Vec<&'s Child>,
        recorder: &'s mut Recorder<'a>,
    ) -> Self {
        let object = owner.object;
        let (spec, status) = (&object["spec"], &object["status"]);
        let active: Vec<&Child> = pods
            .iter()
            .copied()
            .filter(|pod| pod.facts.is_active())
            .collect();
        let leaving = |pod: &&&Child| pod.facts.is_terminating();
        let is_indexed = spec["completionMode"] == "Indexed";
        let conditions = status["conditions"].as_array();
        Self {
            view,
            owner,
            object,
            recorder,
            counts: Uncounted::read(status),
            indexes: is_indexed.then(|| Indexes::read(&status["completedIndexes"])),
            given_up: None,
            start: fields::instant(&status["startTime"]),
            conditions: conditions.cloned().unwrap_or_default(),
            active_after: active.len() as i64,
            ready_after: active.iter().filter(|pod| pod.facts.is_ready).count() as i64,
            terminating_after: pods.iter().filter(leaving).count() as i64,
            completion: status["completionTime"].clone(),
            is_whole: true,
            pods,
            active,
            actions: Vec::new(),
            wake: None,
        }
    }

    fn sync(&mut self, backoff: Option<&Backoff>) {
        if self.is_finished() {
            self.untrack_all();
            self.expire();
            return;
        }
        if let Some(backoff) = backoff.filter(|backoff| backoff.untold) {
            let message = format!("Error creating: {}", backoff.message);
            let event = self.recorder.warning(self.object, "FailedCreate", &message);
            self.actions.push(event);
        }
        let suspended = self.object["spec"]["suspend"] == true;
        if self.start.is_none() && !suspended {
            self.start = Some(self.view.now);
        }
        self.given_up = self.given_up();
        self.count();
        let end = self.decided().or_else(|| self.failure(suspended));
        match end.or_else(|| self.satisfied()) {
            Some(end) => {
                self.stop_active();
                self.conclude(&end);
            }
            None => {
                if !meta::is_deleting(self.object) {
                    self.manage(suspended, backoff);
                }
                if self.is_complete() {
                    self.conclude(&End::complete());
                } else {
                    self.note_suspension(suspended);
                }
            }
        }
        self.write_status();
    }

    /// True when its last word has been said.
    fn is_finished(&self) -> bool {
        fields::is_true(self.object, "Complete") || fields::is_true(self.object, "Failed")
    }

    /// The end that an earlier step decided on.
    fn decided(&self) -> Option<End> {
        let mut kinds = [("SuccessCriteriaMet", true), ("FailureTarget", false)].into_iter();
        kinds.find_map(|(kind, is_success)| {
            let condition = fields::condition(self.object, kind)?;
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            Some(End {
                is_success,
                reason: text("reason"),
                message: text("message"),
            })
        })
    }

    fn failure(&mut self, suspended: bool) -> Option<End> {
        if let Some(end) = self.hopeless() {
            return Some(end);
        }
        let limit = fields::count(&self.object["spec"]["backoffLimit"], BACKOFF_LIMIT);
        if self.counts.failed_total() > limit || self.has_restarted_too_often(limit) {
            let (reason, message) = BACKOFF_LIMIT_EXCEEDED;
            return Some(End::failure(reason, message));
        }
        if let Some(end) = self.given_up_enough() {
            return Some(end);
        }
        let seconds = self.object["spec"]["activeDeadlineSeconds"].as_i64()?;
        let deadline = fields::after(self.start.filter(|_| !suspended)?, seconds);
        if deadline <= self.view.now {
            let (reason, message) = DEADLINE_EXCEEDED;
            return Some(End::failure(reason, message));
        }
        self.wake_at(deadline);
        None
    }

    /// Containers that restart in place count, too, but only while their pods are there.
    fn has_restarted_too_often(&self, limit: i64) -> bool {
        let spec = &self.object["spec"]["template"]["spec"];
        if spec["restartPolicy"] != "OnFailure" {
            return false;
        }
        let restarts: i64 = self
            .active
            .iter()
            .map(|pod| pods::restarts(&pod.object))
            .sum();
        restarts > 0 && restarts >= limit
    }

    fn is_complete(&self) -> bool {
        let succeeded = self.succeeded();
        let enough = match self.object["spec"]["completions"].as_i64() {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0,
        };
        enough && self.active_after == 0
    }

    fn succeeded(&self) -> i64 {
        match &self.indexes {
            Some(indexes) => indexes.len(),
            None => self.counts.succeeded_total(),
        }
    }

    /// Writes down how it ends; the last word waits until every pod is counted and gone.
    fn conclude(&mut self, end: &End) {
        let (first, last) = match end.is_success {
            true => ("SuccessCriteriaMet", "Complete"),
            false => ("FailureTarget", "Failed"),
        };
        self.add_condition(first, &end.reason, &end.message);
        let counted =
            self.counts.is_settled() && !self.pods.iter().any(|pod| is_tracked(&pod.object));
        if !counted || self.terminating_after > 0 || self.active_after > 0 {
            return;
        }
        self.add_condition(last, &end.reason, &end.message);
        let event = if end.is_success {
            self.completion = json!(meta::time(self.view.now));
            self.recorder
                .normal(self.object, "Completed", "Job completed")
        } else {
            self.recorder
                .warning(self.object, &end.reason, &end.message)
        };
        self.actions.push(event);
    }

    fn add_condition(&mut self, kind: &str, reason: &str, message: &str) {
        if self
            .conditions
            .iter()
            .any(|condition| condition["type"] == kind)
        {
            return;
        }
        let now = meta::time(self.view.now);
        self.conditions.push(json!({
            "type": kind,
            "status": "True",
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }));
    }

    fn note_suspension(&mut self, suspended: bool) {
        let was = fields::condition(self.object, "Suspended").map(|c| c["status"] == "True");
        if was.unwrap_or(false) == suspended {
            return;
        }
        let (status, reason, message, event) = match suspended {
            true => ("True", "JobSuspended", "Job suspended", "Suspended"),
            false => ("False", "JobResumed", "Job resumed", "Resumed"),
        };
        self.start = (!suspended).then_some(self.view.now);
        self.conditions
            .retain(|condition| condition["type"] != "Suspended");
        self.add_condition("Suspended", reason, message);
        if let Some(condition) = self.conditions.last_mut() {
            condition["status"] = json!(status);
        }
        self.actions
            .push(self.recorder.normal(self.object, event, message));
    }

    fn write_status(&mut self) {
        let start = self.start.map(meta::time);
        let status = Fields::default()
            .list("conditions", self.conditions.clone())
            .value("startTime", json!(start))
            .value("completionTime", self.completion.clone())
            .count("active", self.active_after)
            .value("ready", json!(self.ready_after))
            .value("terminating", json!(self.terminating_after));
        let status = match &self.indexes {
            Some(indexes) => status
                .count("succeeded", indexes.len())
                .value("completedIndexes", indexes.text())
                .value("failedIndexes", self.failed_indexes()),
            None => status.count("succeeded", self.counts.succeeded),
        };
        let status = status
            .count("failed", self.counts.failed)
            .value("uncountedTerminatedPods", self.counts.list());
        let change = fields::patch_status(JOBS, self.object, status.finish());
        self.actions.extend(change);
    }

    /// Deletes a finished Job when its time to live is over.
    fn expire(&mut self) {
        let Some(seconds) = self.object["spec"]["ttlSecondsAfterFinished"].as_i64() else {
            return;
        };
        let last = ["Complete", "Failed"].into_iter();
        let last = last
            .filter_map(|kind| fields::condition(self.object, kind))
            .next();
        let end = last.and_then(|last| fields::instant(&last["lastTransitionTime"]));
        let Some(end) = end.filter(|_| !meta::is_deleting(self.object)) else {
            return;
        };
        let due = fields::after(end, seconds);
        if due <= self.view.now {
            let deletion = fields::delete(JOBS, self.object, Some("Foreground"));
            self.actions.push(deletion);
        } else {
            self.wake_at(due);
        }
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = fields::sooner(self.wake, Some(at));
    }
}

const BACKOFF_LIMIT_EXCEEDED: (&str, &str) = (
    "BackoffLimitExceeded",
    "Job has reached the specified backoff limit",
);
const DEADLINE_EXCEEDED: (&str, &str) = (
    "DeadlineExceeded",
    "Job was active longer than specified deadline",
);

/// True while a pod waits to be counted.
fn is_tracked(pod: &Value) -> bool {
    let finalizers = pod["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|own| own == TRACKING))
}

/// Takes our finalizer from a pod.
fn untracked(pod: &Value) -> Action {
    let finalizers = pod["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.cloned().unwrap_or_default();
    finalizers.retain(|own| own != TRACKING);
    let finalizers = match finalizers.is_empty() {
        true => Value::Null,
        false => Value::Array(finalizers),
    };
    fields::patch(PODS, pod, json!({"metadata": {"finalizers": finalizers}}))
}
