//! What a VPA's policy leaves of a recommendation.

use super::amounts::{Resource, Resources};
use super::spec::{ContainerPolicy, ContainerRecommendation};
use crate::quantity::Quantity;

/// Keeps target and bounds within what is allowed; the uncapped target stays.
pub(super) fn apply_policy(
    recommendation: &mut ContainerRecommendation,
    policy: Option<&ContainerPolicy>,
    max_of_all: &Resources<Quantity>,
) {
    for amounts in [
        &mut recommendation.target,
        &mut recommendation.lower,
        &mut recommendation.upper,
    ] {
        for (resource, amount) in amounts {
            *amount = within(*amount, *resource, policy, max_of_all);
        }
    }
}

fn within(
    amount: Quantity,
    resource: Resource,
    policy: Option<&ContainerPolicy>,
    max_of_all: &Resources<Quantity>,
) -> Quantity {
    let least = policy.and_then(|policy| policy.min_allowed.get(&resource));
    let most = policy.and_then(|policy| policy.max_allowed.get(&resource));
    let most = most.or_else(|| max_of_all.get(&resource));
    let raised = least.map_or(amount, |least| amount.max(*least));
    most.map_or(raised, |most| raised.min(*most))
}
