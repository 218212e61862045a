//! What of a node matters to the scheduler: labels, taints, room.

use joiner_machinery::meta;
use serde_json::Value;

use super::amounts::{Amounts, units};
use super::labels::{Labels, items};

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// New pods stay away.
    NoSchedule,
    /// New pods rather go elsewhere.
    PreferNoSchedule,
    /// Running pods leave, too.
    NoExecute,
    /// A word that nobody knows.
    Unknown,
}

impl Effect {
    fn read(text: &str) -> Self {
        match text {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => Self::Unknown,
        }
    }
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Taint {
    /// Its key.
    pub(crate) key: Box<str>,
    /// Its value, which may be empty.
    pub(crate) value: Box<str>,
    /// What it does.
    pub(crate) effect: Effect,
}

impl Taint {
    /// Reads an entry of `spec.taints`.
    pub(crate) fn read(taint: &Value) -> Self {
        let text = |field: &str| taint[field].as_str().unwrap_or("");
        Self {
            key: text("key").into(),
            value: text("value").into(),
            effect: Effect::read(text("effect")),
        }
    }
}

/// What a pod puts up with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Toleration {
    key: Box<str>,
    exists: bool,
    value: Box<str>,
    effect: Option<Effect>,
    /// How long it stays with a `NoExecute` taint; for good when absent.
    pub(crate) seconds: Option<i64>,
}

impl Toleration {
    /// Reads an entry of `spec.tolerations`.
    pub(crate) fn read(toleration: &Value) -> Self {
        let text = |field: &str| toleration[field].as_str().unwrap_or("");
        Self {
            key: text("key").into(),
            exists: text("operator") == "Exists",
            value: text("value").into(),
            effect: Some(text("effect"))
                .filter(|text| !text.is_empty())
                .map(Effect::read),
            seconds: toleration["tolerationSeconds"].as_i64(),
        }
    }

    /// True when the taint is no obstacle.
    pub(crate) fn covers(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key == taint.key || (self.key.is_empty() && self.exists))
            && (self.exists || self.value == taint.value)
    }
}

/// A node as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeInfo {
    /// Its name.
    pub(crate) name: String,
    /// Its labels.
    pub(crate) labels: Labels,
    /// Its taints.
    pub(crate) taints: Vec<Taint>,
    /// Cordoned.
    pub(crate) unschedulable: bool,
    /// What pods can use.
    pub(crate) allocatable: Amounts,
    /// How many pods it takes.
    pub(crate) pods_max: i64,
}

impl NodeInfo {
    /// Reads a Node.
    pub(crate) fn read(node: &Value) -> Self {
        let (spec, status) = (&node["spec"], &node["status"]);
        let given = status["allocatable"].is_object();
        let allocatable = &status[if given { "allocatable" } else { "capacity" }];
        Self {
            name: meta::name(node).to_owned(),
            labels: Labels::read(&node["metadata"]["labels"]),
            taints: items(&spec["taints"]).map(Taint::read).collect(),
            unschedulable: spec["unschedulable"] == true,
            allocatable: Amounts::read(allocatable),
            pods_max: units(&allocatable["pods"]),
        }
    }
}
