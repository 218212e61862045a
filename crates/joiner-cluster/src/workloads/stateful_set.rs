//! Keeps the pods of a StatefulSet, each with a number, a name and volumes of its own.
//!
//! By default one thing happens at a time: pods come up in order, go down in reverse order, and an
//! update starts with the highest number.

mod claims;
mod pod;

use std::collections::BTreeSet;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use super::backoff::{Backoff, Backoffs};
use super::owned::{Child, Children, Owner, selector};
use super::pods::{Available, PODS, Phase};
use super::rests::Rests;
use super::revisions::{History, REVISIONS};
use crate::events::Recorder;
use crate::fields::{self, Fields, Rounding};
use crate::view::{Action, Controller, Resource, Step, View};

/// The kind.
pub(crate) const STATEFUL_SETS: Resource = ("apps", "statefulsets");
const CLAIMS: Resource = ("", "persistentvolumeclaims");
/// The label of a pod that names the revision of its template.
const REVISION_LABEL: &str = "controller-revision-hash";

/// The controller of StatefulSets.
pub struct StatefulSets {
    pods: Children,
    revisions: Children,
    rests: Rests,
    backoffs: Backoffs,
}

impl Default for StatefulSets {
    fn default() -> Self {
        Self {
            pods: Children::new(PODS, "StatefulSet"),
            revisions: Children::new(REVISIONS, "StatefulSet"),
            rests: Rests::default(),
            backoffs: Backoffs::default(),
        }
    }
}

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[STATEFUL_SETS, REVISIONS, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.backoffs
            .keep(view.all(STATEFUL_SETS).map(|set| &**set));
        self.pods.refresh(view);
        self.revisions.refresh(view);
        let mut recorder = Recorder::new(view, self.name());
        let (all_pods, revisions) = (&self.pods, &self.revisions);
        let backoffs = &mut self.backoffs;
        let is_touched = |set: &Value| all_pods.is_touched(set) || revisions.is_touched(set);
        self.rests.look(view, STATEFUL_SETS, is_touched, |object| {
            let Some(selector) = selector(object) else {
                return Step::default();
            };
            let owner = Owner {
                api_version: "apps/v1",
                kind: "StatefulSet",
                object,
            };
            let mut actions = Vec::new();
            let claimed = all_pods.claim(&owner, &selector, |_| true, &mut actions);
            let history = History::follow(view, revisions, &owner, &mut actions);
            let backoff = backoffs.read(meta::uid(object));
            let mut set = StatefulSet::new(view, owner, &claimed, history);
            set.actions = actions;
            if set.sync(&mut recorder, backoff.as_ref()) {
                backoffs.clear(meta::uid(object));
            }
            Step {
                actions: set.actions,
                wake: set.wake,
            }
        })
    }

    fn refused(&mut self, action: &Action, message: &str, now: Timestamp) -> Option<Timestamp> {
        self.backoffs.note(action, message, now);
        Some(now)
    }
}

/// One set in one step.
struct StatefulSet<'a, 's> {
    view: &'s View<'a>,
    owner: Owner<'s>,
    object: &'s Value,
    history: History<'s>,
    /// The revision that pods below the partition keep.
    current: String,
    pods: Vec<&'s Child>,
    /// Number of the first pod.
    start: i64,
    /// The pod of each number, where there is one.
    replicas: Vec<Option<&'s Child>>,
    /// Pods with other numbers, highest first.
    condemned: Vec<&'s Child>,
    min_ready: i64,
    actions: Vec<Action>,
    wake: Option<Timestamp>,
}

impl<'a, 's> StatefulSet<'a, 's> {
    fn new(
        view: &'s View<'a>,
        owner: Owner<'s>,
        claimed: &[&'s Child],
        history: History<'s>,
    ) -> Self {
        let object = owner.object;
        let spec = &object["spec"];
        let start = fields::count(&spec["ordinals"]["start"], 0);
        let size = fields::count(&spec["replicas"], 1);
        let mut replicas = vec![None; usize::try_from(size).unwrap_or(0)];
        let mut condemned = Vec::new();
        let mut pods = Vec::new();
        for pod in claimed {
            let Some(ordinal) = ordinal(&pod.object, meta::name(object)) else {
                continue;
            };
            pods.push(*pod);
            let at = usize::try_from(ordinal - start).ok();
            match at.and_then(|at| replicas.get_mut(at)) {
                Some(place) => *place = Some(*pod),
                None => condemned.push((ordinal, *pod)),
            }
        }
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        let current = object["status"]["currentRevision"].as_str();
        let current = current.filter(|name| history.find(name).is_some());
        Self {
            view,
            owner,
            object,
            current: current.unwrap_or(&history.update.name).to_owned(),
            history,
            pods,
            start,
            replicas,
            condemned: condemned.into_iter().map(|(_, pod)| pod).collect(),
            min_ready: fields::count(&spec["minReadySeconds"], 0),
            actions: Vec::new(),
            wake: None,
        }
    }

    /// Creates, deletes and replaces pods. True when none is missing.
    fn sync(&mut self, recorder: &mut Recorder<'a>, backoff: Option<&Backoff>) -> bool {
        if let Some(backoff) = backoff.filter(|backoff| backoff.untold) {
            let name = meta::name(self.object);
            let message = format!(
                "create Pod in StatefulSet {name} failed error: {}",
                backoff.message
            );
            self.actions
                .push(recorder.warning(self.object, "FailedCreate", &message));
        }
        let waits = backoff.filter(|backoff| backoff.until > self.view.now);
        if let Some(backoff) = waits {
            self.wake_at(backoff.until);
        }
        if !meta::is_deleting(self.object) {
            self.own_claims();
            let is_settled = self.fill(recorder, waits.is_some()) && self.shrink(recorder);
            if is_settled {
                self.update(recorder);
            }
        }
        self.status();
        let used: BTreeSet<&str> = (self.pods.iter())
            .filter_map(|pod| meta::label(&pod.object, REVISION_LABEL))
            .collect();
        let is_used = |name: &str| used.contains(name) || name == self.current;
        self.actions
            .extend(self.history.clean_up(self.object, is_used));
        self.replicas.iter().all(Option::is_some)
    }

    /// Sees to it that every number has a pod that works. False when it is too early to go on.
    fn fill(&mut self, recorder: &mut Recorder<'a>, waits: bool) -> bool {
        let in_order = self.in_order();
        let mut is_settled = true;
        for at in 0..self.replicas.len() {
            let ordinal = self.start + at as i64;
            let Some(pod) = self.replicas[at] else {
                if !waits {
                    self.create(ordinal, recorder);
                }
                is_settled = false;
                if in_order {
                    return false;
                }
                continue;
            };
            if pod.facts.is_finished() {
                if !pod.facts.is_deleting {
                    self.delete(pod, recorder);
                }
                is_settled = false;
            } else if in_order && !self.is_up(pod) {
                return false;
            }
            if in_order && !is_settled {
                return false;
            }
        }
        is_settled || !in_order
    }

    /// Deletes pods with numbers that are no longer wanted. False when it is too early to go on.
    fn shrink(&mut self, recorder: &mut Recorder<'a>) -> bool {
        let in_order = self.in_order();
        let first_down = self.condemned.iter().rfind(|pod| !self.is_up(pod)).copied();
        for pod in self.condemned.clone() {
            if pod.facts.is_deleting {
                if in_order {
                    return false;
                }
                continue;
            }
            let is_first = first_down.is_some_and(|down| std::ptr::eq(down, pod));
            if in_order && !self.is_up(pod) && !is_first {
                return false;
            }
            self.delete(pod, recorder);
            if in_order {
                return false;
            }
        }
        true
    }

    /// Replaces pods of older templates, highest number first, down to the partition.
    fn update(&mut self, recorder: &mut Recorder<'a>) {
        let strategy = &self.object["spec"]["updateStrategy"];
        if strategy["type"] == "OnDelete" {
            return;
        }
        let size = self.replicas.len() as i64;
        let limit = &strategy["rollingUpdate"]["maxUnavailable"];
        let limit = fields::scaled(limit, size, Rounding::Up)
            .unwrap_or(1)
            .max(1);
        let is_down = |pod: &&Option<&Child>| !pod.is_some_and(|pod| self.is_up(pod));
        let down = self.replicas.iter().filter(is_down).count() as i64;
        let mut free = limit - down;
        let partition = usize::try_from(self.partition()).unwrap_or(0);
        for at in (partition..self.replicas.len()).rev() {
            let Some(pod) = self.replicas[at].filter(|_| free > 0) else {
                continue;
            };
            if !self.is_updated(pod) && !pod.facts.is_deleting {
                self.delete(pod, recorder);
                free -= 1;
            }
        }
    }

    fn delete(&mut self, pod: &Child, recorder: &mut Recorder<'a>) {
        self.actions.push(fields::delete(PODS, &pod.object, None));
        let (pod, set) = (meta::name(&pod.object), meta::name(self.object));
        let message = format!("delete Pod {pod} in StatefulSet {set} successful");
        self.actions
            .push(recorder.normal(self.object, "SuccessfulDelete", &message));
    }

    fn status(&mut self) {
        let (mut ready, mut available, mut current, mut updated) = (0, 0, 0, 0);
        for pod in &self.pods {
            if pod.facts.phase == Phase::Running {
                match pod.facts.available(self.min_ready, self.view.now) {
                    Available::Yes => (ready, available) = (ready + 1, available + 1),
                    Available::From(then) => {
                        ready += 1;
                        self.wake = fields::sooner(self.wake, Some(then));
                    }
                    Available::No => {}
                }
            }
            if !pod.facts.is_deleting {
                let revision = meta::label(&pod.object, REVISION_LABEL);
                current += i64::from(revision == Some(&self.current));
                updated += i64::from(revision == Some(&self.history.update.name));
            }
        }
        let total = self.pods.len() as i64;
        let rolls = self.object["spec"]["updateStrategy"]["type"] != "OnDelete";
        let mut revision = self.current.clone();
        if rolls && updated == total && ready == total {
            current = updated;
            revision.clone_from(&self.history.update.name);
        }
        let status = Fields::default()
            .value(
                "observedGeneration",
                self.object["metadata"]["generation"].clone(),
            )
            .value("replicas", json!(total))
            .count("readyReplicas", ready)
            .count("currentReplicas", current)
            .count("updatedReplicas", updated)
            .value("currentRevision", json!(revision))
            .value("updateRevision", json!(self.history.update.name))
            .value("collisionCount", json!(0))
            .value("availableReplicas", json!(available));
        let change = fields::patch_status(STATEFUL_SETS, self.object, status.finish());
        self.actions.extend(change);
    }

    /// True when pods come and go one by one.
    fn in_order(&self) -> bool {
        self.object["spec"]["podManagementPolicy"] != "Parallel"
    }

    /// Numbers below it, counted from the first, keep the current revision.
    fn partition(&self) -> i64 {
        let rolling = &self.object["spec"]["updateStrategy"]["rollingUpdate"];
        fields::count(&rolling["partition"], 0)
    }

    /// Running, available, and not on its way out.
    fn is_up(&self, pod: &Child) -> bool {
        let available = pod.facts.available(self.min_ready, self.view.now) == Available::Yes;
        available && pod.facts.phase == Phase::Running && !pod.facts.is_deleting
    }

    fn is_updated(&self, pod: &Child) -> bool {
        meta::label(&pod.object, REVISION_LABEL) == Some(&self.history.update.name)
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = fields::sooner(self.wake, Some(at));
    }
}

/// The number at the end of a pod's name, if the rest is the set's.
fn ordinal(pod: &Value, set: &str) -> Option<i64> {
    let rest = meta::name(pod).strip_prefix(set)?.strip_prefix('-')?;
    rest.parse().ok().filter(|number| *number >= 0)
}
