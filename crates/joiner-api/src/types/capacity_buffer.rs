//! CapacityBuffer: room kept free for pods that may come.

use super::{Condition, Object, Resource, ResourceMap};
use serde::{Deserialize, Serialize};

/// The strategy that a buffer has unless it names another.
pub const ACTIVE_CAPACITY: &str = "buffer.x-k8s.io/active-capacity";

/// Room kept free in the cluster, measured in pods.
pub type CapacityBuffer = Object<CapacityBufferSpec, CapacityBufferStatus>;

impl Resource for CapacityBuffer {
    const GROUP: &'static str = "autoscaling.x-k8s.io";
    const VERSION: &'static str = "v1beta1";
    const KIND: &'static str = "CapacityBuffer";
    const PLURAL: &'static str = "capacitybuffers";
    const NAMESPACED: bool = true;
}

/// How much room, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// How the room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// PodTemplate that one unit of room is cut to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalRef>,
    /// Workload that one unit of room is cut to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
    /// Units of room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Units of room as a share of the workload's replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i32>,
    /// Cap on the sum of all units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceMap>,
}

/// An object in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalRef {
    /// Name of the object.
    pub name: String,
}

/// A workload in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// Group of the workload; absent or empty means `apps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Kind of the workload.
    pub kind: String,
    /// Name of the workload.
    pub name: String,
}

/// What the buffer came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// PodTemplate in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalRef>,
    /// Units of room wanted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Generation of the template in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// Strategy in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
