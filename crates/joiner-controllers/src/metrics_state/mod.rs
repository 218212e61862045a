//! What the cluster looks like, in figures: the gauges about nodes, pools and pods, and how long
//! pods wait.
//!
//! *Flow*: every five seconds one [`Look`] is made of one snapshot, so that all families agree; its
//! series are written when metrics are rendered, straight from the look, and take no memory between
//! scrapes. With 100,000 pods, keeping the series as text would cost more than all decisions.

mod durations;
mod nodes;
mod pods;
mod pools;
#[cfg(test)]
mod tests;
pub(crate) mod zones;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use joiner_model::{Name, ResourceName};
use joiner_runtime::Metrics;
use joiner_runtime::metric_names::{
    CLUSTER_STATE_NODE_COUNT, CLUSTER_STATE_SYNCED, CLUSTER_STATE_UNSYNCED_TIME,
    CLUSTER_UTILIZATION, NODEPOOLS_COST, NODEPOOLS_COST_TRACKER_ERRORS, NODEPOOLS_LIMIT,
    NODEPOOLS_USAGE, NODES_ALLOCATABLE, NODES_CURRENT_LIFETIME, NODES_SYSTEM_OVERHEAD,
    NODES_TOTAL_DAEMON_LIMITS, NODES_TOTAL_DAEMON_REQUESTS, NODES_TOTAL_POD_LIMITS,
    NODES_TOTAL_POD_REQUESTS, PODS_PROVISIONING_UNBOUND_TIME, PODS_PROVISIONING_UNDECIDED_TIME,
    PODS_PROVISIONING_UNSTARTED_TIME, PODS_STATE, PODS_UNBOUND_TIME, PODS_UNSTARTED_TIME,
};
use joiner_state::live::Snapshot;

pub use self::durations::{Observed, PodDecisions, Waits};
use self::nodes::NodeRow;
use self::pools::PoolRow;
use crate::catalogs::Lists;
use crate::context::Ctx;

/// How often the cluster is looked at.
const EVERY: Duration = Duration::from_secs(5);

/// The families that are written from a look.
pub const FAMILIES: &[&str] = &[
    NODES_ALLOCATABLE,
    NODES_TOTAL_POD_REQUESTS,
    NODES_TOTAL_DAEMON_REQUESTS,
    NODES_TOTAL_POD_LIMITS,
    NODES_TOTAL_DAEMON_LIMITS,
    NODES_SYSTEM_OVERHEAD,
    NODES_CURRENT_LIFETIME,
    CLUSTER_UTILIZATION,
    NODEPOOLS_LIMIT,
    NODEPOOLS_USAGE,
    NODEPOOLS_COST,
    PODS_STATE,
    PODS_UNSTARTED_TIME,
    PODS_UNBOUND_TIME,
    PODS_PROVISIONING_UNSTARTED_TIME,
    PODS_PROVISIONING_UNBOUND_TIME,
    PODS_PROVISIONING_UNDECIDED_TIME,
];

/// Takes one series of a family: its labels and its value.
pub type Emit<'a> = &'a mut dyn FnMut(&[(&str, &str)], f64);

/// What is shown of the cluster at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    now: Arc<Snapshot>,
    at: Timestamp,
    nodes: Vec<NodeRow>,
    pools: Vec<PoolRow>,
    waits: Waits,
}

impl Look {
    /// A look at a snapshot.
    #[must_use]
    pub fn new(now: Arc<Snapshot>, catalogs: &Lists, waits: Waits, at: Timestamp) -> Self {
        Self {
            nodes: nodes::rows(&now),
            pools: pools::rows(&now, catalogs),
            waits,
            now,
            at,
        }
    }

    /// Every series of one of the [`FAMILIES`]; none for any other.
    pub fn each(&self, family: &str, emit: Emit<'_>) {
        match family {
            PODS_STATE => pods::each(&self.now, &self.nodes, emit),
            CLUSTER_UTILIZATION => nodes::utilization(&self.nodes, emit),
            NODES_CURRENT_LIFETIME => nodes::ages(&self.nodes, self.at, emit),
            NODEPOOLS_LIMIT | NODEPOOLS_USAGE | NODEPOOLS_COST => {
                pools::each(family, &self.pools, emit);
            }
            PODS_UNSTARTED_TIME
            | PODS_UNBOUND_TIME
            | PODS_PROVISIONING_UNSTARTED_TIME
            | PODS_PROVISIONING_UNBOUND_TIME
            | PODS_PROVISIONING_UNDECIDED_TIME => self.waits.each(family, self.at, emit),
            family => nodes::each(family, &self.nodes, emit),
        }
    }

    /// Claims whose price nobody knows, with their pool.
    pub fn unpriced(&self) -> impl Iterator<Item = (&Name, &Name)> {
        let pools = self.pools.iter();
        pools.flat_map(|pool| pool.unpriced.iter().map(|claim| (&pool.name, claim)))
    }
}

/// The look that is shown.
type Shown = Mutex<Option<Arc<Look>>>;

/// Has the families written from what is shown, until that is gone.
fn show(metrics: &Metrics, shown: &Arc<Shown>) {
    for family in FAMILIES {
        let shown: Weak<Shown> = Arc::downgrade(shown);
        metrics.source(family, move |series| {
            let shown = shown.upgrade();
            let look = shown.and_then(|own| current(&own));
            if let Some(look) = look {
                look.each(family, &mut |labels, value| series.gauge(labels, value));
            }
        });
    }
}

fn current(shown: &Shown) -> Option<Arc<Look>> {
    let look = shown.lock().unwrap_or_else(PoisonError::into_inner);
    look.clone()
}

/// What runs by itself.
#[must_use]
pub fn streams(ctx: &Ctx) -> Vec<BoxFuture<'static, ()>> {
    vec![Box::pin(run(ctx.clone(), Some(ctx.pod_decisions.clone())))]
}

/// Looks every five seconds, until the future is dropped.
async fn run(ctx: Ctx, decisions: Option<PodDecisions>) {
    let shown = Arc::new(Shown::default());
    if !ctx.settings.quiet_state {
        show(&ctx.metrics, &shown);
    }
    let mut synced = ctx.clock.now();
    let mut waits = Waits::default();
    let mut unpriced = BTreeSet::new();
    loop {
        let at = ctx.clock.now();
        let is_synced = ctx.world.is_listed();
        if is_synced {
            synced = at;
        }
        let now = ctx.world.snapshot();
        state(&ctx.metrics, &now, is_synced, seconds(synced, at));
        if is_synced && !ctx.settings.quiet_state {
            for own in waits.follow(&now, decisions.as_ref(), at) {
                ctx.metrics.observe(own.family, &[], own.secs);
            }
            let look = Look::new(now, &ctx.catalogs.lists(), waits.clone(), at);
            count_unpriced(&ctx.metrics, &look, &mut unpriced);
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(look));
        }
        ctx.clock.sleep(EVERY).await;
    }
}

/// The gauges about what is known, which are always there.
fn state(metrics: &Metrics, now: &Snapshot, is_synced: bool, unsynced_secs: f64) {
    metrics.gauge(CLUSTER_STATE_NODE_COUNT, &[], number(n_known(now)));
    metrics.gauge(CLUSTER_STATE_SYNCED, &[], f64::from(u8::from(is_synced)));
    metrics.gauge(CLUSTER_STATE_UNSYNCED_TIME, &[], unsynced_secs);
}

/// Nodes, and claims that are none yet.
fn n_known(now: &Snapshot) -> usize {
    let is_coming = |id: Option<&str>| id.is_none_or(|id| now.nodes_with_id(id).next().is_none());
    let coming = now
        .claims()
        .filter(|own| is_coming(own.provider_id.as_deref()));
    now.n_nodes() + coming.count()
}

/// Counts each claim without a price once.
fn count_unpriced(metrics: &Metrics, look: &Look, known: &mut BTreeSet<Name>) {
    let mut now = BTreeSet::new();
    for (pool, claim) in look.unpriced() {
        if !known.contains(claim) {
            metrics.count(NODEPOOLS_COST_TRACKER_ERRORS, &[("nodepool", pool)], 1.0);
        }
        now.insert(claim.clone());
    }
    *known = now;
}

/// Seconds from one time to another; none is negative.
fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "what is counted here is far below 2^53"
)]
fn number(n: usize) -> f64 {
    n as f64
}

/// An amount as metrics show it: CPU in cores.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; bytes up to 2^53 are exact"
)]
fn amount(name: &ResourceName, amount: u64) -> f64 {
    match name {
        ResourceName::Cpu => amount as f64 / 1000.0,
        ResourceName::Memory
        | ResourceName::Pods
        | ResourceName::EphemeralStorage
        | ResourceName::Other(_) => amount as f64,
    }
}

/// A resource as metrics call it.
fn resource_type(name: &ResourceName) -> String {
    name.as_str().to_ascii_lowercase().replace('-', "_")
}
