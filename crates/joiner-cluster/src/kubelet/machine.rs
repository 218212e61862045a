//! What does a kubelet say about its node, and when?

use jiff::Timestamp;
use joiner_api::labels::ours::{BOOT_SECONDS, KUBELET};
use joiner_machinery::meta;
use serde_json::{Map, Value, json};

use super::Settings;
use super::addresses::Pool;
use crate::events::Recorder;
use crate::fields::{after, condition, created, instant, set_condition};
use crate::node_image::{Runs, node_info};
use crate::scheduler::NODES;
use crate::scheduler::labels::items;
use crate::view::{Action, Resource, View};
use crate::volumes::CSI_NODES;

pub(crate) const LEASES: Resource = ("coordination.k8s.io", "leases");
pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";

/// Seconds between renewals of a Lease, and the time it is good for.
const RENEW_SECS: i64 = 10;
const LEASE_SECS: i64 = 40;
/// Seconds between heartbeats in an unchanged status.
const STATUS_SECS: i64 = 300;

/// Labels that every kubelet puts on, besides the host name.
const LABELS: [(&str, &str); 2] = [
    ("kubernetes.io/os", "linux"),
    ("kubernetes.io/arch", "amd64"),
];
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Who plays the kubelet of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Player {
    We,
    Nobody,
    SomebodyElse,
}

/// A node as its kubelet sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its name.
    pub(crate) name: String,
    /// Its internal address; empty before the first status.
    pub(crate) address: String,
    player: Player,
    ready_at: Timestamp,
    /// Status of the `Ready` condition.
    shown: String,
    heartbeat: Option<Timestamp>,
    /// Labels, capacity and addresses are there.
    complete: bool,
}

impl Machine {
    /// Reads a Node.
    pub(crate) fn read(node: &Value, settings: &Settings) -> Self {
        let number = |name: &str| meta::annotation(node, name)?.parse::<i64>().ok();
        let boot = number(BOOT_SECONDS).unwrap_or(settings.boot_secs);
        let ready = condition(node, "Ready");
        let text = |field: &str| ready.and_then(|one| one[field].as_str()).unwrap_or("");
        let addresses = items(&node["status"]["addresses"]);
        let mut internal = addresses.filter(|one| one["type"] == "InternalIP");
        let address = internal
            .next()
            .and_then(|one| one["address"].as_str())
            .unwrap_or("");
        let labeled = LABELS
            .iter()
            .all(|(key, _)| meta::label(node, key).is_some());
        let status = &node["status"];
        Self {
            name: meta::name(node).to_owned(),
            player: match meta::annotation(node, KUBELET) {
                Some("false") => Player::SomebodyElse,
                Some("stopped") => Player::Nobody,
                Some(_) | None => Player::We,
            },
            ready_at: after(created(node), boot),
            shown: text("status").to_owned(),
            heartbeat: meta::parse_time(text("lastHeartbeatTime")),
            complete: labeled
                && meta::label(node, HOSTNAME).is_some()
                && !address.is_empty()
                && status["capacity"].is_object()
                && status["allocatable"].is_object()
                && status["nodeInfo"]["kubeletVersion"].is_string(),
            address: address.to_owned(),
        }
    }

    /// True when this kubelet runs and is ours.
    pub(crate) fn is_ours(&self) -> bool {
        self.player == Player::We
    }

    /// True when pods can start.
    pub(crate) fn is_up(&self, now: Timestamp) -> bool {
        self.is_ours() && now >= self.ready_at && !self.address.is_empty()
    }

    /// When to look again.
    pub(crate) fn wake(&self, view: &View<'_>) -> Timestamp {
        let lease = view.get(LEASES, LEASE_NAMESPACE, &self.name);
        let renewed = lease.and_then(|lease| instant(&lease["spec"]["renewTime"]));
        // A Lease that is about to be written counts as written.
        let renewal = due(renewed.unwrap_or(view.now).max(view.now));
        let heartbeat = self.heartbeat.map(|at| after(at, STATUS_SECS));
        let next = [heartbeat, Some(self.ready_at)].into_iter().flatten();
        next.filter(|at| *at > view.now)
            .fold(renewal, Timestamp::min)
    }

    /// Status, labels and Lease, as far as they are due.
    pub(crate) fn tend(
        &self,
        node: &Value,
        view: &View<'_>,
        settings: &Settings,
        pool: &mut Pool,
        recorder: &mut Recorder<'_>,
    ) -> Vec<Action> {
        let now = view.now;
        let ready = now >= self.ready_at;
        let word = if ready { "True" } else { "False" };
        let stale = self
            .heartbeat
            .is_none_or(|at| now >= after(at, STATUS_SECS));
        let mut actions = Vec::new();
        if !self.complete || stale || self.shown != word {
            let mut status = Map::new();
            if !self.complete {
                self.describe(node, settings, &mut status, || {
                    pool.node(view, meta::uid(node))
                });
            }
            status.insert("conditions".to_owned(), conditions(node, ready, now));
            actions.push(Action::Patch {
                resource: NODES,
                key: (String::new(), self.name.clone()),
                subresource: Some("status"),
                patch: json!({
                    "metadata": {"resourceVersion": meta::text(node, "resourceVersion")},
                    "status": status,
                }),
            });
            if ready && self.shown != "True" {
                let message = format!("Node {} status is now: NodeReady", self.name);
                actions.push(recorder.normal(node, "NodeReady", &message));
            }
        }
        actions.extend(self.label(node));
        actions.extend(self.renew(node, view));
        if view.get(CSI_NODES, "", &self.name).is_none() {
            actions.push(Action::Create(CSI_NODES, self.csi_node(node)));
        }
        actions
    }

    /// What the status lacks.
    fn describe(
        &self,
        node: &Value,
        settings: &Settings,
        status: &mut Map<String, Value>,
        address: impl FnOnce() -> String,
    ) {
        let old = &node["status"];
        let mut capacity = old["capacity"].clone();
        if !capacity.is_object() {
            capacity = json!({
                "cpu": settings.cpu,
                "memory": settings.memory,
                "ephemeral-storage": "100Gi",
                "pods": settings.pods.to_string(),
            });
            status.insert("capacity".to_owned(), capacity.clone());
        }
        if !old["allocatable"].is_object() {
            status.insert("allocatable".to_owned(), capacity);
        }
        if self.address.is_empty() {
            let addresses = json!([
                {"type": "InternalIP", "address": address()},
                {"type": "Hostname", "address": self.name},
            ]);
            status.insert("addresses".to_owned(), addresses);
        }
        if !old["nodeInfo"]["kubeletVersion"].is_string() {
            let runs = Runs {
                arch: meta::label(node, "kubernetes.io/arch").unwrap_or("amd64"),
                server: &settings.version,
                ..Runs::default()
            };
            status.insert("nodeInfo".to_owned(), node_info(&runs, meta::uid(node)));
            let port = json!({"kubeletEndpoint": {"Port": 10250}});
            status.insert("daemonEndpoints".to_owned(), port);
        }
    }

    fn label(&self, node: &Value) -> Option<Action> {
        let all = LABELS.into_iter().chain([(HOSTNAME, self.name.as_str())]);
        let missing = all.filter(|(key, _)| meta::label(node, key).is_none());
        let labels: Map<String, Value> = missing
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let patch = json!({"metadata": {"labels": labels}});
        (!labels.is_empty()).then(|| crate::fields::patch(NODES, node, patch))
    }

    fn renew(&self, node: &Value, view: &View<'_>) -> Option<Action> {
        let now = meta::micro_time(view.now);
        let Some(lease) = view.get(LEASES, LEASE_NAMESPACE, &self.name) else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": self.name,
                    "namespace": LEASE_NAMESPACE,
                    "ownerReferences": [owner(node)],
                },
                "spec": {
                    "holderIdentity": self.name,
                    "leaseDurationSeconds": LEASE_SECS,
                    "renewTime": now,
                },
            });
            return Some(Action::Create(LEASES, lease));
        };
        let renewed = instant(&lease["spec"]["renewTime"]);
        if renewed.is_some_and(|at| view.now < due(at)) {
            return None;
        }
        let change = json!({"spec": {"holderIdentity": self.name, "renewTime": now}});
        Some(crate::fields::patch(LEASES, lease, change))
    }

    fn csi_node(&self, node: &Value) -> Value {
        json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": self.name, "ownerReferences": [owner(node)]},
            "spec": {"drivers": []},
        })
    }
}

/// All kubelets renew on the same beat: one wave of writes costs less than many drops.
fn due(renewed: Timestamp) -> Timestamp {
    let beat = renewed.as_second().div_euclid(RENEW_SECS) + 1;
    Timestamp::from_second(beat * RENEW_SECS).unwrap_or(Timestamp::MAX)
}

fn owner(node: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "name": meta::name(node),
        "uid": meta::uid(node),
    })
}

fn conditions(node: &Value, ready: bool, now: Timestamp) -> Value {
    let mut conditions = node["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let ready = if ready {
        (
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        )
    } else {
        let message = "container runtime network not ready: NetworkReady=false \
            reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not \
            initialized";
        ("Ready", "False", "KubeletNotReady", message)
    };
    let all = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        ready,
    ];
    for (kind, status, reason, message) in all {
        let new = json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": meta::time(now),
            "lastTransitionTime": meta::time(now),
        });
        set_condition(&mut conditions, new);
    }
    // Always in the same order, however the node was made.
    conditions.sort_by_key(|one| all.iter().position(|(kind, ..)| one["type"] == *kind));
    // A heartbeat changes nothing else.
    for one in &mut conditions {
        if all.iter().any(|(kind, ..)| one["type"] == *kind) {
            one["lastHeartbeatTime"] = json!(meta::time(now));
        }
    }
    Value::Array(conditions)
}
