//! The kinds of objects that are followed.

/// A kind of objects that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pods.
    Pod,
    /// Nodes.
    Node,
    /// NodeClaims.
    NodeClaim,
    /// NodePools.
    NodePool,
    /// Node classes of all kinds; named `group/Kind/name`.
    NodeClass,
    /// DaemonSets.
    DaemonSet,
    /// Claims for volumes.
    PersistentVolumeClaim,
    /// Volumes.
    PersistentVolume,
    /// Storage classes.
    StorageClass,
    /// Volume drivers of nodes.
    CsiNode,
    /// Volumes attached to nodes.
    VolumeAttachment,
    /// Pod disruption budgets.
    PodDisruptionBudget,
    /// Namespaces.
    Namespace,
    /// Priority classes.
    PriorityClass,
    /// Runtime classes.
    RuntimeClass,
    /// Corrections of prices and capacity.
    NodeOverlay,
    /// Headroom.
    CapacityBuffer,
    /// Pod templates, for headroom.
    PodTemplate,
    /// Deployments, for headroom.
    Deployment,
    /// ReplicaSets, for headroom.
    ReplicaSet,
    /// StatefulSets, for headroom.
    StatefulSet,
}

impl Kind {
    /// Kinds that are always followed; node classes come from the cloud.
    pub const ALWAYS: &'static [Self] = &[
        Self::Pod,
        Self::Node,
        Self::NodeClaim,
        Self::NodePool,
        Self::DaemonSet,
        Self::PersistentVolumeClaim,
        Self::PersistentVolume,
        Self::StorageClass,
        Self::CsiNode,
        Self::VolumeAttachment,
        Self::PodDisruptionBudget,
        Self::Namespace,
        Self::PriorityClass,
        Self::RuntimeClass,
    ];

    /// Kinds that are followed for capacity buffers.
    pub const BUFFERS: &'static [Self] = &[
        Self::CapacityBuffer,
        Self::PodTemplate,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
    ];

    /// Group, version, plural and kind for the API; empty for node classes, which have several.
    #[must_use]
    pub const fn api(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Pod => ("", "v1", "pods", "Pod"),
            Self::Node => ("", "v1", "nodes", "Node"),
            Self::NodeClaim => ("karpenter.sh", "v1", "nodeclaims", "NodeClaim"),
            Self::NodePool => ("karpenter.sh", "v1", "nodepools", "NodePool"),
            Self::NodeClass => ("", "", "", ""),
            Self::DaemonSet => ("apps", "v1", "daemonsets", "DaemonSet"),
            Self::PersistentVolumeClaim => {
                ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
            }
            Self::PersistentVolume => ("", "v1", "persistentvolumes", "PersistentVolume"),
            Self::StorageClass => ("storage.k8s.io", "v1", "storageclasses", "StorageClass"),
            Self::CsiNode => ("storage.k8s.io", "v1", "csinodes", "CSINode"),
            Self::VolumeAttachment => (
                "storage.k8s.io",
                "v1",
                "volumeattachments",
                "VolumeAttachment",
            ),
            Self::PodDisruptionBudget => (
                "policy",
                "v1",
                "poddisruptionbudgets",
                "PodDisruptionBudget",
            ),
            Self::Namespace => ("", "v1", "namespaces", "Namespace"),
            Self::PriorityClass => (
                "scheduling.k8s.io",
                "v1",
                "priorityclasses",
                "PriorityClass",
            ),
            Self::RuntimeClass => ("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass"),
            Self::NodeOverlay => ("karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay"),
            Self::CapacityBuffer => (
                "autoscaling.x-k8s.io",
                "v1beta1",
                "capacitybuffers",
                "CapacityBuffer",
            ),
            Self::PodTemplate => ("", "v1", "podtemplates", "PodTemplate"),
            Self::Deployment => ("apps", "v1", "deployments", "Deployment"),
            Self::ReplicaSet => ("apps", "v1", "replicasets", "ReplicaSet"),
            Self::StatefulSet => ("apps", "v1", "statefulsets", "StatefulSet"),
        }
    }
}
