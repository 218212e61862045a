//! Limits of pools and reservations, as budgets that bought nodes take from.

use std::collections::BTreeMap;

use joiner_model::{Name, ResourceName};

use crate::ground::Ground;

/// One limit of a pool, or one reservation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Budget {
    /// A pool's limit on a resource.
    Limit {
        /// Index of the pool.
        pool: usize,
        /// The resource.
        resource: ResourceName,
        /// What is left of the limit before this plan.
        left: u64,
    },
    /// Reserved instances.
    Reservation {
        /// The reservation.
        id: Name,
        /// How many are left.
        left: u64,
    },
}

impl Budget {
    /// What was left before this plan.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Limit { left, .. } | Self::Reservation { left, .. } => *left,
        }
    }
}

/// Limits of pools, less what their nodes use, and reservations.
pub(crate) fn budgets(ground: &Ground<'_>) -> Vec<Budget> {
    let mut all = Vec::new();
    let nodes = ResourceName::parse("nodes");
    for (p, pool) in ground.problem.pools.iter().enumerate() {
        let Some(limits) = &pool.limits else { continue };
        for (resource, limit) in limits.iter() {
            let used: u64 = ground
                .problem
                .nodes
                .iter()
                .filter(|n| n.pool.as_ref() == Some(&pool.name))
                .map(|n| {
                    if *resource == nodes {
                        1
                    } else {
                        n.capacity.get(resource)
                    }
                })
                .sum();
            let left = limit.saturating_sub(used);
            all.push(Budget::Limit {
                pool: p,
                resource: resource.clone(),
                left,
            });
        }
    }
    let mut reservations: BTreeMap<Name, u64> = BTreeMap::new();
    for offering in ground.problem.types.iter().flat_map(|t| &t.offerings) {
        if let Some((id, left)) = &offering.reservation {
            let known = reservations.entry(id.clone()).or_insert(u64::from(*left));
            *known = (*known).min(u64::from(*left));
        }
    }
    all.extend(
        reservations
            .into_iter()
            .map(|(id, left)| Budget::Reservation { id, left }),
    );
    all
}

/// What a node of each kind takes of the budgets.
pub(crate) fn spends(ground: &Ground<'_>, budgets: &[Budget]) -> Vec<Vec<(u32, u64)>> {
    if budgets.is_empty() {
        return vec![Vec::new(); ground.kinds.len()];
    }
    let nodes = ResourceName::parse("nodes");
    ground
        .kinds
        .iter()
        .map(|kind| {
            let ty = &ground.problem.types[kind.ty as usize];
            let offering = &ty.offerings[kind.offering as usize];
            let charged = &ground.problem.types[kind.charge as usize];
            let amount = |budget: &Budget| match budget {
                Budget::Limit { pool, resource, .. } if *pool == ground.pool_of(kind) => {
                    if *resource == nodes {
                        1
                    } else {
                        charged.capacity.get(resource)
                    }
                }
                Budget::Reservation { id, .. } => u64::from(
                    offering
                        .reservation
                        .as_ref()
                        .is_some_and(|(own, _)| own == id),
                ),
                Budget::Limit { .. } => 0,
            };
            (0u32..)
                .zip(budgets)
                .map(|(b, x)| (b, amount(x)))
                .filter(|(_, n)| *n > 0)
                .collect()
        })
        .collect()
}
