//! Keys that objects carry: labels, annotations, taints and finalizers.
//!
//! Constants only, plus the small questions that can be asked of a key: is it an alias of another
//! key, does everybody know it, may a user set it. Values are never interpreted here.

pub mod aws;
pub mod kwok;
pub mod ours;
mod rules;

pub use rules::{
    ALIASES, RESTRICTED_DOMAINS, RESTRICTED_LABELS, canonical_key, domain_of, is_restricted,
    is_well_known, well_known,
};

pub use ours::IN_TURN;

use crate::types::{Taint, TaintEffect};

/// API group of NodePool, NodeClaim and NodeOverlay.
pub const GROUP: &str = "karpenter.sh";
/// Group of the annotations that carry leftovers of older APIs.
pub const COMPATIBILITY_GROUP: &str = "compatibility.karpenter.sh";
/// Prefix of every label and annotation that is Joiner's own.
pub const JOINER_PREFIX: &str = "joiner.dev/";

/// Name of the NodePool that owns the object.
pub const NODE_POOL: &str = "karpenter.sh/nodepool";
/// How the capacity is bought: see [`CAPACITY_TYPES`].
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// On a Node: `true` once registration has run.
pub const REGISTERED: &str = "karpenter.sh/registered";
/// On a Node: `true` once it is ready for pods.
pub const INITIALIZED: &str = "karpenter.sh/initialized";
/// On a Node, set by the machine: registration leaves its taints alone.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Label that older manifests use for [`NODE_POOL`].
pub const OLD_PROVISIONER_NAME: &str = "karpenter.sh/provisioner-name";

/// Zone of the node.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region of the node.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Name of the instance type.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Processor architecture, `amd64` or `arm64`.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system, `linux` or `windows`.
pub const OS: &str = "kubernetes.io/os";
/// Build of the Windows image.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// Host name of the node; users may not constrain it.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Takes a node out of load balancers while it drains.
pub const EXCLUDE_FROM_LOAD_BALANCERS: &str =
    "node.kubernetes.io/exclude-from-external-load-balancers";
/// Value of [`EXCLUDE_FROM_LOAD_BALANCERS`] when we set it.
pub const EXCLUDE_FROM_LOAD_BALANCERS_VALUE: &str = "karpenter";

/// Capacity type of ordinary instances.
pub const ON_DEMAND: &str = "on-demand";
/// Capacity type of spare instances that may be taken back.
pub const SPOT: &str = "spot";
/// Capacity type of instances out of a reservation.
pub const RESERVED: &str = "reserved";
/// Every capacity type there is.
pub const CAPACITY_TYPES: &[&str] = &[ON_DEMAND, RESERVED, SPOT];

/// Keeps voluntary disruption away; on pods it may also be a duration.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// Hash of the static fields of a NodePool's template.
pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
/// Version of the algorithm behind [`NODE_POOL_HASH`].
pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
/// The value we write for [`NODE_POOL_HASH_VERSION`].
pub const NODE_POOL_HASH_VERSION_VALUE: &str = "v3";
/// RFC 3339 instant at which the machine goes, drained or not.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Whether `minValues` was relaxed when the claim was made.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// Comma-joined, sorted names of dynamic resource drivers that the pods ask for.
pub const REQUESTED_DRA_DRIVERS: &str = "karpenter.sh/requested-dra-drivers";
/// A NodeOverlay changed the price of the launched offering.
pub const PRICE_OVERLAY_APPLIED: &str = "karpenter.sh/price-overlay-applied";
/// A NodeOverlay changed the capacity of the launched type.
pub const CAPACITY_OVERLAY_APPLIED: &str = "karpenter.sh/capacity-overlay-applied";
/// Legacy provider payload, passed through untouched.
pub const COMPATIBILITY_PROVIDER: &str = "compatibility.karpenter.sh/provider";
/// Kubelet settings of a converted v1beta1 NodePool, as JSON.
pub const KUBELET_CONVERSION: &str = "compatibility.karpenter.sh/v1beta1-kubelet-conversion";
/// Original node class reference of a converted v1beta1 object.
pub const NODE_CLASS_REFERENCE: &str = "compatibility.karpenter.sh/v1beta1-nodeclass-reference";
/// Marks the pods that stand for the headroom of a CapacityBuffer.
pub const BUFFER_POD: &str = "karpenter.sh/capacity-buffer-fake-pod";
/// Name of the CapacityBuffer behind such a pod.
pub const BUFFER_NAME: &str = "karpenter.sh/capacity-buffer-name";
/// Namespace of the CapacityBuffer behind such a pod.
pub const BUFFER_NAMESPACE: &str = "karpenter.sh/capacity-buffer-namespace";
/// How dear it is to delete a pod, read from pods.
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Holds NodeClaims and their Nodes until they are drained and gone.
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";

/// A taint that we write or wait for; a value of `None` means that none is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTaint {
    /// Key of the taint.
    pub key: &'static str,
    /// Value, when one is written.
    pub value: Option<&'static str>,
    /// What the taint does to pods.
    pub effect: TaintEffect,
}

impl KnownTaint {
    /// As it is written on a node.
    #[must_use]
    pub fn to_taint(&self) -> Taint {
        Taint {
            key: self.key.to_owned(),
            value: self.value.map(ToOwned::to_owned),
            effect: self.effect,
            time_added: None,
        }
    }
}

const fn taint(key: &'static str, effect: TaintEffect) -> KnownTaint {
    KnownTaint {
        key,
        value: None,
        effect,
    }
}

/// Set by the machine at boot, lifted by registration.
pub const UNREGISTERED_TAINT: KnownTaint =
    taint("karpenter.sh/unregistered", TaintEffect::NoExecute);
/// The node takes the place of others, and it is not its turn yet to be filled.
pub const IN_TURN_TAINT: KnownTaint = taint(IN_TURN, TaintEffect::NoSchedule);
/// The node is going away.
pub const DISRUPTED_TAINT: KnownTaint = taint("karpenter.sh/disrupted", TaintEffect::NoSchedule);

/// Taints that a young node loses by itself: matched by key and effect, never by value.
pub const EPHEMERAL_TAINTS: &[KnownTaint] = &[
    taint("node.kubernetes.io/not-ready", TaintEffect::NoSchedule),
    taint("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
    taint("node.kubernetes.io/unreachable", TaintEffect::NoSchedule),
    KnownTaint {
        key: "node.cloudprovider.kubernetes.io/uninitialized",
        value: Some("true"),
        effect: TaintEffect::NoSchedule,
    },
    UNREGISTERED_TAINT,
];
/// Every taint whose key starts like this is ephemeral too.
pub const EPHEMERAL_TAINT_PREFIX: &str = "readiness.k8s.io/";

/// Whether a taint with this key and effect goes away by itself while a node starts.
#[must_use]
pub fn is_ephemeral_taint(key: &str, effect: TaintEffect) -> bool {
    key.starts_with(EPHEMERAL_TAINT_PREFIX)
        || EPHEMERAL_TAINTS
            .iter()
            .any(|known| known.key == key && known.effect == effect)
}

/// The label under which a NodeClaim or Node names its node class: `<group>/<kind in lower case>`.
#[must_use]
pub fn node_class_label(group: &str, kind: &str) -> String {
    format!("{group}/{}", kind.to_lowercase())
}
