//! The policy `Balanced`: a move must save enough for the disruption it causes.
//!
//! For each pool with that policy, its share of the savings over the pool's cost is compared with
//! the disruption of its nodes over that of the whole pool. Half as much is enough.

use joiner_model::NanoDollars;

use crate::cost;
use crate::fleet::{Fleet, Policy};
use crate::why::Why;

/// A score of one half passes.
const THRESHOLD_MILLI: u64 = 500;

/// Passes when every Balanced pool that gives nodes is content with what is saved an hour.
///
/// # Errors
/// The first pool that is not.
pub(crate) fn check(fleet: &Fleet<'_>, members: &[usize], savings: NanoDollars) -> Result<(), Why> {
    let source = fleet.price(members);
    let mut pools: Vec<usize> = members.iter().map(|m| fleet.members[*m].pool).collect();
    pools.sort_unstable();
    pools.dedup();
    pools.retain(|pool| fleet.pools[*pool].policy == Policy::Balanced);
    for pool in pools {
        let own: Vec<usize> = (members.iter().copied())
            .filter(|m| fleet.members[*m].pool == pool)
            .collect();
        let share = u128::from(savings.get()) * u128::from(fleet.price(&own).get())
            / u128::from(source.get().max(1));
        let score_milli = score(fleet, pool, &own, share);
        if score_milli < THRESHOLD_MILLI {
            let pool = fleet.pools[pool].name.clone();
            return Err(Why::Unbalanced { pool, score_milli });
        }
    }
    Ok(())
}

/// Savings over cost, divided by disruption over all disruption, in thousandths.
fn score(fleet: &Fleet<'_>, pool: usize, own: &[usize], savings: u128) -> u64 {
    let terms = &fleet.pools[pool];
    let (cost, total) = (terms.total_cost.get(), terms.total_disruption);
    if savings == 0 || cost == 0 || total == 0 {
        return 0;
    }
    let disruption = own.iter().map(|m| cost::disruption(&fleet.members[*m]));
    let disruption: u128 = disruption.map(u128::from).sum();
    if disruption == 0 {
        return u64::MAX;
    }
    // Disruption is counted in thousand-millionths on both sides; that many digits are not needed.
    let (disruption, total) = (disruption / 1000, u128::from(total) / 1000);
    let score = (savings * total).saturating_mul(1000) / (u128::from(cost) * disruption.max(1));
    u64::try_from(score).unwrap_or(u64::MAX)
}
