//! What is answered about pods and nodes, and what of the cluster goes into it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::details::Kept;
use crate::fate::{NodeFate, PodFate, Receipt};

/// The cluster as it is now, as far as answers show it.
pub trait Live {
    /// The time, on the controller's clock.
    fn time(&self) -> Timestamp;

    /// Names of all pods, `namespace/name`.
    fn pods(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// Names of all nodes.
    fn nodes(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// A pod, by its `namespace/name`.
    fn pod(&self, name: &str) -> Option<PodState>;

    /// A node, by its name or that of its claim.
    fn node(&self, name: &str) -> Option<NodeState>;
}

/// What is known about a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAnswer {
    /// `namespace/name`.
    pub pod: String,
    /// The time of the answer, on the controller's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Timestamp>,
    /// The pod as it is now; nothing when it is gone, or when only a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PodState>,
    /// What was decided, oldest first.
    pub receipts: Vec<Receipt<PodFate>>,
}

/// A pod as it is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodState {
    /// Its phase.
    pub phase: String,
    /// The node it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The claim of that node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// What it requests.
    pub requests: String,
    /// When it was created.
    pub created: Timestamp,
    /// What it waits for, if that is not for us to decide, or cannot be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

/// A node as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Name of the Node; of the claim while there is no Node.
    pub node: String,
    /// Name of its NodeClaim.
    pub node_claim: Option<String>,
    /// How it stands, as the predicate of a sentence about it.
    pub state: String,
}

/// What is known about a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAnswer {
    /// Name of the Node; of the claim while there is no Node.
    pub node: String,
    /// Name of its NodeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// The time of the answer, on the controller's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Timestamp>,
    /// How it stands; nothing when it is gone, or when only a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it stays, as of the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// What was decided, oldest first.
    pub receipts: Vec<Receipt<NodeFate>>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", tag = "error")]
pub enum NoAnswer {
    /// Nothing is known by that name.
    #[error("{}", unknown(what, name, near))]
    Unknown {
        /// `pod` or `node`.
        what: String,
        /// What was asked for.
        name: String,
        /// Names that may have been meant.
        near: Vec<String>,
    },
    /// Several have that name.
    #[error("there is more than one pod {name:?}: say which one: {}", all.join(", "))]
    Several {
        /// What was asked for.
        name: String,
        /// All of them.
        all: Vec<String>,
    },
}

fn unknown(what: &str, name: &str, near: &[String]) -> String {
    let there = format!("there is no {what} {name:?}, and nothing was decided about one");
    match near {
        [] => there,
        near => format!("{there}; did you mean {}?", near.join(", ")),
    }
}
