//! Why a pod was not placed, in words an operator would use.

use std::fmt;

use crate::{
    Name, ResourceName, Taint, keys, requirement::Incompatible, resources::render_roughly,
};

/// One reason why a pod is left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The pod was set aside when it was read.
    Ignored(Name),
    /// There is no pool to buy from.
    NoPools,
    /// A zone or instance type is named that there is none of.
    Absent {
        /// The pool that names it; the pod itself if there is none.
        pool: Option<Name>,
        /// What is named.
        absent: Absent,
    },
    /// A pool cannot hold it.
    Pool(PoolRefusal),
    /// Nodes that exist cannot hold it either.
    Nodes {
        /// How many nodes were looked at.
        n_nodes: usize,
        /// What rules out most of them.
        ruling: Ruling,
    },
}

/// A zone or an instance type that there is none of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The label key that stands for it.
    pub key: Name,
    /// The name.
    pub value: Name,
    /// Names that may have been meant.
    pub near: Vec<Name>,
}

/// Why one pool cannot hold a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRefusal {
    /// The pool.
    pub pool: Name,
    /// What rules it out.
    pub ruling: Ruling,
    /// How many further pools are ruled out in the same way.
    pub n_alike: usize,
}

/// The binding constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The pool is closed.
    Closed(Name),
    /// A taint that the pod does not tolerate.
    Taint(Taint),
    /// Node selection and the pool's labels exclude each other.
    Labels(Incompatible),
    /// No type and offering satisfies all node selection together.
    NoOffering {
        /// What the pod asks.
        asks: String,
        /// How many types the pool has.
        n_types: usize,
    },
    /// The pool's own requirements leave no type.
    NoTypes {
        /// How many types the pool has before its requirements.
        n_types: usize,
        /// The requirements.
        requirements: String,
    },
    /// An existing node does not have the labels.
    NotSelected {
        /// What the pod asks.
        asks: String,
    },
    /// All offerings that would do are sold out.
    SoldOut,
    /// No type is large enough.
    TooLarge {
        /// The resource that is short on the best type.
        resource: ResourceName,
        /// What is needed, daemons included.
        needed: u64,
        /// The most that a matching type has.
        most: u64,
    },
    /// There is enough of each of these, but on no type of all of them together.
    NotTogether(Vec<ResourceName>),
    /// The pool's limit is used up.
    Limit {
        /// The limited resource.
        resource: ResourceName,
        /// The limit.
        limit: u64,
        /// What is left of it.
        left: u64,
    },
    /// A host port is taken by a daemon on every type.
    Port(u16),
    /// Too few distinct values for a `minValues` requirement.
    MinValues {
        /// The key.
        key: Name,
        /// How many are needed.
        needed: u32,
        /// How many there are.
        found: u32,
    },
    /// A spread constraint leaves no domain.
    Spread {
        /// The topology key.
        key: Name,
        /// The allowed difference.
        max_skew: u32,
    },
    /// No domain has a pod that a required affinity term asks for.
    Affinity {
        /// The topology key.
        key: Name,
    },
    /// Every domain has a pod that excludes this one, or that this one excludes.
    AntiAffinity {
        /// The topology key.
        key: Name,
    },
    /// Volumes are elsewhere.
    Volumes,
    /// The node is closed or full, for existing nodes.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored(why) => f.write_str(why),
            Self::NoPools => f.write_str("there is no NodePool to buy a node from"),
            Self::Absent { pool: None, absent } => absent.fmt(f),
            Self::Absent {
                pool: Some(pool),
                absent,
            } => write!(f, "pool {pool:?} names a value that is not there: {absent}"),
            Self::Pool(PoolRefusal {
                pool,
                ruling,
                n_alike: 0,
            }) => {
                write!(f, "pool {pool:?} {ruling}")
            }
            Self::Pool(PoolRefusal {
                pool,
                ruling,
                n_alike,
            }) => {
                let pools = if *n_alike == 1 { "pool" } else { "pools" };
                write!(
                    f,
                    "pool {pool:?} {ruling} ({n_alike} more {pools} in the same way)"
                )
            }
            Self::Nodes { n_nodes, ruling } => {
                write!(
                    f,
                    "none of {n_nodes} existing nodes will do: a node {ruling}"
                )
            }
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.key.as_ref() {
            keys::ZONE => "zone",
            keys::INSTANCE_TYPE => "instance type",
            key => key,
        };
        write!(f, "{what} {:?} does not exist in the catalog", self.value)?;
        let near: Vec<String> = self.near.iter().map(|name| format!("{name:?}")).collect();
        match near.split_last() {
            None => Ok(()),
            Some((only, [])) => write!(f, " (did you mean {only}?)"),
            Some((last, others)) => write!(f, " (did you mean {} or {last}?)", others.join(", ")),
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(why) => write!(f, "is not in use: {why}"),
            Self::Taint(taint) => write!(f, "has taint {taint}, which the pod does not tolerate"),
            Self::Labels(Incompatible::Undefined { key, hint }) => {
                write!(f, "does not define label {key:?}, which the pod selects")?;
                hint.as_ref()
                    .map_or(Ok(()), |hint| write!(f, " (did you mean {hint:?}?)"))
            }
            Self::Labels(Incompatible::Disjoint { existing, incoming }) => {
                write!(f, "allows only {existing}; the pod asks for {incoming}")
            }
            Self::NoOffering { asks, n_types } => {
                write!(
                    f,
                    "has no offering among {n_types} types that satisfies {asks}"
                )
            }
            Self::NoTypes {
                n_types,
                requirements,
            } => {
                write!(
                    f,
                    "leaves none of its {n_types} types by its own requirements {requirements}"
                )
            }
            Self::NotSelected { asks } => write!(f, "does not satisfy {asks}"),
            Self::SoldOut => f.write_str("has offerings that would do, but all are sold out"),
            Self::TooLarge {
                resource,
                needed,
                most,
            } => {
                let (needed, most) = (
                    render_roughly(resource, *needed),
                    render_roughly(resource, *most),
                );
                write!(
                    f,
                    "has no type large enough: the pod and daemons need {needed} of {resource}, \
                     the largest matching type has {most}"
                )
            }
            Self::NotTogether(resources) => {
                let names: Vec<&str> = resources.iter().map(ResourceName::as_str).collect();
                write!(
                    f,
                    "has no type with enough of {} together",
                    names.join(", ")
                )
            }
            Self::Limit {
                resource,
                limit,
                left,
            } => {
                let (limit, left) = (
                    render_roughly(resource, *limit),
                    render_roughly(resource, *left),
                );
                write!(f, "is limited to {limit} of {resource} and has {left} left")
            }
            Self::Port(port) => write!(f, "has host port {port} taken on every type"),
            Self::MinValues { key, needed, found } => {
                write!(
                    f,
                    "needs {needed} different values of {key} and finds {found}"
                )
            }
            Self::Spread { key, max_skew } => {
                write!(
                    f,
                    "has no {key} left that keeps the spread within a skew of {max_skew}"
                )
            }
            Self::Affinity { key } => {
                write!(
                    f,
                    "has no {key} with a pod that the required affinity asks for"
                )
            }
            Self::AntiAffinity { key } => {
                write!(
                    f,
                    "has no {key} free of pods that anti-affinity keeps apart"
                )
            }
            Self::Volumes => f.write_str("cannot reach the pod's volumes"),
            Self::Full => f.write_str("has no room"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_said_with_what_may_have_been_meant() {
        let said = |key: &str, near: &[&str]| {
            let absent = Absent {
                key: key.into(),
                value: "x1".into(),
                near: near.iter().map(|name| Name::from(*name)).collect(),
            };
            Refusal::Absent { pool: None, absent }.to_string()
        };
        let none = "zone \"x1\" does not exist in the catalog";
        assert_eq!(said(keys::ZONE, &[]), none);
        assert_eq!(
            said(keys::INSTANCE_TYPE, &["x2"]),
            "instance type \"x1\" does not exist in the catalog (did you mean \"x2\"?)"
        );
        assert_eq!(
            said(keys::ZONE, &["a", "b", "c"]),
            format!("{none} (did you mean \"a\", \"b\" or \"c\"?)")
        );
    }
}
