//! Single changes to a pod or to a pool: what they are called, and how they are made.

use std::fmt;

use joiner_model::{
    Name, PodShape, Pool, Requirement, Requirements, ResourceName, Taint, Toleration, TolerationOp,
    render_amount,
};

/// One thing to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The pod gets a toleration.
    Tolerate(Taint),
    /// The pod loses an entry of its node selector.
    DropSelector(Requirement),
    /// The pod loses an expression of its required node affinity.
    DropAffinity(Requirement),
    /// A spread constraint becomes a wish.
    SoftenSpread(Name),
    /// A required pod affinity term over this key becomes a wish.
    SoftenPodAffinity(Name),
    /// A required pod anti-affinity term over this key becomes a wish.
    SoftenPodAntiAffinity(Name),
    /// The pod asks for less of something.
    Shrink {
        /// Of what.
        resource: ResourceName,
        /// What it asks for.
        from: u64,
        /// What it could have.
        to: u64,
    },
    /// The pod gives up a port of its node.
    DropPort(u16),
    /// The pod's volumes can be reached from elsewhere.
    MoveVolumes,
    /// A pool may have more of something.
    RaiseLimit {
        /// The pool.
        pool: Name,
        /// Of what.
        resource: ResourceName,
        /// The limit.
        from: u64,
        /// What it must be at least.
        to: u64,
    },
    /// A pool allows what the pod asks for.
    Widen {
        /// The pool.
        pool: Name,
        /// What the pod asks for.
        wanted: Requirement,
    },
    /// A pool loses a requirement.
    DropRequirement {
        /// The pool.
        pool: Name,
        /// The requirement.
        requirement: Requirement,
    },
    /// A pool's nodes get a label.
    Label {
        /// The pool.
        pool: Name,
        /// Key of the label.
        key: Name,
        /// Value of the label.
        value: Name,
    },
    /// A pool is content with fewer values of a key.
    DropMinValues {
        /// The pool.
        pool: Name,
        /// The key.
        key: Name,
    },
    /// What keeps a pool out of use is put right.
    Open {
        /// The pool.
        pool: Name,
        /// What keeps it out of use.
        why: Name,
    },
}

impl Change {
    /// One word for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tolerate(_) => "AddToleration",
            Self::DropSelector(_) => "DropNodeSelector",
            Self::DropAffinity(_) => "DropNodeAffinity",
            Self::SoftenSpread(_) => "SoftenSpread",
            Self::SoftenPodAffinity(_) => "SoftenPodAffinity",
            Self::SoftenPodAntiAffinity(_) => "SoftenPodAntiAffinity",
            Self::Shrink { .. } => "ShrinkRequest",
            Self::DropPort(_) => "DropHostPort",
            Self::MoveVolumes => "MoveVolumes",
            Self::RaiseLimit { .. } => "RaiseLimit",
            Self::Widen { .. } => "WidenNodePool",
            Self::DropRequirement { .. } => "DropPoolRequirement",
            Self::Label { .. } => "LabelNodePool",
            Self::DropMinValues { .. } => "DropMinValues",
            Self::Open { .. } => "OpenNodePool",
        }
    }

    /// Of two changes at one price, the one that is easier to make comes first.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Tolerate(_) => 0,
            Self::DropSelector(_) => 1,
            Self::DropAffinity(_) => 2,
            Self::RaiseLimit { .. } => 3,
            Self::Widen { .. } => 4,
            Self::Label { .. } => 5,
            Self::Open { .. } => 6,
            Self::DropPort(_) => 7,
            Self::SoftenSpread(_) => 8,
            Self::SoftenPodAntiAffinity(_) => 9,
            Self::SoftenPodAffinity(_) => 10,
            Self::DropMinValues { .. } => 11,
            Self::DropRequirement { .. } => 12,
            Self::Shrink { .. } => 13,
            Self::MoveVolumes => 14,
        }
    }

    /// True for a change that takes more than a quarter of what the pod asks for.
    pub(crate) fn is_drastic(&self) -> bool {
        matches!(self, Self::Shrink { from, to, .. } if to.saturating_mul(4) < from.saturating_mul(3))
    }

    /// The pool that changes, if it is not the pod.
    pub(crate) fn pool(&self) -> Option<&Name> {
        match self {
            Self::RaiseLimit { pool, .. }
            | Self::Widen { pool, .. }
            | Self::DropRequirement { pool, .. }
            | Self::Label { pool, .. }
            | Self::DropMinValues { pool, .. }
            | Self::Open { pool, .. } => Some(pool),
            Self::Tolerate(_)
            | Self::DropSelector(_)
            | Self::DropAffinity(_)
            | Self::SoftenSpread(_)
            | Self::SoftenPodAffinity(_)
            | Self::SoftenPodAntiAffinity(_)
            | Self::Shrink { .. }
            | Self::DropPort(_)
            | Self::MoveVolumes => None,
        }
    }

    /// Makes the change to the pod, if it is about the pod.
    pub(crate) fn to_shape(&self, shape: &mut PodShape) {
        match self {
            Self::Tolerate(taint) => shape.tolerations.push(Toleration {
                key: taint.key.clone(),
                op: TolerationOp::Equal,
                value: taint.value.clone(),
                effect: Some(taint.effect),
            }),
            Self::DropSelector(asked) => shape.node_selector.retain(|own| own != asked),
            Self::DropAffinity(asked) => {
                for term in &mut shape.node_terms {
                    term.retain(|own| own != asked);
                }
                // One way without any condition is no condition.
                if shape.node_terms.iter().any(Vec::is_empty) {
                    shape.node_terms.clear();
                }
            }
            Self::SoftenSpread(key) => {
                for own in shape.spreads.iter_mut().filter(|own| own.key == *key) {
                    own.hard = false;
                }
            }
            Self::SoftenPodAffinity(key) => shape.affinity.retain(|own| own.key != *key),
            Self::SoftenPodAntiAffinity(key) => shape.anti_affinity.retain(|own| own.key != *key),
            Self::Shrink { resource, to, .. } => shape.requests.set(resource.clone(), *to),
            Self::DropPort(port) => shape.ports.retain(|own| own.port != *port),
            Self::MoveVolumes => shape.volume_terms.clear(),
            Self::RaiseLimit { .. }
            | Self::Widen { .. }
            | Self::DropRequirement { .. }
            | Self::Label { .. }
            | Self::DropMinValues { .. }
            | Self::Open { .. } => {}
        }
    }

    /// Makes the change to the pool, if it is about a pool.
    pub(crate) fn to_pool(&self, pool: &mut Pool) {
        let but = |key: &Name, pool: &Pool| -> Requirements {
            let others = pool.requirements.iter().filter(|own| own.key() != key);
            others.cloned().collect()
        };
        match self {
            Self::RaiseLimit { resource, .. } => {
                if let Some(limits) = &mut pool.limits {
                    limits.set(resource.clone(), u64::MAX);
                }
            }
            Self::Widen { wanted, .. } => {
                let mut rest = but(wanted.key(), pool);
                rest.add(wanted.clone());
                pool.requirements = rest;
                pool.labels.remove(wanted.key());
            }
            Self::DropRequirement { requirement, .. } => {
                pool.requirements = but(requirement.key(), pool);
            }
            Self::Label { key, value, .. } => {
                pool.labels.insert(key.clone(), value.clone());
            }
            Self::DropMinValues { key, .. } => {
                let all = pool.requirements.iter().map(|own| match own.key() == key {
                    true => own.clone().with_min_values(None),
                    false => own.clone(),
                });
                pool.requirements = all.collect();
            }
            Self::Open { .. } => pool.closed = None,
            Self::Tolerate(_)
            | Self::DropSelector(_)
            | Self::DropAffinity(_)
            | Self::SoftenSpread(_)
            | Self::SoftenPodAffinity(_)
            | Self::SoftenPodAntiAffinity(_)
            | Self::Shrink { .. }
            | Self::DropPort(_)
            | Self::MoveVolumes => {}
        }
    }
}

impl fmt::Display for Change {
    /// As a request: `add the toleration ..`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tolerate(taint) => write!(f, "let the pod tolerate {taint}"),
            Self::DropSelector(asked) => {
                write!(f, "drop {} from the pod's node selector", selected(asked))
            }
            Self::DropAffinity(asked) => {
                write!(f, "drop {asked} from the pod's required node affinity")
            }
            Self::SoftenSpread(key) => {
                write!(f, "make the pod's spread over {key} ScheduleAnyway")
            }
            Self::SoftenPodAffinity(key) => {
                write!(f, "make the pod's affinity over {key} a preference")
            }
            Self::SoftenPodAntiAffinity(key) => {
                write!(f, "make the pod's anti-affinity over {key} a preference")
            }
            Self::Shrink { resource, from, to } => write!(
                f,
                "request {} of {resource} instead of {}",
                render_amount(resource, *to),
                render_amount(resource, *from)
            ),
            Self::DropPort(port) => write!(f, "give up host port {port}"),
            Self::MoveVolumes => {
                f.write_str("use volumes that can be reached from where a node can be had")
            }
            Self::RaiseLimit {
                pool,
                resource,
                from,
                to,
            } => write!(
                f,
                "raise the {resource} limit of NodePool {pool:?} from {} to {}",
                render_amount(resource, *from),
                render_amount(resource, *to)
            ),
            Self::Widen { pool, wanted } => write!(f, "let NodePool {pool:?} have {wanted}"),
            Self::DropRequirement { pool, requirement } => {
                write!(f, "drop {requirement} from NodePool {pool:?}")
            }
            Self::Label { pool, key, value } => {
                write!(f, "give NodePool {pool:?} the label {key}={value}")
            }
            Self::DropMinValues { pool, key } => {
                write!(f, "drop minValues of {key} from NodePool {pool:?}")
            }
            Self::Open { pool, why } => write!(f, "put NodePool {pool:?} in use: {why}"),
        }
    }
}

/// An entry of a node selector as users write it.
fn selected(asked: &Requirement) -> String {
    let mut values = asked.members().into_iter().flatten();
    match (values.next(), values.next()) {
        (Some(value), None) => format!("{}={value}", asked.key()),
        _ => asked.to_string(),
    }
}
