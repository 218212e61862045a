//! Keeps one pod of a DaemonSet on every node that it is meant for.
//!
//! Pods are pinned to their node by a node affinity and bound by the scheduler, as upstream does.

mod update;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use super::backoff::{Backoff, Backoffs};
use super::owned::{Child, Children, Owner, selector};
use super::pods::{self, Available, Facts, PODS, Phase};
use super::rests::Rests;
use super::revisions::{History, REVISIONS};
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{self, Fields};
use crate::names::Fresh;
use crate::scheduler::labels::{Labels, NodeRule};
use crate::scheduler::node::{Effect, Taint, Toleration};
use crate::view::{Action, Controller, Resource, Step, View};

/// The kind.
pub(crate) const DAEMON_SETS: Resource = ("apps", "daemonsets");
const NODES: Resource = ("", "nodes");
/// The label of a pod that says which template it was made from.
const REVISION_LABEL: &str = "controller-revision-hash";
/// Pods created or deleted for one set in one step.
const BURST: usize = 250;
/// Seconds that a failed pod is left alone before another one takes its place.
const FAILED_WAIT_SECS: i64 = 1;
/// Taints that never keep a daemon away.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// One more, for daemons that bring the network.
const TOLERATED_BY_HOST_NETWORK: (&str, &str) =
    ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The controller of DaemonSets.
pub struct DaemonSets {
    pods: Children,
    revisions: Children,
    nodes: Cache<Place>,
    /// The generation of the nodes at the last look.
    generation: u64,
    rests: Rests,
    backoffs: Backoffs,
}

impl Default for DaemonSets {
    fn default() -> Self {
        Self {
            pods: Children::new(PODS, "DaemonSet"),
            revisions: Children::new(REVISIONS, "DaemonSet"),
            nodes: Cache::default(),
            generation: 0,
            rests: Rests::default(),
            backoffs: Backoffs::default(),
        }
    }
}

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[DAEMON_SETS, REVISIONS, PODS, NODES]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.backoffs.keep(view.all(DAEMON_SETS).map(|set| &**set));
        self.pods.refresh(view);
        self.revisions.refresh(view);
        self.nodes
            .refresh(view.objects(NODES), Place::read, |_| true);
        let has_moved = std::mem::replace(&mut self.generation, self.nodes.generation())
            != self.nodes.generation();
        let mut recorder = Recorder::new(view, self.name());
        let (all_pods, revisions, nodes) = (&self.pods, &self.revisions, &self.nodes);
        let backoffs = &mut self.backoffs;
        let is_touched =
            |set: &Value| has_moved || all_pods.is_touched(set) || revisions.is_touched(set);
        self.rests.look(view, DAEMON_SETS, is_touched, |object| {
            let Some(selector) = selector(object) else {
                return Step::default();
            };
            let owner = Owner {
                api_version: "apps/v1",
                kind: "DaemonSet",
                object,
            };
            let backoff = backoffs.read(meta::uid(object));
            let mut actions = Vec::new();
            let claimed = all_pods.claim(&owner, &selector, Facts::is_active, &mut actions);
            let history = History::follow(view, revisions, &owner, &mut actions);
            let mut set = DaemonSet::new(view, owner, nodes, &claimed, history);
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

/// A node, parsed once for all sets.
#[derive(PartialEq, Eq)]
struct Place {
    name: String,
    labels: Labels,
    taints: Vec<Taint>,
}

impl Place {
    fn read(node: &Value) -> Self {
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        Self {
            name: meta::name(node).to_owned(),
            labels: Labels::read(&node["metadata"]["labels"]),
            taints: taints.map(Taint::read).collect(),
        }
    }
}

/// What a set has to do with a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// A pod of it runs there.
    Runs,
    /// No pod of it starts there, but one that is there stays.
    Stays,
    /// No pod of it runs there.
    No,
}

/// One set in one step.
struct DaemonSet<'a, 's> {
    view: &'s View<'a>,
    owner: Owner<'s>,
    object: &'s Value,
    history: History<'s>,
    /// Every node, with what the set has to do with it, by name.
    fits: BTreeMap<&'s str, Fit>,
    /// Pods by the node that they run on or are meant for.
    pods: BTreeMap<&'s str, Vec<&'s Child>>,
    min_ready: i64,
    create: BTreeSet<&'s str>,
    delete: Vec<&'s Child>,
    actions: Vec<Action>,
    wake: Option<Timestamp>,
}

impl<'a, 's> DaemonSet<'a, 's> {
    fn new(
        view: &'s View<'a>,
        owner: Owner<'s>,
        nodes: &'s Cache<Place>,
        claimed: &[&'s Child],
        history: History<'s>,
    ) -> Self {
        let spec = &owner.object["spec"]["template"]["spec"];
        let wishes = Wishes::read(spec);
        let fits = nodes
            .iter()
            .map(|node| (node.name.as_str(), wishes.fit(node)))
            .collect();
        let mut pods: BTreeMap<&str, Vec<&Child>> = BTreeMap::new();
        for pod in claimed {
            pods.entry(node_of(&pod.object)).or_default().push(pod);
        }
        Self {
            view,
            owner,
            object: owner.object,
            history,
            fits,
            pods,
            min_ready: fields::count(&owner.object["spec"]["minReadySeconds"], 0),
            create: BTreeSet::new(),
            delete: Vec::new(),
            actions: Vec::new(),
            wake: None,
        }
    }

    /// Creates, deletes and replaces pods, and says how the set is. True when none is missing.
    fn sync(&mut self, recorder: &mut Recorder<'a>, backoff: Option<&Backoff>) -> bool {
        if let Some(backoff) = backoff.filter(|backoff| backoff.untold) {
            let message = format!("Error creating: {}", backoff.message);
            self.actions
                .push(recorder.warning(self.object, "FailedCreate", &message));
        }
        if !meta::is_deleting(self.object) {
            for (node, fit) in self.fits.clone() {
                self.look_at(node, fit, recorder);
            }
            // Pods of nodes that are gone belong to the pod garbage collector.
            self.update();
        }
        let is_whole = self.create.is_empty();
        match backoff.filter(|backoff| backoff.until > self.view.now) {
            Some(backoff) if !is_whole => self.wake_at(backoff.until),
            Some(_) | None => self.create_pods(recorder),
        }
        self.delete_pods(recorder);
        self.status();
        let hashes: BTreeSet<&str> = (self.pods.values().flatten())
            .filter_map(|pod| meta::label(&pod.object, REVISION_LABEL))
            .collect();
        let is_used = |name: &str| hashes.contains(name.rsplit('-').next().unwrap_or(name));
        self.actions
            .extend(self.history.clean_up(self.object, is_used));
        is_whole
    }

    /// Compares what is on a node with what should be.
    fn look_at(&mut self, node: &'s str, fit: Fit, recorder: &mut Recorder<'a>) {
        let pods = self.pods.get(node).cloned().unwrap_or_default();
        if fit == Fit::No {
            self.delete
                .extend(pods.into_iter().filter(|pod| !pod.facts.is_deleting));
            return;
        }
        if pods.is_empty() {
            if fit == Fit::Runs {
                self.create.insert(node);
            }
            return;
        }
        let mut running: Vec<&'s Child> = Vec::new();
        for pod in pods.into_iter().filter(|pod| !pod.facts.is_deleting) {
            let (how, reason) = match pod.facts.phase {
                Phase::Failed => ("failed", "FailedDaemonPod"),
                Phase::Succeeded => ("succeeded", "SucceededDaemonPod"),
                Phase::Pending | Phase::Unknown | Phase::Running => {
                    running.push(pod);
                    continue;
                }
            };
            let due = fields::after(fields::created(&pod.object), FAILED_WAIT_SECS);
            if due > self.view.now {
                self.wake_at(due);
                continue;
            }
            let end = if how == "failed" { "kill" } else { "delete" };
            let name = format!(
                "{}/{}",
                meta::namespace(&pod.object),
                meta::name(&pod.object)
            );
            let message =
                format!("Found {how} daemon pod {name} on node {node}, will try to {end} it");
            self.actions.push(match how {
                "failed" => recorder.warning(self.object, reason, &message),
                _ => recorder.normal(self.object, reason, &message),
            });
            self.delete.push(pod);
        }
        self.prune(node, fit, running);
    }

    /// Leaves one pod on a node, or an old and a new one during an update with surge.
    fn prune(&mut self, node: &'s str, fit: Fit, mut running: Vec<&'s Child>) {
        running.sort_by_cached_key(|pod| {
            let is_bound = pod.object["spec"]["nodeName"].is_string();
            (!is_bound, fields::created(&pod.object))
        });
        if !self.surges() {
            self.delete.extend(running.into_iter().skip(1));
            return;
        }
        if running.is_empty() && fit == Fit::Runs {
            self.create.insert(node);
        }
        let (new, old): (Vec<&Child>, Vec<&Child>) =
            running.into_iter().partition(|pod| self.is_updated(pod));
        self.delete
            .extend(new.iter().skip(1).chain(old.iter().skip(1)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!old.facts.is_ready || self.is_available(new))
        {
            self.delete.push(old);
        }
    }

    fn create_pods(&mut self, recorder: &mut Recorder<'a>) {
        let object = self.object;
        let base = format!("{}-", meta::name(object));
        let mut names = Fresh::new(self.view, PODS, object, &base);
        for node in self.create.iter().take(BURST) {
            let name = names.name();
            let message = format!("Created pod: {name}");
            let mut pod = pods::from_template(&object["spec"]["template"], &self.owner, name);
            pod["metadata"]["generateName"] = json!(base);
            pods::label(&mut pod, REVISION_LABEL, &self.history.update.hash);
            let generation = meta::annotation(object, "deprecated.daemonset.template.generation");
            if let Some(generation) = generation {
                pods::label(&mut pod, "pod-template-generation", generation);
            }
            pin(&mut pod["spec"], node);
            self.actions.push(Action::Create(PODS, pod));
            self.actions
                .push(recorder.normal(object, "SuccessfulCreate", &message));
        }
    }

    fn delete_pods(&mut self, recorder: &mut Recorder<'a>) {
        for pod in self.delete.iter().take(BURST) {
            self.actions.push(fields::delete(PODS, &pod.object, None));
            let message = format!("Deleted pod: {}", meta::name(&pod.object));
            self.actions
                .push(recorder.normal(self.object, "SuccessfulDelete", &message));
        }
    }

    fn status(&mut self) {
        let (mut desired, mut current, mut astray) = (0, 0, 0);
        let (mut ready, mut available, mut updated) = (0, 0, 0);
        for (node, fit) in &self.fits {
            let pods = self.pods.get(node).map_or(&[][..], Vec::as_slice);
            let pods = pods.iter().filter(|pod| !pod.facts.is_deleting);
            let first = pods.min_by_key(|pod| fields::created(&pod.object)).copied();
            if *fit != Fit::Runs {
                astray += i64::from(first.is_some());
                continue;
            }
            desired += 1;
            let Some(pod) = first else {
                continue;
            };
            current += 1;
            updated += i64::from(self.is_updated(pod));
            match pod.facts.available(self.min_ready, self.view.now) {
                Available::Yes => (ready, available) = (ready + 1, available + 1),
                Available::From(then) => {
                    ready += 1;
                    self.wake = fields::sooner(self.wake, Some(then));
                }
                Available::No => {}
            }
        }
        let status = Fields::default()
            .value("currentNumberScheduled", json!(current))
            .value("numberMisscheduled", json!(astray))
            .value("desiredNumberScheduled", json!(desired))
            .value("numberReady", json!(ready))
            .value(
                "observedGeneration",
                self.object["metadata"]["generation"].clone(),
            )
            .count("updatedNumberScheduled", updated)
            .count("numberAvailable", available)
            .count("numberUnavailable", desired - available);
        let change = fields::patch_status(DAEMON_SETS, self.object, status.finish());
        self.actions.extend(change);
    }

    fn is_updated(&self, pod: &Child) -> bool {
        meta::label(&pod.object, REVISION_LABEL) == Some(&self.history.update.hash)
    }

    fn is_available(&self, pod: &Child) -> bool {
        pod.facts.available(self.min_ready, self.view.now) == Available::Yes
    }

    fn wake_at(&mut self, at: Timestamp) {
        self.wake = fields::sooner(self.wake, Some(at));
    }
}

/// What a daemon's template asks of its node.
struct Wishes<'a> {
    rule: NodeRule,
    tolerations: Vec<Toleration>,
    node: Option<&'a str>,
}

impl<'a> Wishes<'a> {
    fn read(spec: &'a Value) -> Self {
        Self {
            rule: NodeRule::read(spec),
            tolerations: tolerations(spec).iter().map(Toleration::read).collect(),
            node: spec["nodeName"].as_str().filter(|name| !name.is_empty()),
        }
    }

    fn fit(&self, node: &Place) -> Fit {
        let is_named = self.node.is_none_or(|name| name == node.name);
        if !is_named || !self.rule.matches(&node.name, &node.labels) {
            return Fit::No;
        }
        let hurts = |taint: &&Taint| !self.tolerations.iter().any(|t| t.covers(taint));
        let mut fit = Fit::Runs;
        for taint in node.taints.iter().filter(hurts) {
            match taint.effect {
                Effect::NoExecute => return Fit::No,
                Effect::NoSchedule => fit = Fit::Stays,
                Effect::PreferNoSchedule | Effect::Unknown => {}
            }
        }
        fit
    }
}

/// The template's tolerations and those that every daemon has.
fn tolerations(spec: &Value) -> Vec<Value> {
    let own = spec["tolerations"].as_array();
    let mut all = own.cloned().unwrap_or_default();
    let host = (spec["hostNetwork"] == true).then_some(TOLERATED_BY_HOST_NETWORK);
    for (key, effect) in TOLERATED.into_iter().chain(host) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        if !all.contains(&toleration) {
            all.push(toleration);
        }
    }
    all
}

/// Ties a pod to a node. The template's own terms have been checked and give way.
fn pin(spec: &mut Value, node: &str) {
    spec["tolerations"] = Value::Array(tolerations(spec));
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    if !spec["affinity"].is_object() {
        spec["affinity"] = json!({});
    }
    if !spec["affinity"]["nodeAffinity"].is_object() {
        spec["affinity"]["nodeAffinity"] = json!({});
    }
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
}

/// The node that a pod is on, or that it was made for.
fn node_of(pod: &Value) -> &str {
    if let Some(node) = pod["spec"]["nodeName"]
        .as_str()
        .filter(|name| !name.is_empty())
    {
        return node;
    }
    let required = &pod["spec"]["affinity"]["nodeAffinity"];
    let required = &required["requiredDuringSchedulingIgnoredDuringExecution"];
    let fields = &required["nodeSelectorTerms"][0]["matchFields"][0];
    fields["values"][0].as_str().unwrap_or_default()
}
