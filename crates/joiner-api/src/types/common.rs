//! Parts that several kinds share.

use super::{Quantity, wire_enum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amounts by resource name.
pub type ResourceMap = BTreeMap<String, Quantity>;

wire_enum! {
    /// How a requirement compares a label.
    Operator {
        /// The label has one of the values.
        In = "In",
        /// The label is absent or has none of the values.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is not there.
        DoesNotExist = "DoesNotExist",
        /// The label is a number above the value.
        Gt = "Gt",
        /// The label is a number below the value.
        Lt = "Lt",
        /// The label is a number, the value or above.
        Gte = "Gte",
        /// The label is a number, the value or below.
        Lte = "Lte",
    }
}

impl Operator {
    /// Whether the operator compares numbers.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        matches!(self, Self::Gt | Self::Lt | Self::Gte | Self::Lte)
    }
}

/// A wish about one label of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what it is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// How many different values must stay possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<u32>,
}

wire_enum! {
    /// What a taint does to pods that do not tolerate it.
    TaintEffect {
        /// No new pods.
        NoSchedule = "NoSchedule",
        /// No new pods if it can be helped.
        PreferNoSchedule = "PreferNoSchedule",
        /// No new pods, and running ones leave.
        NoExecute = "NoExecute",
    }
}

/// Keeps pods off a node unless they tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key, matched by tolerations.
    pub key: String,
    /// Value, matched by tolerations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What the taint does.
    pub effect: TaintEffect,
    /// When it was put on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// Points at the provider's node class. The class lives at cluster level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeClassRef {
    /// API group of the class, without the version.
    pub group: String,
    /// Kind of the class.
    pub kind: String,
    /// Name of the class.
    pub name: String,
}

wire_enum! {
    /// What a condition says.
    ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// Nobody knows yet.
        Unknown = "Unknown",
    }
}

/// One observation about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is observed.
    #[serde(rename = "type")]
    pub type_: String,
    /// The verdict.
    pub status: ConditionStatus,
    /// Why, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the verdict last changed, RFC 3339.
    pub last_transition_time: String,
    /// Generation of the object that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}
