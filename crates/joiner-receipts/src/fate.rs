//! What one decision says about one pod or one node.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::decision::{Decision, in_dollars};
use crate::details::{
    DISRUPTION, DisruptionDetails, KEPT, Kept, KeptDetails, LeftOver, Machine, Move, PROVISIONING,
    PlannedNode, ProvisioningDetails, UNSCHEDULABLE,
};

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
    let has_pod = |pods: &[String]| pods.iter().any(|name| name == pod);
    let fate = match decision.kind.as_str() {
        PROVISIONING => {
            let details: ProvisioningDetails = details(decision)?;
            let bought = details.nodes.into_iter().find(|node| has_pod(&node.pods));
            let seat = details.placed.into_iter().find(|seat| has_pod(&seat.pods));
            match (bought, seat) {
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
            let to = details.moves.into_iter().find(|moved| moved.pod == pod)?;
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
    let is_subject =
        |name: &&str| is_about(decision, "node", name) || is_about(decision, "nodeclaim", name);
    if !names.iter().any(is_subject) {
        return None;
    }
    let is_named = |machine: &Machine| {
        let matches = |name: &str| !name.is_empty() && names.contains(&name);
        matches(&machine.node_claim) || matches(&machine.node)
    };
    let fate = match decision.kind.as_str() {
        PROVISIONING => {
            let details: ProvisioningDetails = details(decision)?;
            let mut bought = details.nodes.into_iter();
            let node = bought.find(|node| is_named(&node.machine))?;
            NodeFate::Bought { node }
        }
        DISRUPTION => disrupted(decision, details(decision)?, is_named),
        KEPT => {
            let details: KeptDetails = details(decision)?;
            let mut kept = details.nodes.into_iter();
            let why = kept.find(|node| is_named(&node.machine))?;
            NodeFate::Kept { why }
        }
        _ => return None,
    };
    let time = decision.time;
    Some(Receipt { time, fate })
}

/// The fate of a node that a disruption is about: it comes, or it goes.
fn disrupted(
    decision: &Decision,
    details: DisruptionDetails,
    is_named: impl Fn(&Machine) -> bool,
) -> NodeFate {
    let why = decision.outcome.clone();
    let replacement = details
        .replacements
        .iter()
        .find(|machine| is_named(machine));
    if let Some(machine) = replacement {
        let removed = details.removed.iter();
        return NodeFate::Replaces {
            machine: machine.clone(),
            removed: removed.map(|machine| machine.node.clone()).collect(),
            why,
        };
    }
    NodeFate::Removed {
        details,
        why,
        price_before: decision.price_before.map(in_dollars),
        price_after: decision.price_after.map(in_dollars),
    }
}

fn is_about(decision: &Decision, kind: &str, name: &str) -> bool {
    let is_it = |object: &String| {
        let rest = object.strip_prefix(kind);
        rest.and_then(|rest| rest.strip_prefix('/')) == Some(name)
    };
    decision.about.iter().any(is_it)
}
