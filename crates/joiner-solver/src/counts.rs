//! What the rules allow in a domain, and what counts there.

use std::collections::BTreeMap;

use joiner_model::Name;

use crate::cells::{Desk, Item, Limits, only};
use crate::classes::Demand;

impl Desk<'_, '_> {
    /// True when a domain with `count` pods keeps the spread's skew.
    pub(crate) fn spread_allows(
        &self,
        r: u32,
        value: &Name,
        count: u32,
        counts: &BTreeMap<Name, u32>,
    ) -> bool {
        let Demand::Spread {
            max_skew,
            min_domains,
            ..
        } = self.rule(r).demand
        else {
            return true;
        };
        let domains = &self.classes.book.domains[r as usize];
        if domains.binary_search(value).is_err() {
            return false;
        }
        let mut low = domains
            .iter()
            .map(|d| counts.get(d).copied().unwrap_or(0))
            .min()
            .unwrap_or(0);
        if domains.len() < min_domains as usize {
            low = 0;
        }
        count.saturating_sub(low) <= max_skew
    }

    /// True when every rule allows one more item in this cell.
    pub(crate) fn allows(&self, item: &Item, owned: &[(u32, u32)], limits: &Limits) -> bool {
        let owned_fine = owned.iter().all(|(r, c)| {
            let (rule, tally) = (self.rule(*r), &self.tallies[*r as usize]);
            let Some(value) = only(limits, &rule.key) else {
                return false;
            };
            let here = tally.counts.get(value).copied().unwrap_or(0);
            match rule.demand {
                Demand::Spread { .. } => {
                    let members = item.members.iter();
                    let own: u32 = members
                        .filter(|(k, _)| self.class(*k).is_counted(*r))
                        .map(|(_, n)| *n)
                        .sum();
                    self.spread_allows(*r, value, here + own, &tally.counts)
                }
                Demand::Anti { .. } => here == 0,
                Demand::Affinity if self.class(*c).is_counted(*r) => {
                    here > 0 || tally.seed.as_ref() == Some(value)
                }
                Demand::Affinity => here > 0 || self.anchor_source(*r, limits).is_some(),
            }
        });
        owned_fine
            && item
                .members
                .iter()
                .flat_map(|(c, _)| &self.class(*c).counted)
                .all(|r| {
                    let rule = self.rule(*r);
                    if rule.demand != (Demand::Anti { both: true }) || rule.is_host() {
                        return true;
                    }
                    only(limits, &rule.key)
                        .is_none_or(|value| !self.tallies[*r as usize].owners.contains_key(value))
                })
    }

    /// Counts items in their domains: in the one they are settled in, or, for anti-affinity, in all
    /// that they may still end up in.
    pub(crate) fn tally(&mut self, item: &Item, count: u32, limits: &Limits) {
        for (c, m) in &item.members {
            let n = count * m;
            let class = &self.classes.all[*c as usize];
            for r in &class.counted {
                let rule = &self.classes.book.rules[*r as usize];
                if rule.is_host() {
                    continue;
                }
                let values = self.may_be(item, limits, &rule.key);
                if values.len() == 1 || matches!(rule.demand, Demand::Anti { .. }) {
                    let counts = &mut self.tallies[*r as usize].counts;
                    values
                        .into_iter()
                        .for_each(|v| *counts.entry(v).or_default() += n);
                }
            }
            for r in &class.owned {
                let rule = &self.classes.book.rules[*r as usize];
                if let (Demand::Anti { .. }, Some(value)) = (&rule.demand, only(limits, &rule.key))
                {
                    let owners = &mut self.tallies[*r as usize].owners;
                    *owners.entry(value.clone()).or_default() += n;
                }
            }
        }
    }

    /// The values that an item within limits may have for `key`.
    pub(crate) fn may_be(&mut self, item: &Item, limits: &Limits, key: &Name) -> Vec<Name> {
        let limited = limits
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, values)| values.clone());
        limited.unwrap_or_else(|| self.values(item, key))
    }
}
