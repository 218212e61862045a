//! NodeOverlay: corrections to what the scheduler believes about instance types.

use super::{Condition, Object, Requirement, Resource, ResourceMap};
use serde::{Deserialize, Serialize};

/// A correction of price or extended resources. Never changes a machine.
pub type NodeOverlay = Object<NodeOverlaySpec, NodeOverlayStatus>;

impl Resource for NodeOverlay {
    const GROUP: &'static str = "karpenter.sh";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "NodeOverlay";
    const PLURAL: &'static str = "nodeoverlays";
    const NAMESPACED: bool = false;
}

/// Which types are corrected, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// Which types and pools it applies to.
    pub requirements: Vec<Requirement>,
    /// Replaces the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    /// Shifts the price, by an amount or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_adjustment: Option<String>,
    /// Extended resources that the types have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<ResourceMap>,
    /// Heavier overlays win; absent means zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// Whether the correction is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeOverlayStatus {
    /// Observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
