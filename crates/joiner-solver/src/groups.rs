//! Which kinds an item may use whatever its size, by weight of their pools.
//!
//! Sets are made once for equal node selection, limits and ports. Where a pool asks for a number of
//! different values (`minValues`), a kind stays in the set only if enough other types of the set have
//! at least its room in its domain: then whatever fits the kind leaves enough types to choose from.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use joiner_model::{HostPort, MinValuesPolicy};

use crate::cells::Limits;
use crate::ground::Ground;
use crate::select::{Choices, Sel};

/// Everything that decides which kinds an item may use, apart from its size: choices, limits, ports.
pub(crate) type GroupKey = (Vec<u32>, Limits, Vec<HostPort>);

/// Kinds that an item may use.
pub(crate) struct KindSet {
    /// All of them.
    pub(crate) all: FixedBitSet,
    /// By pool weight, heaviest first; within a weight by room, largest first.
    pub(crate) by_weight: Vec<(i32, Vec<u32>)>,
}

/// The sets of a problem.
#[derive(Default)]
pub(crate) struct KindSets {
    numbers: BTreeMap<GroupKey, u32>,
    sets: Vec<KindSet>,
}

impl KindSets {
    /// The set with this number.
    pub(crate) fn get(&self, number: u32) -> &KindSet {
        &self.sets[number as usize]
    }

    /// The number of the set for `key`. A relaxed set knows neither weights nor `minValues`.
    pub(crate) fn number(
        &mut self,
        ground: &Ground<'_>,
        choices: &Choices,
        key: GroupKey,
        relaxed: bool,
    ) -> u32 {
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = u32::try_from(self.sets.len()).unwrap_or(u32::MAX);
        let mut all = allowed(ground, choices, &key);
        for pool in (0..ground.problem.pools.len()).filter(|_| !relaxed) {
            keep_enough_values(ground, pool, &mut all);
        }
        self.sets.push(KindSet::new(ground, all, !relaxed));
        self.numbers.insert(key, number);
        number
    }
}

impl KindSet {
    fn new(ground: &Ground<'_>, all: FixedBitSet, weights: bool) -> Self {
        let mut by_weight: BTreeMap<std::cmp::Reverse<i32>, Vec<u32>> = BTreeMap::new();
        for k in all.ones() {
            let pool = ground.pool_of(&ground.kinds[k]);
            let weight = if weights {
                ground.problem.pools[pool].weight
            } else {
                0
            };
            let kinds = by_weight.entry(std::cmp::Reverse(weight)).or_default();
            kinds.push(u32::try_from(k).unwrap_or(u32::MAX));
        }
        for kinds in by_weight.values_mut() {
            let room = |k: &u32| ground.room_of(&ground.kinds[*k as usize]);
            kinds.sort_by(|a, b| room(b).cmp(room(a)).then(a.cmp(b)));
        }
        Self {
            all,
            by_weight: by_weight
                .into_iter()
                .map(|(w, kinds)| (w.0, kinds))
                .collect(),
        }
    }

    /// The heaviest weight of an open pool with a kind that has room for `need`.
    pub(crate) fn heaviest(
        &self,
        ground: &Ground<'_>,
        need: &[u64],
        closed: &[bool],
    ) -> Option<i32> {
        let holds = |k: &u32| {
            let kind = &ground.kinds[*k as usize];
            !closed[ground.pool_of(kind)]
                && need.iter().zip(ground.room_of(kind)).all(|(q, r)| q <= r)
        };
        self.by_weight
            .iter()
            .find(|(_, kinds)| kinds.iter().any(holds))
            .map(|(weight, _)| *weight)
    }
}

/// Kinds that node selection, limits and daemon ports leave.
fn allowed(ground: &Ground<'_>, choices: &Choices, key: &GroupKey) -> FixedBitSet {
    let (choice_numbers, limits, ports) = key;
    let sels: Vec<Vec<Sel>> = choice_numbers
        .iter()
        .map(|c| {
            let mut sels = choices.all[*c as usize].alternatives.clone();
            for sel in &mut sels {
                limits
                    .iter()
                    .for_each(|(k, values)| sel.limit(ground, k, values));
            }
            sels
        })
        .collect();
    let mut kinds = FixedBitSet::with_capacity(ground.kinds.len());
    for (k, kind) in ground.kinds.iter().enumerate() {
        let free = ground.daemon_ports[kind.ports as usize]
            .iter()
            .all(|taken| ports.iter().all(|port| !port.conflicts(taken)));
        if free && sels.iter().all(|s| s.iter().any(|sel| sel.has(kind))) {
            kinds.insert(k);
        }
    }
    kinds
}

/// Drops kinds of a pool that would leave too few values for its `minValues`. When that leaves
/// nothing and the policy is to do what one can, everything stays.
fn keep_enough_values(ground: &Ground<'_>, pool: usize, kinds: &mut FixedBitSet) {
    let Some(company) = &ground.companies[pool] else {
        return;
    };
    let mut by_domain: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for k in kinds
        .ones()
        .filter(|k| ground.pool_of(&ground.kinds[*k]) == pool)
    {
        by_domain.entry(ground.kinds[k].domain).or_default().push(k);
    }
    let mut dropped = Vec::new();
    let mut n_kept = 0;
    for mine in by_domain.values() {
        if !company.suffices(mine.iter().map(|k| ground.kinds[*k].ty)) {
            dropped.extend(mine);
            continue;
        }
        for k in mine {
            let usable = ground.usable_of(&ground.kinds[*k]);
            let mut tally = company.tally();
            let enough = mine.iter().any(|other| {
                let other = &ground.kinds[*other];
                if ground
                    .room_of(other)
                    .iter()
                    .zip(usable)
                    .all(|(a, b)| a >= b)
                {
                    tally.add(other.ty);
                }
                tally.enough()
            });
            if enough {
                n_kept += 1;
            } else {
                dropped.push(*k);
            }
        }
    }
    if n_kept == 0 && ground.problem.policy.min_values == MinValuesPolicy::BestEffort {
        return;
    }
    dropped.into_iter().for_each(|k| kinds.remove(k));
}
