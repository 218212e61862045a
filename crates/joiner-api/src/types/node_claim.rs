//! NodeClaim: one node, from the wish to its end.

use super::{
    Condition, DurationText, NodeClassRef, Object, Requirement, Resource, ResourceMap, Taint,
};
use serde::{Deserialize, Serialize};

/// The wish for one node and what became of it.
pub type NodeClaim = Object<NodeClaimSpec, NodeClaimStatus>;

impl Resource for NodeClaim {
    const GROUP: &'static str = "karpenter.sh";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "NodeClaim";
    const PLURAL: &'static str = "nodeclaims";
    const NAMESPACED: bool = false;
}

/// What one node must be. Never changes after creation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Taints that stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else lifts once the node is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_taints: Option<Vec<Taint>>,
    /// Wishes about labels.
    pub requirements: Vec<Requirement>,
    /// The least the node must offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<NodeClaimResources>,
    /// The provider's side of the node.
    pub node_class_ref: NodeClassRef,
    /// How long a drain may take before it is forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<DurationText>,
    /// Age at which the node is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<DurationText>,
}

/// Resources that a node must offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeClaimResources {
    /// Sum of what its pods and daemons ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceMap>,
}

/// What became of the wish.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// Name of the Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The machine, as the provider calls it.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,
    /// The image it booted from.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Everything the machine has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ResourceMap>,
    /// What is left for pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<ResourceMap>,
    /// When a pod last came, went or finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<String>,
    /// Observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
