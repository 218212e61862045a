//! Keys of the simulated provider.

/// API group of KWOKNodeClass.
pub const GROUP: &str = "karpenter.kwok.sh";

/// Name of the KWOKNodeClass behind a node.
pub const KWOK_NODE_CLASS: &str = "karpenter.kwok.sh/kwoknodeclass";
/// Size of the type: the processor count for generic types.
pub const INSTANCE_SIZE: &str = "karpenter.kwok.sh/instance-size";
/// Family of the type.
pub const INSTANCE_FAMILY: &str = "karpenter.kwok.sh/instance-family";
/// Processors, as quantity text.
pub const INSTANCE_CPU: &str = "karpenter.kwok.sh/instance-cpu";
/// Memory, as quantity text.
pub const INSTANCE_MEMORY: &str = "karpenter.kwok.sh/instance-memory";

/// Label and annotation by which KWOK finds the nodes it plays.
pub const FAKE_NODE: &str = "kwok.x-k8s.io/node";
/// Value of [`FAKE_NODE`].
pub const FAKE_NODE_VALUE: &str = "fake";
/// Label that splits nodes among KWOK instances.
pub const PARTITION: &str = "kwok-partition";
/// Value of [`PARTITION`] on every simulated node.
pub const PARTITION_VALUE: &str = "a";
/// Hourly price, for the node viewer.
pub const NODE_VIEWER_PRICE: &str = "eks-node-viewer/instance-price";

/// Keys of the group that users may constrain.
pub const LABELS: &[&str] = &[
    KWOK_NODE_CLASS,
    INSTANCE_CPU,
    INSTANCE_MEMORY,
    INSTANCE_FAMILY,
    INSTANCE_SIZE,
];
