//! Label keys that decisions themselves know. Everything else about labels is data.

/// Availability zone of a node.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region of a node.
pub const REGION: &str = "topology.kubernetes.io/region";
/// How a node is paid for: `on-demand`, `spot` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// The node itself, as a topology domain.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Processor architecture.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system.
pub const OS: &str = "kubernetes.io/os";
/// Windows build of a node.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// Name of the instance type.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Name of the pool a node belongs to.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// Set to `true` on a node once it has registered.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// Set to `true` on a node once it is initialized.
pub const INITIALIZED: &str = "karpenter.sh/initialized";

/// Keys every provider knows; an unconstrained one can take any value an offering has.
pub const WELL_KNOWN: [&str; 8] = [
    NODE_POOL,
    ZONE,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    CAPACITY_TYPE,
    WINDOWS_BUILD,
];

/// Old spellings and what they mean today.
const ALIASES: [(&str, &str); 6] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    ("topology.ebs.csi.aws.com/zone", ZONE),
];

/// The current spelling of a label key.
#[must_use]
pub fn canonical(key: &str) -> &str {
    ALIASES
        .iter()
        .find(|(old, _)| *old == key)
        .map_or(key, |(_, new)| new)
}
