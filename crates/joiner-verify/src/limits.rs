//! What pools and reservations have left, whichever types are launched.

use std::collections::BTreeMap;

use joiner_model::{ResourceName, keys, render_amount};

use crate::classes::Market;
use crate::demands::{Amounts, add};
use crate::ground::{Ground, label};
use crate::violation::{Report, Rule};

/// Checks limits of pools and counts of reservations.
pub(crate) fn check(ground: &Ground<'_>, market: &Market<'_>, report: &mut Report) {
    for pool in 0..ground.problem.pools.len() {
        pool_limits(ground, market, pool, report);
    }
    reservations(ground, market, report);
}

/// The pool's nodes, old and new, at the largest the new ones may turn out.
fn pool_limits(ground: &Ground<'_>, market: &Market<'_>, pool_ix: usize, report: &mut Report) {
    let pool = &ground.problem.pools[pool_ix];
    let Some(limits) = &pool.limits else {
        return;
    };
    let classes = market
        .of_launch
        .iter()
        .flatten()
        .map(|c| &market.classes[*c]);
    let mut new: Amounts = vec![0; ground.demands.resources.len()];
    let mut n_new: u64 = 0;
    for class in classes.filter(|class| class.pool == pool_ix) {
        add(&mut new, &class.ceiling);
        n_new += 1;
    }
    if n_new == 0 {
        return;
    }
    let old = ground.problem.nodes.iter().filter(|node| {
        node.pool.as_ref() == Some(&pool.name)
            || label(&node.labels, keys::NODE_POOL) == Some(&pool.name)
    });
    let old: Vec<_> = old.collect();
    let nodes = ResourceName::parse("nodes");
    for (name, limit) in limits.iter() {
        let used = if *name == nodes {
            i128::from(n_new) + i128::try_from(old.len()).unwrap_or(i128::MAX / 2)
        } else {
            let before: i128 = old.iter().map(|n| i128::from(n.capacity.get(name))).sum();
            let resources = &ground.demands.resources;
            let more = resources
                .iter()
                .position(|r| *r == name)
                .map_or(0, |i| new[i]);
            before + more
        };
        if used > i128::from(limit) {
            let used = u64::try_from(used).unwrap_or(u64::MAX);
            report.say(
                Rule::Limit,
                format_args!(
                    "pool {:?} is limited to {} of {name} and could come to {}",
                    pool.name,
                    render_amount(name, limit),
                    render_amount(name, used)
                ),
            );
        }
    }
}

/// A node holds a unit of every reservation that it may still use.
fn reservations(ground: &Ground<'_>, market: &Market<'_>, report: &mut Report) {
    let mut holders: BTreeMap<&str, u32> = BTreeMap::new();
    for class in market.of_launch.iter().flatten() {
        for id in &market.classes[*class].reservations {
            *holders.entry(id).or_insert(0) += 1;
        }
    }
    if holders.is_empty() {
        return;
    }
    let mut left: BTreeMap<&str, u32> = BTreeMap::new();
    let offerings = ground.problem.types.iter().flat_map(|t| &t.offerings);
    for (id, n_left) in offerings.filter_map(|o| o.reservation.as_ref()) {
        let least = left.entry(id).or_insert(*n_left);
        *least = (*least).min(*n_left);
    }
    for (id, n_holders) in holders {
        let n_left = left.get(id).copied().unwrap_or(0);
        if n_holders > n_left {
            report.say(
                Rule::Reservation,
                format_args!(
                    "{n_holders} new nodes may use reservation {id}, which has {n_left} left"
                ),
            );
        }
    }
}
