//! Nodes that exist or are on their way.

use std::collections::BTreeMap;

use crate::{Labels, Name, Resources, Taint};

/// Index of a node in its problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIx(pub u32);

/// A node that exists, or a launched claim whose node has not joined yet.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name of the node, or of the claim in flight.
    pub name: Name,
    /// Its labels in current spelling; the hostname label is always there.
    pub labels: Labels,
    /// Taints that count: those of a booting node that will go by themselves are left out.
    pub taints: Vec<Taint>,
    /// All that it has.
    pub capacity: Resources,
    /// What pods can use.
    pub allocatable: Resources,
    /// The pool it belongs to, if any.
    pub pool: Option<Name>,
    /// Booted, registered and initialized; such nodes are filled first.
    pub initialized: bool,
    /// Cordoned or going away: nothing new is placed here.
    pub closed: bool,
    /// Most volumes per CSI driver.
    pub volume_limits: BTreeMap<Name, u32>,
}
