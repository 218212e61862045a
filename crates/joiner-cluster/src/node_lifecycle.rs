//! What becomes of nodes that fall silent, and of the pods on them?
//!
//! Conditions turn into taints, taints drive pods away, and pods of nodes that are gone are removed.

mod eviction;
mod orphans;
mod taints;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use self::eviction::PodPlace;
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{after, condition, created, instant, set_condition, sooner};
use crate::followed::Followed;
use crate::kubelet::{LEASE_NAMESPACE, LEASES};
use crate::scheduler::{NODES, PODS};
use crate::view::{Action, Controller, ObjectKey, Resource, Step, View};

const NAME: &str = "node-controller";

/// Seconds without a sign of life until a node counts as lost, and between looks.
const GRACE_SECS: i64 = 40;
const CHECK_SECS: i64 = 5;
/// Seconds that a new node has for its first sign of life.
const STARTUP_SECS: i64 = 60;

/// Conditions that only a kubelet can know.
const KUBELET_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Watches over nodes and the pods on them.
#[derive(Default)]
pub struct NodeLifecycle {
    pods: Cache<PodPlace>,
    /// Nodes that have been welcomed.
    nodes: Followed,
    /// When a node was first missed, by name.
    missed: BTreeMap<String, Timestamp>,
    /// When a taint without a time was first seen, by node and key.
    tainted: BTreeMap<(String, String), Timestamp>,
}

impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        NAME
    }

    // Leases are left out: they matter when they stay away, which is a matter of time.
    fn reads(&self) -> &'static [Resource] {
        &[NODES, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.pods
            .refresh(view.objects(PODS), PodPlace::read, |_| true);
        let mut watch = Watch {
            view: *view,
            recorder: Recorder::new(view, NAME),
            step: Step::default(),
        };
        watch.greet(&mut self.nodes);
        let mut unready: BTreeSet<&str> = BTreeSet::new();
        for node in view.all(NODES) {
            if watch.is_lost(node) {
                watch.give_up(node);
            } else if let Some(taints) = taints::update(node, view.now) {
                watch.step.actions.push(taints);
            }
            if condition(node, "Ready").is_some_and(|one| one["status"] != "True") {
                unready.insert(meta::name(node));
            }
        }
        for pod in self
            .pods
            .iter()
            .filter(|pod| pod.ready && unready.contains(&*pod.node))
        {
            watch.mark_unready(pod);
        }
        eviction::evict(&mut watch, &self.pods, &mut self.tainted);
        orphans::collect(&mut watch, &self.pods, &mut self.missed);
        watch.step
    }
}

/// The work of one step.
struct Watch<'v> {
    view: View<'v>,
    recorder: Recorder<'v>,
    step: Step,
}

impl Watch<'_> {
    /// Tells of nodes that have come and gone.
    fn greet(&mut self, nodes: &mut Followed) {
        nodes.follow(self.view.objects(NODES), |change| {
            let uid = |node: Option<&Arc<Value>>| node.map(|node| meta::uid(node).to_owned());
            if uid(change.old) == uid(change.new) {
                return;
            }
            if let Some(old) = change.old {
                self.tell(old, "RemovingNode", "Removing Node", "from");
            }
            if let Some(new) = change.new {
                self.tell(new, "RegisteredNode", "Registered Node", "in");
            }
        });
    }

    fn tell(&mut self, node: &Value, reason: &str, what: &str, place: &str) {
        let name = meta::name(node);
        let message = format!("Node {name} event: {what} {name} {place} Controller");
        let event = self.recorder.normal(node, reason, &message);
        self.step.actions.push(event);
    }

    fn look_again(&mut self, at: Timestamp) {
        self.step.wake = sooner(self.step.wake, Some(at));
    }

    /// True when a node has been silent for too long and nobody has said so yet.
    fn is_lost(&mut self, node: &Value) -> bool {
        let ready = condition(node, "Ready");
        if ready.is_some_and(|one| one["status"] == "Unknown") {
            return self.deadline(node, ready) <= self.view.now && !is_given_up(node);
        }
        let deadline = self.deadline(node, ready);
        if self.view.now >= deadline {
            return true;
        }
        self.look_again(next_check(deadline));
        false
    }

    fn deadline(&self, node: &Value, ready: Option<&Value>) -> Timestamp {
        let lease = self.view.get(LEASES, LEASE_NAMESPACE, meta::name(node));
        let renewed = lease.and_then(|lease| instant(&lease["spec"]["renewTime"]));
        let beat = ready.and_then(|one| instant(&one["lastHeartbeatTime"]));
        match renewed.max(beat) {
            Some(seen) => after(seen.max(created(node)), GRACE_SECS),
            None => after(created(node), STARTUP_SECS),
        }
    }

    fn give_up(&mut self, node: &Value) {
        let now = meta::time(self.view.now);
        let mut conditions = node["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for kind in KUBELET_CONDITIONS {
            let old = condition(node, kind);
            let (reason, message) = match old {
                Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
                None => (
                    "NodeStatusNeverUpdated",
                    "Kubelet never posted node status.",
                ),
            };
            let heartbeat = old.map_or_else(
                || node["metadata"]["creationTimestamp"].clone(),
                |old| old["lastHeartbeatTime"].clone(),
            );
            let new = json!({
                "type": kind,
                "status": "Unknown",
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": heartbeat,
                "lastTransitionTime": now,
            });
            set_condition(&mut conditions, new);
        }
        self.write_status(NODES, node, json!({"conditions": conditions}));
        let message = format!("Node {} status is now: NodeNotReady", meta::name(node));
        let event = self.recorder.normal(node, "NodeNotReady", &message);
        self.step.actions.push(event);
    }

    /// Nobody knows how pods on an unready node are, so they count as unready.
    fn mark_unready(&mut self, place: &PodPlace) {
        let Some(pod) = self.pod(&place.key) else {
            return;
        };
        let Some(mut ready) = condition(pod, "Ready").cloned() else {
            return;
        };
        ready["status"] = json!("False");
        ready["lastTransitionTime"] = json!(meta::time(self.view.now));
        let mut conditions = pod["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        set_condition(&mut conditions, ready);
        self.write_status(PODS, pod, json!({"conditions": conditions}));
        let event = self
            .recorder
            .warning(pod, "NodeNotReady", "Node is not ready");
        self.step.actions.push(event);
    }

    fn write_status(&mut self, resource: Resource, object: &Value, status: Value) {
        self.step.actions.push(Action::Patch {
            resource,
            key: crate::fields::key(object),
            subresource: Some("status"),
            patch: json!({
                "metadata": {"resourceVersion": meta::text(object, "resourceVersion")},
                "status": status,
            }),
        });
    }

    /// Notes on a pod why it goes, and lets it go.
    fn remove(&mut self, place: &PodPlace, why: (&str, &str), fail: bool, grace: Option<u64>) {
        if let Some(pod) = self.pod(&place.key) {
            let mut conditions = pod["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let new = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "lastProbeTime": null,
                "lastTransitionTime": meta::time(self.view.now),
                "reason": why.0,
                "message": why.1,
            });
            set_condition(&mut conditions, new);
            let mut status = json!({"conditions": conditions});
            if fail && !place.finished {
                status["phase"] = json!("Failed");
            }
            self.write_status(PODS, pod, status);
        }
        self.step.actions.push(Action::Delete {
            resource: PODS,
            key: place.key.clone(),
            uid: place.uid.clone(),
            grace_secs: grace,
            propagation: None,
        });
    }
}

impl<'v> Watch<'v> {
    fn pod(&self, key: &ObjectKey) -> Option<&'v Value> {
        self.view.objects(PODS)?.get(key).map(AsRef::as_ref)
    }
}

/// True when all that the kubelet knew is marked as unknown.
fn is_given_up(node: &Value) -> bool {
    let unknown = |kind: &&str| condition(node, kind).is_some_and(|one| one["status"] == "Unknown");
    KUBELET_CONDITIONS.iter().all(unknown)
}

/// Looks are taken every few seconds.
fn next_check(deadline: Timestamp) -> Timestamp {
    let rest = deadline.as_second().rem_euclid(CHECK_SECS);
    let whole = deadline.subsec_nanosecond() == 0;
    if rest == 0 && whole {
        return deadline;
    }
    Timestamp::from_second(deadline.as_second() - rest + CHECK_SECS).unwrap_or(Timestamp::MAX)
}
