//! How many pods of a class go to which zone, capacity type or other domain.
//!
//! Pods are admitted one after another, as a scheduler would, but at the level of domains instead
//! of nodes: a *cell* is one value for each topology key that binds a class. Of the cells that every
//! rule allows, the cheapest is taken. What comes out is legal by construction as far as rules
//! between domains go; rules between nodes are left to the packer.

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;
use joiner_model::Name;

use crate::classes::{Class, Classes, Demand, Rule};
use crate::counts::Sight;
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Domains that classes, by shape and level, fill before any other.
    pub(crate) leans: BTreeMap<(u32, u16), (Name, Name)>,
    /// Classes that are admitted before all others of their priority, the last one first.
    pub(crate) early: Vec<(u32, u16)>,
    /// Classes that come after those under spreads that count them.
    pub(crate) last: BTreeSet<(u32, u16)>,
    /// Classes that are left out.
    pub(crate) without: BTreeSet<(u32, u16)>,
    /// How many pods of a class are not to join pods that run already, but such as are to come.
    pub(crate) afresh: BTreeMap<(u32, u16), u32>,
}

/// Most pods of a class per cell, learned from failed attempts.
pub(crate) type CellCaps = BTreeMap<(u32, u16, Limits), u32>;

/// Counters of one rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: BTreeMap<Name, u32>,
    /// Pods that count if they end up on nodes that the spread looks at.
    pub(crate) perhaps: BTreeMap<Name, u32>,
    pub(crate) owners: BTreeMap<Name, u32>,
    pub(crate) seed: Option<Name>,
    pub(crate) bound: bool,
}

/// Most cells that are looked at for one class.
const CELLS_MAX: usize = 4096;

/// How far back parts are looked for that more can be added to.
const PARTS_RECENT: usize = 32;
/// With more items than this a class is admitted at one go, whoever waits.
const STEPWISE_MAX: u32 = 2_000;

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
            perhaps: BTreeMap::new(),
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
        first_pass: true,
        tallies,
        settled: BTreeMap::new(),
        known_sights: BTreeMap::new(),
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
        let n_parts: u32 = desk.parts.iter().map(|p| p.count).sum();
        let mut left: Vec<(Item, u32)> = Vec::new();
        for (item, count) in std::mem::take(&mut queue) {
            let count = desk.admit_beside(&mut left, &item, count);
            if count > 0 {
                left.push((item, count));
            }
        }
        queue = left;
        let n_after: u32 = desk.parts.iter().map(|p| p.count).sum();
        if queue.is_empty() || (n_parts == n_after && !desk.first_pass) {
            break;
        }
        desk.first_pass = false;
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
    /// Items that lean to a domain take no other yet.
    first_pass: bool,
    pub(crate) tallies: Vec<Tally>,
    /// Items that have settled in a domain.
    pub(crate) settled: BTreeMap<(Name, Name), u64>,
    pub(crate) known_sights: BTreeMap<(Vec<u32>, Limits, u32), Sight>,
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

    /// Admits up to `count` items and returns how many are left. While others that came first wait
    /// under the same spread, items are admitted one at a time and the others ask again after each.
    fn admit_beside(&mut self, waiting: &mut Vec<(Item, u32)>, item: &Item, count: u32) -> u32 {
        let spreads = |desk: &Self, item: &Item| -> Vec<u32> {
            let owned = desk.owned(item).into_iter().map(|(r, _)| r);
            let is_spread = |r: &u32| matches!(desk.rule(*r).demand, Demand::Spread { .. });
            owned.filter(is_spread).collect()
        };
        let own = spreads(self, item);
        let beside =
            |desk: &Self, other: &Item| spreads(desk, other).iter().any(|r| own.contains(r));
        if count > STEPWISE_MAX || !waiting.iter().any(|(other, _)| beside(self, other)) {
            return self.admit(item, count);
        }
        for n in 0..count {
            if self.admit(item, 1) > 0 {
                return count - n;
            }
            for (other, left) in waiting.iter_mut() {
                if beside(self, other) {
                    *left = self.admit(other, *left);
                }
            }
            waiting.retain(|(_, left)| *left > 0);
        }
        0
    }

    /// Admits up to `count` items and returns how many are left.
    fn admit(&mut self, item: &Item, count: u32) -> u32 {
        let owned = self.owned(item);
        let Some(kept_off) = self.kept_off(item) else {
            return count;
        };
        let before = self.before(item);
        let exposed = self.exposed(item, &before);
        if owned.is_empty() && exposed.is_empty() {
            self.push(item, count, kept_off, Vec::new());
            return 0;
        }
        let loose = if exposed.is_empty() && self.lean(item).is_none() {
            self.loose(item, &owned, &kept_off)
        } else {
            None
        };
        if let Some((limits, pins)) = loose {
            self.push(item, count, limits, pins);
            return 0;
        }
        let mut evened = owned.clone();
        evened.extend(before.iter().map(|r| (*r, 0)));
        let asks = CellAsks {
            owned: &owned,
            evened: &evened,
            exposed: &exposed,
        };
        self.admit_to_cells(item, count, &asks, &kept_off)
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
            let has_company = if self.class(*c).in_order {
                !self.tallies[*r as usize].counts.is_empty()
            } else {
                !bound.is_empty()
            };
            let crowded = book.n_mine[*r as usize] > u64::from(max_skew) || has_company;
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
        asks: &CellAsks<'_>,
        kept_off: &Limits,
    ) -> u32 {
        let CellAsks {
            owned,
            evened,
            exposed,
        } = *asks;
        self.seed(item, owned);
        let mut cells = self.cells(item, (owned, exposed), kept_off);
        let lean = self.lean(item).cloned();
        let elsewhere = |cell: &Cell| {
            let lean = lean.as_ref();
            lean.is_some_and(|(key, v)| only(&cell.limits, key).is_some_and(|own| own != v))
        };
        if self.first_pass && owned.len() == evened.len() {
            cells.retain(|cell| !elsewhere(cell));
        }
        let mut taken: Vec<u32> = vec![0; cells.len()];
        let mut left = count;
        while left > 0 {
            let best = (0..cells.len())
                .filter(|i| {
                    taken[*i] < cells[*i].most && self.allows(item, owned, &cells[*i].limits)
                })
                .min_by_key(|i| {
                    (
                        elsewhere(&cells[*i]),
                        if taken[*i] < cells[*i].free {
                            0
                        } else {
                            cells[*i].price
                        },
                        self.crowd(evened, &cells[*i].limits),
                        self.spoils(item, &cells[*i].limits),
                        std::cmp::Reverse(self.company(&cells[*i].limits)),
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
                self.add_part(item, taken[i], limits, Vec::new());
            }
        }
        left
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
        self.add_part(item, count, limits, pins);
    }

    /// Adds to the part of the same fate, if it is one of the last few.
    fn add_part(&mut self, item: &Item, count: u32, limits: Limits, pins: Vec<Name>) {
        let recent = self.parts.iter_mut().rev().take(PARTS_RECENT);
        let mut same = recent.filter(|p| p.limits == limits && p.pins == pins && p.item == *item);
        match same.next() {
            Some(part) => part.count += count,
            None => self.parts.push(Part {
                item: item.clone(),
                count,
                limits,
                pins,
            }),
        }
    }
}

/// What decides between the cells of an item.
struct CellAsks<'a> {
    /// Rules over domains that it owns, with the owner.
    owned: &'a [(u32, u32)],
    /// Those, and spreads that count it as coming before.
    evened: &'a [(u32, u32)],
    /// Keys that it settles for the sake of others.
    exposed: &'a [Name],
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
