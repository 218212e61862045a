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
    /// Deployments.
    Deployment,
    /// ReplicaSets.
    ReplicaSet,
    /// StatefulSets.
    StatefulSet,
    /// Services, for default spread constraints.
    Service,
    /// ReplicationControllers, for default spread constraints.
    ReplicationController,
}

/// Where objects of a kind are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// With pods.
    Pods,
    /// With nodes.
    Nodes,
    /// With claims.
    Claims,
    /// With pools.
    Pools,
    /// With node classes.
    Classes,
    /// With pod disruption budgets.
    Budgets,
    /// With attached volumes.
    Attachments,
    /// With overlays.
    Overlays,
    /// With capacity buffers.
    Buffers,
    /// With pod templates.
    Templates,
    /// With what makes pods; which pods it selects is kept apart.
    Scalables,
    /// With what selects pods.
    Choices,
    /// With what only the planner reads.
    Others,
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

    /// Workloads whose pods may be moved: they say how many of them there are, and keep how often
    /// that has happened.
    pub const WORKLOADS: &'static [Self] = &[Self::Deployment, Self::ReplicaSet, Self::StatefulSet];

    /// Kinds that matter to capacity buffers.
    pub const BUFFERS: &'static [Self] = &[
        Self::CapacityBuffer,
        Self::PodTemplate,
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
    ];

    /// Kinds that are followed for default spread constraints, beside workloads.
    pub const SPREADING: &'static [Self] = &[Self::Service, Self::ReplicationController];

    /// Where its objects are kept.
    pub(super) const fn store(self) -> Store {
        match self {
            Self::Pod => Store::Pods,
            Self::Node => Store::Nodes,
            Self::NodeClaim => Store::Claims,
            Self::NodePool => Store::Pools,
            Self::NodeClass => Store::Classes,
            Self::PodDisruptionBudget => Store::Budgets,
            Self::VolumeAttachment => Store::Attachments,
            Self::NodeOverlay => Store::Overlays,
            Self::CapacityBuffer => Store::Buffers,
            Self::PodTemplate => Store::Templates,
            Self::Deployment | Self::ReplicaSet | Self::StatefulSet => Store::Scalables,
            Self::Service | Self::ReplicationController => Store::Choices,
            Self::DaemonSet
            | Self::PersistentVolumeClaim
            | Self::PersistentVolume
            | Self::StorageClass
            | Self::CsiNode
            | Self::Namespace
            | Self::PriorityClass
            | Self::RuntimeClass => Store::Others,
        }
    }

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
            Self::Service => ("", "v1", "services", "Service"),
            Self::ReplicationController => {
                ("", "v1", "replicationcontrollers", "ReplicationController")
            }
        }
    }
}
