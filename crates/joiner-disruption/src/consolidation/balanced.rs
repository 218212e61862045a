//! The policy `Balanced`: a move must save enough for the disruption it causes.
//!
//! For each pool with that policy, its share of the savings over the pool's cost is compared with
//! the disruption of its nodes over that of the whole pool. Half as much is enough.

use joiner_model::{Name, NanoDollars};

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
    let judged = judged(fleet, members, savings);
    match judged.into_iter().find(|(_, judged)| !judged.approves()) {
        Some((pool, judged)) => Err(Why::Unbalanced {
            pool: fleet.pools[pool].title(),
            score_milli: judged.score_milli.unwrap_or(0),
        }),
        None => Ok(()),
    }
}

/// What a pool thinks of a consolidation that takes nodes from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The pool, or the node group.
    pub pool: Name,
    /// Its policy.
    pub policy: Policy,
    /// The score in thousandths; none for pools that do not weigh.
    pub score_milli: Option<u64>,
    /// Its share of the savings, of what the pool costs, in thousandths.
    pub savings_milli: u64,
    /// The disruption of its nodes, of that of the whole pool, in thousandths.
    pub disruption_milli: u64,
}

impl Judgement {
    /// It is content.
    #[must_use]
    pub fn approves(&self) -> bool {
        self.score_milli
            .is_none_or(|score| score >= THRESHOLD_MILLI)
    }
}

/// What all pools that give nodes think of it, each with its index.
pub(crate) fn judged(
    fleet: &Fleet<'_>,
    members: &[usize],
    savings: NanoDollars,
) -> Vec<(usize, Judgement)> {
    let source = fleet.price(members);
    let mut pools: Vec<usize> = members.iter().map(|m| fleet.members[*m].pool).collect();
    pools.sort_unstable();
    pools.dedup();
    let judge = |pool: usize| {
        let terms = &fleet.pools[pool];
        let own: Vec<usize> = (members.iter().copied())
            .filter(|m| fleet.members[*m].pool == pool)
            .collect();
        let share = u128::from(savings.get()) * u128::from(fleet.price(&own).get())
            / u128::from(source.get().max(1));
        let disruption = own.iter().map(|m| cost::disruption(&fleet.members[*m]));
        let disruption: u128 = disruption.map(u128::from).sum();
        let judgement = Judgement {
            pool: terms.name.clone(),
            policy: terms.policy,
            score_milli: (terms.policy == Policy::Balanced)
                .then(|| score(fleet, pool, &own, share)),
            savings_milli: milli(share, terms.total_cost.get()),
            disruption_milli: milli(disruption, terms.total_disruption),
        };
        (pool, judgement)
    };
    pools.into_iter().map(judge).collect()
}

/// A part of a whole, in thousandths.
fn milli(part: u128, whole: u64) -> u64 {
    let share = part * 1000 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
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
