//! Pods, and what they ask of a node.

use crate::{
    Labels, Name, NodeIx, Requirement, ResourceName, Resources, Selector, Toleration,
    pool::DaemonIx,
};

/// Index of a pod in its problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodIx(pub u32);

/// Index of a pod shape in its problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeIx(pub u32);

/// One pod: who it is, what it is like, where it is.
#[derive(Clone, Debug)]
pub struct Pod {
    /// `namespace/name`.
    pub name: Name,
    /// Everything that decisions may rest on, shared by identical pods.
    pub shape: ShapeIx,
    /// Persistent volumes it mounts that count against a driver's limit.
    pub claims: Box<[Claim]>,
    /// The node it is bound to; `None` for a pod to place.
    pub node: Option<NodeIx>,
    /// The DaemonSet it belongs to.
    pub daemon: Option<DaemonIx>,
    /// It is on its way out: uses its node, counts for no topology.
    pub terminating: bool,
    /// Set when the pod must not be placed: a reason in words, found when it was read.
    pub ignored: Option<Name>,
}

/// A persistent volume that counts against the limit of a driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// CSI driver.
    pub driver: Name,
    /// `namespace/name` of the claim: pods that share it count once.
    pub claim: Name,
}

/// A conjunction of requirements.
pub type Terms = Vec<Requirement>;

/// Something wanted, with a weight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Preference<T> {
    /// 1 to 100; the heaviest is given up first.
    pub weight: i32,
    /// What is wanted.
    pub term: T,
}

/// Everything about a pod that decisions may rest on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodShape {
    /// Namespace.
    pub namespace: Name,
    /// Labels, as selectors of other pods see them.
    pub labels: Labels,
    /// Scheduling priority.
    pub priority: i32,
    /// Effective requests, `pods: 1` included.
    pub requests: Resources,
    /// Node selector entries.
    pub node_selector: Terms,
    /// Required node affinity: one of these must hold. Empty: no such rule.
    pub node_terms: Vec<Terms>,
    /// Preferred node affinity.
    pub preferred_node_terms: Vec<Preference<Terms>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Required pod affinity.
    pub affinity: Vec<PodTerm>,
    /// Required pod anti-affinity.
    pub anti_affinity: Vec<PodTerm>,
    /// Preferred pod affinity.
    pub preferred_affinity: Vec<Preference<PodTerm>>,
    /// Preferred pod anti-affinity.
    pub preferred_anti_affinity: Vec<Preference<PodTerm>>,
    /// Topology spread constraints, hard and soft.
    pub spreads: Vec<Spread>,
    /// Ports taken on the node.
    pub ports: Vec<HostPort>,
    /// Where its volumes can be reached: one of these must hold for the node. Empty: anywhere.
    /// They never change which domains a spread counts.
    pub volume_terms: Vec<Terms>,
}

/// Who looks for a place first, when pods do so one after the other: the greatest.
///
/// Pods that only few nodes will do for come before those that are content with any, and large ones
/// before small ones, which find room in what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Precedence {
    /// It asks for certain nodes, zones or company.
    pub choosy: bool,
    /// Millicores, and as many for its memory: a core is as much as four gibibytes.
    pub size: u64,
}

impl PodShape {
    /// Who looks for a place first.
    #[must_use]
    pub fn precedence(&self) -> Precedence {
        const BYTES_PER_MILLICORE: u64 = (4 << 30) / 1000;
        let memory = self.requests.get(&ResourceName::Memory) / BYTES_PER_MILLICORE;
        let choosy = !(self.node_selector.is_empty()
            && self.node_terms.is_empty()
            && self.volume_terms.is_empty()
            && self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.spreads.iter().all(|own| !own.hard));
        Precedence {
            choosy,
            size: self.requests.get(&ResourceName::Cpu).saturating_add(memory),
        }
    }
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodTerm {
    /// Topology key.
    pub key: Name,
    /// Namespaces it looks at: lists and selectors are already resolved, sorted.
    pub namespaces: Vec<Name>,
    /// Pods it is about; `None` (no selector given) is no pod of the batch and every bound pod.
    pub selector: Option<Selector>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spread {
    /// Topology key.
    pub key: Name,
    /// Largest allowed difference between a domain and the emptiest one.
    pub max_skew: u32,
    /// `DoNotSchedule`; otherwise it is a preference.
    pub hard: bool,
    /// Pods that are counted, with `matchLabelKeys` folded in. `None`: see [`PodTerm::selector`].
    pub selector: Option<Selector>,
    /// With fewer domains than this, the emptiest one counts as empty.
    pub min_domains: Option<u32>,
    /// Count only nodes that the pod's node selection allows (the default).
    pub honor_affinity: bool,
    /// Count only nodes whose taints the pod tolerates (not the default).
    pub honor_taints: bool,
}

/// Transport protocol of a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP, the default.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A port taken on the node's own address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Address, `0.0.0.0` when not given.
    pub ip: Name,
    /// Port number.
    pub port: u16,
    /// Protocol.
    pub protocol: Protocol,
}

impl HostPort {
    /// True when both cannot be on one node.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        let any = |ip: &str| matches!(ip, "0.0.0.0" | "::" | "");
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || any(&self.ip) || any(&other.ip))
    }
}
