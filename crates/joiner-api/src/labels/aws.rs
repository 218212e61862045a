//! Keys of the AWS provider.

/// API group of EC2NodeClass.
pub const GROUP: &str = "karpenter.k8s.aws";
/// Group of the annotations that carry leftovers of older EC2NodeClass versions.
pub const COMPATIBILITY_GROUP: &str = "compatibility.karpenter.k8s.aws";

/// Name of the EC2NodeClass behind a node.
pub const EC2_NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
/// Zone id, which means the same zone in every account.
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
/// Zone key of the EBS driver, an alias of the standard one.
pub const EBS_CSI_ZONE: &str = "topology.ebs.csi.aws.com/zone";

/// Letters that open the type's name.
pub const INSTANCE_CATEGORY: &str = "karpenter.k8s.aws/instance-category";
/// Digits after the category.
pub const INSTANCE_GENERATION: &str = "karpenter.k8s.aws/instance-generation";
/// Name before the dot.
pub const INSTANCE_FAMILY: &str = "karpenter.k8s.aws/instance-family";
/// Name after the dot.
pub const INSTANCE_SIZE: &str = "karpenter.k8s.aws/instance-size";
/// `true` for flex families.
pub const INSTANCE_CAPABILITY_FLEX: &str = "karpenter.k8s.aws/instance-capability-flex";
/// Default number of virtual processors.
pub const INSTANCE_CPU: &str = "karpenter.k8s.aws/instance-cpu";
/// Maker of the processor.
pub const INSTANCE_CPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-cpu-manufacturer";
/// Sustained clock speed in MHz.
pub const INSTANCE_CPU_CLOCK_SPEED: &str =
    "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
/// Advertised memory in MiB.
pub const INSTANCE_MEMORY: &str = "karpenter.k8s.aws/instance-memory";
/// EBS bandwidth in Mbps.
pub const INSTANCE_EBS_BANDWIDTH: &str = "karpenter.k8s.aws/instance-ebs-bandwidth";
/// Network bandwidth in Mbps.
pub const INSTANCE_NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
/// Instance store in GB.
pub const INSTANCE_LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
/// Model of the GPU.
pub const INSTANCE_GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
/// Maker of the GPU.
pub const INSTANCE_GPU_MANUFACTURER: &str = "karpenter.k8s.aws/instance-gpu-manufacturer";
/// Number of GPUs.
pub const INSTANCE_GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
/// Memory of one GPU in MiB.
pub const INSTANCE_GPU_MEMORY: &str = "karpenter.k8s.aws/instance-gpu-memory";
/// Model of the accelerator.
pub const INSTANCE_ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";
/// Maker of the accelerator.
pub const INSTANCE_ACCELERATOR_MANUFACTURER: &str =
    "karpenter.k8s.aws/instance-accelerator-manufacturer";
/// Number of accelerators.
pub const INSTANCE_ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";
/// `nitro`, `xen`, or empty on bare metal.
pub const INSTANCE_HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
/// Whether traffic between instances is encrypted.
pub const INSTANCE_ENCRYPTION_IN_TRANSIT: &str =
    "karpenter.k8s.aws/instance-encryption-in-transit-supported";
/// Whether Nitro Enclaves are supported.
pub const NITRO_SANDBOX: &str = "karpenter.k8s.aws/nitro-sandbox";
/// Shared or dedicated hardware: see [`TENANCIES`].
pub const INSTANCE_TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
/// Id of the capacity reservation.
pub const CAPACITY_RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// Kind of the capacity reservation.
pub const CAPACITY_RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
/// Whether AWS may take the reservation back.
pub const CAPACITY_RESERVATION_INTERRUPTIBLE: &str =
    "karpenter.k8s.aws/capacity-reservation-interruptible";
/// Id of the placement group.
pub const PLACEMENT_GROUP_ID: &str = "karpenter.k8s.aws/placement-group-id";
/// Partition inside the placement group.
pub const PLACEMENT_GROUP_PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

/// Every tenancy there is.
pub const TENANCIES: &[&str] = &["default", "dedicated"];

/// Hash of the static fields of an EC2NodeClass.
pub const EC2_NODE_CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
/// Version of the algorithm behind [`EC2_NODE_CLASS_HASH`].
pub const EC2_NODE_CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
/// On a NodeClaim: its instance and volumes carry their tags.
pub const TAGGED: &str = "karpenter.k8s.aws/tagged";
/// On a NodeClaim: its instance carries the cluster name tag.
pub const CLUSTER_NAME_TAGGED: &str = "compatibility.karpenter.k8s.aws/cluster-name-tagged";
/// On a NodeClaim: the instance profile it was launched with.
pub const INSTANCE_PROFILE_NAME: &str = "karpenter.k8s.aws/instance-profile-name";
/// Alias version kept on objects converted from v1 to v1beta1.
pub const ALIAS_VERSION: &str = "compatibility.karpenter.k8s.aws/v1-alias-version";
/// What was made up for a v1beta1 class of the Ubuntu family.
pub const UBUNTU_CONVERSION: &str = "compatibility.karpenter.k8s.aws/v1beta1-ubuntu";
/// Holds an EC2NodeClass until its cloud resources are cleaned up.
pub const TERMINATION_FINALIZER: &str = "karpenter.k8s.aws/termination";

/// Keys of the group that describe hardware; users may constrain them everywhere.
pub const HARDWARE_LABELS: &[&str] = &[
    EC2_NODE_CLASS,
    INSTANCE_ENCRYPTION_IN_TRANSIT,
    NITRO_SANDBOX,
    INSTANCE_CATEGORY,
    INSTANCE_HYPERVISOR,
    INSTANCE_FAMILY,
    INSTANCE_GENERATION,
    INSTANCE_LOCAL_NVME,
    INSTANCE_SIZE,
    INSTANCE_CPU,
    INSTANCE_CPU_MANUFACTURER,
    INSTANCE_CPU_CLOCK_SPEED,
    INSTANCE_MEMORY,
    INSTANCE_EBS_BANDWIDTH,
    INSTANCE_NETWORK_BANDWIDTH,
    INSTANCE_GPU_NAME,
    INSTANCE_GPU_MANUFACTURER,
    INSTANCE_GPU_COUNT,
    INSTANCE_GPU_MEMORY,
    INSTANCE_ACCELERATOR_NAME,
    INSTANCE_ACCELERATOR_MANUFACTURER,
    INSTANCE_ACCELERATOR_COUNT,
    INSTANCE_CAPABILITY_FLEX,
];

/// Keys of the group that describe how an instance is placed: NodePools and NodeClaims may use
/// them, NodeOverlays may not.
pub const PLACEMENT_LABELS: &[&str] = &[
    INSTANCE_TENANCY,
    CAPACITY_RESERVATION_TYPE,
    CAPACITY_RESERVATION_ID,
    CAPACITY_RESERVATION_INTERRUPTIBLE,
    PLACEMENT_GROUP_ID,
    PLACEMENT_GROUP_PARTITION,
];
