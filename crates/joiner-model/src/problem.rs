//! All that a decision may rest on. What is not in here cannot sway it.

use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

use crate::{
    Daemon, DaemonIx, InstanceType, InstanceTypes, Name, Node, NodeIx, Pod, PodIx, PodShape, Pool,
    PoolIx, ShapeIx, TypeIx,
};

/// What to do with wishes that are not rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreferencePolicy {
    /// Preferences count as rules until a pod cannot be placed otherwise.
    #[default]
    Respect,
    /// Preferences are not looked at.
    Ignore,
}

/// What to do when `minValues` cannot be met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinValuesPolicy {
    /// The node cannot be.
    #[default]
    Strict,
    /// The number is lowered to what there is.
    BestEffort,
}

/// The most elementary steps a search may take: work is bounded by this, never by a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepLimit(pub u64);

/// Settings that change decisions.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Preferences.
    pub preferences: PreferencePolicy,
    /// `minValues`.
    pub min_values: MinValuesPolicy,
    /// Bound of the search.
    pub steps_max: StepLimit,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            preferences: PreferencePolicy::default(),
            min_values: MinValuesPolicy::default(),
            steps_max: StepLimit(900_000_000),
        }
    }
}

/// Pods, nodes, pools and offerings at one moment.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// All pods, bound or to be placed.
    pub pods: Vec<Pod>,
    /// The distinct shapes of the pods.
    pub shapes: Vec<PodShape>,
    /// Nodes there are or that are coming.
    pub nodes: Vec<Node>,
    /// Pools to buy from.
    pub pools: Vec<Pool>,
    /// Instance types that the pools refer to.
    pub types: InstanceTypes,
    /// DaemonSets.
    pub daemons: Vec<Daemon>,
    /// Label keys that a type or offering defines: pods may select them on any pool.
    pub well_known: BTreeSet<Name>,
    /// Settings.
    pub policy: Policy,
}

impl Problem {
    /// The shape of a pod.
    #[must_use]
    pub fn shape(&self, pod: PodIx) -> &PodShape {
        &self[self[pod].shape]
    }

    /// The pods to place, in index order.
    pub fn pending(&self) -> impl Iterator<Item = PodIx> {
        (0u32..)
            .zip(&self.pods)
            .filter(|(_, pod)| pod.node.is_none() && pod.ignored.is_none())
            .map(|(ix, _)| PodIx(ix))
    }
}

/// What an index of a problem stands for: `problem[pod]` for `problem.pods[pod.0 as usize]`.
macro_rules! indexed {
    ($($list:ident[$ix:ty] is $output:ty;)*) => {$(
        impl Index<$ix> for Problem {
            type Output = $output;

            fn index(&self, ix: $ix) -> &$output {
                &self.$list[ix.0 as usize]
            }
        }

        impl IndexMut<$ix> for Problem {
            fn index_mut(&mut self, ix: $ix) -> &mut $output {
                &mut self.$list[ix.0 as usize]
            }
        }
    )*};
}

indexed! {
    pods[PodIx] is Pod;
    shapes[ShapeIx] is PodShape;
    nodes[NodeIx] is Node;
    pools[PoolIx] is Pool;
    types[TypeIx] is InstanceType;
    daemons[DaemonIx] is Daemon;
}
