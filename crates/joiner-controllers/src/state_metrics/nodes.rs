//! Gauges about nodes: what they have, what is asked of them, how old they are.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use joiner_api::labels::well_known;
use joiner_model::{Name, Resources};
use joiner_runtime::metric_names::{
    NODES_ALLOCATABLE, NODES_SYSTEM_OVERHEAD, NODES_TOTAL_DAEMON_LIMITS,
    NODES_TOTAL_DAEMON_REQUESTS, NODES_TOTAL_POD_LIMITS, NODES_TOTAL_POD_REQUESTS,
};
use joiner_state::live::{LiveNode, Snapshot};

use super::{Emit, amount, resource_type, seconds};

/// What is shown of one node.
#[derive(Clone, Debug)]
pub(super) struct NodeRow {
    /// The node.
    pub(super) node: Arc<LiveNode>,
    /// A claim is behind it.
    pub(super) managed: bool,
    /// Its well-known labels, as metrics call them.
    labels: Vec<(&'static str, Name)>,
    /// Requests of all its pods.
    pods: Resources,
    /// Requests of those that DaemonSets made.
    daemons: Resources,
    /// Limits of all its pods.
    pod_limits: Resources,
    /// Limits of those that DaemonSets made.
    daemon_limits: Resources,
}

/// What metrics call well-known labels: `instance_type` for `node.kubernetes.io/instance-type`.
static LABELS: LazyLock<Vec<(&'static str, String)>> = LazyLock::new(|| {
    let keys = well_known();
    keys.map(|key| {
        let name = key.rsplit('/').next().unwrap_or(key);
        (key, name.to_ascii_lowercase().replace('-', "_"))
    })
    .collect()
});

/// All nodes, by name.
pub(super) fn rows(now: &Snapshot) -> Vec<NodeRow> {
    now.nodes().map(|node| row(now, node)).collect()
}

fn row(now: &Snapshot, node: &Arc<LiveNode>) -> NodeRow {
    // Two clouds have labels of the same name; a node is of one of them.
    let mut labels: BTreeMap<&'static str, Name> = BTreeMap::new();
    for (key, label) in LABELS.iter() {
        if let Some(value) = node.meta.labels.get(*key) {
            labels.entry(label).or_insert_with(|| value.clone());
        }
    }
    let mut row = NodeRow {
        node: Arc::clone(node),
        managed: now.claim_of(node).is_some(),
        labels: labels.into_iter().collect(),
        pods: Resources::new(),
        daemons: Resources::new(),
        pod_limits: Resources::new(),
        daemon_limits: Resources::new(),
    };
    for pod in now.pods_on(node.name()).filter(|pod| !pod.is_terminal()) {
        row.pods.add(pod.requests());
        row.pod_limits.add(pod.limits());
        if pod.is_daemon() {
            row.daemons.add(pod.requests());
            row.daemon_limits.add(pod.limits());
        }
    }
    row
}

impl NodeRow {
    /// Labels of all its series.
    fn labels(&self) -> Vec<(&str, &str)> {
        let managed = if self.managed { "true" } else { "false" };
        let mut labels = vec![("node_name", &**self.node.name()), ("managed", managed)];
        labels.extend(self.labels.iter().map(|(label, value)| (*label, &**value)));
        labels
    }

    /// The amounts that a family is about.
    fn amounts(&self, family: &str) -> Resources {
        let node = &self.node;
        match family {
            NODES_ALLOCATABLE => node.allocatable().clone(),
            NODES_TOTAL_POD_REQUESTS => self.pods.clone(),
            NODES_TOTAL_DAEMON_REQUESTS => self.daemons.clone(),
            NODES_TOTAL_POD_LIMITS => self.pod_limits.clone(),
            NODES_TOTAL_DAEMON_LIMITS => self.daemon_limits.clone(),
            NODES_SYSTEM_OVERHEAD => node.capacity().minus_saturating(node.allocatable()),
            _ => Resources::new(),
        }
    }
}

/// The series of a family with one for each node and resource.
pub(super) fn each(family: &str, rows: &[NodeRow], emit: Emit<'_>) {
    for row in rows {
        let amounts = row.amounts(family);
        let names: Vec<String> = amounts
            .iter()
            .map(|(name, _)| resource_type(name))
            .collect();
        let mut labels = row.labels();
        for ((name, asked), resource) in amounts.iter().zip(&names) {
            labels.push(("resource_type", resource));
            emit(&labels, amount(name, asked));
            labels.pop();
        }
    }
}

/// How old nodes are.
pub(super) fn ages(rows: &[NodeRow], at: Timestamp, emit: Emit<'_>) {
    for row in rows {
        emit(&row.labels(), seconds(row.node.meta.created, at));
    }
}

/// Requests of all pods over what all nodes offer, in percent.
pub(super) fn utilization(rows: &[NodeRow], emit: Emit<'_>) {
    let (mut asked, mut offered) = (Resources::new(), Resources::new());
    for row in rows {
        asked.add(&row.pods);
        offered.add(row.node.allocatable());
    }
    for (name, total) in offered.iter().filter(|(_, total)| *total > 0) {
        let resource = resource_type(name);
        let percent = amount(name, asked.get(name)) / amount(name, total) * 100.0;
        emit(&[("resource_type", &resource)], percent);
    }
}

/// The row of a node.
pub(super) fn find<'r>(rows: &'r [NodeRow], node: &str) -> Option<&'r NodeRow> {
    let ix = rows
        .binary_search_by(|row| (**row.node.name()).cmp(node))
        .ok()?;
    rows.get(ix)
}
