//! Fleets and machines.

use serde::{Deserialize, Serialize};

use super::InstanceState;
use crate::request::{FleetLaunchTemplateOverrides, LaunchTemplateSpecification};
use crate::tags::Tag;

/// What came of CreateFleet: machines, errors, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CreateFleetResult {
    /// Its id.
    pub fleet_id: String,
    /// Offerings that could not be had.
    pub errors: Vec<FleetError>,
    /// Machines.
    pub instances: Vec<FleetInstance>,
}

/// An offering that could not be had.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FleetError {
    /// Why, in one word.
    pub error_code: String,
    /// Why, in a sentence.
    pub error_message: String,
    /// Which.
    pub launch_template_and_overrides: LaunchTemplateAndOverrides,
    /// `spot` or `on-demand`.
    pub lifecycle: String,
}

/// Machines of one type from one template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct FleetInstance {
    /// Ids.
    pub instance_ids: Vec<String>,
    /// Type.
    pub instance_type: String,
    /// From what they were made.
    pub launch_template_and_overrides: LaunchTemplateAndOverrides,
    /// `spot` or `on-demand`.
    pub lifecycle: String,
}

/// From what something was made, or was to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LaunchTemplateAndOverrides {
    /// Template.
    pub launch_template_specification: LaunchTemplateSpecification,
    /// Type, subnet, zone.
    pub overrides: FleetLaunchTemplateOverrides,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Instance {
    /// Reservation that it runs in.
    pub capacity_reservation_id: Option<String>,
    /// What reservations it may use.
    pub capacity_reservation_specification: Option<ReservationSpecification>,
    /// Image that it booted.
    pub image_id: String,
    /// Id.
    pub instance_id: String,
    /// Type.
    pub instance_type: String,
    /// When it was launched, RFC 3339.
    pub launch_time: String,
    /// Network interfaces.
    pub network_interfaces: Vec<InstanceNetworkInterface>,
    /// Where it is.
    pub placement: InstancePlacement,
    /// Name of its host.
    pub private_dns_name: Option<String>,
    /// Security groups.
    pub security_groups: Vec<GroupIdentifier>,
    /// The request for spot capacity, for spot machines.
    pub spot_instance_request_id: Option<String>,
    /// Where it is in its life.
    pub state: InstanceState,
    /// Subnet.
    pub subnet_id: Option<String>,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// What reservations a machine may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ReservationSpecification {
    /// `none`, `open` or `capacity-reservations-only`.
    pub capacity_reservation_preference: Option<String>,
}

/// A network interface of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceNetworkInterface {
    /// `interface`, `efa` or `efa-only`.
    pub interface_type: Option<String>,
}

/// Where a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstancePlacement {
    /// Zone.
    pub availability_zone: String,
    /// Placement group.
    pub group_id: Option<String>,
    /// Partition of the group.
    pub partition_number: Option<i32>,
    /// `default` or `dedicated`.
    pub tenancy: Option<String>,
}

/// A security group of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct GroupIdentifier {
    /// Its id.
    pub group_id: String,
}

/// What TerminateInstances says of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StateChange {
    /// Where it is in its life now.
    pub current_state: InstanceState,
    /// Which machine.
    pub instance_id: String,
}
