//! Keeping company: how much of a kind's room may be used so that enough other types would do too.
//!
//! A pool with `minValues` wants several types (or families, zones, ..) to choose from for every node.
//! A node of a large type that is filled to the brim leaves few others; filled up to the room of the
//! next types, it leaves enough.

use std::collections::BTreeSet;

use joiner_model::{Pool, Requirement, ResourceName};

use crate::finish::distinct_values;
use crate::ground::{Ground, Interner, Kind};

/// Sets how much may be used of each kind of one pool variant. `kinds` are not in `ground` yet.
pub(crate) fn clip(
    ground: &Ground<'_>,
    pool: &Pool,
    kinds: &mut [Kind],
    rooms: &mut Interner<Vec<u64>>,
) {
    let asked: Vec<&Requirement> = pool
        .requirements
        .iter()
        .filter(|r| r.min_values().is_some())
        .collect();
    if asked.is_empty() {
        return;
    }
    let enough = |types: &BTreeSet<u32>| {
        asked.iter().all(|r| {
            let types = types.iter().copied();
            r.min_values()
                .is_none_or(|n| distinct_values(ground, types, r) >= n)
        })
    };
    let domains: BTreeSet<u32> = kinds.iter().map(|k| k.domain).collect();
    for domain in domains {
        let here: Vec<usize> = (0..kinds.len())
            .filter(|k| kinds[*k].domain == domain)
            .collect();
        for k in &here {
            let own = rooms.items[kinds[*k].room as usize].clone();
            // Others by how much of this room they have, most first.
            let mut others: Vec<&Kind> = here.iter().map(|o| &kinds[*o]).collect();
            others.sort_by_key(|o| {
                let share = share_of(&own, &rooms.items[o.room as usize]);
                (std::cmp::Reverse(share), o.price, o.ty)
            });
            let others: Vec<(u32, u32)> = others.into_iter().map(|o| (o.ty, o.room)).collect();
            let mut types = BTreeSet::from([kinds[*k].ty]);
            let mut usable = own;
            for (ty, room) in others {
                if enough(&types) {
                    break;
                }
                if types.insert(ty) {
                    for (have, other) in usable.iter_mut().zip(&rooms.items[room as usize]) {
                        *have = (*have).min(*other);
                    }
                }
            }
            if enough(&types) {
                kinds[*k].usable = rooms.intern(usable);
                let cpu = |ty: &u32| {
                    let ty = &ground.problem.types[*ty as usize];
                    (
                        ty.capacity.get(&ResourceName::Cpu),
                        ty.capacity.get(&ResourceName::Memory),
                    )
                };
                kinds[*k].charge = types
                    .iter()
                    .copied()
                    .max_by_key(cpu)
                    .unwrap_or(kinds[*k].ty);
            }
        }
    }
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
