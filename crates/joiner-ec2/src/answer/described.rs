//! What is in an account: images, subnets, groups, reservations, prices.

use serde::{Deserialize, Serialize};

use crate::tags::Tag;

/// An image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Image {
    /// `x86_64`, `arm64`, ..
    pub architecture: String,
    /// When it was made, RFC 3339.
    pub creation_date: String,
    /// From when on it should not be used, RFC 3339.
    pub deprecation_time: Option<String>,
    /// Id.
    pub image_id: String,
    /// Name.
    pub name: String,
    /// `available`, ..
    pub state: String,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Subnet {
    /// Zone.
    pub availability_zone: String,
    /// Zone by id.
    pub availability_zone_id: String,
    /// Addresses that are free.
    pub available_ip_address_count: u32,
    /// Id.
    pub subnet_id: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SecurityGroup {
    /// Id.
    pub group_id: String,
    /// Name.
    pub group_name: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// A capacity reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CapacityReservation {
    /// Zone.
    pub availability_zone: String,
    /// How many machines it has room for.
    pub available_instance_count: u32,
    /// Id.
    pub capacity_reservation_id: String,
    /// When it ends, RFC 3339.
    pub end_date: Option<String>,
    /// `open` or `targeted`.
    pub instance_match_criteria: String,
    /// Type.
    pub instance_type: String,
    /// AWS may take it back.
    pub interruptible: Option<bool>,
    /// Account that pays.
    pub owner_id: String,
    /// `default` or `capacity-block`.
    pub reservation_type: Option<String>,
    /// `active`, ..
    pub state: String,
}

/// A placement group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct PlacementGroup {
    /// Id.
    pub group_id: String,
    /// Name.
    pub group_name: String,
    /// Partitions, if it has any.
    pub partition_count: Option<u32>,
    /// `available`, ..
    pub state: String,
    /// `cluster`, `partition` or `spread`.
    pub strategy: String,
}

/// A launch template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LaunchTemplate {
    /// Name.
    pub launch_template_name: String,
    /// Tags.
    pub tags: Vec<Tag>,
}

/// A price of spot capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct SpotPrice {
    /// Zone.
    pub availability_zone: String,
    /// Type.
    pub instance_type: String,
    /// Dollars an hour.
    pub spot_price: String,
    /// Since when, RFC 3339.
    pub timestamp: String,
}

/// Where a machine is in its life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceState {
    /// `pending`, `running`, `shutting-down`, `terminated`, `stopping` or `stopped`.
    pub name: String,
}

/// How a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceStatus {
    /// What will happen to it.
    pub events: Vec<ScheduledEvent>,
    /// Which machine.
    pub instance_id: String,
    /// Checks from inside.
    pub instance_status: StatusSummary,
    /// Checks of what is below it.
    pub system_status: StatusSummary,
}

/// Some checks of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StatusSummary {
    /// One by one.
    pub details: Vec<StatusDetail>,
    /// `ok`, `impaired`, ..
    pub status: String,
}

/// One check of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StatusDetail {
    /// Since when it fails, RFC 3339.
    pub impaired_since: Option<String>,
    /// `passed`, `failed`, ..
    pub status: String,
}

/// What will happen to a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ScheduledEvent {
    /// `instance-stop`, ..
    pub code: String,
    /// In a sentence; starts with `[Completed]` or `[Canceled]` when it is over.
    pub description: String,
}
