//! EC2NodeClass: the AWS side of a node.

use super::{DurationText, Ec2NodeClassStatus, Object, Quantity, Resource, wire_enum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How instances are launched on EC2.
pub type Ec2NodeClass = Object<Ec2NodeClassSpec, Ec2NodeClassStatus>;

impl Resource for Ec2NodeClass {
    const GROUP: &'static str = "karpenter.k8s.aws";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "EC2NodeClass";
    const PLURAL: &'static str = "ec2nodeclasses";
    const NAMESPACED: bool = false;
}

/// Settings of instances. Selector terms are alternatives; fields inside a term all apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ec2NodeClassSpec {
    /// Subnets to start in.
    pub subnet_selector_terms: Vec<SubnetTerm>,
    /// Security groups to join.
    pub security_group_selector_terms: Vec<SecurityGroupTerm>,
    /// Reservations to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reservation_selector_terms: Option<Vec<CapacityReservationTerm>>,
    /// Placement group to start in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public address.
    #[serde(
        rename = "associatePublicIPAddress",
        skip_serializing_if = "Option::is_none"
    )]
    pub associate_public_ip_address: Option<bool>,
    /// Address prefixes for the first interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_prefix_count: Option<i32>,
    /// Images to boot from.
    pub ami_selector_terms: Vec<AmiTerm>,
    /// How user data and devices are laid out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// User data, merged with ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// IAM role; the profile is managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Instance profile that exists already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Tags for everything that is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Kubelet settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<Kubelet>,
    /// Volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// What to do with instance stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Network interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// One-minute metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// Access to the metadata service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
    /// Idle timeouts of tracked connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Passed through to the fleet request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Processor options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

/// Picks subnets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubnetTerm {
    /// Tags; `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Picks security groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecurityGroupTerm {
    /// Tags; `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the group, not its Name tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

wire_enum! {
    /// Which launches may use a reservation.
    MatchCriteria {
        /// Any that fit.
        Open = "open",
        /// Only those that name it.
        Targeted = "targeted",
    }
}

/// Picks capacity reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapacityReservationTerm {
    /// Tags; `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Account that owns it.
    #[serde(rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// Which launches may use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<MatchCriteria>,
}

/// Picks one placement group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlacementGroupSelector {
    /// By name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// By id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Picks images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AmiTerm {
    /// `family@version` of an image that AWS publishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Tags; `*` matches any value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Account id or alias of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Parameter that holds the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
}

wire_enum! {
    /// Families of images we know how to start.
    AmiFamily {
        /// Amazon Linux 2.
        Al2 = "AL2",
        /// Amazon Linux 2023.
        Al2023 = "AL2023",
        /// Bottlerocket.
        Bottlerocket = "Bottlerocket",
        /// Anything else: user data is taken as it is.
        Custom = "Custom",
        /// Windows Server 2019.
        Windows2019 = "Windows2019",
        /// Windows Server 2022.
        Windows2022 = "Windows2022",
        /// Windows Server 2025.
        Windows2025 = "Windows2025",
    }
}

/// Kubelet settings: the fields that every family understands, and the rest as given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kubelet {
    /// Addresses of the cluster's DNS.
    #[serde(rename = "clusterDNS", skip_serializing_if = "Option::is_none")]
    pub cluster_dns: Option<Vec<String>>,
    /// Most pods on a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<MaxPods>,
    /// Most pods per processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods_per_core: Option<i32>,
    /// Kept for system daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_reserved: Option<BTreeMap<String, String>>,
    /// Kept for Kubernetes daemons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_reserved: Option<BTreeMap<String, String>>,
    /// Thresholds of eviction without notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_hard: Option<BTreeMap<String, String>>,
    /// Thresholds of eviction with notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_soft: Option<BTreeMap<String, String>>,
    /// The notice, per signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_soft_grace_period: Option<BTreeMap<String, DurationText>>,
    /// Longest notice for a pod, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// Disk usage that starts image collection.
    #[serde(
        rename = "imageGCHighThresholdPercent",
        skip_serializing_if = "Option::is_none"
    )]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Disk usage that ends image collection.
    #[serde(
        rename = "imageGCLowThresholdPercent",
        skip_serializing_if = "Option::is_none"
    )]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether CPU limits are enforced.
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// Every other field, untouched.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

/// Most pods on a node: a number, or an expression over the instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxPods {
    /// The same for every type.
    Number(i64),
    /// Computed per type.
    Expression(String),
}

/// One volume of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockDeviceMapping {
    /// Name of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// This volume holds the container images and ephemeral storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

wire_enum! {
    /// Kinds of EBS volumes.
    VolumeType {
        /// Magnetic.
        Standard = "standard",
        /// Provisioned IOPS, first generation.
        Io1 = "io1",
        /// Provisioned IOPS, second generation.
        Io2 = "io2",
        /// General purpose, second generation.
        Gp2 = "gp2",
        /// Cold disk.
        Sc1 = "sc1",
        /// Throughput disk.
        St1 = "st1",
        /// General purpose, third generation.
        Gp3 = "gp3",
    }
}

/// An EBS volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BlockDevice {
    /// Goes away with the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Encrypted at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// Key for encryption.
    #[serde(rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// Snapshot to start from.
    #[serde(rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// MiB per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// MiB per second while the snapshot is read in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_initialization_rate: Option<i32>,
    /// Size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<Quantity>,
    /// Kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

wire_enum! {
    /// What to do with instance stores.
    InstanceStorePolicy {
        /// Join them into one striped volume for pods.
        Raid0 = "RAID0",
    }
}

wire_enum! {
    /// Kinds of network interfaces.
    InterfaceType {
        /// Ordinary.
        Interface = "interface",
        /// Elastic fabric without an address.
        EfaOnly = "efa-only",
    }
}

/// One network interface of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The card it sits on.
    pub network_card_index: i32,
    /// Its place in the order of devices.
    pub device_index: i32,
    /// Its kind.
    pub interface_type: InterfaceType,
}

wire_enum! {
    /// On or off.
    Toggle {
        /// On.
        Enabled = "enabled",
        /// Off.
        Disabled = "disabled",
    }
}

wire_enum! {
    /// Whether the metadata service insists on session tokens.
    HttpTokens {
        /// It does.
        Required = "required",
        /// It does not.
        Optional = "optional",
    }
}

/// Access to the instance metadata service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetadataOptions {
    /// Whether it answers at all.
    #[serde(rename = "httpEndpoint", skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<Toggle>,
    /// Whether it answers over IPv6.
    #[serde(rename = "httpProtocolIPv6", skip_serializing_if = "Option::is_none")]
    pub http_protocol_ipv6: Option<Toggle>,
    /// How far answers travel.
    #[serde(
        rename = "httpPutResponseHopLimit",
        skip_serializing_if = "Option::is_none"
    )]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether tokens are needed.
    #[serde(rename = "httpTokens", skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<HttpTokens>,
}

/// Idle timeouts of tracked connections, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionTracking {
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

/// Processor options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CpuOptions {
    /// Whether virtual machines can run inside the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<Toggle>,
}
