//! What a decision says about one pod or one node: the details of records, typed, and the part of
//! them that somebody asks for.
//!
//! Whoever decides writes these types into [`Decision::details`]; `joiner why` reads them back, from
//! a running controller or from a file, with the same functions. Fields that an older line lacks are
//! empty.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::decisions::Decision;

/// Kind of records about pods that get a place.
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
    /// Somebody said that the node must stay; otherwise there is nothing to gain, or not yet.
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

/// Something that was decided about a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "outcome"
)]
pub enum PodFate {
    /// A node is bought for it.
    NewNode {
        /// Which.
        #[serde(flatten)]
        node: PlannedNode,
    },
    /// It goes to a node there is.
    ExistingNode {
        /// `node/NAME` or `nodeclaim/NAME`.
        on: String,
    },
    /// It has no place.
    Unschedulable {
        /// Why.
        #[serde(flatten)]
        why: LeftOver,
    },
    /// Its node goes, and it moves.
    Moved {
        /// From where to where.
        #[serde(flatten)]
        to: Move,
        /// Why its node goes.
        why: String,
    },
}

/// Something that was decided about a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "outcome"
)]
pub enum NodeFate {
    /// It was bought.
    Bought {
        /// For what.
        #[serde(flatten)]
        node: PlannedNode,
    },
    /// It was bought to take the place of others.
    Replaces {
        /// Names of their nodes.
        removed: Vec<String>,
        /// What it is.
        #[serde(flatten)]
        machine: Machine,
        /// Why they go.
        why: String,
    },
    /// It stays.
    Kept {
        /// Why.
        #[serde(flatten)]
        why: Kept,
    },
    /// It goes.
    Removed {
        /// With what, and what follows.
        #[serde(flatten)]
        details: DisruptionDetails,
        /// Why.
        why: String,
        /// Dollars an hour for the nodes that go.
        price_before: Option<f64>,
        /// And for what takes their place.
        price_after: Option<f64>,
    },
}

/// A fate and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt<T> {
    /// When it was decided.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub fate: T,
}

/// The details of a decision, as far as they can be understood.
fn details<T: DeserializeOwned>(decision: &Decision) -> Option<T> {
    serde_json::from_value(decision.details.clone()).ok()
}

/// What one decision says about a pod, given as `namespace/name`.
#[must_use]
pub fn of_pod(decision: &Decision, pod: &str) -> Option<Receipt<PodFate>> {
    if !is_about(decision, "pod", pod) {
        return None;
    }
    let has = |pods: &[String]| pods.iter().any(|own| own == pod);
    let fate = match decision.kind.as_str() {
        PROVISIONING => {
            let details: ProvisioningDetails = details(decision)?;
            let node = details.nodes.into_iter().find(|own| has(&own.pods));
            let seat = details.placed.into_iter().find(|own| has(&own.pods));
            match (node, seat) {
                (Some(node), _) => PodFate::NewNode { node },
                (None, Some(seat)) => PodFate::ExistingNode { on: seat.on },
                (None, None) => return None,
            }
        }
        UNSCHEDULABLE => PodFate::Unschedulable {
            why: details(decision)?,
        },
        DISRUPTION => {
            let details: DisruptionDetails = details(decision)?;
            let to = details.moves.into_iter().find(|own| own.pod == pod)?;
            PodFate::Moved {
                to,
                why: decision.outcome.clone(),
            }
        }
        _ => return None,
    };
    let time = decision.time;
    Some(Receipt { time, fate })
}

/// What one decision says about a node: `names` are those of the Node and of its NodeClaim.
#[must_use]
pub fn of_node(decision: &Decision, names: &[&str]) -> Option<Receipt<NodeFate>> {
    let about =
        |name: &&str| is_about(decision, "node", name) || is_about(decision, "nodeclaim", name);
    if !names.iter().any(about) {
        return None;
    }
    let is = |own: &Machine| {
        let matches = |name: &str| !name.is_empty() && names.contains(&name);
        matches(&own.node_claim) || matches(&own.node)
    };
    let fate = match decision.kind.as_str() {
        PROVISIONING => {
            let details: ProvisioningDetails = details(decision)?;
            let node = details.nodes.into_iter().find(|own| is(&own.machine))?;
            NodeFate::Bought { node }
        }
        DISRUPTION => {
            let details: DisruptionDetails = details(decision)?;
            let why = decision.outcome.clone();
            if let Some(own) = details.replacements.iter().find(|own| is(own)) {
                NodeFate::Replaces {
                    machine: own.clone(),
                    removed: details.removed.iter().map(|own| own.node.clone()).collect(),
                    why,
                }
            } else {
                NodeFate::Removed {
                    details,
                    why,
                    price_before: decision.price_before.map(in_dollars),
                    price_after: decision.price_after.map(in_dollars),
                }
            }
        }
        KEPT => {
            let details: KeptDetails = details(decision)?;
            let why = details.nodes.into_iter().find(|own| is(&own.machine))?;
            NodeFate::Kept { why }
        }
        _ => return None,
    };
    let time = decision.time;
    Some(Receipt { time, fate })
}

fn is_about(decision: &Decision, kind: &str, name: &str) -> bool {
    let is = |own: &String| {
        let rest = own.strip_prefix(kind).and_then(|own| own.strip_prefix('/'));
        rest == Some(name)
    };
    decision.about.iter().any(is)
}

/// Dollars, for programs and people.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "prices are far below 2^53 nano-dollars"
)]
pub fn in_dollars(price: joiner_model::NanoDollars) -> f64 {
    price.get() as f64 / 1e9
}
