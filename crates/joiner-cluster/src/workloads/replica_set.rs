//! Keeps as many pods of a ReplicaSet as it asks for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_machinery::meta;
use joiner_machinery::selector::LabelSelector;
use serde_json::{Value, json};

use super::backoff::{Backoff, Backoffs};
use super::owned::{Child, Children, Owner, Takes, selector};
use super::pods::{self, Available, Facts, PODS, Phase};
use super::rests::Rests;
use crate::events::Recorder;
use crate::fields::{self, Fields};
use crate::names::Fresh;
use crate::view::{Action, Controller, Resource, Step, View};

/// The kind.
pub(crate) const REPLICA_SETS: Resource = ("apps", "replicasets");
/// Pods created or deleted for one set in one step, as upstream bounds it.
const BURST: usize = 500;
/// Pods with a lower value go first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The controller of ReplicaSets.
pub struct ReplicaSets {
    pods: Children,
    rests: Rests,
    backoffs: Backoffs,
}

impl Default for ReplicaSets {
    fn default() -> Self {
        Self {
            pods: Children::new(PODS, "ReplicaSet"),
            rests: Rests::default(),
            backoffs: Backoffs::default(),
        }
    }
}

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[REPLICA_SETS, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.backoffs.keep(view.all(REPLICA_SETS).map(|set| &**set));
        self.pods.refresh(view);
        let mut recorder = Recorder::new(view, self.name());
        let (pods, backoffs) = (&self.pods, &mut self.backoffs);
        let is_touched = |set: &Value| pods.is_touched(set);
        self.rests.look(view, REPLICA_SETS, is_touched, |set| {
            let mut look = Look {
                view,
                pods,
                recorder: &mut recorder,
                step: Step::default(),
            };
            let backoff = backoffs.read(meta::uid(set));
            if look.sync(set, backoff.as_ref()) {
                backoffs.clear(meta::uid(set));
            }
            look.step
        })
    }

    fn refused(&mut self, action: &Action, message: &str, now: Timestamp) -> Option<Timestamp> {
        self.backoffs.note(action, message, now);
        Some(now)
    }
}

/// One set in one step.
struct Look<'a, 's> {
    view: &'s View<'a>,
    pods: &'s Children,
    recorder: &'s mut Recorder<'a>,
    step: Step,
}

impl Look<'_, '_> {
    /// Brings one set to its size and says how it is. True when it has all its pods.
    fn sync(&mut self, set: &Value, backoff: Option<&Backoff>) -> bool {
        let owner = owner(set);
        let Some(selector) = selector(set) else {
            return true;
        };
        let actions = &mut self.step.actions;
        let claimed = self
            .pods
            .claim(&owner, &selector, Facts::is_active, actions);
        let active: Vec<&Child> = claimed
            .iter()
            .copied()
            .filter(|child| child.facts.is_active())
            .collect();
        let wanted = fields::count(&set["spec"]["replicas"], 1);
        let missing = wanted - active.len() as i64;
        if let Some(backoff) = backoff.filter(|backoff| backoff.untold) {
            let message = format!("Error creating: {}", backoff.message);
            let event = self.recorder.warning(set, "FailedCreate", &message);
            self.step.actions.push(event);
        }
        let waits = backoff.filter(|backoff| backoff.until > self.view.now);
        if meta::is_deleting(set) {
            // What is left of it belongs to the garbage collector.
        } else if missing > 0 {
            match waits {
                Some(backoff) => self.wake(backoff.until),
                None => self.create(&owner, missing),
            }
        } else if missing < 0 {
            self.delete(set, &active, -missing);
        }
        let failed = backoff.filter(|_| missing > 0);
        self.status(set, &claimed, &active, failed);
        missing <= 0
    }

    fn create(&mut self, owner: &Owner<'_>, missing: i64) {
        let set = owner.object;
        let base = format!("{}-", meta::name(set));
        let mut names = Fresh::new(self.view, PODS, set, &base);
        let count = usize::try_from(missing).unwrap_or(0).min(BURST);
        for _ in 0..count {
            let name = names.name();
            let message = format!("Created pod: {name}");
            let mut pod = pods::from_template(&set["spec"]["template"], owner, name);
            pod["metadata"]["generateName"] = json!(base);
            self.step.actions.push(Action::Create(PODS, pod));
            let event = self.recorder.normal(set, "SuccessfulCreate", &message);
            self.step.actions.push(event);
        }
    }

    fn delete(&mut self, set: &Value, active: &[&Child], surplus: i64) {
        let surplus = usize::try_from(surplus).unwrap_or(0).min(BURST);
        let mut ranked = active.to_vec();
        if surplus < active.len() {
            let crowds = self.crowds(set, active);
            let now = self.view.now;
            ranked.sort_by_cached_key(|pod| leaving(pod, &crowds, now));
        }
        for pod in ranked.into_iter().take(surplus) {
            self.step
                .actions
                .push(fields::delete(PODS, &pod.object, None));
            let message = format!("Deleted pod: {}", meta::name(&pod.object));
            let event = self.recorder.normal(set, "SuccessfulDelete", &message);
            self.step.actions.push(event);
        }
    }

    /// How many pods of this set, and of other sets of the same owner, are on each node.
    fn crowds<'c>(&'c self, set: &Value, active: &[&'c Child]) -> BTreeMap<&'c str, i64> {
        let mut crowds = BTreeMap::new();
        let mut add = |pod: &'c Child| {
            let node = pod.object["spec"]["nodeName"].as_str().unwrap_or_default();
            *crowds.entry(node).or_insert(0) += 1;
        };
        active.iter().copied().for_each(&mut add);
        let Some(owner) = meta::controller(set) else {
            return crowds;
        };
        for other in self.view.within(REPLICA_SETS, meta::namespace(set)) {
            let related = meta::controller(other).is_some_and(|o| o["uid"] == owner["uid"]);
            if related && meta::uid(other) != meta::uid(set) {
                let theirs = self.pods.owned(meta::uid(other));
                theirs
                    .filter(|pod| pod.facts.is_active())
                    .for_each(&mut add);
            }
        }
        crowds
    }

    fn status(
        &mut self,
        set: &Value,
        claimed: &[&Child],
        active: &[&Child],
        failed: Option<&Backoff>,
    ) {
        let min_ready = fields::count(&set["spec"]["minReadySeconds"], 0);
        let labels = &set["spec"]["template"]["metadata"]["labels"];
        let template = LabelSelector::of_labels(labels);
        let mut template = Takes::new(&template);
        let (mut labeled, mut ready, mut available) = (0, 0, 0);
        for pod in active {
            labeled += i64::from(template.child(pod));
            ready += i64::from(pod.facts.is_ready);
            match pod.facts.available(min_ready, self.view.now) {
                Available::Yes => available += 1,
                Available::From(then) => self.wake(then),
                Available::No => {}
            }
        }
        let terminating = claimed
            .iter()
            .filter(|pod| pod.facts.is_terminating())
            .count();
        let status = Fields::default()
            .value("replicas", json!(active.len()))
            .count("fullyLabeledReplicas", labeled)
            .count("readyReplicas", ready)
            .count("availableReplicas", available)
            .value("terminatingReplicas", json!(terminating))
            .value("observedGeneration", set["metadata"]["generation"].clone())
            .list("conditions", conditions(set, failed, self.view.now));
        let change = fields::patch_status(REPLICA_SETS, set, status.finish());
        self.step.actions.extend(change);
    }

    fn wake(&mut self, at: Timestamp) {
        self.step.wake = fields::sooner(self.step.wake, Some(at));
    }
}

/// A ReplicaSet as an owner of pods.
pub(crate) fn owner(object: &Value) -> Owner<'_> {
    Owner {
        api_version: "apps/v1",
        kind: "ReplicaSet",
        object,
    }
}

/// The conditions of a set: one, and only while its pods are refused.
fn conditions(set: &Value, failed: Option<&Backoff>, now: Timestamp) -> Vec<Value> {
    let old = set["status"]["conditions"].as_array();
    let mut conditions = old.cloned().unwrap_or_default();
    match failed {
        Some(failed) => {
            let there = fields::condition(set, "ReplicaFailure").is_some();
            if !there {
                conditions.push(json!({
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreate",
                    "message": failed.message,
                    "lastTransitionTime": meta::time(now),
                }));
            }
        }
        None => conditions.retain(|condition| condition["type"] != "ReplicaFailure"),
    }
    conditions
}

/// What decides who leaves first: the least goes.
type Leaving = (
    bool,
    Phase,
    bool,
    i64,
    Reverse<i64>,
    u32,
    Reverse<i64>,
    u32,
    String,
);

/// Pods without a node leave before those with one, then pending before running, not ready before
/// ready, cheap before dear, crowded before alone, young before old, often restarted before calm.
/// Ages compare by their order of magnitude, so that of two old pods it is not always the younger.
fn leaving(pod: &Child, crowds: &BTreeMap<&str, i64>, now: Timestamp) -> Leaving {
    let object = &pod.object;
    let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
    let cost = meta::annotation(object, DELETION_COST);
    let crowd = crowds.get(node).copied().unwrap_or(0);
    (
        !node.is_empty(),
        pod.facts.phase,
        pod.facts.is_ready,
        cost.and_then(|cost| cost.parse::<i32>().ok())
            .map_or(0, i64::from),
        Reverse(crowd),
        pod.facts
            .ready_since
            .map_or(0, |since| magnitude(since, now)),
        Reverse(pods::restarts(object)),
        magnitude(fields::created(object), now),
        meta::uid(object).to_owned(),
    )
}

/// The order of magnitude of an age: the younger, the smaller.
fn magnitude(since: Timestamp, now: Timestamp) -> u32 {
    let age = now.as_nanosecond() - since.as_nanosecond();
    u128::try_from(age)
        .ok()
        .filter(|age| *age > 0)
        .map_or(0, |age| 1 + age.ilog2())
}
