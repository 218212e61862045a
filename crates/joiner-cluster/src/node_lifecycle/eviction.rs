//! Which pods do `NoExecute` taints drive away, and when?

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use super::Watch;
use crate::cache::Cache;
use crate::fields::{after, instant, is_true, key};
use crate::scheduler::NODES;
use crate::scheduler::labels::items;
use crate::scheduler::node::{Effect, Taint, Toleration};
use crate::view::ObjectKey;

/// A pod as far as its place matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodPlace {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// Its uid.
    pub(crate) uid: String,
    /// Its node; empty before it is bound.
    pub(crate) node: String,
    /// Succeeded or Failed.
    pub(crate) finished: bool,
    /// On its way out; true inside when it has no time left.
    pub(crate) deleting: Option<bool>,
    /// Its `Ready` condition holds.
    pub(crate) ready: bool,
    /// When it was created.
    pub(crate) created: Timestamp,
    tolerations: Vec<Toleration>,
}

impl PodPlace {
    /// Reads a Pod.
    pub(crate) fn read(pod: &Value) -> Self {
        let (spec, metadata) = (&pod["spec"], &pod["metadata"]);
        let mut tolerations: Vec<Toleration> =
            items(&spec["tolerations"]).map(Toleration::read).collect();
        for name in ["not-ready", "unreachable"] {
            let taint = Taint::read(&json!({
                "key": format!("node.kubernetes.io/{name}"),
                "effect": "NoExecute",
            }));
            // What admission gives to pods that say nothing.
            if !tolerations.iter().any(|one| one.covers(&taint)) {
                tolerations.push(Toleration::read(&json!({
                    "key": taint.key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                })));
            }
        }
        let phase = pod["status"]["phase"].as_str().unwrap_or("");
        let out_of_time = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
        Self {
            key: key(pod),
            uid: meta::uid(pod).to_owned(),
            node: spec["nodeName"].as_str().unwrap_or("").to_owned(),
            finished: matches!(phase, "Succeeded" | "Failed"),
            deleting: meta::is_deleting(pod).then_some(out_of_time),
            ready: is_true(pod, "Ready"),
            created: crate::fields::created(pod),
            tolerations,
        }
    }

    /// When the pod has to leave for these taints; never when absent.
    fn leaves(&self, taints: &[(Taint, Timestamp)]) -> Option<Timestamp> {
        let leave = |(taint, since): &(Taint, Timestamp)| {
            let mut covering = self
                .tolerations
                .iter()
                .filter(|one| one.covers(taint))
                .peekable();
            if covering.peek().is_none() {
                return Some(*since);
            }
            let seconds = covering.filter_map(|one| one.seconds).min()?;
            Some(after(*since, seconds.max(0)))
        };
        taints.iter().filter_map(leave).min()
    }
}

/// Deletes pods whose time on their node is over.
pub(crate) fn evict(
    watch: &mut Watch<'_>,
    pods: &Cache<PodPlace>,
    seen: &mut BTreeMap<(String, String), Timestamp>,
) {
    let taints = no_execute(watch, seen);
    if taints.is_empty() {
        return;
    }
    let now = watch.view.now;
    for pod in pods
        .iter()
        .filter(|pod| !pod.finished && pod.deleting.is_none())
    {
        let Some(leaves) = taints.get(&*pod.node).and_then(|taints| pod.leaves(taints)) else {
            continue;
        };
        if now < leaves {
            watch.look_again(leaves);
            continue;
        }
        let why = (
            "DeletionByTaintManager",
            "Taint manager: deleting due to NoExecute taint",
        );
        watch.remove(pod, why, false, None);
        if let Some(object) = watch.pod(&pod.key) {
            let message = format!("Marking for deletion Pod {}/{}", pod.key.0, pod.key.1);
            let event = watch
                .recorder
                .normal(object, "TaintManagerEviction", &message);
            watch.step.actions.push(event);
        }
    }
}

/// `NoExecute` taints by node, with the time since when they are there.
fn no_execute<'v>(
    watch: &Watch<'v>,
    seen: &mut BTreeMap<(String, String), Timestamp>,
) -> BTreeMap<&'v str, Vec<(Taint, Timestamp)>> {
    let mut old = std::mem::take(seen);
    let mut by_node: BTreeMap<&str, Vec<(Taint, Timestamp)>> = BTreeMap::new();
    for node in watch.view.all(NODES) {
        for object in items(&node["spec"]["taints"]) {
            let taint = Taint::read(object);
            if taint.effect != Effect::NoExecute {
                continue;
            }
            let since = instant(&object["timeAdded"]).unwrap_or_else(|| {
                let key = (
                    meta::uid(node).to_owned(),
                    format!("{}={}", taint.key, taint.value),
                );
                let first = old.remove(&key).unwrap_or(watch.view.now);
                seen.insert(key, first);
                first
            });
            by_node
                .entry(meta::name(node))
                .or_default()
                .push((taint, since));
        }
    }
    by_node
}
