//! Pool weights against limits: who may be in a lighter pool.

use std::cmp::Reverse;

use crate::budgets::Budget;
use crate::rows::{Opened, RowMaker};

impl RowMaker<'_, '_> {
    /// Pools with limits or reserved capacity, heaviest first. At stage n the n heaviest of them are out.
    pub(crate) fn limited_pools(&self) -> Vec<usize> {
        let pools = &self.ground.problem.pools;
        let mut limited: Vec<usize> = (0..pools.len())
            .filter(|p| pools[*p].limits.is_some() || self.reserves(*p))
            .collect();
        limited.sort_by_key(|p| (Reverse(pools[*p].weight), pools[*p].name.clone()));
        limited
    }

    /// True when a pool can buy reserved capacity, of which there is only so much.
    pub(crate) fn reserves(&self, pool: usize) -> bool {
        (0..).zip(&self.stock.budgets).any(|(b, budget)| {
            matches!(budget, Budget::Reservation { .. })
                && self
                    .ground
                    .kinds
                    .iter()
                    .zip(&self.stock.spends)
                    .any(|(kind, spend)| {
                        self.ground.pool_of(kind) == pool && spend.iter().any(|(x, _)| *x == b)
                    })
        })
    }

    /// True when every node holds an item that no heavier pool could take within what is left of
    /// its limits.
    pub(crate) fn respects_weights(&mut self, opened: &[Opened]) -> bool {
        let spent = self.spent(opened);
        let left: Vec<u64> = self
            .stock
            .budgets
            .iter()
            .zip(spent)
            .map(|(b, n)| b.left().saturating_sub(n))
            .collect();
        opened.iter().all(|node| {
            let pool = self.ground.pool_of(&self.ground.kinds[node.kind as usize]);
            let weight = self.ground.problem.pools[pool].weight;
            node.parts
                .iter()
                .any(|(p, _)| !self.fits_heavier(*p, weight, &left))
        })
    }

    /// True when a heavier pool could take an item within what is left of its limits.
    fn fits_heavier(&mut self, p: u32, weight: i32, left: &[u64]) -> bool {
        let need = self.need(&self.parts[p as usize]);
        let number = self.kinds_of(p);
        let heavier = self
            .stock
            .sets
            .get(number)
            .by_weight
            .iter()
            .filter(|(w, _)| *w > weight);
        heavier.flat_map(|(_, kinds)| kinds).any(|k| {
            let room = self.ground.usable_of(&self.ground.kinds[*k as usize]);
            need.iter().zip(room).all(|(q, r)| q <= r)
                && self.stock.spends[*k as usize]
                    .iter()
                    .all(|(b, n)| *n <= left[*b as usize])
        })
    }
}
