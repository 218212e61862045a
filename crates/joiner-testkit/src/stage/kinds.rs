//! Kinds of objects that tests touch.

use joiner_runtime::resource;
use kube::api::ApiResource;

/// Group, version, plural and kind.
pub type What = (&'static str, &'static str, &'static str, &'static str);
/// Pods.
pub const PODS: What = ("", "v1", "pods", "Pod");
/// Nodes.
pub const NODES: What = ("", "v1", "nodes", "Node");
/// Config maps.
pub const CONFIG_MAPS: What = ("", "v1", "configmaps", "ConfigMap");
/// Volume claims.
pub const VOLUME_CLAIMS: What = ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
/// Templates.
pub const TEMPLATES: What = ("", "v1", "podtemplates", "PodTemplate");
/// Events.
pub const EVENTS: What = ("", "v1", "events", "Event");
/// Claims.
pub const CLAIMS: What = ("karpenter.sh", "v1", "nodeclaims", "NodeClaim");
/// Pools.
pub const POOLS: What = ("karpenter.sh", "v1", "nodepools", "NodePool");
/// Overlays.
pub const OVERLAYS: What = ("karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay");
/// Buffers.
pub const BUFFERS: What = (
    "autoscaling.x-k8s.io",
    "v1beta1",
    "capacitybuffers",
    "CapacityBuffer",
);
/// Classes.
pub const CLASSES: What = (
    "karpenter.kwok.sh",
    "v1alpha1",
    "kwoknodeclasses",
    "KWOKNodeClass",
);
/// Classes of EC2.
pub const EC2_CLASSES: What = ("karpenter.k8s.aws", "v1", "ec2nodeclasses", "EC2NodeClass");
/// Deployments.
pub const DEPLOYMENTS: What = ("apps", "v1", "deployments", "Deployment");
/// Daemon sets.
pub const DAEMON_SETS: What = ("apps", "v1", "daemonsets", "DaemonSet");
/// Stateful sets.
pub const STATEFUL_SETS: What = ("apps", "v1", "statefulsets", "StatefulSet");
/// Storage.
pub const STORAGE: What = ("storage.k8s.io", "v1", "storageclasses", "StorageClass");
/// Budgets.
pub const BUDGETS: What = (
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
);
/// Leases.
pub const LEASES: What = ("coordination.k8s.io", "v1", "leases", "Lease");
/// Replica sets.
pub const REPLICA_SETS: What = ("apps", "v1", "replicasets", "ReplicaSet");
/// Volumes.
pub const VOLUMES: What = ("", "v1", "persistentvolumes", "PersistentVolume");

/// The same for a client.
#[must_use]
pub fn resource_of(what: What) -> ApiResource {
    resource(what.0, what.1, what.2, what.3)
}

/// The namespace of the objects of a kind that tests make; none for those of the whole cluster.
#[must_use]
pub fn namespace_of(what: What) -> Option<&'static str> {
    let cluster = ["nodes", "persistentvolumes", "storageclasses"].contains(&what.2)
        || what.0.starts_with("karpenter");
    (!cluster).then_some("default")
}
