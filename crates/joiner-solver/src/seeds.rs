//! Affinity between domains: opening a domain for a group that is drawn to itself, and pinning a pod
//! that others want to follow.

use joiner_model::Name;

use crate::cells::{Desk, Item, Limits, narrow, only};
use crate::classes::Demand;

impl Desk<'_, '_> {
    /// Chooses the domain for groups that are drawn to themselves and have none yet: where most of
    /// their pods can be, then where they are cheapest.
    pub(crate) fn seed(&mut self, item: &Item, owned: &[(u32, u32)]) {
        for (r, c) in owned {
            let tally = &self.tallies[*r as usize];
            let open = self.rule(*r).demand == Demand::Affinity
                && self.class(*c).is_counted(*r)
                && tally.seed.is_none()
                && !tally.bound
                && tally.counts.is_empty();
            if !open {
                continue;
            }
            let key = self.rule(*r).key.clone();
            let group: Vec<u32> = (0u32..)
                .zip(&self.classes.all)
                .filter(|(_, k)| k.owned.contains(r) && k.is_counted(*r))
                .map(|(k, _)| k)
                .collect();
            let mut best: Option<(std::cmp::Reverse<u64>, bool, u128, Name)> = None;
            for value in self.values(item, &key) {
                let (mut n_placed, mut price) = (0u64, 0u128);
                for k in &group {
                    let one = Item {
                        members: vec![(*k, 1)],
                        only_hosts: None,
                    };
                    let limits = vec![(key.clone(), vec![value.clone()])];
                    let others = self.owned(&one);
                    let fine = others.iter().all(|(o, _)| {
                        self.rule(*o).key != key
                            || self.rule(*o).demand == Demand::Affinity
                            || self.allows(&one, &[(*o, *k)], &limits)
                    });
                    let Some((share, _)) = self.offer(&one, &limits).filter(|_| fine) else {
                        continue;
                    };
                    let n = u64::from(self.class(*k).count());
                    n_placed += n;
                    price += u128::from(share) * u128::from(n);
                }
                let lean = self.lean(item).filter(|(k, _)| *k == key);
                let elsewhere = lean.is_some_and(|(_, v)| *v != value);
                let this = (std::cmp::Reverse(n_placed), elsewhere, price, value);
                if best.as_ref().is_none_or(|b| this < *b) {
                    best = Some(this);
                }
            }
            self.tallies[*r as usize].seed = best.map(|(_, _, _, value)| value);
        }
    }

    /// Rules of the item that need a pod pinned to this cell first.
    pub(crate) fn anchors(&self, owned: &[(u32, u32)], limits: &Limits) -> Vec<(u32, Limits)> {
        owned
            .iter()
            .filter(|(r, c)| {
                let (rule, tally) = (self.rule(*r), &self.tallies[*r as usize]);
                let Some(value) = only(limits, &rule.key) else {
                    return false;
                };
                rule.demand == Demand::Affinity
                    && !tally.counts.contains_key(value)
                    && !(tally.seed.as_ref() == Some(value) && self.class(*c).is_counted(*r))
            })
            .map(|(r, _)| {
                let key = &self.rule(*r).key;
                let kept = limits.iter().filter(|(k, _)| k == key).cloned().collect();
                (*r, kept)
            })
            .collect()
    }

    /// A part with free items that rule `r` counts and that could be pinned within `limits`.
    pub(crate) fn anchor_source(&self, r: u32, limits: &Limits) -> Option<usize> {
        let key = &self.rule(r).key;
        let value = only(limits, key)?;
        self.parts.iter().position(|part| {
            part.count > 0
                && only(&part.limits, key).is_none()
                && part.item.members.iter().any(|(c, _)| {
                    self.class(*c).is_counted(r) && !self.class(*c).owned.contains(&r)
                })
                && part
                    .limits
                    .iter()
                    .all(|(k, values)| k != key || values.contains(value))
                && {
                    let mut pinned = part.limits.clone();
                    narrow(&mut pinned, key, vec![value.clone()]);
                    self.price_of(&part.item, &pinned).is_some()
                }
        })
    }

    /// Pins one free item that rule `r` counts.
    pub(crate) fn anchor(&mut self, r: u32, limits: &Limits) {
        let Some(p) = self.anchor_source(r, limits) else {
            return;
        };
        let key = self.rule(r).key.clone();
        let Some(value) = only(limits, &key).cloned() else {
            return;
        };
        let part = &mut self.parts[p];
        part.count -= 1;
        let mut pinned = part.clone();
        pinned.count = 1;
        narrow(&mut pinned.limits, &key, vec![value]);
        self.tally(&pinned.item.clone(), 1, &pinned.limits.clone());
        self.parts.push(pinned);
    }
}
