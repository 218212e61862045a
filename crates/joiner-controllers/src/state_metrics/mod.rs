//! What the cluster looks like, in figures: the gauges about nodes, pools and pods, and how long
//! pods wait.
//!
//! *Flow*: every five seconds one [`Look`] is made of one snapshot, so that all families agree; its
//! series are written when metrics are rendered, straight from the look, and take no memory between
//! scrapes. With 100,000 pods, keeping the series as text would cost more than all decisions.

mod conditions;
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

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_cloud::Cloud;
use joiner_engine::{Controller, Looping, Next, Reconcile, Shared};
use joiner_model::{Name, ResourceName};
use joiner_runtime::metric_names::{
    CLUSTER_STATE_NODE_COUNT, CLUSTER_STATE_SYNCED, CLUSTER_STATE_UNSYNCED_TIME,
    CLUSTER_UTILIZATION, NODEPOOLS_COST, NODEPOOLS_COST_TRACKER_ERRORS, NODEPOOLS_LIMIT,
    NODEPOOLS_USAGE, NODES_ALLOCATABLE, NODES_CURRENT_LIFETIME, NODES_SYSTEM_OVERHEAD,
    NODES_TOTAL_DAEMON_LIMITS, NODES_TOTAL_DAEMON_REQUESTS, NODES_TOTAL_POD_LIMITS,
    NODES_TOTAL_POD_REQUESTS, PODS_PROVISIONING_UNBOUND_TIME, PODS_PROVISIONING_UNDECIDED_TIME,
    PODS_PROVISIONING_UNSTARTED_TIME, PODS_STATE, PODS_UNBOUND_TIME, PODS_UNSTARTED_TIME,
};
use joiner_runtime::{Clock, Metrics, World};
use joiner_state::live::{Change, Snapshot};

pub use self::durations::{Observed, PodDecisions, Waits};
use self::nodes::NodeRow;
use self::pools::PoolRow;
use crate::catalogs::{Catalogs, Lists};

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

    /// Claims whose price is not known, with their pool.
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
            let look = shown.and_then(|shown| current(&shown));
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

/// The controllers of this module. `decisions`: what planning says it decided about pods. `is_quiet`
/// leaves out all that is about single objects.
#[must_use]
pub fn controllers(
    shared: &Shared,
    cloud: &Arc<dyn Cloud>,
    catalogs: &Catalogs,
    decisions: Option<PodDecisions>,
    is_quiet: bool,
) -> Vec<Controller> {
    let state = StateMetrics::new(shared, catalogs, decisions, is_quiet);
    let mut all = vec![Controller::looping(state)];
    if !is_quiet {
        let observer = conditions::ConditionObserver::new(shared, cloud);
        all.push(Controller::keyed(observer));
    }
    all
}

/// What is known of the cluster: the gauges about it are there before everything is listed.
struct Knowledge {
    world: World,
    clock: Clock,
    since: Timestamp,
}

impl Knowledge {
    /// For how long not everything has been listed.
    fn unsynced_secs(&self) -> f64 {
        match self.world.is_listed() {
            true => 0.0,
            false => seconds(self.since, self.clock.now()),
        }
    }
}

/// Has the gauges about what is known written from it, until it is gone.
fn show_knowledge(metrics: &Metrics, knowledge: &Arc<Knowledge>) {
    let show = |family: &'static str, value: fn(&Knowledge) -> f64| {
        let knowledge = Arc::downgrade(knowledge);
        metrics.source(family, move |series| {
            if let Some(knowledge) = knowledge.upgrade() {
                series.gauge(&[], value(&knowledge));
            }
        });
    };
    show(CLUSTER_STATE_NODE_COUNT, |known| {
        number(n_known(&known.world.snapshot()))
    });
    show(CLUSTER_STATE_SYNCED, |known| {
        f64::from(u8::from(known.world.is_listed()))
    });
    show(CLUSTER_STATE_UNSYNCED_TIME, Knowledge::unsynced_secs);
}

/// Looks at the cluster every five seconds.
struct StateMetrics {
    shared: Shared,
    catalogs: Catalogs,
    decisions: Option<PodDecisions>,
    is_quiet: bool,
    shown: Arc<Shown>,
    /// The gauges about it vanish with it.
    _knowledge: Arc<Knowledge>,
    waits: Waits,
    unpriced: BTreeSet<Name>,
}

impl StateMetrics {
    fn new(
        shared: &Shared,
        catalogs: &Catalogs,
        decisions: Option<PodDecisions>,
        is_quiet: bool,
    ) -> Self {
        let shown = Arc::new(Shown::default());
        if !is_quiet {
            show(&shared.metrics, &shown);
        }
        let knowledge = Arc::new(Knowledge {
            world: shared.world.clone(),
            clock: shared.clock.clone(),
            since: shared.clock.now(),
        });
        show_knowledge(&shared.metrics, &knowledge);
        Self {
            shared: shared.clone(),
            catalogs: catalogs.clone(),
            decisions,
            is_quiet,
            shown,
            _knowledge: knowledge,
            waits: Waits::default(),
            unpriced: BTreeSet::new(),
        }
    }

    fn look(&mut self, now: &Arc<Snapshot>, at: Timestamp) {
        let metrics = &self.shared.metrics;
        for ended in self.waits.follow(now, self.decisions.as_ref(), at) {
            metrics.observe(ended.family, &[], ended.secs);
        }
        let lists = self.catalogs.lists();
        let look = Look::new(Arc::clone(now), &lists, self.waits.clone(), at);
        count_unpriced(metrics, &look, &mut self.unpriced);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(look));
    }
}

impl Looping for StateMetrics {
    fn name(&self) -> &'static str {
        "metrics.state"
    }

    fn wakes(&mut self, _: &Change, _: &Snapshot) -> bool {
        false
    }

    fn pass<'a>(&'a mut self, now: &'a Arc<Snapshot>, at: Timestamp) -> Reconcile<'a> {
        async move {
            if self.is_quiet {
                return Ok(Next::Done);
            }
            self.look(now, at);
            Ok(Next::Again(EVERY))
        }
        .boxed()
    }
}

/// Nodes, and claims that are none yet.
fn n_known(now: &Snapshot) -> usize {
    let is_coming = |id: Option<&str>| id.is_none_or(|id| now.nodes_with_id(id).next().is_none());
    let claims = now.claims();
    let coming = claims.filter(|claim| is_coming(claim.provider_id.as_deref()));
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
