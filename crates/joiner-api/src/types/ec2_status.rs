//! Status of EC2NodeClass: what its selectors came to.

use super::{Condition, MatchCriteria, Requirement, wire_enum};
use serde::{Deserialize, Serialize};

/// What the selectors of a class resolved to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ec2NodeClassStatus {
    /// Subnets, most free addresses first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnets: Option<Vec<Subnet>>,
    /// Security groups, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// Images, newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amis: Option<Vec<Ami>>,
    /// Capacity reservations, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_reservations: Option<Vec<CapacityReservation>>,
    /// Instance profile in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// A subnet that instances may start in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// Id of the subnet.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Its zone by id.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// A security group that instances join.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// Id of the group.
    pub id: String,
    /// Name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An image that instances may boot from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ami {
    /// Id of the image.
    pub id: String,
    /// Name of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its owner asks people to move on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// Which instance types it fits.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
}

wire_enum! {
    /// Kind of a capacity reservation.
    ReservationType {
        /// On-demand reservation.
        Default = "default",
        /// Block of accelerated capacity with an end.
        CapacityBlock = "capacity-block",
    }
}

wire_enum! {
    /// Where a reservation is in its life.
    ReservationState {
        /// Usable.
        Active = "active",
        /// About to end.
        Expiring = "expiring",
    }
}

/// Capacity that is paid for already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// Id of the reservation.
    pub id: String,
    /// Its zone.
    pub availability_zone: String,
    /// The type it holds.
    pub instance_type: String,
    /// Which launches may use it.
    pub instance_match_criteria: MatchCriteria,
    /// Account that pays for it.
    #[serde(rename = "ownerID")]
    pub owner_id: String,
    /// Its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_type: Option<ReservationType>,
    /// AWS may take it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// Where it is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ReservationState>,
    /// When it ends, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
}
