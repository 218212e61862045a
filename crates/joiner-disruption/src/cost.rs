//! What it costs to move pods: upstream's eviction cost, and the same in money.
//!
//! Upstream computes in floats; here costs are integers, in thousand-millionths, fine enough to
//! tell any two deletion costs apart.

use joiner_model::NanoDollars;

use crate::fleet::{Fleet, Member, Settings};

/// The cost of a pod that says nothing about it, in thousand-millionths.
const ONE: i64 = 1_000_000_000;
/// No pod costs more, or less than its negative.
const MOST: i64 = 10 * ONE;
/// Deletion costs are counted in units of this.
const DELETION_COST_UNIT: i128 = 1 << 27;
/// Priorities are counted in units of this.
const PRIORITY_UNIT: i128 = 1 << 25;

/// What evicting a pod costs; 1 for a pod that says nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EvictionCost(i64);

impl EvictionCost {
    /// The cost of a pod with this `controller.kubernetes.io/pod-deletion-cost` and priority, both
    /// 0 when the pod does not say.
    #[must_use]
    pub fn of(deletion_cost: i32, priority: i32) -> Self {
        let one = i128::from(ONE);
        let deletion = i128::from(deletion_cost) * one / DELETION_COST_UNIT;
        let priority = i128::from(priority) * one / PRIORITY_UNIT;
        let cost = (one + deletion + priority).clamp(-i128::from(MOST), i128::from(MOST));
        Self(i64::try_from(cost).unwrap_or(MOST))
    }

    /// In thousand-millionths, zero for costs below zero.
    #[must_use]
    pub fn billionths(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// Nobody minds.
    #[must_use]
    pub fn is_free(self) -> bool {
        self.0 <= 0
    }
}

impl Default for EvictionCost {
    fn default() -> Self {
        Self(ONE)
    }
}

/// What disrupting a node costs: 1, and what its pods cost, in thousand-millionths.
#[must_use]
pub fn disruption(member: &Member) -> u64 {
    let pods = member.pods.iter().map(|pod| pod.cost.billionths());
    pods.fold(ONE.unsigned_abs(), u64::saturating_add)
}

/// What moving the pods of these members costs in money, and launching so many nodes.
pub(crate) fn of_move(fleet: &Fleet<'_>, members: &[usize], n_launches: usize) -> NanoDollars {
    let settings = &fleet.settings;
    let pods = members.iter().flat_map(|m| &fleet.members[*m].pods);
    let billionths: u128 = pods.map(|pod| u128::from(pod.cost.billionths())).sum();
    let moved = billionths * u128::from(settings.move_price.get()) / u128::from(ONE.unsigned_abs());
    let moved = NanoDollars::new(u64::try_from(moved).unwrap_or(u64::MAX));
    moved + settings.launch_price.times(n_launches as u64)
}

/// What a saving per hour comes to over the horizon.
pub(crate) fn over_horizon(settings: &Settings, per_hour: NanoDollars) -> NanoDollars {
    let total = u128::from(per_hour.get()) * u128::from(settings.horizon_minutes) / 60;
    NanoDollars::new(u64::try_from(total).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_254_eviction_cost() {
        let figures = [
            (0, 0, 1_000_000_000),
            (1 << 27, 0, 2_000_000_000),
            (-(1 << 27), 0, 0),
            (0, 1 << 25, 2_000_000_000),
            (i32::MAX, 0, 10_000_000_000),
            (i32::MAX, i32::MAX, 10_000_000_000),
            (0, 2_000_000_000, 10_000_000_000),
        ];
        for (deletion_cost, priority, expected) in figures {
            let cost = EvictionCost::of(deletion_cost, priority);
            assert_eq!(cost.billionths(), expected, "{deletion_cost} {priority}");
        }
        assert!(EvictionCost::of(i32::MIN, 0).is_free());
        assert!(EvictionCost::of(-(1 << 27), 0).is_free());
    }

    #[test]
    fn core_254_order_is_kept() {
        let costs = [-1_000, -1, 0, 1, 2, 100, 101, i32::MAX / 2];
        let made: Vec<_> = costs.iter().map(|c| EvictionCost::of(*c, 0)).collect();
        assert!(made.is_sorted_by(|a, b| a < b), "{made:?}");
    }
}
