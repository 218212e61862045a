//! How many pods of a PodDisruptionBudget may be taken away right now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::meta;
use joiner_machinery::selector::LabelSelector;
use serde_json::{Map, Value, json};

use crate::events::Recorder;
use crate::fields::{self, Rounding};
use crate::followed::Followed;
use crate::view::{Action, Controller, ObjectKey, Resource, Step, View};
use crate::workloads::{Child, Facts, PODS, Rests, Takes};

/// The kind.
pub(crate) const BUDGETS: Resource = ("policy", "poddisruptionbudgets");
/// Seconds after which an eviction that came to nothing is forgotten.
const DELETION_TIMEOUT_SECS: i64 = 120;

/// The controller of PodDisruptionBudgets.
#[derive(Default)]
pub struct DisruptionBudgets {
    candidates: Candidates,
    /// The controllers of each budget's pods, by the budget's uid.
    controllers: BTreeMap<String, Controllers>,
    rests: Rests,
}

impl Controller for DisruptionBudgets {
    fn name(&self) -> &'static str {
        "controllermanager"
    }

    fn reads(&self) -> &'static [Resource] {
        &[
            BUDGETS,
            PODS,
            ("apps", "deployments"),
            ("apps", "replicasets"),
            ("apps", "statefulsets"),
        ]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.candidates.refresh(view);
        // Whoever has another size than at the last look is looked at again.
        self.controllers
            .retain(|_, controllers| controllers.are_current(view));
        let known: BTreeSet<String> = self.controllers.keys().cloned().collect();
        let candidates = &self.candidates;
        let is_touched = |budget: &Value| {
            candidates.touched.contains(&bucket(budget)) || !known.contains(meta::uid(budget))
        };
        let mut recorder = Recorder::new(view, "controllermanager");
        self.rests.look(view, BUDGETS, is_touched, |budget| {
            let (look, controllers) = Look::at(view, budget, candidates);
            let change = fields::patch_status(BUDGETS, budget, look.status(view));
            let mut actions: Vec<Action> = change.into_iter().collect();
            if !actions.is_empty() && look.pods.is_empty() {
                actions.push(recorder.normal(budget, "NoPods", "No matching pods found"));
            }
            actions.extend(look.forgotten(&mut recorder));
            self.controllers
                .insert(meta::uid(budget).to_owned(), controllers);
            Step {
                actions,
                wake: look.recheck,
            }
        })
    }
}

/// Namespace, key and value of a label that all pods of a budget have; the latter two are empty
/// for a budget that asks for no single label.
type Bucket = (String, String, String);

fn bucket(budget: &Value) -> Bucket {
    let labels = budget["spec"]["selector"]["matchLabels"].as_object();
    let first = labels.and_then(|labels| labels.iter().next());
    let (key, value) = first.map_or(("", ""), |(key, value)| {
        (key.as_str(), value.as_str().unwrap_or_default())
    });
    (
        meta::namespace(budget).to_owned(),
        key.to_owned(),
        value.to_owned(),
    )
}

/// Pods by the labels that budgets ask for, kept from look to look.
#[derive(Default)]
struct Candidates {
    followed: Followed,
    /// Namespaces and keys that some budget asks for.
    wanted: BTreeSet<(String, String)>,
    pods: BTreeMap<Bucket, BTreeMap<ObjectKey, Child>>,
    /// Where something has changed since the last look.
    touched: BTreeSet<Bucket>,
}

impl Candidates {
    fn refresh(&mut self, view: &View<'_>) {
        let buckets = view.all(BUDGETS).map(|budget| bucket(budget));
        let wanted: BTreeSet<_> = buckets
            .map(|(namespace, key, _)| (namespace, key))
            .collect();
        if wanted != self.wanted {
            *self = Self {
                wanted,
                ..Self::default()
            };
        }
        self.touched.clear();
        let mut followed = std::mem::take(&mut self.followed);
        followed.follow(view.objects(PODS), |change| {
            for bucket in change
                .old
                .map(|old| self.buckets(old))
                .into_iter()
                .flatten()
            {
                if let Some(pods) = self.pods.get_mut(&bucket) {
                    pods.remove(change.key);
                }
                self.touched.insert(bucket);
            }
            for bucket in change
                .new
                .map(|new| self.buckets(new))
                .into_iter()
                .flatten()
            {
                if let Some(object) = change.new {
                    let facts = Facts::read(object);
                    let object = Arc::clone(object);
                    let pods = self.pods.entry(bucket.clone()).or_default();
                    pods.insert(change.key.clone(), Child { object, facts });
                }
                self.touched.insert(bucket);
            }
        });
        self.followed = followed;
    }

    /// All places where a pod may be looked for.
    fn buckets(&self, pod: &Value) -> Vec<Bucket> {
        let namespace = meta::namespace(pod);
        let first = (namespace.to_owned(), String::new());
        let keys = self
            .wanted
            .range(first..)
            .take_while(|(own, _)| own == namespace);
        keys.filter_map(|(_, key)| {
            let value = match key.as_str() {
                "" => "",
                key => meta::label(pod, key)?,
            };
            Some((namespace.to_owned(), key.clone(), value.to_owned()))
        })
        .collect()
    }
}

/// The controllers of a budget's pods and their sizes.
struct Controllers {
    namespace: String,
    all: Vec<Counted>,
}

/// One of them.
struct Counted {
    reference: Value,
    /// A pod that refers to it.
    pod: String,
    /// Uid and size of whoever has the last word on how many there are.
    size: Option<(String, i64)>,
}

impl Controllers {
    fn of(view: &View<'_>, namespace: &str, pods: &[&Child]) -> Self {
        let mut known: BTreeSet<u64> = BTreeSet::new();
        let mut all = Vec::new();
        for pod in pods {
            let is_new = pod.facts.owner.is_some_and(|owner| known.insert(owner));
            if !is_new {
                continue;
            }
            if let Some(reference) = meta::controller(&pod.object) {
                all.push(Counted {
                    reference: reference.clone(),
                    pod: meta::name(&pod.object).to_owned(),
                    size: size_of(view, namespace, reference),
                });
            }
        }
        Self {
            namespace: namespace.to_owned(),
            all,
        }
    }

    fn are_current(&self, view: &View<'_>) -> bool {
        let mut all = self.all.iter();
        all.all(|one| size_of(view, &self.namespace, &one.reference) == one.size)
    }

    /// The sum of all sizes. Pods without a controller do not count.
    fn scale(&self) -> Result<i64, String> {
        let mut scales: BTreeMap<&str, i64> = BTreeMap::new();
        for one in &self.all {
            let (uid, size) = (one.size.as_ref())
                .ok_or_else(|| format!("found no controllers for pod \"{}\"", one.pod))?;
            scales.insert(uid, *size);
        }
        Ok(scales.values().sum())
    }
}

/// What a budget demands of its pods.
struct Demand {
    expected: i64,
    healthy: i64,
}

/// One budget in one step.
struct Look<'a> {
    budget: &'a Value,
    pods: Vec<&'a Child>,
    demand: Result<Demand, String>,
    /// Pods whose eviction was granted and that are still there, with the time.
    disrupted: Map<String, Value>,
    /// Those whose time is over.
    overdue: Vec<&'a Value>,
    /// When the next of them is.
    recheck: Option<Timestamp>,
}

impl<'a> Look<'a> {
    fn at(view: &View<'_>, budget: &'a Value, candidates: &'a Candidates) -> (Self, Controllers) {
        let selector = LabelSelector::of(&budget["spec"]["selector"]);
        let mut takes = Takes::new(&selector);
        let group = candidates.pods.get(&bucket(budget));
        let mut pods: Vec<&Child> = group.into_iter().flat_map(BTreeMap::values).collect();
        pods.retain(|pod| takes.child(pod));
        let controllers = Controllers::of(view, meta::namespace(budget), &pods);
        let mut look = Self {
            budget,
            demand: demand(budget, &controllers, pods.len() as i64),
            pods,
            disrupted: Map::new(),
            overdue: Vec::new(),
            recheck: None,
        };
        look.remember(view.now);
        (look, controllers)
    }

    /// Keeps the evictions that may still come true.
    fn remember(&mut self, now: Timestamp) {
        let Some(before) = self.budget["status"]["disruptedPods"].as_object() else {
            return;
        };
        for pod in &self.pods {
            let name = meta::name(&pod.object);
            let Some(time) = before.get(name).filter(|_| !pod.facts.is_deleting) else {
                continue;
            };
            let end = fields::instant(time).map(|t| fields::after(t, DELETION_TIMEOUT_SECS));
            match end.filter(|end| *end > now) {
                Some(end) => {
                    self.recheck = fields::sooner(self.recheck, Some(end));
                    self.disrupted.insert(name.to_owned(), time.clone());
                }
                None => self.overdue.push(&pod.object),
            }
        }
    }

    fn status(&self, view: &View<'_>) -> Value {
        let old = &self.budget["status"];
        let generation = &self.budget["metadata"]["generation"];
        let conditions = old["conditions"].as_array();
        let mut conditions = conditions.cloned().unwrap_or_default();
        let mut status = match old.is_object() {
            true => old.clone(),
            false => json!({"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        };
        let (value, reason, message) = match &self.demand {
            // Nothing may go while nobody knows how many there should be.
            Err(message) => {
                status["disruptionsAllowed"] = json!(0);
                ("False", "SyncFailed", message.as_str())
            }
            Ok(demand) => {
                let healthy = self.healthy();
                let allowed = match demand.expected {
                    1.. => (healthy - demand.healthy).max(0),
                    _ => 0,
                };
                status = json!({
                    "currentHealthy": healthy,
                    "desiredHealthy": demand.healthy,
                    "expectedPods": demand.expected,
                    "disruptionsAllowed": allowed,
                    "observedGeneration": generation,
                });
                if !self.disrupted.is_empty() {
                    status["disruptedPods"] = Value::Object(self.disrupted.clone());
                }
                match allowed {
                    0 => ("False", "InsufficientPods", ""),
                    _ => ("True", "SufficientPods", ""),
                }
            }
        };
        let condition = json!({
            "type": "DisruptionAllowed",
            "status": value,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": meta::time(view.now),
        });
        fields::set_condition(&mut conditions, condition);
        status["conditions"] = Value::Array(conditions);
        status
    }

    /// Ready pods that nobody has asked to go.
    fn healthy(&self) -> i64 {
        let is_leaving = |pod: &Child| {
            pod.facts.is_deleting
                || (!self.disrupted.is_empty()
                    && self.disrupted.contains_key(meta::name(&pod.object)))
        };
        let stays = |pod: &&&Child| pod.facts.is_ready && !is_leaving(pod);
        self.pods.iter().filter(stays).count() as i64
    }

    fn forgotten(&self, recorder: &mut Recorder<'_>) -> Vec<Action> {
        let (namespace, name) = (meta::namespace(self.budget), meta::name(self.budget));
        let message =
            format!("Pod was expected by PDB {namespace}/{name} to be deleted but it wasn't");
        let mut record = |pod: &&Value| recorder.warning(pod, "NotDeleted", &message);
        self.overdue.iter().map(&mut record).collect()
    }
}

/// How many pods there should be, and how many of them healthy.
fn demand(budget: &Value, controllers: &Controllers, pods: i64) -> Result<Demand, String> {
    let (most, least) = (
        &budget["spec"]["maxUnavailable"],
        &budget["spec"]["minAvailable"],
    );
    let (expected, healthy) = if !most.is_null() {
        let expected = controllers.scale()?;
        let unavailable = fields::scaled(most, expected, Rounding::Up)
            .ok_or_else(|| format!("invalid value for maxUnavailable: {most}"))?;
        (expected, (expected - unavailable).max(0))
    } else if let Some(healthy) = least.as_i64() {
        (pods, healthy)
    } else if least.is_null() {
        (0, 0)
    } else {
        let expected = controllers.scale()?;
        let healthy = fields::scaled(least, expected, Rounding::Up)
            .ok_or_else(|| format!("invalid value for minAvailable: {least}"))?;
        (expected, healthy)
    };
    Ok(Demand { expected, healthy })
}

/// Uid and size of the controller that an owner reference leads to: the Deployment behind a
/// ReplicaSet, anything else with `spec.replicas`.
fn size_of(view: &View<'_>, namespace: &str, reference: &Value) -> Option<(String, i64)> {
    let api_version = reference["apiVersion"].as_str()?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let name = reference["name"].as_str()?;
    let found = view
        .kinds
        .iter()
        .filter(|((g, _), _)| g == group)
        .find_map(|(_, objects)| {
            let object = objects.get(&(namespace.to_owned(), name.to_owned()))?;
            (object["metadata"]["uid"] == reference["uid"]).then_some(object)
        })?;
    let parent = meta::controller(found).filter(|owner| owner["kind"] == "Deployment");
    if let Some(parent) = parent.filter(|_| reference["kind"] == "ReplicaSet") {
        return size_of(view, namespace, parent);
    }
    let size = &found["spec"]["replicas"];
    let is_scalable = size.is_i64() || size.is_u64() || is_workload(reference);
    is_scalable.then(|| (meta::uid(found).to_owned(), fields::count(size, 1)))
}

fn is_workload(reference: &Value) -> bool {
    matches!(
        reference["kind"].as_str(),
        Some("ReplicaSet" | "Deployment" | "StatefulSet")
    )
}
