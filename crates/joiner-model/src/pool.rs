//! Pools of nodes to buy, and the daemons that come with every node.

use crate::{Labels, Name, PodShape, Requirements, Resources, Taint, TypeIx};

/// Index of a pool in its problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolIx(pub u32);

/// Index of a DaemonSet in its problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DaemonIx(pub u32);

/// A pool that new nodes may come from.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Name.
    pub name: Name,
    /// Heavier pools are preferred, whatever they cost.
    pub weight: i32,
    /// Requirements of the template, with `minValues`.
    pub requirements: Requirements,
    /// Labels that every node gets: template labels, the pool label, the node class label, and
    /// those that a node has once it is up.
    pub labels: Labels,
    /// Taints of every node.
    pub taints: Vec<Taint>,
    /// Taints that go away while the node boots; they keep no pod out.
    pub startup_taints: Vec<Taint>,
    /// Upper limits on the capacity of the pool; `nodes` counts nodes.
    pub limits: Option<Resources>,
    /// The instance types it can buy, in index order.
    pub types: Vec<TypeIx>,
    /// Set when no node can come from it: a reason in words.
    pub closed: Option<Name>,
}

/// Pools that are named when none can sell a node.
const NAMED_MAX: usize = 5;

/// Says that no pool can sell a node, given each one's name and what is in its way.
#[must_use]
pub fn none_ready(pools: &[(Name, String)]) -> String {
    if pools.is_empty() {
        return "there is no NodePool".to_owned();
    }
    let named = pools.iter().take(NAMED_MAX);
    let named: Vec<String> = named.map(|(name, why)| format!("{name} ({why})")).collect();
    let more = match pools.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("no NodePool is ready: {}{more}", named.join(", "))
}

/// A DaemonSet: one pod on every node it fits.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// `namespace/name`.
    pub name: Name,
    /// Its pod, as far as node selection and size go.
    pub shape: PodShape,
}
