//! NodePool: what nodes may be made, how many, and when they may go.

use super::{
    Condition, DurationText, NodeClassRef, Object, Requirement, Resource, ResourceMap, Taint,
    wire_enum,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pool of nodes with common properties.
pub type NodePool = Object<NodePoolSpec, NodePoolStatus>;

impl Resource for NodePool {
    const GROUP: &'static str = "karpenter.sh";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "NodePool";
    const PLURAL: &'static str = "nodepools";
    const NAMESPACED: bool = false;
}

/// What the user wants of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What each node looks like.
    pub template: NodeClaimTemplate,
    /// When nodes may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// Caps on the sum of the pool's capacity; `nodes` counts nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceMap>,
    /// Heavier pools are tried first; absent means zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// Fixed number of nodes; absent for pools that follow the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
}

/// The mold of the pool's NodeClaims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeClaimTemplate {
    /// Labels and annotations that claims and nodes inherit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// What claims ask for.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of a template. Absent differs from empty in the drift hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateMeta {
    /// Labels for claims and nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations for claims and nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What the claims of a pool ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints that stay. Absent differs from empty in the drift hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else lifts once the node is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_taints: Option<Vec<Taint>>,
    /// Wishes about labels.
    pub requirements: Vec<Requirement>,
    /// The provider's side of the node.
    pub node_class_ref: NodeClassRef,
    /// How long a drain may take before it is forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<DurationText>,
    /// Age at which a node is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<DurationText>,
}

impl NodePoolSpec {
    /// Labels of the template; none when absent.
    pub fn template_labels(&self) -> impl Iterator<Item = (&String, &String)> {
        self.template
            .metadata
            .iter()
            .filter_map(|meta| meta.labels.as_ref())
            .flatten()
    }

    /// Lasting taints, then start-up taints.
    pub fn all_taints(&self) -> impl Iterator<Item = &Taint> {
        let spec = &self.template.spec;
        spec.taints.iter().chain(&spec.startup_taints).flatten()
    }

    /// Whether the pool keeps a fixed number of nodes.
    #[must_use]
    pub const fn is_static(&self) -> bool {
        self.replicas.is_some()
    }
}

wire_enum! {
    /// Which nodes consolidation may look at.
    ConsolidationPolicy {
        /// Only empty ones.
        WhenEmpty = "WhenEmpty",
        /// Also those whose pods fit elsewhere or on something cheaper.
        WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized",
        /// As before, when the saving is worth the moves.
        Balanced = "Balanced",
    }
}

/// When nodes of the pool may be taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must be quiet first.
    pub consolidate_after: DurationText,
    /// Which nodes are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_policy: Option<ConsolidationPolicy>,
    /// How many may go at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Vec<Budget>>,
}

wire_enum! {
    /// Why a node is taken away by choice.
    DisruptionReason {
        /// Its pods fit elsewhere.
        Underutilized = "Underutilized",
        /// It has no pods to speak of.
        Empty = "Empty",
        /// It no longer is what the pool asks for.
        Drifted = "Drifted",
    }
}

/// How many nodes may go at once, and when that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// A number, or a share such as `10%`.
    pub nodes: String,
    /// Reasons it applies to: absent means all, empty means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// Cron expression in UTC that opens the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// How long the window stays open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationText>,
}

/// What is known of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Capacity of all its nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceMap>,
    /// Number of its nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// Generation of the node class when registration health was last judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
