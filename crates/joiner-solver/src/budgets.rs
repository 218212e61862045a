//! Limits of pools and reservations, as budgets that bought nodes take from.

use std::collections::BTreeMap;

use joiner_model::{Name, Node, ResourceName};

use crate::ground::{Ground, Kind};

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
    let mut nodes_of: BTreeMap<&Name, Vec<&Node>> = BTreeMap::new();
    for node in &ground.problem.nodes {
        if let Some(pool) = &node.pool {
            nodes_of.entry(pool).or_default().push(node);
        }
    }
    for (p, pool) in ground.problem.pools.iter().enumerate() {
        let Some(limits) = &pool.limits else { continue };
        for (resource, limit) in limits.iter() {
            let own = nodes_of.get(&pool.name).into_iter().flatten();
            let used: u64 = own
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
    let mut of_pool: BTreeMap<usize, Vec<(u32, &ResourceName)>> = BTreeMap::new();
    let mut of_reservation: BTreeMap<&Name, u32> = BTreeMap::new();
    for (b, budget) in (0u32..).zip(budgets) {
        match budget {
            Budget::Limit { pool, resource, .. } => {
                of_pool.entry(*pool).or_default().push((b, resource));
            }
            Budget::Reservation { id, .. } => {
                of_reservation.insert(id, b);
            }
        }
    }
    let spend = |kind: &Kind| {
        let ty = &ground.problem.types[kind.ty as usize];
        let offering = &ty.offerings[kind.offering as usize];
        let charged = &ground.problem.types[kind.charge as usize];
        let amount = |resource: &ResourceName| {
            if *resource == nodes {
                1
            } else {
                charged.capacity.get(resource)
            }
        };
        let limits = of_pool.get(&ground.pool_of(kind)).into_iter().flatten();
        let limits = limits.map(|(b, resource)| (*b, amount(resource)));
        let reserved = offering.reservation.as_ref();
        let reserved = reserved.and_then(|(id, _)| of_reservation.get(id));
        limits
            .chain(reserved.map(|b| (*b, 1)))
            .filter(|(_, n)| *n > 0)
            .collect()
    };
    ground.kinds.iter().map(spend).collect()
}
