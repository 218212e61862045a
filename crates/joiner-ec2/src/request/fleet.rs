//! CreateFleet, and RunInstances as far as it is asked whether it would work.

use serde::{Deserialize, Serialize};

use super::NetworkInterfaceSpecification;
use crate::tags::TagSpecification;

/// Machines at once, of whichever types there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CreateFleet {
    /// The same token never makes a second fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_token: Option<String>,
    /// Passed through from the class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Only asks whether it would work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Templates, and what may be made from each.
    pub launch_template_configs: Vec<FleetLaunchTemplateConfig>,
    /// How on-demand machines are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_demand_options: Option<AllocationOptions>,
    /// How reserved machines are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_capacity_options: Option<ReservedCapacityOptions>,
    /// How spot machines are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_options: Option<AllocationOptions>,
    /// Tags of machines, volumes and the fleet.
    pub tag_specifications: Vec<TagSpecification>,
    /// How many, and how they are paid for.
    pub target_capacity_specification: TargetCapacity,
    /// `instant`: the answer has the machines.
    pub r#type: String,
}

/// A template, and what may be made from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FleetLaunchTemplateConfig {
    /// The template.
    pub launch_template_specification: LaunchTemplateSpecification,
    /// Types, subnets and zones.
    pub overrides: Vec<FleetLaunchTemplateOverrides>,
}

/// A version of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LaunchTemplateSpecification {
    /// Name of the template.
    pub launch_template_name: String,
    /// `$Latest`.
    pub version: String,
}

impl LaunchTemplateSpecification {
    /// The only version there is.
    #[must_use]
    pub fn latest(name: &str) -> Self {
        Self {
            launch_template_name: name.to_owned(),
            version: "$Latest".to_owned(),
        }
    }
}

/// One thing that may be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FleetLaunchTemplateOverrides {
    /// Its zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Its type.
    pub instance_type: String,
    /// Lower comes first: the price in dollars an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// Its subnet.
    pub subnet_id: String,
}

/// How machines are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct AllocationOptions {
    /// `lowest-price`, `prioritized`, `price-capacity-optimized`, `capacity-optimized-prioritized`.
    pub allocation_strategy: String,
}

/// How reserved machines are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservedCapacityOptions {
    /// Kinds of reservations.
    pub reservation_types: Vec<String>,
}

/// How many machines, and how they are paid for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct TargetCapacity {
    /// `spot`, `on-demand`, `capacity-block`, `reserved-capacity`.
    pub default_target_capacity_type: String,
    /// How many.
    pub total_target_capacity: i32,
}

/// A machine of one type, asked for directly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RunInstances {
    /// Only asks whether it would work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    /// Its type.
    pub instance_type: String,
    /// Its template.
    pub launch_template: LaunchTemplateSpecification,
    /// At most so many.
    pub max_count: i32,
    /// At least so many.
    pub min_count: i32,
    /// Where it is attached.
    pub network_interfaces: Vec<NetworkInterfaceSpecification>,
    /// Tags of machine, volumes and interfaces.
    pub tag_specifications: Vec<TagSpecification>,
}
