//! CreateLaunchTemplate.

use serde::{Deserialize, Serialize};

use crate::tags::TagSpecification;

/// A template of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CreateLaunchTemplate {
    /// Name by which it is found again.
    pub launch_template_name: String,
    /// What machines are made with.
    pub launch_template_data: LaunchTemplateData,
    /// Tags of the template itself.
    pub tag_specifications: Vec<TagSpecification>,
}

/// What machines are made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct LaunchTemplateData {
    /// Volumes; none leaves them to the image.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// Which reservations the machine may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_specification: Option<CapacityReservationSpecification>,
    /// Processor options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
    /// Enclaves.
    pub enclave_options: EnclaveOptions,
    /// Identity of the machine.
    pub iam_instance_profile: IamInstanceProfile,
    /// Image to boot from.
    pub image_id: String,
    /// Market, where it is a special one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_market_options: Option<InstanceMarketOptions>,
    /// Access to the metadata service.
    pub metadata_options: MetadataOptions,
    /// Metrics.
    pub monitoring: Monitoring,
    /// Network interfaces, which carry the security groups.
    pub network_interfaces: Vec<NetworkInterfaceSpecification>,
    /// Where the machine is put.
    pub placement: Placement,
    /// Tags of what is made with the machine.
    pub tag_specifications: Vec<TagSpecification>,
    /// User data in base64.
    pub user_data: String,
}

/// One volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct BlockDeviceMapping {
    /// Name of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ebs: Option<EbsBlockDevice>,
}

/// A volume of EBS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EbsBlockDevice {
    /// Goes away with the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Encrypted at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<i32>,
    /// Key for encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// Snapshot to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// MiB per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i32>,
    /// MiB per second while the snapshot is read in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_initialization_rate: Option<i32>,
    /// GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<i32>,
    /// Kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
}

/// Which reservations a machine may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CapacityReservationSpecification {
    /// `none`, `open` or `capacity-reservations-only`.
    pub capacity_reservation_preference: String,
    /// The one to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_target: Option<CapacityReservationTarget>,
}

/// A reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CapacityReservationTarget {
    /// Its id.
    pub capacity_reservation_id: String,
}

/// Processor options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct CpuOptions {
    /// Whether virtual machines can run inside of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<String>,
}

/// Enclaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EnclaveOptions {
    /// Whether the machine can have any.
    pub enabled: bool,
}

/// An instance profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct IamInstanceProfile {
    /// Its name.
    pub name: String,
}

/// A market.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct InstanceMarketOptions {
    /// `capacity-block` or `interruptible-capacity-reservation`.
    pub market_type: String,
}

/// Access to the metadata service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct MetadataOptions {
    /// Whether it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<String>,
    /// Whether it answers over IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_protocol_ipv6: Option<String>,
    /// How far answers travel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_put_response_hop_limit: Option<i32>,
    /// Whether tokens are needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<String>,
    /// Whether it tells tags.
    pub instance_metadata_tags: String,
}

/// Metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Monitoring {
    /// Every minute instead of every five.
    pub enabled: bool,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct NetworkInterfaceSpecification {
    /// Whether it gets a public address; not said: as the subnet says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// Idle timeouts of tracked connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_tracking_specification: Option<ConnectionTrackingSpecification>,
    /// Its place in the order of devices.
    pub device_index: i32,
    /// Security groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// `interface`, `efa` or `efa-only`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface_type: Option<String>,
    /// Prefixes of version 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4_prefix_count: Option<i32>,
    /// Addresses of version 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address_count: Option<i32>,
    /// Prefixes of version 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_prefix_count: Option<i32>,
    /// The card that it sits on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_card_index: Option<i32>,
    /// Its first address of version 6 stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_ipv6: Option<bool>,
    /// Subnet; in a template, the fleet says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
}

/// Idle timeouts of tracked connections, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ConnectionTrackingSpecification {
    /// Established TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_established_timeout: Option<i32>,
    /// UDP with traffic both ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_stream_timeout: Option<i32>,
    /// Other UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_timeout: Option<i32>,
}

/// Where a machine is put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Placement {
    /// Placement group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    /// Partition in the group; not said: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_number: Option<i32>,
    /// `default` or `dedicated`.
    pub tenancy: String,
}
