//! All that a decision about disruption may rest on.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use joiner_model::{Name, NanoDollars, NodeIx, PodIx, Problem};

use crate::budget::Budget;
use crate::cost::EvictionCost;

/// The nodes of a cluster at one moment, with the terms of their pools.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// All nodes, bound pods, pods to place, pools with limits, and the catalog. Nodes on their way
    /// out are closed, belong to no pool, and their pods wait for a place.
    pub problem: &'a Problem,
    /// The nodes that are ours.
    pub members: Vec<Member>,
    /// The pools they belong to.
    pub pools: Vec<PoolTerms>,
    /// How many more of its pods a workload wants to have moved for money; a workload that is not
    /// here does not mind.
    pub moves_left: BTreeMap<Name, u32>,
    /// Settings.
    pub settings: Settings,
    /// When something last changed that could turn a "nothing to do" around.
    pub changed: Timestamp,
    /// The time.
    pub now: Timestamp,
}

impl Fleet<'_> {
    /// The terms of a member's pool.
    #[must_use]
    pub fn terms(&self, member: &Member) -> &PoolTerms {
        &self.pools[member.pool]
    }

    /// Claims and nodes of groups that go when some members go.
    pub(crate) fn leavers(&self, members: &[usize]) -> (Vec<Name>, Vec<GroupNode>) {
        let (mut claims, mut nodes) = (Vec::new(), Vec::new());
        for m in members {
            match self.members[*m].leaver() {
                Leaver::Claim(claim) => claims.push(claim),
                Leaver::Node(node) => nodes.push(node),
            }
        }
        (claims, nodes)
    }

    /// What some members cost an hour.
    pub(crate) fn price(&self, members: &[usize]) -> NanoDollars {
        let prices = members.iter().map(|m| self.members[*m].price);
        prices.map(Option::unwrap_or_default).sum()
    }
}

/// What a node of ours belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeOwner {
    /// A NodeClaim, by name: a node goes with its claim.
    Claim(Name),
    /// A node group, by name: a node goes when its group shrinks by it.
    Group(Name),
}

/// A node of a node group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupNode {
    /// Name of the group.
    pub group: Name,
    /// Name of the node.
    pub node: Name,
}

/// What goes when a node goes: indexes are of one moment, this stays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leaver {
    /// A NodeClaim, by name.
    Claim(Name),
    /// A node of a node group.
    Node(GroupNode),
}

impl fmt::Display for Leaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(claim) => write!(f, "NodeClaim {claim}"),
            Self::Node(GroupNode { group, node }) => {
                write!(f, "Node {node} of node group {group}")
            }
        }
    }
}

/// A node of ours, with what it belongs to.
#[derive(Clone, Debug)]
pub struct Member {
    /// The node in the problem.
    pub node: NodeIx,
    /// Name of the node.
    pub name: Name,
    /// What it belongs to.
    pub owner: NodeOwner,
    /// Index of its pool in [`Fleet::pools`]; a node group has terms of its own there.
    pub pool: usize,
    /// What it costs an hour; `None` when its type or offering is not known.
    pub price: Option<NanoDollars>,
    /// How it is paid for; empty when the label is missing.
    pub capacity_type: Name,
    /// Its zone; empty when the label is missing.
    pub zone: Name,
    /// Its instance type; empty when the label is missing.
    pub type_name: Name,
    /// Pods that would need a place elsewhere.
    pub pods: Vec<Moved>,
    /// Booted, registered and initialized.
    pub initialized: bool,
    /// The node reports that it is ready.
    pub ready: bool,
    /// Deleting, or marked for it.
    pub deleting: bool,
    /// A pod that waits counts on it.
    pub nominated: bool,
    /// The node asks not to be disrupted.
    pub do_not_disrupt: bool,
    /// A pod on it that asks not to be disrupted, as `namespace/name`.
    pub protected_pod: Option<Name>,
    /// A PodDisruptionBudget that allows no eviction now.
    pub blocking_budget: Option<String>,
    /// PodDisruptionBudgets that are about the same pod.
    pub several_budgets: Option<String>,
    /// The claim has a termination grace period: drift need not wait for pods that say no.
    pub grace_period: bool,
    /// It has been quiet for as long as its pool asks.
    pub consolidatable: bool,
    /// Since when it differs from what its pool asks for; see [`Self::drifted()`].
    pub drifted: Option<Timestamp>,
    /// Headroom counts on it.
    pub has_buffer_pods: bool,
    /// A command about it is under way.
    pub in_command: bool,
    /// Its machine is being shut down.
    pub terminating_instance: bool,
}

impl Member {
    /// Nobody would notice: no pods to move, or only such as cost nothing to move.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.iter().all(|pod| pod.cost.is_free())
    }

    /// Its claim; none for a node of a node group.
    #[must_use]
    pub fn claim(&self) -> Option<&Name> {
        match &self.owner {
            NodeOwner::Claim(claim) => Some(claim),
            NodeOwner::Group(_) => None,
        }
    }

    /// What goes when it goes.
    #[must_use]
    pub fn leaver(&self) -> Leaver {
        match &self.owner {
            NodeOwner::Claim(claim) => Leaver::Claim(claim.clone()),
            NodeOwner::Group(group) => Leaver::Node(GroupNode {
                group: group.clone(),
                node: self.name.clone(),
            }),
        }
    }

    /// Since when it differs from what its pool asks for. What a node group makes next is the group's
    /// business: its nodes never differ.
    #[must_use]
    pub fn drifted(&self) -> Option<Timestamp> {
        self.drifted.filter(|_| self.claim().is_some())
    }
}

/// A pod that would have to move.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The pod in the problem.
    pub pod: PodIx,
    /// What evicting it costs.
    pub cost: EvictionCost,
    /// The workload it belongs to, if any.
    pub owner: Option<Name>,
    /// It does not leave before its node does: it says so, or a budget never lets it go. Nobody
    /// looks for another place.
    pub stuck: bool,
}

/// When a pool lets nodes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Only when they are empty.
    WhenEmpty,
    /// Whenever that is cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
    /// When it saves enough for the disruption it causes.
    Balanced,
}

/// What sets the terms for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolName {
    /// A NodePool.
    NodePool(Name),
    /// A node group.
    NodeGroup(Name),
}

impl From<&str> for PoolName {
    fn from(pool: &str) -> Self {
        Self::NodePool(pool.into())
    }
}

impl fmt::Display for PoolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodePool(name) => write!(f, "NodePool {name:?}"),
            Self::NodeGroup(name) => write!(f, "node group {name:?}"),
        }
    }
}

/// What a pool says about disruption, or a node group.
#[derive(Clone, Debug, Default)]
pub struct PoolTerms {
    /// Name of the pool or group.
    pub name: Name,
    /// Set for a node group: it keeps so many nodes.
    pub group_min: Option<u32>,
    /// Set for a pool of constant size.
    pub static_replicas: Option<u32>,
    /// When nodes may go.
    pub policy: Policy,
    /// `consolidateAfter: Never`.
    pub consolidate_after_never: bool,
    /// How many nodes may go at once.
    pub budgets: Vec<Budget>,
    /// `limits.nodes`.
    pub limit_nodes: Option<u32>,
    /// Claims that are there or coming, and not going; nodes of a node group.
    pub n_staying: u32,
    /// Claims that are going; nodes of a node group.
    pub n_leaving: u32,
    /// What all its nodes cost an hour; zero when not known.
    pub total_cost: NanoDollars,
    /// Disruption cost of all its nodes; see [`crate::cost`].
    pub total_disruption: u64,
}

impl PoolTerms {
    /// What it is called.
    #[must_use]
    pub fn title(&self) -> PoolName {
        match self.group_min {
            None => PoolName::NodePool(self.name.clone()),
            Some(_) => PoolName::NodeGroup(self.name.clone()),
        }
    }
}

/// Figures that change decisions.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What it costs to move a pod whose eviction cost is 1: starting it again, pulling images,
    /// running twice for a while.
    pub move_price: NanoDollars,
    /// What it costs to launch a node: the minutes that it boots and is paid for.
    pub launch_price: NanoDollars,
    /// For how long savings count against these costs.
    pub horizon_minutes: u64,
    /// What must be saved at least of the price of the nodes that go, in millionths, unless there
    /// are fewer nodes afterwards.
    pub threshold_ppm: u64,
    /// The same where several new nodes take the place of others.
    pub threshold_several_ppm: u64,
    /// Where several new nodes take the place of others, the savings within the horizon must be this
    /// many times what moving costs: many pods move, and upstream would not do it at all.
    pub several_factor: u64,
    /// Most nodes in one command.
    pub nodes_max: usize,
    /// Most what-if questions in one pass.
    pub what_ifs_max: u32,
    /// Most questions beyond those, about sets that differ by one node from the best that was found.
    pub variations_max: u32,
    /// Most pods that the questions of one pass are about.
    pub moves_max: usize,
    /// Steps of the packing search while looking for a set of nodes.
    pub explore_steps: u64,
    /// Steps of the packing search for the set that was chosen.
    pub final_steps: u64,
    /// How often a replica of a workload may be moved for money in a day, on average over its
    /// replicas; 0 is without limit. Whoever makes a fleet puts what is left of it into
    /// [`Fleet::moves_left`].
    pub moves_per_replica: u32,
    /// Spot nodes may be replaced by spot nodes.
    pub spot_to_spot: bool,
    /// Decide as upstream does: moving costs nothing, however often it happens, and there is at
    /// most one new node.
    pub upstream: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            move_price: NanoDollars::new(1_000_000),
            launch_price: NanoDollars::new(2_000_000),
            horizon_minutes: 60,
            threshold_ppm: 5_000,
            threshold_several_ppm: 30_000,
            several_factor: 10,
            nodes_max: 100,
            what_ifs_max: 24,
            variations_max: 24,
            moves_max: 20_000,
            explore_steps: 1_000_000,
            final_steps: 20_000_000,
            moves_per_replica: 2,
            spot_to_spot: false,
            upstream: false,
        }
    }
}

impl Settings {
    /// The same, deciding as upstream does.
    #[must_use]
    pub fn as_upstream(self) -> Self {
        Self {
            move_price: NanoDollars::ZERO,
            launch_price: NanoDollars::ZERO,
            threshold_ppm: 0,
            threshold_several_ppm: 0,
            several_factor: 0,
            moves_per_replica: 0,
            upstream: true,
            ..self
        }
    }

    /// Most new nodes in one consolidation.
    pub(crate) fn launches_max(&self) -> usize {
        if self.upstream { 1 } else { self.nodes_max }
    }
}
