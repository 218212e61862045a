//! What is to be seen: nodes, pods and prices, as the API objects say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use joiner_controllers::disruption::COMMAND;
use joiner_receipts::{Decision, DecisionQuery};
use joiner_runtime::{Clock, Decisions, resource};
use joiner_state::quantity;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Client};
use serde_json::Value;

/// Label with a node's price an hour.
const PRICE: &str = "eks-node-viewer/instance-price";
/// Label of the pool's template that the story changes.
pub(super) const VERSION: &str = "example.com/version";

/// A node, as it is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeRow {
    pub(super) name: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) capacity_type: String,
    /// Value of [`VERSION`].
    pub(super) version: String,
    pub(super) state: &'static str,
    pub(super) n_pods: usize,
    /// Requested memory, and how much there is, in bytes.
    pub(super) memory: (u64, u64),
    /// Dollars an hour.
    pub(super) price: f64,
}

impl NodeRow {
    pub(super) fn is_spot(&self) -> bool {
        self.capacity_type == "spot"
    }

    /// `m5.large`, or `m5.large spot`.
    fn kind(&self) -> String {
        match self.is_spot() {
            true => format!("{} spot", self.instance_type),
            false => self.instance_type.clone(),
        }
    }
}

/// What is to be seen now.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) at: Timestamp,
    pub(super) nodes: Vec<NodeRow>,
    /// Claims whose node is up and not about to go.
    pub(super) n_steady: usize,
    pub(super) n_claims: usize,
    pub(super) n_running: usize,
    pub(super) n_waiting: usize,
    /// Latest last.
    pub(super) decisions: Vec<Arc<Decision>>,
    /// Seconds that each running pod waited.
    pub(super) waits: BTreeMap<String, f64>,
}

impl Picture {
    /// Dollars an hour for all nodes.
    pub(super) fn price(&self) -> f64 {
        self.nodes.iter().fold(0.0, |sum, node| sum + node.price)
    }

    /// So many pods run, none waits, and no node comes or goes.
    pub(super) fn is_settled(&self, replicas: usize) -> bool {
        let all_run = self.n_running == replicas && self.n_waiting == 0;
        all_run && self.n_steady == self.n_claims && self.nodes.len() == self.n_claims
    }

    /// Types and how many of each: `2 m5.large, 1 r5.large spot`.
    pub(super) fn types(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for node in &self.nodes {
            *counts.entry(node.kind()).or_default() += 1;
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

    /// The cluster's time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn list(&self, group: &str, plural: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
        let resource = resource(group, "v1", plural, kind);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let list = api.list(&ListParams::default()).await;
        let list = list.with_context(|| format!("cannot list {plural}"))?;
        let values = list.items.into_iter().map(serde_json::to_value);
        values
            .collect::<Result<_, _>>()
            .context("objects cannot be read")
    }

    /// Looks now.
    pub(super) async fn picture(&self) -> anyhow::Result<Picture> {
        let nodes = self.list("", "nodes", "Node").await?;
        let pods = self.list("", "pods", "Pod").await?;
        let claims = self.list("karpenter.sh", "nodeclaims", "NodeClaim").await?;
        let running = |pod: &&Value| pod["status"]["phase"] == "Running";
        let living = |own: &&Value| own["metadata"]["deletionTimestamp"].is_null();
        let n_living = pods.iter().filter(living).count();
        let n_running = pods.iter().filter(running).filter(living).count();
        let waits = pods.iter().filter(running).filter_map(waited);
        let going: BTreeSet<&str> = claims
            .iter()
            .filter(|claim| !living(claim))
            .filter_map(|claim| claim["status"]["nodeName"].as_str())
            .collect();
        let rows = nodes.iter().map(|node| row(node, &pods, &going));
        let mut rows: Vec<NodeRow> = rows.collect();
        rows.sort_by(|one, two| one.name.cmp(&two.name));
        Ok(Picture {
            at: self.clock.now(),
            n_running,
            n_waiting: n_living - n_running,
            waits: waits.collect(),
            decisions: self.decisions.recent(&DecisionQuery::default()),
            n_steady: claims.iter().filter(|claim| is_steady(claim)).count(),
            n_claims: claims.len(),
            nodes: rows,
        })
    }
}

/// A claim's node is up, and nothing is about to happen to it.
fn is_steady(claim: &Value) -> bool {
    let meta = &claim["metadata"];
    let conditions = claim["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let up = conditions.any(|own| own["type"] == "Initialized" && own["status"] == "True");
    up && meta["deletionTimestamp"].is_null() && meta["annotations"][COMMAND].is_null()
}

/// A pod's name, and the seconds until it started.
fn waited(pod: &Value) -> Option<(String, f64)> {
    let time = |value: &Value| value.as_str()?.parse::<Timestamp>().ok();
    let created = time(&pod["metadata"]["creationTimestamp"])?;
    let started = time(&pod["status"]["startTime"])?;
    let name = pod["metadata"]["name"].as_str()?.to_owned();
    Some((name, started.duration_since(created).as_secs_f64()))
}

fn row(node: &Value, pods: &[Value], going: &BTreeSet<&str>) -> NodeRow {
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
    let taints = node["spec"]["taints"].as_array();
    let mut taints = taints.into_iter().flatten();
    let state = if !meta["deletionTimestamp"].is_null() || going.contains(name.as_str()) {
        "going"
    } else if taints.any(|taint| taint["key"] == "karpenter.sh/disrupted") {
        "to go"
    } else if label("karpenter.sh/initialized") == "true" {
        "ready"
    } else {
        "booting"
    };
    NodeRow {
        name,
        instance_type: label("node.kubernetes.io/instance-type"),
        zone: label("topology.kubernetes.io/zone"),
        capacity_type: label("karpenter.sh/capacity-type"),
        version: label(VERSION),
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
