//! A packing in terms of the model, and its way back to the caller's rows, kinds and bins.

use crate::model::Model;
use crate::problem::{Packed, Packing, Place, Problem};

/// Equal nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// Where the items are.
    pub(crate) slot: u32,
    /// Classes with item counts, by class.
    pub(crate) items: Vec<(u32, u32)>,
    /// How many such nodes there are; one for bins.
    pub(crate) times: u32,
}

/// A packing in terms of the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Nodes with items.
    pub(crate) nodes: Vec<Node>,
    /// Items per class that have no place.
    pub(crate) unplaced: Vec<u64>,
}

impl Plan {
    /// The price of the new nodes.
    pub(crate) fn price(&self, model: &Model) -> u128 {
        self.nodes
            .iter()
            .map(|node| u128::from(model.price[node.slot as usize]) * u128::from(node.times))
            .sum()
    }

    /// Items without a place.
    pub(crate) fn n_unplaced(&self) -> u64 {
        self.unplaced.iter().sum()
    }

    /// In the caller's terms.
    pub(crate) fn into_packing(mut self, problem: &Problem, model: &Model) -> Packing {
        let price = u64::try_from(self.price(model)).unwrap_or(u64::MAX);
        self.nodes.sort_unstable();
        let mut rest: Vec<std::collections::VecDeque<(u32, u32)>> = model
            .rows
            .iter()
            .map(|rows| rows.iter().copied().collect())
            .collect();
        let mut nodes = Vec::new();
        for node in &self.nodes {
            let slot = node.slot as usize;
            let source = model.source[slot];
            let place = if slot < model.n_kinds {
                Place::Kind(source)
            } else {
                Place::Bin(source)
            };
            for _ in 0..node.times {
                let mut items = Vec::with_capacity(node.items.len());
                for &(class, n) in &node.items {
                    take(&mut rest[class as usize], u64::from(n), &mut items);
                }
                items.sort_unstable();
                nodes.push(Packed { place, items });
            }
        }
        let mut unplaced: Vec<(u32, u32)> = rest.into_iter().flatten().collect();
        unplaced.retain(|&(_, n)| n > 0);
        unplaced.sort_unstable();
        let values = vec![0.0; problem.rows.len()];
        Packing {
            nodes,
            unplaced,
            price,
            values,
            steps: 0,
        }
    }
}

/// Takes `n` items from rows, in order.
fn take(
    rows: &mut std::collections::VecDeque<(u32, u32)>,
    mut n: u64,
    items: &mut Vec<(u32, u32)>,
) {
    while n > 0 {
        let Some(front) = rows.front_mut() else {
            debug_assert!(false, "a packing holds more items than there are");
            return;
        };
        let some = u32::try_from(n).unwrap_or(u32::MAX).min(front.1);
        items.push((front.0, some));
        front.1 -= some;
        n -= u64::from(some);
        if front.1 == 0 {
            rows.pop_front();
        }
    }
}
