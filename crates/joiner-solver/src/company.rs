//! Keeping company: how much of a kind's room may be used so that enough other types would do too.
//!
//! A pool with `minValues` wants several types (or families, zones, ..) to choose from for every node.
//! A node of a large type that is filled to the brim leaves few others; filled up to the room of the
//! next types, it leaves enough.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Pool, Problem, Requirement, ResourceName};

use crate::finish::values_of_type;
use crate::ground::{Ground, Interner, Kind};

/// What a pool asks for by `minValues`, with the values of each of its types as numbers.
pub(crate) struct Company {
    asked: Vec<(usize, BTreeMap<u32, Vec<u32>>)>,
}

/// Values seen so far, by what is asked.
pub(crate) struct Tally<'c> {
    company: &'c Company,
    seen: Vec<BTreeSet<u32>>,
}

impl Company {
    /// What `pool` asks for; `None` when it does not.
    pub(crate) fn new(problem: &Problem, pool: &Pool) -> Option<Self> {
        let asked = pool.requirements.iter().filter_map(|r| {
            let needed = usize::try_from(r.min_values()?).unwrap_or(usize::MAX);
            Some((needed, numbers(problem, pool, r)))
        });
        let asked: Vec<_> = asked.collect();
        (!asked.is_empty()).then_some(Self { asked })
    }

    /// True when these types are company enough.
    pub(crate) fn suffices(&self, types: impl Iterator<Item = u32>) -> bool {
        let mut tally = self.tally();
        types.for_each(|ty| tally.add(ty));
        tally.enough()
    }

    /// Nothing seen yet.
    pub(crate) fn tally(&self) -> Tally<'_> {
        Tally {
            company: self,
            seen: vec![BTreeSet::new(); self.asked.len()],
        }
    }
}

/// The values that each type of a pool has for a requirement, as numbers.
fn numbers(problem: &Problem, pool: &Pool, r: &Requirement) -> BTreeMap<u32, Vec<u32>> {
    let mut values: Interner<String> = Interner::default();
    let of_type = |ty: u32| -> Vec<u32> {
        let own = values_of_type(problem, ty, r);
        own.into_iter()
            .map(|v| values.intern(v.to_owned()))
            .collect()
    };
    let mut of_type = of_type;
    pool.types.iter().map(|ty| (ty.0, of_type(ty.0))).collect()
}

impl Tally<'_> {
    /// Counts one more type.
    pub(crate) fn add(&mut self, ty: u32) {
        for (seen, (_, of_type)) in self.seen.iter_mut().zip(&self.company.asked) {
            seen.extend(of_type.get(&ty).into_iter().flatten());
        }
    }

    /// True when there is enough of everything.
    pub(crate) fn enough(&self) -> bool {
        let mut both = self.seen.iter().zip(&self.company.asked);
        both.all(|(seen, (needed, _))| seen.len() >= *needed)
    }
}

/// Sets how much may be used of each kind of one pool variant. `kinds` are not in `ground` yet.
pub(crate) fn clip(
    ground: &Ground<'_>,
    company: &Company,
    kinds: &mut [Kind],
    rooms: &mut Interner<Vec<u64>>,
) {
    let mut by_domain: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (k, kind) in kinds.iter().enumerate() {
        by_domain.entry(kind.domain).or_default().push(k);
    }
    for mut here in by_domain.into_values() {
        if !company.suffices(here.iter().map(|k| kinds[*k].ty)) {
            continue;
        }
        here.sort_by_key(|k| (kinds[*k].price, kinds[*k].ty));
        for k in &here {
            let Some((types, usable)) = companions(company, kinds, &here, *k, &rooms.items) else {
                continue;
            };
            kinds[*k].usable = rooms.intern(usable);
            let size = |ty: &u32| {
                let ty = &ground.problem.types[*ty as usize];
                (
                    ty.capacity.get(&ResourceName::Cpu),
                    ty.capacity.get(&ResourceName::Memory),
                )
            };
            kinds[*k].charge = types.into_iter().max_by_key(size).unwrap_or(kinds[*k].ty);
        }
    }
}

/// Types that together with kind `k` are company enough, and the room that all of them have: the
/// cheapest that are at least as large, and only if they are too few, smaller ones.
fn companions(
    company: &Company,
    kinds: &[Kind],
    here: &[usize],
    k: usize,
    rooms: &[Vec<u64>],
) -> Option<(Vec<u32>, Vec<u64>)> {
    let own = &rooms[kinds[k].room as usize];
    let mut tally = company.tally();
    tally.add(kinds[k].ty);
    let mut types = vec![kinds[k].ty];
    for o in here {
        if tally.enough() {
            return Some((types, own.clone()));
        }
        if rooms[kinds[*o].room as usize]
            .iter()
            .zip(own)
            .all(|(a, b)| a >= b)
        {
            tally.add(kinds[*o].ty);
            types.push(kinds[*o].ty);
        }
    }
    let mut smaller: Vec<(u64, usize)> = here
        .iter()
        .map(|o| (share_of(own, &rooms[kinds[*o].room as usize]), *o))
        .collect();
    smaller.sort_by_key(|(share, o)| (std::cmp::Reverse(*share), kinds[*o].price, kinds[*o].ty));
    let mut usable = own.clone();
    for (_, o) in smaller {
        if tally.enough() {
            break;
        }
        tally.add(kinds[o].ty);
        types.push(kinds[o].ty);
        for (have, other) in usable.iter_mut().zip(&rooms[kinds[o].room as usize]) {
            *have = (*have).min(*other);
        }
    }
    tally.enough().then_some((types, usable))
}

/// The least share of `own` that `other` has in any dimension, in thousandths.
fn share_of(own: &[u64], other: &[u64]) -> u64 {
    let shares = own
        .iter()
        .zip(other)
        .filter(|(a, _)| **a > 0)
        .map(|(a, b)| {
            u64::try_from(u128::from(*b) * 1000 / u128::from(*a))
                .unwrap_or(u64::MAX)
                .min(1000)
        });
    shares.min().unwrap_or(1000)
}
