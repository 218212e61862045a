//! Who is admitted before whom, and which domain an item leaves to others.
//!
//! A spread counts what is there when a pod is placed, so the order matters: some items must have
//! settled before the pods of a spread come, others follow, and whoever has no choice goes first.

use joiner_model::Name;

use crate::cells::{Desk, Item, Limits, only};
use crate::classes::Demand;

/// The place of an item in the order of admission.
pub(crate) type Rank = (u8, std::cmp::Reverse<i32>, usize, bool, u8, usize);

impl Desk<'_, '_> {
    /// The order of admission: by priority, then those without a choice, then the pickiest,
    /// followers last.
    pub(crate) fn rank(&mut self, item: &Item) -> Rank {
        let owned = self.owned(item);
        let follows = owned.iter().any(|(r, c)| {
            self.rule(*r).demand == Demand::Affinity && !self.class(*c).is_counted(*r)
        });
        let has =
            |test: fn(&Demand) -> bool| owned.iter().any(|(r, _)| test(&self.rule(*r).demand));
        let rank = if follows {
            4
        } else if has(|d| matches!(d, Demand::Anti { .. })) {
            0
        } else if has(|d| matches!(d, Demand::Spread { .. })) {
            1
        } else if has(|d| matches!(d, Demand::Affinity)) {
            2
        } else {
            3
        };
        let priority = item
            .members
            .iter()
            .map(|(c, _)| self.class(*c).priority)
            .max();
        let counted = item
            .members
            .iter()
            .flat_map(|(c, _)| self.class(*c).counted.clone());
        let apart: Vec<Name> = counted
            .map(|r| self.rule(r))
            .filter(|rule| matches!(rule.demand, Demand::Anti { .. }) && !rule.is_host())
            .chain(owned.iter().map(|(r, _)| self.rule(*r)))
            .filter(|rule| rule.demand != Demand::Affinity)
            .map(|rule| rule.key.clone())
            .collect();
        let n_choices = apart.iter().map(|key| self.values(item, key).len()).min();
        let n_choices = n_choices.unwrap_or(usize::MAX);
        let early = self.hints.early.iter().rev();
        let early = early
            .enumerate()
            .find(|(_, name)| self.names(item).any(|own| own == **name));
        (
            self.turn(item),
            std::cmp::Reverse(priority.unwrap_or(0)),
            early.map_or(usize::MAX, |(place, _)| place),
            n_choices > 1,
            rank,
            n_choices,
        )
    }

    /// Those that spreads count as coming before come first, and of those the ones under a spread over
    /// nodes, where whoever is merely counted comes after.
    pub(crate) fn turn(&self, item: &Item) -> u8 {
        let mut owned = item.members.iter().flat_map(|(c, _)| &self.class(*c).owned);
        let over_nodes = owned.any(|r| {
            let rule = self.rule(*r);
            rule.is_host() && matches!(rule.demand, Demand::Spread { .. })
        });
        match (self.before(item).is_empty(), over_nodes) {
            (false, true) => 0,
            (false, false) => 1,
            (true, _) => 2,
        }
    }

    /// Shape and level of the members.
    pub(crate) fn names(&self, item: &Item) -> impl Iterator<Item = (u32, u16)> {
        let class = |(c, _): &(u32, u32)| (self.class(*c).shape, self.class(*c).level);
        item.members.iter().map(class)
    }

    /// The key and the value that the item is to take first.
    pub(crate) fn lean(&self, item: &Item) -> Option<&(Name, Name)> {
        self.names(item)
            .find_map(|name| self.hints.leans.get(&name))
    }

    /// Spreads over domains that count the item as one that came before: it is under another spread
    /// that counts their pods, and if it came after, no order might please both.
    pub(crate) fn before(&self, item: &Item) -> Vec<u32> {
        let classes = item.members.iter().map(|(c, _)| self.class(*c));
        let is_spread = |r: &u32| matches!(self.rule(*r).demand, Demand::Spread { .. });
        let mut rules = Vec::new();
        for class in classes.filter(|class| class.in_order && !class.comes_last) {
            let own: Vec<u32> = class.owned.iter().copied().filter(is_spread).collect();
            let counting = class.counted.iter().filter(|r| {
                is_spread(r) && !self.rule(**r).is_host() && !own.is_empty() && !own.contains(r)
            });
            rules.extend(counting.filter(|r| {
                let mut owners = self.classes.all.iter().filter(|k| k.owned.contains(r));
                owners.any(|k| own.iter().any(|o| k.is_counted(*o)))
            }));
        }
        rules
    }

    /// Keys over which pods that are still to come want to keep away from this item, or count it:
    /// it settles on one value, so that there is something left for them.
    pub(crate) fn exposed(&self, item: &Item, before: &[u32]) -> Vec<Name> {
        let counted = item
            .members
            .iter()
            .flat_map(|(c, _)| &self.class(*c).counted);
        let mut keys: Vec<Name> = counted
            .filter(|r| {
                let rule = self.rule(**r);
                if before.contains(r) {
                    return true;
                }
                matches!(rule.demand, Demand::Anti { .. })
                    && !rule.is_host()
                    && self.tallies[**r as usize].owners.is_empty()
                    && item
                        .members
                        .iter()
                        .all(|(c, _)| !self.class(*c).owned.contains(r))
                    && self.classes.all.iter().any(|k| k.owned.contains(r))
            })
            .map(|r| self.rule(*r).key.clone())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// How many domains of a cell the item would close to others that want to keep away from it.
    pub(crate) fn spoils(&self, item: &Item, limits: &Limits) -> usize {
        let classes = item.members.iter().map(|(c, _)| self.class(*c));
        let counted = classes.flat_map(|class| &class.counted);
        let fresh = counted.filter(|r| {
            let (rule, tally) = (self.rule(**r), &self.tallies[**r as usize]);
            let value = only(limits, &rule.key);
            matches!(rule.demand, Demand::Anti { .. })
                && value.is_some_and(|v| !tally.counts.contains_key(v))
        });
        fresh.count()
    }

    /// How many items have settled in the emptiest of a cell's domains: nodes may be shared there.
    pub(crate) fn company(&self, limits: &Limits) -> u64 {
        let single = limits.iter().filter(|(_, values)| values.len() == 1);
        let settled = single.map(|(key, values)| {
            let domain = (key.clone(), values[0].clone());
            self.settled.get(&domain).copied().unwrap_or(0)
        });
        settled.min().unwrap_or(0)
    }

    /// How full the domains of a cell are already; emptier ones come first among equals.
    pub(crate) fn crowd(&self, owned: &[(u32, u32)], limits: &Limits) -> u32 {
        owned
            .iter()
            .filter_map(|(r, _)| {
                let value = only(limits, &self.rule(*r).key)?;
                self.tallies[*r as usize].counts.get(value).copied()
            })
            .sum()
    }
}
