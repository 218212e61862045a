//! What an item costs in a domain, before anything is packed.

use crate::cells::{Desk, Item, Limits, need_of};
use crate::select::Sel;

impl Desk<'_, '_> {
    /// What an item costs in a cell, and how many can be there at most.
    pub(crate) fn offer(&mut self, item: &Item, limits: &Limits) -> Option<(u64, u32)> {
        if let Some(price) = self.price_cached(item, limits) {
            return Some((price, u32::MAX));
        }
        let n = self.n_on_hosts(item, limits);
        (n > 0).then_some((0, n))
    }

    pub(crate) fn price_cached(&mut self, item: &Item, limits: &Limits) -> Option<u64> {
        if item.only_hosts.is_some() {
            return None;
        }
        let choice_numbers = item
            .members
            .iter()
            .map(|(c, _)| self.class(*c).choice)
            .collect();
        let key = (choice_numbers, need_of(self.classes, item), limits.clone());
        if let Some(price) = self.prices.get(&key) {
            return *price;
        }
        let price = self.price_of_new(item, limits);
        self.prices.insert(key, price);
        price
    }

    /// The share of a node's price that an item takes on the best kind, or zero on nodes there are.
    pub(crate) fn price_of(&self, item: &Item, limits: &Limits) -> Option<u64> {
        self.price_of_new(item, limits)
            .or_else(|| (self.n_on_hosts(item, limits) > 0).then_some(0))
    }

    pub(crate) fn price_of_new(&self, item: &Item, limits: &Limits) -> Option<u64> {
        if item.only_hosts.is_some() {
            return None;
        }
        let need = need_of(self.classes, item);
        let sels = self.sels(item, limits);
        self.ground
            .kinds
            .iter()
            .filter(|k| sels.iter().all(|s| s.iter().any(|sel| sel.has(k))))
            .filter_map(|k| share(k.price, &need, self.ground.room_of(k)))
            .min()
    }

    /// By member, what its node selection leaves within limits.
    pub(crate) fn sels(&self, item: &Item, limits: &Limits) -> Vec<Vec<Sel>> {
        let of_class = |(c, _): &(u32, u32)| {
            let mut sels = self.choice(*c).alternatives.clone();
            for sel in &mut sels {
                limits
                    .iter()
                    .for_each(|(key, values)| sel.limit(self.ground, key, values));
            }
            sels
        };
        item.members.iter().map(of_class).collect()
    }

    /// How many items fit on existing nodes within the limits.
    pub(crate) fn n_on_hosts(&self, item: &Item, limits: &Limits) -> u32 {
        let need = need_of(self.classes, item);
        let mut total: u64 = 0;
        for (n, host) in self.ground.hosts.iter().enumerate() {
            let labels = &self.ground.problem.nodes[n].labels;
            let allowed = self.may_use_host(item, n)
                && limits.iter().all(|(key, values)| {
                    labels
                        .get(key)
                        .is_some_and(|v| values.binary_search(v).is_ok())
                });
            if allowed {
                let fit = need
                    .iter()
                    .zip(&host.room)
                    .filter(|(q, _)| **q > 0)
                    .map(|(q, r)| r / q);
                total = total.saturating_add(fit.min().unwrap_or(u64::MAX));
            }
        }
        u32::try_from(total).unwrap_or(u32::MAX)
    }
}

/// The part of `price` that `need` takes of `room` in its scarcest dimension; `None` if too large.
fn share(price: u64, need: &[u64], room: &[u64]) -> Option<u64> {
    let mut worst = 0u128;
    for (q, r) in need.iter().zip(room) {
        if q > r {
            return None;
        }
        if *q > 0 {
            worst = worst.max(u128::from(price) * u128::from(*q) / u128::from(*r));
        }
    }
    Some(u64::try_from(worst).unwrap_or(u64::MAX))
}
