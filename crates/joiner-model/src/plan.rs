//! What to do and why: plain data to print, compare, check, or throw away.

use crate::{
    Name, NanoDollars, NodeIx, OfferingIx, PodIx, PoolIx, Refusal, Requirement, Resources, TypeIx,
};

/// An answer to a problem.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Nodes to buy.
    pub launches: Vec<Launch>,
    /// Pods that go to nodes there are.
    pub placements: Vec<Placement>,
    /// Pods left over, with reasons.
    pub unplaced: Vec<Unplaced>,
    /// What it costs.
    pub cost: Cost,
}

/// Price and proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Price of the new nodes an hour.
    pub price: NanoDollars,
    /// No legal placement of the same placed pods costs less.
    pub bound: NanoDollars,
}

/// A node to buy.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name for people; unique in the plan.
    pub name: Name,
    /// The pool it comes from.
    pub pool: PoolIx,
    /// What remains open: every offering of every listed type that these leave can hold the pods.
    pub requirements: Vec<Requirement>,
    /// Types that will do, cheapest first.
    pub types: Vec<TypeIx>,
    /// The cheapest offering of the cheapest type.
    pub offering: (TypeIx, OfferingIx),
    /// Its price an hour.
    pub price: NanoDollars,
    /// The pods it is for.
    pub pods: Vec<PodIx>,
    /// What those pods request together, daemons not counted.
    pub requests: Resources,
    /// `minValues` had to be lowered.
    pub min_values_relaxed: bool,
}

/// Pods for a node there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The node.
    pub node: NodeIx,
    /// The pods.
    pub pods: Vec<PodIx>,
}

/// A pod left over.
#[derive(Clone, Debug)]
pub struct Unplaced {
    /// The pod.
    pub pod: PodIx,
    /// Why, most telling first.
    pub refusals: Vec<Refusal>,
}
