//! Gauges about pools: limits, usage, price.

use std::collections::BTreeMap;

use joiner_api::labels::INSTANCE_TYPE;
use joiner_api::types::ResourceMap;
use joiner_model::{InstanceType, Labels, Name, NanoDollars, Resources};
use joiner_runtime::metric_names::{NODEPOOLS_COST, NODEPOOLS_LIMIT, NODEPOOLS_USAGE};
use joiner_state::NodeClassRef;
use joiner_state::live::Snapshot;
use joiner_state::quantity::parse_capacity;

use super::{Emit, amount, resource_type};
use crate::catalogs::Lists;

/// What is shown of one pool.
#[derive(Clone, Debug)]
pub(super) struct PoolRow {
    /// Its name.
    pub(super) name: Name,
    /// How large it may be.
    limits: Resources,
    /// How large it is, as its status has it.
    usage: Resources,
    /// What its nodes cost an hour.
    cost: NanoDollars,
    /// Claims whose price is not known.
    pub(super) unpriced: Vec<Name>,
}

/// Types by name, by class.
type Types<'c> = BTreeMap<&'c NodeClassRef, BTreeMap<&'c str, &'c InstanceType>>;

/// All pools, by name.
pub(super) fn rows(now: &Snapshot, catalogs: &Lists) -> Vec<PoolRow> {
    let types: Types<'_> = catalogs
        .iter()
        .map(|(class, types)| {
            let by_name = types.iter().map(|sold| (&*sold.name, sold)).collect();
            (class, by_name)
        })
        .collect();
    let mut rows: BTreeMap<&str, PoolRow> = BTreeMap::new();
    for pool in now.pools() {
        let status = pool.pool.status.as_ref();
        let row = PoolRow {
            name: pool.name().clone(),
            limits: amounts(pool.pool.spec.limits.as_ref()),
            usage: amounts(status.and_then(|status| status.resources.as_ref())),
            cost: NanoDollars::ZERO,
            unpriced: Vec::new(),
        };
        rows.insert(pool.name(), row);
    }
    for claim in now.claims().filter(|claim| claim.provider_id.is_some()) {
        let pool = claim.pool().and_then(|name| now.pool(name));
        let Some(pool) = pool else {
            continue;
        };
        let Some(row) = rows.get_mut(&**pool.name()) else {
            continue;
        };
        let types = types.get(&pool.class);
        match types.and_then(|types| price(types, &claim.meta.labels)) {
            Some(price) => row.cost += price,
            None => row.unpriced.push(claim.name().clone()),
        }
    }
    rows.into_values().collect()
}

/// What a machine with these labels costs, available or not.
fn price(types: &BTreeMap<&str, &InstanceType>, labels: &Labels) -> Option<NanoDollars> {
    let sold = types.get(&**labels.get(INSTANCE_TYPE)?)?;
    crate::catalogs::price(sold, |key| labels.get(key).map(AsRef::as_ref))
}

fn amounts(given: Option<&ResourceMap>) -> Resources {
    let pairs = given.into_iter().flatten();
    let pairs = pairs.map(|(name, quantity)| (name.as_str(), quantity.as_str()));
    // What cannot be read is said by the pool's own condition.
    parse_capacity(pairs).unwrap_or_default()
}

/// The series of a family.
pub(super) fn each(family: &str, rows: &[PoolRow], emit: Emit<'_>) {
    for row in rows {
        let amounts = match family {
            NODEPOOLS_COST => {
                emit(&[("nodepool", &row.name)], dollars(row.cost));
                continue;
            }
            NODEPOOLS_LIMIT => &row.limits,
            NODEPOOLS_USAGE => &row.usage,
            _ => continue,
        };
        for (name, one) in amounts.iter() {
            let resource = resource_type(name);
            let labels = [("nodepool", &*row.name), ("resource_type", &*resource)];
            emit(&labels, amount(name, one));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn dollars(price: NanoDollars) -> f64 {
    price.get() as f64 / 1e9
}
