//! The details of decisions, typed by their kind. Fields that an older line lacks are empty.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Kind of records about pods that get a node.
pub const PROVISIONING: &str = "provisioning";
/// Kind of records about pods that get none.
pub const UNSCHEDULABLE: &str = "unschedulable";
/// Kind of records about nodes that go.
pub const DISRUPTION: &str = "disruption";
/// Kind of records about nodes that stay.
pub const KEPT: &str = "kept";

/// What is bought, or was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Machine {
    /// Name of the NodeClaim; empty when it could not be created.
    pub node_claim: String,
    /// Name of the Node, once there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// The pool.
    pub node_pool: String,
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// How it is paid for.
    pub capacity_type: String,
    /// Dollars an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
}

/// An instance type that would have done, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Alternative {
    /// The instance type.
    pub instance_type: String,
    /// Dollars an hour for its cheapest offering that would do.
    pub price_per_hour: f64,
}

/// A node of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlannedNode {
    /// What is bought.
    #[serde(flatten)]
    pub machine: Machine,
    /// How many types would do; the cloud may choose any.
    pub types: usize,
    /// The next best ones.
    pub next_best: Vec<Alternative>,
    /// The pods it is for.
    pub pods: Vec<String>,
}

/// Pods that go to a node there is, or to one that is coming.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Seated {
    /// `node/NAME` or `nodeclaim/NAME`.
    pub on: String,
    /// The pods.
    pub pods: Vec<String>,
}

/// Details of [`PROVISIONING`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProvisioningDetails {
    /// Nodes that are bought.
    pub nodes: Vec<PlannedNode>,
    /// Pods for nodes there are.
    pub placed: Vec<Seated>,
    /// How many pods are left over; they have records of their own.
    pub left_over: usize,
}

/// One question, and how many offerings are left after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FunnelStep {
    /// What was asked.
    pub after: String,
    /// Offerings left.
    pub offerings_left: usize,
}

/// How the offerings of one pool were ruled out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolFunnel {
    /// The pool.
    pub node_pool: String,
    /// Question by question.
    pub steps: Vec<FunnelStep>,
}

/// A single change that would help.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Helps {
    /// One word for it.
    pub kind: String,
    /// What to change, as a request.
    pub change: String,
    /// Where the pod would go then.
    pub place: String,
    /// What that costs more, in dollars an hour.
    pub price_per_hour: f64,
}

/// Details of [`UNSCHEDULABLE`], the same for all pods of the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftOver {
    /// What each of them requests.
    pub requests: String,
    /// Why not, a sentence for each pool, and one for the nodes there are.
    pub reasons: Vec<String>,
    /// How offerings were ruled out, by pool.
    pub funnel: Vec<PoolFunnel>,
    /// Single changes that would help, cheapest first.
    pub changes: Vec<Helps>,
    /// How many pods are in the same position.
    pub pods: usize,
}

/// A pod that moves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Move {
    /// The pod, `namespace/name`.
    pub pod: String,
    /// The node it leaves.
    pub from: String,
    /// `node/NAME` or `nodeclaim/NAME`.
    pub to: String,
}

/// Details of [`DISRUPTION`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionDetails {
    /// The command, as it is written on the claims.
    pub command: serde_json::Value,
    /// Nodes that go.
    pub removed: Vec<Machine>,
    /// What takes their place.
    pub replacements: Vec<Machine>,
    /// Pods that move, and where the plan puts them.
    pub moves: Vec<Move>,
    /// What moving costs, in dollars.
    pub move_cost: f64,
}

/// The pod that keeps a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PinnedBy {
    /// The pod.
    pub pod: String,
    /// What it asks for.
    pub needs: String,
    /// The constraint in the way.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// The largest hole elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_hole: Option<String>,
    /// How many further pods have no place either.
    pub more: usize,
}

/// Why a node stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// The node.
    #[serde(flatten)]
    pub machine: Machine,
    /// One word for the reason.
    pub because: String,
    /// The reason in a sentence.
    pub reason: String,
    /// Since when it has been this one.
    pub since: Timestamp,
    /// Something forbids its going; otherwise there is nothing to gain, or not yet.
    pub blocked: bool,
    /// No change to this node alone saves more, in dollars an hour.
    pub saves_at_most: f64,
    /// The pod in the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<PinnedBy>,
    /// Pods that would need a place elsewhere.
    pub pods: usize,
    /// It passes by itself, and is not worth a record.
    #[serde(skip)]
    pub passing: bool,
}

/// Details of [`KEPT`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeptDetails {
    /// Nodes whose reason is new.
    pub nodes: Vec<Kept>,
}
