//! What is to be seen: nodes, pods and prices, as the API objects say.

use std::collections::BTreeMap;

use anyhow::Context;
use jiff::Timestamp;
use joiner_runtime::{Clock, DecisionQuery, Decisions, resource};
use joiner_state::quantity;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use serde_json::Value;

/// Label with a node's price an hour.
const PRICE: &str = "eks-node-viewer/instance-price";

/// A node, as it is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeRow {
    pub(super) name: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) state: &'static str,
    pub(super) n_pods: usize,
    /// Requested memory, and how much there is, in bytes.
    pub(super) memory: (u64, u64),
    /// Dollars an hour.
    pub(super) price: f64,
}

/// What is to be seen now.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) at: Timestamp,
    pub(super) nodes: Vec<NodeRow>,
    pub(super) n_running: usize,
    pub(super) n_waiting: usize,
    /// Time and text, latest last.
    pub(super) decisions: Vec<(Timestamp, String)>,
    /// Seconds that each running pod waited.
    pub(super) waits: BTreeMap<String, f64>,
}

impl Picture {
    /// Dollars an hour for all nodes.
    pub(super) fn price(&self) -> f64 {
        self.nodes.iter().fold(0.0, |sum, node| sum + node.price)
    }

    /// Changes when a node comes, goes, or becomes ready.
    pub(super) fn fingerprint(&self) -> String {
        let nodes = self.nodes.iter();
        let parts: Vec<String> = nodes
            .map(|own| format!("{} {}", own.name, own.state))
            .collect();
        parts.join(",")
    }

    /// Types and how many of each: `2 m5.large, 1 r5.large`.
    pub(super) fn types(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &self.nodes {
            *counts.entry(&node.instance_type).or_default() += 1;
        }
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, n)| format!("{n} {name}"))
            .collect();
        match parts.is_empty() {
            true => "none".to_owned(),
            false => parts.join(", "),
        }
    }
}

/// Looks at the world.
pub(super) struct Scene {
    client: Client,
    clock: Clock,
    decisions: Decisions,
}

impl Scene {
    pub(super) fn new(client: Client, clock: Clock, decisions: Decisions) -> Self {
        Self {
            client,
            clock,
            decisions,
        }
    }

    async fn list(&self, plural: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &resource("", "v1", plural, kind));
        let list = api.list(&ListParams::default()).await;
        let list = list.with_context(|| format!("cannot list {plural}"))?;
        let values = list.items.into_iter().map(serde_json::to_value);
        values
            .collect::<Result<_, _>>()
            .context("objects cannot be read")
    }

    /// Looks now.
    pub(super) async fn picture(&self) -> anyhow::Result<Picture> {
        let (nodes, pods) = (
            self.list("nodes", "Node").await?,
            self.list("pods", "Pod").await?,
        );
        let running = |pod: &&Value| pod["status"]["phase"] == "Running";
        let living = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        let n_running = pods.iter().filter(running).filter(living).count();
        let n_waiting = pods
            .iter()
            .filter(|pod| !running(pod))
            .filter(living)
            .count();
        let waits = pods.iter().filter(running).filter_map(|pod| {
            let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
            let created = time(&pod["metadata"]["creationTimestamp"])?;
            let started = time(&pod["status"]["startTime"])?;
            let name = pod["metadata"]["name"].as_str()?.to_owned();
            Some((name, started.duration_since(created).as_secs_f64()))
        });
        let recent = self.decisions.recent(&DecisionQuery::default());
        Ok(Picture {
            at: self.clock.now(),
            n_running,
            n_waiting,
            waits: waits.collect(),
            decisions: recent
                .iter()
                .map(|own| (own.time, own.outcome.clone()))
                .collect(),
            nodes: nodes.iter().map(|node| row(node, &pods)).collect(),
        })
    }
}

fn row(node: &Value, pods: &[Value]) -> NodeRow {
    let meta = &node["metadata"];
    let label = |key: &str| meta["labels"][key].as_str().unwrap_or_default().to_owned();
    let name = meta["name"].as_str().unwrap_or_default().to_owned();
    let own = pods
        .iter()
        .filter(|pod| pod["spec"]["nodeName"] == meta["name"]);
    let (mut n_pods, mut used) = (0, 0);
    for pod in own {
        n_pods += 1;
        let containers = pod["spec"]["containers"].as_array();
        for container in containers.into_iter().flatten() {
            used += bytes(&container["resources"]["requests"]["memory"]);
        }
    }
    let state = if !meta["deletionTimestamp"].is_null() {
        "going"
    } else if label("karpenter.sh/initialized") == "true" {
        "ready"
    } else {
        "booting"
    };
    NodeRow {
        name,
        instance_type: label("node.kubernetes.io/instance-type"),
        zone: label("topology.kubernetes.io/zone"),
        state,
        n_pods,
        memory: (used, bytes(&node["status"]["allocatable"]["memory"])),
        price: label(PRICE).parse().unwrap_or(0.0),
    }
}

fn bytes(value: &Value) -> u64 {
    let text = value.as_str().unwrap_or("0");
    quantity::parse_request(&joiner_model::ResourceName::Memory, text).unwrap_or(0)
}
