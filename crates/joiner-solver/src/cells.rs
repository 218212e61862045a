//! How many pods of a class go to which zone, capacity type or other domain.
//!
//! Pods are admitted one after another, as a scheduler would, but at the level of domains instead
//! of nodes: a *cell* is one value for each topology key that binds a class. Of the cells that every
//! rule allows, the cheapest is taken. What comes out is legal by construction as far as rules
//! between domains go; rules between nodes are left to the packer.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use joiner_model::Name;

use crate::classes::{Class, Classes, Demand, Rule};
use crate::ground::Ground;
use crate::select::{Choices, Sel};

/// Things that must share a node: usually one pod, more under host affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Classes and how many pods of each.
    pub(crate) members: Vec<(u32, u32)>,
    /// Existing nodes it is confined to, when a pod it must join is bound already.
    pub(crate) only_hosts: Option<FixedBitSet>,
}

/// Some items with the same fate.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The item.
    pub(crate) item: Item,
    /// How many of it.
    pub(crate) count: u32,
    /// Values it is confined to, by key.
    pub(crate) limits: Limits,
    /// Keys that must have one value on its node, whichever.
    pub(crate) pins: Vec<Name>,
}

/// For each key the values that are allowed, sorted.
pub(crate) type Limits = Vec<(Name, Vec<Name>)>;

/// What came of admission.
pub(crate) struct Admission {
    /// Items to pack.
    pub(crate) parts: Vec<Part>,
    /// Pods that no domain can take: class and count.
    pub(crate) refused: Vec<(u32, u32)>,
}

/// What earlier attempts taught, and what this one is to try.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints {
    /// Most pods per cell.
    pub(crate) caps: CellCaps,
    /// A domain to prefer for groups that are drawn together.
    pub(crate) home: Option<Name>,
}

/// Most pods of a class per cell, learned from failed attempts.
pub(crate) type CellCaps = BTreeMap<(u32, u16, Limits), u32>;

/// Counters of one rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: BTreeMap<Name, u32>,
    pub(crate) owners: BTreeMap<Name, u32>,
    pub(crate) seed: Option<Name>,
    pub(crate) bound: bool,
}

/// Most cells that are looked at for one class.
const CELLS_MAX: usize = 4096;

/// Admits all items to domains.
pub(crate) fn admit(
    ground: &Ground<'_>,
    choices: &Choices,
    classes: &Classes,
    items: Vec<(Item, u32)>,
    hints: &Hints,
) -> Admission {
    let tallies = classes
        .book
        .bound
        .iter()
        .map(|b| Tally {
            counts: b.counts.clone(),
            owners: b.owners.clone(),
            seed: None,
            bound: !b.counts.is_empty(),
        })
        .collect();
    let mut desk = Desk {
        ground,
        choices,
        classes,
        hints,
        tallies,
        prices: BTreeMap::new(),
        admitted: BTreeMap::new(),
        known_values: BTreeMap::new(),
        parts: Vec::new(),
        refused: Vec::new(),
    };
    let mut queue: Vec<(Item, u32)> = items;
    queue.sort_by_cached_key(|(item, _)| desk.rank(item));
    // Followers wait until what they follow has been admitted; each pass admits or gives up.
    loop {
        let before: u64 = queue.iter().map(|(_, n)| u64::from(*n)).sum();
        let waiting = std::mem::take(&mut queue);
        for (item, count) in waiting {
            let left = desk.admit(&item, count);
            if left > 0 {
                queue.push((item, left));
            }
        }
        let after: u64 = queue.iter().map(|(_, n)| u64::from(*n)).sum();
        if after == 0 || after == before {
            break;
        }
    }
    for (item, count) in queue {
        desk.refused
            .extend(item.members.iter().map(|(c, n)| (*c, n * count)));
    }
    Admission {
        parts: desk.parts,
        refused: desk.refused,
    }
}

/// Where items are admitted to domains.
pub(crate) struct Desk<'a, 'p> {
    pub(crate) ground: &'a Ground<'p>,
    pub(crate) choices: &'a Choices,
    pub(crate) classes: &'a Classes,
    pub(crate) hints: &'a Hints,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) prices: BTreeMap<(Vec<u32>, Vec<u64>, Limits), Option<u64>>,
    /// How many of an item were admitted to a cell.
    admitted: BTreeMap<(Vec<(u32, u32)>, Limits), u32>,
    pub(crate) known_values: BTreeMap<(Vec<u32>, Name), Vec<Name>>,
    pub(crate) parts: Vec<Part>,
    pub(crate) refused: Vec<(u32, u32)>,
}

impl Desk<'_, '_> {
    pub(crate) fn class(&self, c: u32) -> &Class {
        &self.classes.all[c as usize]
    }

    pub(crate) fn rule(&self, r: u32) -> &Rule {
        &self.classes.book.rules[r as usize]
    }

    /// Rules over domains (not nodes) that members of the item own, with the owner.
    pub(crate) fn owned(&self, item: &Item) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = item
            .members
            .iter()
            .flat_map(|(c, _)| self.class(*c).owned.iter().map(|r| (*r, *c)))
            .filter(|(r, _)| !self.rule(*r).is_host())
            .collect();
        all.sort_unstable();
        all
    }

    /// The order of admission: by priority, then those without a choice, then the pickiest,
    /// followers last.
    fn rank(&mut self, item: &Item) -> (std::cmp::Reverse<i32>, bool, u8, usize) {
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
            .chain(owned.iter().map(|(r, _)| *r))
            .map(|r| self.rule(r))
            .filter(|rule| matches!(rule.demand, Demand::Anti { .. }) && !rule.is_host())
            .map(|rule| rule.key.clone())
            .collect();
        let n_choices = apart.iter().map(|key| self.values(item, key).len()).min();
        let n_choices = n_choices.unwrap_or(usize::MAX);
        (
            std::cmp::Reverse(priority.unwrap_or(0)),
            n_choices > 1,
            rank,
            n_choices,
        )
    }

    /// Admits up to `count` items and returns how many are left.
    fn admit(&mut self, item: &Item, count: u32) -> u32 {
        let owned = self.owned(item);
        let Some(kept_off) = self.kept_off(item) else {
            return count;
        };
        let exposed = self.exposed(item);
        if owned.is_empty() && exposed.is_empty() {
            self.push(item, count, kept_off, Vec::new());
            return 0;
        }
        let loose = if exposed.is_empty() {
            self.loose(item, &owned, &kept_off)
        } else {
            None
        };
        if let Some((limits, pins)) = loose {
            self.push(item, count, limits, pins);
            return 0;
        }
        self.admit_to_cells(item, count, (&owned, &exposed), &kept_off)
    }

    /// Keys over which pods that are still to come want to keep away from this item: it settles on
    /// one value, so that there is something left for them.
    fn exposed(&self, item: &Item) -> Vec<Name> {
        let counted = item
            .members
            .iter()
            .flat_map(|(c, _)| &self.class(*c).counted);
        let mut keys: Vec<Name> = counted
            .filter(|r| {
                let rule = self.rule(**r);
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

    /// Values that other pods' anti-affinity leaves to an item that is not under the rule itself.
    fn kept_off(&mut self, item: &Item) -> Option<Limits> {
        let mut limits = Limits::new();
        let counted: Vec<u32> = item
            .members
            .iter()
            .flat_map(|(c, _)| self.class(*c).counted.clone())
            .collect();
        for r in counted {
            let rule = self.rule(r);
            let off_limits = rule.demand == (Demand::Anti { both: true })
                && !rule.is_host()
                && !self.tallies[r as usize].owners.is_empty();
            if !off_limits {
                continue;
            }
            let key = rule.key.clone();
            let mut values = self.values(item, &key);
            values.retain(|v| !self.tallies[r as usize].owners.contains_key(v));
            if values.is_empty() {
                return None;
            }
            narrow(&mut limits, &key, values);
        }
        Some(limits)
    }

    /// The values of `key` that the item could meet somewhere.
    pub(crate) fn values(&mut self, item: &Item, key: &Name) -> Vec<Name> {
        let choice_numbers: Vec<u32> = item
            .members
            .iter()
            .map(|(c, _)| self.class(*c).choice)
            .collect();
        let known = self
            .known_values
            .get(&(choice_numbers.clone(), key.clone()));
        if let (None, Some(values)) = (&item.only_hosts, known) {
            return values.clone();
        }
        let alternatives: Vec<&Vec<Sel>> = item
            .members
            .iter()
            .map(|(c, _)| &self.choice(*c).alternatives)
            .collect();
        let to_buy = item.only_hosts.is_none();
        let mut values = self.ground.values(key, |kind| {
            to_buy
                && alternatives
                    .iter()
                    .all(|a| a.iter().any(|sel| sel.has(kind)))
        });
        for (n, node) in self.ground.problem.nodes.iter().enumerate() {
            if self.may_use_host(item, n) {
                values.extend(node.labels.get(key).cloned());
            }
        }
        values.sort();
        values.dedup();
        if to_buy {
            self.known_values
                .insert((choice_numbers, key.clone()), values.clone());
        }
        values
    }

    /// True when node selection, and what the item must join, leave an existing node.
    pub(crate) fn may_use_host(&self, item: &Item, n: usize) -> bool {
        item.only_hosts.as_ref().is_none_or(|only| only.contains(n))
            && item
                .members
                .iter()
                .all(|(c, _)| self.choice(*c).hosts.contains(n))
    }

    pub(crate) fn choice(&self, c: u32) -> &crate::select::Choice {
        &self.choices.all[self.class(c).choice as usize]
    }

    /// Limits and pins when every placement within them is legal in some order, so that nothing
    /// needs to be decided here.
    fn loose(
        &mut self,
        item: &Item,
        owned: &[(u32, u32)],
        kept_off: &Limits,
    ) -> Option<(Limits, Vec<Name>)> {
        let mut limits = kept_off.clone();
        let mut pins = Vec::new();
        for (r, c) in owned {
            let max_skew = match self.rule(*r).demand {
                Demand::Spread { max_skew, .. } => max_skew,
                // A pod that is drawn to nobody but itself is at home anywhere.
                Demand::Affinity if self.class(*c).is_counted(*r) => 1,
                Demand::Affinity | Demand::Anti { .. } => return None,
            };
            let book = &self.classes.book;
            let bound = &book.bound[*r as usize].counts;
            // Pods that count for themselves are free only while all of them fit one domain.
            let crowded = book.n_mine[*r as usize] > u64::from(max_skew) || !bound.is_empty();
            if self.class(*c).is_counted(*r) && crowded {
                return None;
            }
            let key = self.rule(*r).key.clone();
            let mut values = self.values(item, &key);
            values.retain(|v| self.spread_allows(*r, v, bound.get(v).copied().unwrap_or(0), bound));
            narrow(&mut limits, &key, values);
            pins.push(key);
        }
        pins.sort();
        pins.dedup();
        let feasible = limits.iter().all(|(_, values)| !values.is_empty());
        (feasible && self.offer(item, &limits).is_some()).then_some((limits, pins))
    }

    fn admit_to_cells(
        &mut self,
        item: &Item,
        count: u32,
        (owned, exposed): (&[(u32, u32)], &[Name]),
        kept_off: &Limits,
    ) -> u32 {
        self.seed(item, owned);
        let cells = self.cells(item, (owned, exposed), kept_off);
        let mut taken: Vec<u32> = vec![0; cells.len()];
        let mut left = count;
        while left > 0 {
            let best = (0..cells.len())
                .filter(|i| {
                    taken[*i] < cells[*i].most && self.allows(item, owned, &cells[*i].limits)
                })
                .min_by_key(|i| {
                    (
                        if taken[*i] < cells[*i].free {
                            0
                        } else {
                            cells[*i].price
                        },
                        self.crowd(owned, &cells[*i].limits),
                        *i,
                    )
                });
            let Some(i) = best else { break };
            let anchors = self.anchors(owned, &cells[i].limits);
            for (r, limits) in anchors {
                self.anchor(r, &limits);
            }
            self.tally(item, 1, &cells[i].limits);
            taken[i] += 1;
            left -= 1;
        }
        for (i, cell) in cells.iter().enumerate() {
            if taken[i] > 0 {
                let limits = cell.limits.clone();
                let key = (item.members.clone(), limits.clone());
                *self.admitted.entry(key).or_default() += taken[i];
                self.parts.push(Part {
                    item: item.clone(),
                    count: taken[i],
                    limits,
                    pins: Vec::new(),
                });
            }
        }
        left
    }

    /// How full the domains of a cell are already; emptier ones come first among equals.
    fn crowd(&self, owned: &[(u32, u32)], limits: &Limits) -> u32 {
        owned
            .iter()
            .filter_map(|(r, _)| {
                let value = only(limits, &self.rule(*r).key)?;
                self.tallies[*r as usize].counts.get(value).copied()
            })
            .sum()
    }

    /// Every combination of values for the keys of the owned rules.
    fn cells(
        &mut self,
        item: &Item,
        (owned, exposed): (&[(u32, u32)], &[Name]),
        kept_off: &Limits,
    ) -> Vec<Cell> {
        let mut all: Vec<Limits> = vec![kept_off.clone()];
        let mut keys: Vec<Name> = owned
            .iter()
            .map(|(r, _)| self.rule(*r).key.clone())
            .chain(exposed.iter().cloned())
            .collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let values = self.values(item, &key);
            all = all
                .iter()
                .flat_map(|limits| {
                    values.iter().map(|v| {
                        let mut limits = limits.clone();
                        narrow(&mut limits, &key, vec![v.clone()]);
                        limits
                    })
                })
                .filter(|limits| limits.iter().all(|(_, values)| !values.is_empty()))
                .take(CELLS_MAX)
                .collect();
        }
        let class = item.members.first().map_or(0, |(c, _)| *c);
        let (shape, level) = (self.class(class).shape, self.class(class).level);
        let mut cells = Vec::new();
        for limits in all {
            let Some((price, most)) = self.offer(item, &limits) else {
                continue;
            };
            let free = self.n_on_hosts(item, &limits);
            let cap = self
                .hints
                .caps
                .get(&(shape, level, limits.clone()))
                .copied()
                .unwrap_or(u32::MAX);
            let before = self
                .admitted
                .get(&(item.members.clone(), limits.clone()))
                .copied();
            let before = before.unwrap_or(0);
            cells.push(Cell {
                limits,
                price,
                most: most.min(cap).saturating_sub(before),
                free: free.saturating_sub(before),
            });
        }
        cells
    }

    /// Records items that need no decision about their domain.
    fn push(&mut self, item: &Item, count: u32, limits: Limits, pins: Vec<Name>) {
        self.tally(item, count, &limits);
        self.parts.push(Part {
            item: item.clone(),
            count,
            limits,
            pins,
        });
    }
}

/// One value for each key of a class's rules.
struct Cell {
    limits: Limits,
    price: u64,
    most: u32,
    /// How many fit on nodes there are.
    free: u32,
}

/// What an item needs in all.
pub(crate) fn need_of(classes: &Classes, item: &Item) -> Vec<u64> {
    let n_dims = classes.all.first().map_or(0, |c| c.need.len());
    let mut need = vec![0u64; n_dims];
    for (c, n) in &item.members {
        for (sum, q) in need.iter_mut().zip(&classes.all[*c as usize].need) {
            *sum = sum.saturating_add(q.saturating_mul(u64::from(*n)));
        }
    }
    need
}

/// The one value that `limits` leave for `key`.
pub(crate) fn only<'l>(limits: &'l Limits, key: &Name) -> Option<&'l Name> {
    let (_, values) = limits.iter().find(|(k, _)| k == key)?;
    (values.len() == 1).then(|| &values[0])
}

/// Confines `key` to `values` on top of what is there.
pub(crate) fn narrow(limits: &mut Limits, key: &Name, values: Vec<Name>) {
    match limits.iter_mut().find(|(k, _)| k == key) {
        Some((_, present)) => present.retain(|v| values.contains(v)),
        None => {
            limits.push((key.clone(), values));
            limits.sort();
        }
    }
}
