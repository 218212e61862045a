//! The kinds of objects that are followed.

use std::fmt;

/// Where the API serves the objects of a kind. Group and kind alone tell kinds apart, and come first
/// when they are sorted.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindApi {
    /// API group; empty for the core.
    pub group: &'static str,
    /// What `kind` of its objects says.
    pub kind: &'static str,
    /// Version that is followed.
    pub version: &'static str,
    /// What the kind is called in paths.
    pub plural: &'static str,
}

/// A kind of objects that is followed. Those that are known here are constants; others are made with
/// [`Kind::new`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(&'static KindApi);

impl Kind {
    /// A kind of this description.
    #[must_use]
    pub const fn new(api: &'static KindApi) -> Self {
        Self(api)
    }

    /// Group, version, plural and kind for the API; empty for node classes, which have several.
    #[must_use]
    pub const fn api(self) -> (&'static str, &'static str, &'static str, &'static str) {
        let KindApi {
            group,
            kind,
            version,
            plural,
        } = *self.0;
        (group, version, plural, kind)
    }

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
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.kind {
            "" => "NodeClass",
            kind => kind,
        })
    }
}

/// Constants of [`Kind`]: group, version, plural and kind of each.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $group:literal $version:literal $plural:literal $kind:literal;)*) => {
        #[expect(
            non_upper_case_globals,
            reason = "kinds are spelled as the API spells them, in expressions and in patterns"
        )]
        impl Kind {
            $($(#[$doc])* pub const $name: Self = Self(&KindApi {
                group: $group,
                kind: $kind,
                version: $version,
                plural: $plural,
            });)*
        }
    };
}

kinds! {
    /// Pods.
    Pod = "" "v1" "pods" "Pod";
    /// Nodes.
    Node = "" "v1" "nodes" "Node";
    /// NodeClaims.
    NodeClaim = "karpenter.sh" "v1" "nodeclaims" "NodeClaim";
    /// NodePools.
    NodePool = "karpenter.sh" "v1" "nodepools" "NodePool";
    /// Node classes of all kinds; named `group/Kind/name`.
    NodeClass = "" "" "" "";
    /// DaemonSets.
    DaemonSet = "apps" "v1" "daemonsets" "DaemonSet";
    /// Claims for volumes.
    PersistentVolumeClaim = "" "v1" "persistentvolumeclaims" "PersistentVolumeClaim";
    /// Volumes.
    PersistentVolume = "" "v1" "persistentvolumes" "PersistentVolume";
    /// Storage classes.
    StorageClass = "storage.k8s.io" "v1" "storageclasses" "StorageClass";
    /// Volume drivers of nodes.
    CsiNode = "storage.k8s.io" "v1" "csinodes" "CSINode";
    /// Volumes attached to nodes.
    VolumeAttachment = "storage.k8s.io" "v1" "volumeattachments" "VolumeAttachment";
    /// Pod disruption budgets.
    PodDisruptionBudget = "policy" "v1" "poddisruptionbudgets" "PodDisruptionBudget";
    /// Namespaces.
    Namespace = "" "v1" "namespaces" "Namespace";
    /// Priority classes.
    PriorityClass = "scheduling.k8s.io" "v1" "priorityclasses" "PriorityClass";
    /// Runtime classes.
    RuntimeClass = "node.k8s.io" "v1" "runtimeclasses" "RuntimeClass";
    /// Corrections of prices and capacity.
    NodeOverlay = "karpenter.sh" "v1alpha1" "nodeoverlays" "NodeOverlay";
    /// Headroom.
    CapacityBuffer = "autoscaling.x-k8s.io" "v1beta1" "capacitybuffers" "CapacityBuffer";
    /// Pod templates, for headroom.
    PodTemplate = "" "v1" "podtemplates" "PodTemplate";
    /// Deployments.
    Deployment = "apps" "v1" "deployments" "Deployment";
    /// ReplicaSets.
    ReplicaSet = "apps" "v1" "replicasets" "ReplicaSet";
    /// StatefulSets.
    StatefulSet = "apps" "v1" "statefulsets" "StatefulSet";
    /// Services, for default spread constraints.
    Service = "" "v1" "services" "Service";
    /// ReplicationControllers, for default spread constraints.
    ReplicationController = "" "v1" "replicationcontrollers" "ReplicationController";
}
