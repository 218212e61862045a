//! The problem in canonical form: equal rows merged into classes, kinds merged and pruned, bins
//! that can hold nothing dropped, everything sorted by content.
//!
//! The order in which the caller listed rows, kinds and bins is gone after this step, which makes
//! the answer independent of it. The module decides nothing about packing.

use std::collections::{BTreeMap, HashMap};

use crate::merge;
use crate::problem::{Group, Problem, Row};

/// The class may not be on the slot.
pub(crate) const NO: u8 = 0;
/// The class may be on the slot if something else justifies the node.
pub(crate) const FILLER: u8 = 1;
/// The class may be on the slot and justifies the node.
pub(crate) const HOME: u8 = 2;

/// A canonical problem. A *slot* is a kind (below `n_kinds`) or a bin (from `n_kinds` on).
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// Dimensions that some class needs.
    pub(crate) n_dims: usize,
    /// Distinct kinds of items.
    pub(crate) n_classes: usize,
    need: Vec<u64>,
    /// `need` as floats, divided by the dimension's `scale`.
    pub(crate) need_f: Vec<f64>,
    /// The largest room of any slot, per dimension, as float; at least one.
    pub(crate) scale: Vec<f64>,
    /// Items per class.
    pub(crate) count: Vec<u64>,
    /// Classes of one label are allowed on the same slots.
    pub(crate) label: Vec<u32>,
    /// Cap groups per class.
    pub(crate) caps: Vec<Box<[u32]>>,
    /// Tokens emitted per class.
    pub(crate) emits: Vec<Box<[u32]>>,
    /// Tokens repelled per class.
    pub(crate) repels: Vec<Box<[u32]>>,
    /// Whether two items of the class repel each other.
    pub(crate) repels_itself: Vec<bool>,
    /// Most items of the class on any one node, by caps and tokens.
    pub(crate) limit: Vec<u64>,
    /// Priority per class.
    pub(crate) priority: Vec<i32>,
    /// The caller's rows behind each class.
    pub(crate) rows: Vec<Vec<(u32, u32)>>,
    /// The size of each cap group.
    pub(crate) cap_size: Vec<u32>,
    /// The cap groups with several classes that relaxations look at.
    pub(crate) shared_caps: Vec<u32>,
    /// Per class the places of its cap groups in `shared_caps`.
    pub(crate) shared_of: Vec<Box<[u32]>>,
    /// Number of tokens.
    pub(crate) n_tokens: usize,
    /// Number of labels.
    pub(crate) n_labels: usize,
    /// Per signature and label: `NO`, `FILLER` or `HOME`.
    pub(crate) allowed: Vec<u8>,
    /// Slots that can be bought, cheapest first.
    pub(crate) n_kinds: usize,
    /// Slots that exist.
    pub(crate) n_bins: usize,
    /// Room per slot, clipped to what could ever be used.
    pub(crate) room: Vec<u64>,
    /// `room` as floats, divided by the dimension's `scale`.
    pub(crate) room_f: Vec<f64>,
    /// Per dimension, then per kind: the largest room of this and all cheaper kinds.
    reach: Vec<u64>,
    /// Signature per slot.
    pub(crate) sig: Vec<u32>,
    /// Price per slot, zero for bins.
    pub(crate) price: Vec<u64>,
    /// Launch options per slot, zero for bins.
    pub(crate) options: Vec<u32>,
    /// The caller's index of the kind or bin.
    pub(crate) source: Vec<u32>,
    /// Budgets spent per kind.
    pub(crate) spend: Vec<Vec<(u32, u64)>>,
    /// Caps used per bin.
    pub(crate) bin_caps: Vec<Vec<(u32, u32)>>,
    /// Budgets.
    pub(crate) budgets: Vec<u64>,
}

/// What decides where a class may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    pub(crate) home: u32,
    pub(crate) also: u32,
    pub(crate) emits: Box<[u32]>,
    pub(crate) repels: Box<[u32]>,
}

const SHARED_CAPS_MAX: usize = 24;

/// No further group.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl Model {
    /// Brings a problem into canonical form.
    pub(crate) fn new(problem: &Problem) -> Self {
        let mut model = Self {
            budgets: problem.budgets.clone(),
            ..Self::default()
        };
        let same_group = first_equal_groups(&problem.groups);
        let (cap_size, tokens) = caps_and_tokens(problem);
        model.n_tokens = tokens.len();
        let dims: Vec<usize> = (0..problem.n_dims)
            .filter(|&d| problem.rows.iter().any(|r| r.count > 0 && need(r, d) > 0))
            .collect();
        model.n_dims = dims.len();
        let labels = model.add_classes(problem, &dims, &same_group, &tokens);
        model.drop_loose_caps(problem, &cap_size, &tokens);
        merge::add_slots(&mut model, problem, &dims, &labels, &tokens);
        model.add_floats();
        model
    }

    fn add_floats(&mut self) {
        let nd = self.n_dims;
        self.scale = vec![1.0; nd];
        for (ix, &room) in self.room.iter().enumerate() {
            self.scale[ix % nd] = self.scale[ix % nd].max(room as f64);
        }
        let scale = &self.scale;
        let scaled = |amounts: &[u64]| -> Vec<f64> {
            amounts
                .iter()
                .enumerate()
                .map(|(ix, &x)| x as f64 / scale[ix % nd])
                .collect()
        };
        self.reach = (0..nd)
            .flat_map(|dim| {
                let rooms = self.room.chunks_exact(nd).take(self.n_kinds);
                rooms.scan(0, move |most, room| {
                    *most = room[dim].max(*most);
                    Some(*most)
                })
            })
            .collect();
        self.room_f = scaled(&self.room);
        self.need_f = scaled(&self.need);
        let mut members = vec![(0_u64, 0_u32); self.cap_size.len()];
        for class in 0..self.n_classes {
            for &cap in &self.caps[class] {
                members[cap as usize].0 += 1;
            }
        }
        for (cap, member) in members.iter_mut().enumerate() {
            member.1 = cap as u32;
        }
        members.retain(|&(n, _)| n > 1);
        members.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        members.truncate(SHARED_CAPS_MAX);
        self.shared_caps = members.into_iter().map(|(_, cap)| cap).collect();
        self.shared_caps.sort_unstable();
        self.shared_of = self
            .caps
            .iter()
            .map(|caps| {
                let place = |cap: &u32| self.shared_caps.binary_search(cap).ok();
                caps.iter().filter_map(place).map(|at| at as u32).collect()
            })
            .collect();
    }

    /// What one item takes.
    pub(crate) fn need(&self, class: usize) -> &[u64] {
        &self.need[class * self.n_dims..][..self.n_dims]
    }

    /// What one item takes, as floats.
    pub(crate) fn need_f(&self, class: usize) -> &[f64] {
        &self.need_f[class * self.n_dims..][..self.n_dims]
    }

    /// What an empty node of the slot offers.
    pub(crate) fn room(&self, slot: usize) -> &[u64] {
        &self.room[slot * self.n_dims..][..self.n_dims]
    }

    /// What an empty node of the slot offers, as floats.
    pub(crate) fn room_f(&self, slot: usize) -> &[f64] {
        &self.room_f[slot * self.n_dims..][..self.n_dims]
    }

    /// The first kind that, together with all cheaper ones, has as much of each dimension: none
    /// before it can hold that much.
    pub(crate) fn first_reaching(&self, total: &[u64]) -> usize {
        let reach = self.reach.chunks_exact(self.n_kinds.max(1)).zip(total);
        reach
            .map(|(reach, total)| reach.partition_point(|room| room < total))
            .max()
            .unwrap_or(0)
    }

    /// Whether and how the class may be on the slot.
    pub(crate) fn may(&self, slot: usize, class: usize) -> u8 {
        self.allowed[self.sig[slot] as usize * self.n_labels + self.label[class] as usize]
    }

    /// Whether one item of the class may be on the slot and fits by itself.
    pub(crate) fn fits(&self, slot: usize, class: usize) -> bool {
        self.may(slot, class) != NO
            && self.limit[class] > 0
            && self
                .need(class)
                .iter()
                .zip(self.room(slot))
                .all(|(n, r)| n <= r)
    }

    /// Whether something among these items justifies a node of this slot.
    pub(crate) fn justified(&self, slot: usize, items: &[(u32, u32)]) -> bool {
        slot >= self.n_kinds
            || items
                .iter()
                .any(|&(c, _)| self.may(slot, c as usize) == HOME)
    }

    /// How many items of each cap group are on the slot already.
    pub(crate) fn caps_used(&self, slot: usize) -> &[(u32, u32)] {
        if slot < self.n_kinds {
            &[]
        } else {
            &self.bin_caps[slot - self.n_kinds]
        }
    }

    /// Kinds and bins.
    pub(crate) fn n_slots(&self) -> usize {
        self.n_kinds + self.n_bins
    }

    fn add_classes(
        &mut self,
        problem: &Problem,
        dims: &[usize],
        same_group: &[u32],
        tokens: &Tokens,
    ) -> Vec<Label> {
        let mut ids: BTreeMap<Label, u32> = BTreeMap::new();
        let mut keyed = Vec::with_capacity(problem.rows.len());
        for (ix, row) in problem
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.count > 0)
        {
            let group = |g: u32| same_group.get(g as usize).copied().unwrap_or(NOWHERE);
            let label = Label {
                home: group(row.home),
                also: row.also.map_or(NOWHERE, group),
                emits: tokens.of(&row.emits),
                repels: tokens.of(&row.repels),
            };
            let next = ids.len() as u32;
            let label = *ids.entry(label).or_insert(next);
            let amounts: Box<[u64]> = dims.iter().map(|&d| need(row, d)).collect();
            keyed.push((
                amounts,
                label,
                tokens.caps_of(row, problem.caps.len()),
                row.priority,
                ix,
            ));
        }
        // Ids were given in order of arrival; make them follow the labels' order.
        let mut rank = vec![0; ids.len()];
        let mut labels = Vec::with_capacity(ids.len());
        for (place, (label, id)) in ids.into_iter().enumerate() {
            rank[id as usize] = place as u32;
            labels.push(label);
        }
        for key in &mut keyed {
            key.1 = rank[key.1 as usize];
        }
        keyed.sort_unstable();
        self.n_labels = labels.len();
        for (amounts, label, caps, priority, ix) in keyed {
            let count = problem.rows[ix].count;
            if self.last_is(&amounts, label, &caps, priority) {
                self.count[self.n_classes - 1] += u64::from(count);
                self.rows[self.n_classes - 1].push((ix as u32, count));
                continue;
            }
            self.n_classes += 1;
            self.need.extend_from_slice(&amounts);
            self.count.push(u64::from(count));
            self.label.push(label);
            self.caps.push(caps);
            self.emits.push(labels[label as usize].emits.clone());
            self.repels.push(labels[label as usize].repels.clone());
            self.priority.push(priority);
            self.rows.push(vec![(ix as u32, count)]);
        }
        labels
    }

    /// Whether the class added last is just like this.
    fn last_is(&self, amounts: &[u64], label: u32, caps: &[u32], priority: i32) -> bool {
        let Some(last) = self.n_classes.checked_sub(1) else {
            return false;
        };
        *amounts == *self.need(last)
            && self.label[last] == label
            && *self.caps[last] == *caps
            && self.priority[last] == priority
    }

    /// Forgets cap groups that cannot bind because they have too few items.
    fn drop_loose_caps(&mut self, problem: &Problem, cap_size: &[u32], tokens: &Tokens) {
        let mut members = vec![0_u64; cap_size.len()];
        for (caps, &count) in self.caps.iter().zip(&self.count) {
            for &cap in caps {
                members[cap as usize] = members[cap as usize].saturating_add(count);
            }
        }
        let mut used_max = vec![0_u64; cap_size.len()];
        for bin in &problem.bins {
            for (cap, used) in tokens.caps_used(bin, problem.caps.len()) {
                used_max[cap as usize] = used_max[cap as usize].max(u64::from(used));
            }
        }
        let mut renamed = vec![NOWHERE; cap_size.len()];
        for (cap, &size) in cap_size.iter().enumerate() {
            if members[cap] > 0 && members[cap].saturating_add(used_max[cap]) > u64::from(size) {
                renamed[cap] = self.cap_size.len() as u32;
                self.cap_size.push(size);
            }
        }
        for class in 0..self.n_classes {
            let caps: Box<[u32]> = self.caps[class]
                .iter()
                .map(|&cap| renamed[cap as usize])
                .filter(|&cap| cap != NOWHERE)
                .collect();
            let alone = self.emits[class]
                .iter()
                .any(|t| self.repels[class].contains(t));
            let by_caps = caps
                .iter()
                .map(|&cap| u64::from(self.cap_size[cap as usize]))
                .min();
            let limit = by_caps.unwrap_or(u64::MAX).min(self.count[class]);
            self.limit.push(if alone { limit.min(1) } else { limit });
            self.repels_itself.push(alone);
            self.caps[class] = caps;
        }
        self.bin_caps = problem
            .bins
            .iter()
            .map(|bin| {
                tokens
                    .caps_used(bin, problem.caps.len())
                    .into_iter()
                    .map(|(cap, used)| (renamed[cap as usize], used))
                    .filter(|&(cap, _)| cap != NOWHERE)
                    .collect()
            })
            .collect();
    }
}

fn need(row: &Row, dim: usize) -> u64 {
    row.need.get(dim).copied().unwrap_or(0)
}

/// For each group, the first group with the same content.
fn first_equal_groups(groups: &[Group]) -> Vec<u32> {
    let mut first = HashMap::new();
    groups
        .iter()
        .enumerate()
        .map(|(ix, group)| {
            *first
                .entry((&group.kinds, &group.bins))
                .or_insert(ix as u32)
        })
        .collect()
}

/// How the caller's tokens are handled: as tokens, or, where every row that emits one also repels
/// it and the other way round, as a cap of one.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    token: BTreeMap<u32, u32>,
    cap: BTreeMap<u32, u32>,
}

impl Tokens {
    pub(crate) fn len(&self) -> usize {
        self.token.len()
    }

    /// The real tokens among these.
    pub(crate) fn of(&self, tokens: &[u32]) -> Box<[u32]> {
        let mut found: Vec<u32> = tokens
            .iter()
            .filter_map(|t| self.token.get(t).copied())
            .collect();
        found.sort_unstable();
        found.dedup();
        found.into()
    }

    fn caps_of(&self, row: &Row, n_caps: usize) -> Box<[u32]> {
        let mut caps: Vec<u32> = row
            .caps
            .iter()
            .copied()
            .filter(|&cap| (cap as usize) < n_caps)
            .collect();
        caps.extend(row.emits.iter().filter_map(|t| self.cap.get(t)));
        caps.sort_unstable();
        caps.dedup();
        caps.into()
    }

    fn caps_used(&self, bin: &crate::Bin, n_caps: usize) -> Vec<(u32, u32)> {
        let mut used: BTreeMap<u32, u32> = BTreeMap::new();
        for &(cap, n) in bin
            .caps_used
            .iter()
            .filter(|(cap, _)| (*cap as usize) < n_caps)
        {
            let sum = used.entry(cap).or_insert(0);
            *sum = sum.saturating_add(n);
        }
        for cap in bin
            .emits
            .iter()
            .chain(&bin.repels)
            .filter_map(|t| self.cap.get(t))
        {
            used.insert(*cap, 1);
        }
        used.into_iter().filter(|&(_, n)| n > 0).collect()
    }
}

fn caps_and_tokens(problem: &Problem) -> (Vec<u32>, Tokens) {
    let mut both: BTreeMap<u32, bool> = BTreeMap::new();
    for row in problem.rows.iter().filter(|row| row.count > 0) {
        for t in &row.emits {
            *both.entry(*t).or_insert(true) &= row.repels.contains(t);
        }
        for t in &row.repels {
            *both.entry(*t).or_insert(true) &= row.emits.contains(t);
        }
    }
    let mut sizes = problem.caps.clone();
    let mut tokens = Tokens::default();
    for (t, both) in both {
        if both {
            tokens.cap.insert(t, sizes.len() as u32);
            sizes.push(1);
        } else {
            tokens.token.insert(t, tokens.token.len() as u32);
        }
    }
    (sizes, tokens)
}
