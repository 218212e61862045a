//! What the rules allow in a domain, and what counts there.

use std::collections::BTreeMap;

use joiner_model::Name;

use crate::bundles::n_before;
use crate::cells::{Desk, Item, Limits, only};
use crate::classes::Demand;

/// Which of the nodes in question a spread looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    All,
    Some,
    None,
}

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
                    let own = n_before(self.classes, item, *r);
                    let perhaps = tally.perhaps.get(value).copied().unwrap_or(0);
                    self.spread_allows(*r, value, here + perhaps + own, &tally.counts)
                }
                Demand::Anti { .. } => here == 0,
                Demand::Affinity if self.class(*c).is_counted(*r) && !tally.bound => {
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
        for (key, values) in limits {
            if let [value] = &values[..] {
                let settled = self.settled.entry((key.clone(), value.clone()));
                *settled.or_default() += u64::from(count);
            }
        }
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
                    let sight = if class.owned.contains(r) {
                        Sight::All
                    } else {
                        self.sight(item, limits, *r)
                    };
                    let tally = &mut self.tallies[*r as usize];
                    let counts = match sight {
                        Sight::All => &mut tally.counts,
                        Sight::Some => &mut tally.perhaps,
                        Sight::None => continue,
                    };
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

    /// Whether a spread looks at the nodes that an item within limits may end up on.
    fn sight(&mut self, item: &Item, limits: &Limits, r: u32) -> Sight {
        let Demand::Spread {
            filter,
            honor_affinity,
            honor_taints,
            ..
        } = self.classes.book.rules[r as usize].demand
        else {
            return Sight::All;
        };
        let numbers = item.members.iter().map(|(c, _)| self.class(*c).choice);
        let key = (numbers.collect::<Vec<u32>>(), limits.clone(), r);
        if let (None, Some(sight)) = (&item.only_hosts, self.known_sights.get(&key)) {
            return *sight;
        }
        let filter = &self.choices.all[filter as usize];
        let (mut seen, mut unseen) = (false, false);
        let mut look = |sees: bool| *if sees { &mut seen } else { &mut unseen } = true;
        if item.only_hosts.is_none() {
            let sels = self.sels(item, limits);
            let kinds = self.ground.kinds.iter();
            for kind in kinds.filter(|k| sels.iter().all(|s| s.iter().any(|sel| sel.has(k)))) {
                look(
                    (!honor_affinity || filter.strict.iter().any(|sel| sel.has(kind)))
                        && (!honor_taints || filter.tolerated.contains(kind.variant as usize)),
                );
            }
        }
        for n in (0..self.ground.hosts.len()).filter(|n| self.may_use_host(item, *n)) {
            look(
                (!honor_affinity || filter.strict_hosts.contains(n))
                    && (!honor_taints || filter.tolerated_hosts.contains(n)),
            );
        }
        let sight = match (seen, unseen) {
            (_, false) => Sight::All,
            (true, true) => Sight::Some,
            (false, true) => Sight::None,
        };
        if item.only_hosts.is_none() {
            self.known_sights.insert(key, sight);
        }
        sight
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
