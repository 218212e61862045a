//! Problems that grow in one direction, for how time grows with it.

use super::{Case, Family, generate, mixes};

/// Problems of the first two kinds have seeds; ours is this one.
const SEED: u64 = 1;
/// Pods to place while types grow.
const PODS_ON_TYPES: usize = 5000;
/// Pods to place while nodes grow.
const PODS_BESIDE_NODES: usize = 2000;

/// What grows while all else stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Pods of the family `bench`.
    Pods,
    /// Types of the built-in catalog, for 5,000 pods of common sizes.
    Types,
    /// Nodes with room left, for 2,000 pods of common sizes.
    Nodes,
}

impl Growth {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pods, Self::Types, Self::Nodes];

    /// The name, as in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Types => "types",
            Self::Nodes => "nodes",
        }
    }

    /// The sizes to measure, from small to large.
    #[must_use]
    pub const fn sizes(self) -> &'static [usize] {
        match self {
            Self::Pods => &[1, 50, 100, 500, 1000, 5000, 10_000, 20_000, 50_000],
            Self::Types => &[36, 144, 600, 1363],
            Self::Nodes => &[0, 100, 1000, 5000],
        }
    }

    /// The problem of this size.
    #[must_use]
    pub fn case(self, size: usize) -> Case {
        match self {
            Self::Pods => generate(Family::Bench, SEED, size),
            Self::Types => mixes::on_types(size, PODS_ON_TYPES),
            Self::Nodes => mixes::beside_nodes(size, PODS_BESIDE_NODES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_grows() {
        let sizes = |growth: Growth, size: usize| {
            let problem = growth.case(size).problem();
            let pending = problem.pending().count();
            (pending, problem.types.len(), problem.nodes.len())
        };
        // All there are, and a few of them.
        for size in [36, 1363] {
            assert_eq!(sizes(Growth::Types, size), (PODS_ON_TYPES, size, 0));
        }
        let (pods, types, nodes) = sizes(Growth::Nodes, 0);
        assert_eq!((pods, nodes), (PODS_BESIDE_NODES, 0));
        assert_eq!(sizes(Growth::Nodes, 100), (pods, types, 100));
        assert_eq!(sizes(Growth::Pods, 50), (50, 400, 0));
    }
}
