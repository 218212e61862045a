//! The packing problem that is left when pods are classes and domains are chosen.
//!
//! Rules between nodes become caps (at most so many of a group on one node) and tokens (these may
//! not meet those). Pool limits and reservations become budgets. Pool weights become *home* and
//! *also*: a pod may justify a node only in the heaviest pools that can hold it, and may fill up a
//! node of a lighter pool that another pod justifies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use joiner_model::HostPort;
use joiner_pack as pack;

use crate::cells::{Part, need_of};
use crate::classes::{Class, Classes, Demand};
use crate::effort::Effort;
use crate::ground::{Ground, Interner};
use crate::marks::Marks;
use crate::select::Choices;
use crate::stock::Stock;
use crate::volumes::VOLUMES_UNLIMITED;

/// A node that an earlier round bought.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// Index of its kind.
    pub(crate) kind: u32,
    /// Parts on it and how many items of each.
    pub(crate) parts: Vec<(u32, u32)>,
}

/// Items to pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Todo {
    /// Index of the part.
    pub(crate) part: u32,
    /// Which pools are out for it: see the caller.
    pub(crate) stage: u32,
    /// How many items.
    pub(crate) count: u32,
}

/// All that the packer needs to know, and how to read its answer.
pub(crate) struct Rows {
    /// The packer's problem.
    pub(crate) problem: pack::Problem,
    /// For each row the parts it stands for, with counts.
    pub(crate) sources: Vec<Vec<Todo>>,
    /// Parts that no kind and no node can hold.
    pub(crate) hopeless: Vec<Todo>,
}

/// What stays the same over all rounds of one attempt.
pub(crate) struct RowMaker<'a, 'p> {
    pub(crate) ground: &'a Ground<'p>,
    choices: &'a Choices,
    classes: &'a Classes,
    pub(crate) parts: &'a [Part],
    pub(crate) stock: &'a mut Stock,
    marks: Marks,
    /// What packings may still take.
    pub(crate) effort: Effort,
    /// Slack caps count as caps.
    strict: bool,
    /// Items that earlier rounds put on existing nodes: host, part, count.
    on_hosts: Vec<(u32, u32, u32)>,
    /// What is spent of the budgets by nodes that are not offered as bins.
    spent_elsewhere: Vec<u64>,
}

impl<'a, 'p> RowMaker<'a, 'p> {
    /// Prepares caps and tokens.
    pub(crate) fn new(
        (ground, stock): (&'a Ground<'p>, &'a mut Stock),
        choices: &'a Choices,
        classes: &'a Classes,
        parts: &'a [Part],
    ) -> Self {
        let marks = Marks::new(ground, classes);
        Self {
            ground,
            choices,
            classes,
            parts,
            stock,
            marks,
            effort: Effort::new(ground.problem),
            strict: false,
            on_hosts: Vec::new(),
            spent_elsewhere: Vec::new(),
        }
    }

    /// The existing node behind a bin.
    pub(crate) fn host_at(&self, bin: u32) -> u32 {
        self.ground.host_order[bin as usize]
    }

    /// Tells what earlier rounds put on existing nodes.
    pub(crate) fn set_on_hosts(&mut self, items: &[(u32, u32, u32)]) {
        self.on_hosts = items.to_vec();
    }

    /// Counts these nodes against the budgets without offering them as bins.
    pub(crate) fn set_elsewhere(&mut self, opened: &[Opened]) {
        self.spent_elsewhere = self.spent(opened);
    }

    /// Whether slack caps count as caps from now on.
    pub(crate) fn be_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// True when some caps are slack.
    pub(crate) fn has_slack(&self) -> bool {
        self.marks.class_slack.iter().any(|caps| !caps.is_empty())
    }

    /// Takes up to `n` items from the parts of a row, as far as slack caps on the node allow;
    /// `used` counts what is there.
    pub(crate) fn draw(
        &self,
        source: &mut [Todo],
        mut n: u32,
        used: &mut BTreeMap<u32, u32>,
        items: &mut Vec<(u32, u32)>,
    ) {
        for todo in source.iter_mut().filter(|todo| todo.count > 0) {
            let members = &self.parts[todo.part as usize].item.members;
            let slack = || {
                let caps = |c: &u32| &self.marks.class_slack[*c as usize];
                members
                    .iter()
                    .flat_map(move |(c, m)| caps(c).iter().map(move |g| (*g, *m)))
            };
            let room = slack().map(|(g, m)| {
                let free = self.marks.caps[g as usize].saturating_sub(*used.get(&g).unwrap_or(&0));
                free / m.max(1)
            });
            let taken = n.min(todo.count).min(room.min().unwrap_or(u32::MAX));
            if taken > 0 {
                slack().for_each(|(g, m)| *used.entry(g).or_default() += m * taken);
                items.push((todo.part, taken));
                todo.count -= taken;
                n -= taken;
            }
            if n == 0 {
                break;
            }
        }
    }

    /// What the nodes bought so far take of each budget.
    pub(crate) fn spent(&self, opened: &[Opened]) -> Vec<u64> {
        let mut spent = vec![0u64; self.stock.budgets.len()];
        for node in opened {
            for (b, amount) in &self.stock.spends[node.kind as usize] {
                spent[*b as usize] += amount;
            }
        }
        spent
    }

    /// The number of the set of kinds that an item may use whatever its size.
    pub(crate) fn kinds_of(&mut self, p: u32) -> u32 {
        let part = &self.parts[p as usize];
        let members = &part.item.members;
        let mut choice: Vec<u32> = members.iter().map(|(c, _)| self.class(*c).choice).collect();
        choice.sort_unstable();
        choice.dedup();
        let mut ports: Vec<HostPort> = Vec::new();
        if self.ground.daemon_ports.len() > 1 {
            members
                .iter()
                .for_each(|(c, _)| ports.extend(self.shape_ports(*c).iter().cloned()));
        }
        let key = (choice, part.limits.clone(), ports);
        let relaxed = self.stock.relaxed;
        let sets = &mut self.stock.sets;
        sets.number(self.ground, self.choices, key, relaxed)
    }

    fn class(&self, c: u32) -> &Class {
        &self.classes.all[c as usize]
    }

    fn shape_ports(&self, c: u32) -> &[HostPort] {
        &self.ground.problem.shapes[self.class(c).shape as usize].ports
    }

    /// Existing nodes that an item may use whatever its size.
    pub(crate) fn hosts_of(&self, part: &Part) -> Vec<u32> {
        let problem = self.ground.problem;
        (0u32..)
            .take(problem.nodes.len())
            .filter(|n| {
                let i = *n as usize;
                let labels = &problem.nodes[i].labels;
                part.item
                    .only_hosts
                    .as_ref()
                    .is_none_or(|only| only.contains(i))
                    && part.item.members.iter().all(|(c, _)| {
                        self.choices.all[self.class(*c).choice as usize]
                            .hosts
                            .contains(i)
                            && self.uncrowded(*c, *n)
                    })
                    && part.limits.iter().all(|(key, values)| {
                        labels
                            .get(key)
                            .is_some_and(|v| values.binary_search(v).is_ok())
                    })
                    && part.pins.iter().all(|key| labels.contains_key(key))
            })
            .collect()
    }

    /// Spreads over nodes that count others only: a node with too many of those is out.
    fn uncrowded(&self, c: u32, host: u32) -> bool {
        let class = self.class(c);
        class.owned.iter().all(|r| {
            let rule = &self.classes.book.rules[*r as usize];
            match rule.demand {
                Demand::Spread { max_skew, .. } if rule.is_host() && !class.is_counted(*r) => {
                    let here = self.classes.book.bound[*r as usize].on_host.get(&host);
                    here.copied().unwrap_or(0) <= max_skew
                }
                Demand::Spread { .. } | Demand::Affinity | Demand::Anti { .. } => true,
            }
        })
    }

    /// The packing problem for some items; `closed` says which pools are out at a stage.
    pub(crate) fn rows(
        &mut self,
        todo: &[Todo],
        closed: &dyn Fn(u32, usize) -> bool,
        opened: &[Opened],
    ) -> Rows {
        let mut groups: Interner<GroupId> = Interner::default();
        let mut by_row: BTreeMap<RowKey, (u32, Vec<Todo>)> = BTreeMap::new();
        let mut hopeless = Vec::new();
        let stages: BTreeSet<u32> = todo.iter().map(|t| t.stage).collect();
        let n_pools = self.ground.problem.pools.len();
        let closed: BTreeMap<u32, Vec<bool>> = stages
            .iter()
            .map(|s| (*s, (0..n_pools).map(|p| closed(*s, p)).collect()))
            .collect();
        for item in todo {
            let part = &self.parts[item.part as usize];
            let need = self.need(part);
            let number = self.kinds_of(item.part);
            let set = self.stock.sets.get(number);
            let bins = self.bins_of(part, &set.all, opened);
            let to_buy = part.item.only_hosts.is_none();
            let heaviest = set.heaviest(self.ground, &need, &closed[&item.stage]);
            let heaviest = heaviest.filter(|_| to_buy);
            if heaviest.is_none() && bins.is_empty() {
                hopeless.push(*item);
                continue;
            }
            let lighter = heaviest.is_some_and(|h| set.by_weight.iter().any(|(w, _)| *w < h));
            let group = |home: bool, bins: Vec<u32>| GroupId {
                set: number,
                stage: item.stage,
                weight: heaviest,
                home,
                bins,
            };
            let home = groups.intern(group(true, bins));
            let also = lighter.then(|| groups.intern(group(false, Vec::new())));
            let key = self.row_key(part, need, home, also);
            let entry = by_row.entry(key).or_default();
            entry.0 += item.count;
            entry.1.push(*item);
        }
        let groups: Vec<pack::Group> = groups
            .items
            .iter()
            .map(|id| self.pack_group(id, &closed, opened))
            .collect();
        self.assemble(by_row, groups, opened, hopeless)
    }

    /// Need of an item, volumes per driver behind the resources.
    pub(crate) fn need(&self, part: &Part) -> Vec<u64> {
        let mut need = need_of(self.classes, &part.item);
        let stock = &*self.stock;
        for driver in &stock.drivers {
            let of_class = |c: u32| {
                let pods = self.class(c).pods.iter();
                let mine = pods.map(|pod| {
                    stock
                        .volumes
                        .of_pod(self.ground, *pod, driver, stock.relaxed)
                });
                if stock.relaxed {
                    mine.min()
                } else {
                    mine.max()
                }
                .unwrap_or(0)
            };
            let members = part.item.members.iter();
            need.push(
                members
                    .map(|(c, count)| of_class(*c) * u64::from(*count))
                    .sum(),
            );
        }
        need
    }

    /// Kinds of the heaviest pools that will do, or of all lighter ones, and bins.
    fn pack_group(
        &self,
        id: &GroupId,
        closed: &BTreeMap<u32, Vec<bool>>,
        opened: &[Opened],
    ) -> pack::Group {
        let closed = &closed[&id.stage];
        let mut kinds = FixedBitSet::with_capacity(self.ground.kinds.len());
        for (weight, of_weight) in &self.stock.sets.get(id.set).by_weight {
            let wanted = match id.weight {
                Some(heaviest) if id.home => *weight == heaviest,
                Some(heaviest) => *weight < heaviest,
                None => false,
            };
            if wanted {
                let open =
                    |k: &&u32| !closed[self.ground.pool_of(&self.ground.kinds[**k as usize])];
                kinds.extend(of_weight.iter().filter(open).map(|k| *k as usize));
            }
        }
        let mut bins = FixedBitSet::with_capacity(self.ground.hosts.len() + opened.len());
        bins.extend(id.bins.iter().map(|b| *b as usize));
        pack::Group { kinds, bins }
    }

    /// Existing and opened nodes as numbers of bins: hosts first, then opened nodes.
    fn bins_of(&self, part: &Part, kinds: &FixedBitSet, opened: &[Opened]) -> Vec<u32> {
        let mut bins = self.hosts_of(part);
        bins.iter_mut()
            .for_each(|n| *n = self.ground.host_place[*n as usize]);
        bins.sort_unstable();
        if part.item.only_hosts.is_some() {
            return bins;
        }
        let n_hosts = u32::try_from(self.ground.hosts.len()).unwrap_or(u32::MAX);
        bins.extend(
            (n_hosts..)
                .zip(opened)
                .filter(|(_, node)| kinds.contains(node.kind as usize))
                .map(|(b, _)| b),
        );
        bins
    }

    fn row_key(&self, part: &Part, need: Vec<u64>, home: u32, also: Option<u32>) -> RowKey {
        let list = |of: &[Vec<u32>], repeat: bool| {
            let mut all: Vec<u32> = Vec::new();
            for (c, n) in &part.item.members {
                for _ in 0..if repeat { *n } else { 1 } {
                    all.extend(&of[*c as usize]);
                }
            }
            all.sort_unstable();
            if !repeat {
                all.dedup();
            }
            all
        };
        let priority = part
            .item
            .members
            .iter()
            .map(|(c, _)| self.class(*c).priority)
            .max();
        let mut caps = list(&self.marks.class_caps, true);
        if self.strict {
            caps.extend(list(&self.marks.class_slack, true));
            caps.sort_unstable();
        }
        RowKey {
            need,
            home,
            also,
            caps,
            emits: list(&self.marks.class_emits, false),
            repels: list(&self.marks.class_repels, false),
            priority: priority.unwrap_or(0),
        }
    }

    fn assemble(
        &self,
        by_row: BTreeMap<RowKey, (u32, Vec<Todo>)>,
        groups: Vec<pack::Group>,
        opened: &[Opened],
        hopeless: Vec<Todo>,
    ) -> Rows {
        let n_bins = self.ground.hosts.len() + opened.len();
        let mut rows = Vec::with_capacity(by_row.len());
        let mut sources = Vec::with_capacity(by_row.len());
        for (key, (count, source)) in by_row {
            rows.push(pack::Row {
                need: key.need.into(),
                count,
                home: key.home,
                also: key.also,
                caps: key.caps,
                emits: key.emits,
                repels: key.repels,
                priority: key.priority,
            });
            sources.push(source);
        }
        let mut spent = self.spent(opened);
        for (sum, elsewhere) in spent.iter_mut().zip(&self.spent_elsewhere) {
            *sum += elsewhere;
        }
        let problem = pack::Problem {
            n_dims: self.ground.dims.len() + self.stock.drivers.len(),
            rows,
            kinds: Arc::clone(&self.stock.kinds),
            bins: (0..n_bins).map(|b| self.pack_bin(b, opened)).collect(),
            groups,
            caps: self.marks.caps.clone(),
            budgets: self
                .stock
                .budgets
                .iter()
                .zip(spent)
                .map(|(b, spent)| b.left().saturating_sub(spent))
                .collect(),
        };
        Rows {
            problem,
            sources,
            hopeless,
        }
    }

    pub(crate) fn pack_bin(&self, b: usize, opened: &[Opened]) -> pack::Bin {
        let host = self.ground.host_order.get(b).map(|n| *n as usize);
        let (mut bin, parts): (pack::Bin, Vec<(u32, u32)>) = match host {
            Some(n) => {
                let mut room = self.ground.hosts[n].room.clone();
                let left = |d| {
                    self.stock
                        .volumes
                        .left(self.ground, n, d, self.stock.relaxed)
                };
                room.extend(self.stock.drivers.iter().map(left));
                let bin = pack::Bin {
                    room: room.into(),
                    caps_used: self.marks.host_caps[n].clone(),
                    emits: self.marks.host_emits[n].clone(),
                    repels: self.marks.host_repels[n].clone(),
                };
                let here = self.on_hosts.iter().filter(|(h, _, _)| *h as usize == n);
                (bin, here.map(|(_, p, n)| (*p, *n)).collect())
            }
            None => {
                let node = &opened[b - self.ground.hosts.len()];
                let kind = &self.ground.kinds[node.kind as usize];
                let mut room = self.ground.usable_of(kind).to_vec();
                room.extend(self.stock.drivers.iter().map(|_| VOLUMES_UNLIMITED));
                let bin = pack::Bin {
                    room: room.into(),
                    caps_used: Vec::new(),
                    emits: Vec::new(),
                    repels: Vec::new(),
                };
                (bin, node.parts.clone())
            }
        };
        for (p, n) in parts {
            self.load(&mut bin, p, n);
        }
        bin
    }

    /// What is left of a bin when items have been put into it.
    pub(crate) fn load(&self, bin: &mut pack::Bin, p: u32, n: u32) {
        let part = &self.parts[p as usize];
        for (have, q) in bin.room.iter_mut().zip(self.need(part)) {
            *have = have.saturating_sub(q.saturating_mul(u64::from(n)));
        }
        let mut caps_used: BTreeMap<u32, u32> = bin.caps_used.iter().copied().collect();
        for (c, m) in &part.item.members {
            for cap in self.marks.caps_of(*c) {
                *caps_used.entry(cap).or_default() += n * m;
            }
            bin.emits.extend(&self.marks.class_emits[*c as usize]);
            bin.repels.extend(&self.marks.class_repels[*c as usize]);
        }
        bin.caps_used = caps_used.into_iter().collect();
    }

    /// True when a bin has room for one more item and no rule between nodes objects.
    pub(crate) fn admits(&self, bin: &pack::Bin, p: u32) -> bool {
        let part = &self.parts[p as usize];
        let fits = self.need(part).iter().zip(&bin.room).all(|(q, r)| q <= r);
        let used = |cap: u32| {
            let used = bin.caps_used.iter().find(|(c, _)| *c == cap);
            used.map_or(0, |(_, n)| *n)
        };
        let members = &part.item.members;
        fits && members.iter().all(|(c, m)| {
            let (emits, repels) = (
                &self.marks.class_emits[*c as usize],
                &self.marks.class_repels[*c as usize],
            );
            let caps = &self.marks.caps;
            self.marks
                .caps_of(*c)
                .all(|cap| used(cap) + m <= caps[cap as usize])
                && !emits.iter().any(|t| bin.repels.contains(t))
                && !repels.iter().any(|t| bin.emits.contains(t))
        })
    }
}

/// A group of the packer, before it is written out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupId {
    set: u32,
    stage: u32,
    weight: Option<i32>,
    home: bool,
    bins: Vec<u32>,
}

/// What makes two items the same to the packer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    need: Vec<u64>,
    home: u32,
    also: Option<u32>,
    caps: Vec<u32>,
    emits: Vec<u32>,
    repels: Vec<u32>,
    priority: i32,
}
