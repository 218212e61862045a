//! What is left of a recommendation for one pod: within limits of its namespace, the policy of the VPA and,
//! where limits stay, its own limits.

use super::amounts::{Resource, Resources};
use super::limits::{LimitRanges, Rounding, proportion, proportional_limit, set};
use super::pod::{Pod, PodContainer};
use super::spec::{ContainerRecommendation, Vpa};
use crate::quantity::Quantity;

/// A recommendation for a container of a pod, and what it was kept within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capped {
    /// What is recommended.
    pub recommendation: ContainerRecommendation,
    /// Why its target is not what was recommended at first.
    pub notes: Vec<String>,
}

/// A value of each recommendation that is kept within limits on its own.
type Field = fn(&mut ContainerRecommendation) -> &mut Resources<Quantity>;
const FIELDS: [Field; 3] = [
    |one| &mut one.target,
    |one| &mut one.upper,
    |one| &mut one.lower,
];

/// What the VPA recommends for the containers of a pod.
#[must_use]
pub fn capped(vpa: &Vpa, pod: &Pod, ranges: &LimitRanges) -> Vec<Capped> {
    let mut recommendations = vpa.recommendation.clone();
    for field in FIELDS {
        for resource in Resource::ALL {
            fit_pod(&mut recommendations, field, resource, pod, ranges);
        }
    }
    let mut all = Vec::new();
    for mut recommendation in recommendations {
        let mut containers = pod.containers.iter();
        let container = containers.find(|c| c.name == recommendation.container);
        let Some(container) = container else { continue };
        let mut notes = Vec::new();
        for (ix, field) in FIELDS.into_iter().enumerate() {
            let found = fit_container(vpa, (pod, container), ranges, field(&mut recommendation));
            // The target is the first field.
            if ix == 0 {
                notes = found;
            }
        }
        all.push(Capped {
            recommendation,
            notes,
        });
    }
    all
}

/// The default limit of containers of the namespace.
fn default_limit(ranges: &LimitRanges, resource: Resource) -> Option<Quantity> {
    ranges.container.default.get(&resource).copied()
}

/// Keeps all containers of a pod together within what a namespace allows.
fn fit_pod(
    recommendations: &mut [ContainerRecommendation],
    field: Field,
    resource: Resource,
    pod: &Pod,
    ranges: &LimitRanges,
) {
    let zero = resource.quantity(0);
    let bound = |bounds: &Resources<Quantity>| bounds.get(&resource).copied().unwrap_or(zero);
    let (min, max) = (bound(&ranges.pod.min), bound(&ranges.pod.max));
    let (mut sum, mut sum_of_limits) = (zero, zero);
    for container in &pod.containers {
        let found = recommendations
            .iter_mut()
            .find(|one| one.container == container.name);
        let requests = pod.requests(container);
        let request = match found {
            Some(recommendation) => field(recommendation).get(&resource).copied(),
            None => requests.get(resource.as_str()).copied(),
        };
        let request = request.unwrap_or(zero);
        let of_pod = ranges.pod.default.get(&resource).copied();
        let limits = (pod.limits(container), requests);
        if let Some((limit, _)) = proportional_limit(resource, limits, request, of_pod) {
            sum_of_limits = sum_of_limits.plus(limit);
        }
        sum = sum.plus(request);
    }
    let no_limits = sum_of_limits == zero;
    let fits = min <= sum_of_limits && min <= sum && (max == zero || max >= sum_of_limits);
    if fits || no_limits {
        return;
    }
    let (ratio, rounding) = if min > sum {
        ((min, sum), Rounding::Up)
    } else {
        let of_limits = if max != zero && max < sum_of_limits {
            max
        } else {
            min
        };
        ((of_limits, sum_of_limits), Rounding::Down)
    };
    for recommendation in recommendations {
        if let Some(amount) = field(recommendation).get_mut(&resource) {
            *amount = proportion(resource, *amount, ratio, rounding).0;
        }
    }
}

/// Keeps one container within what its namespace and the VPA allow; says what was in the way.
fn fit_container(
    vpa: &Vpa,
    (pod, container): (&Pod, &PodContainer),
    ranges: &LimitRanges,
    amounts: &mut Resources<Quantity>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let policy = vpa.policy(&container.name);
    for (resource, amount) in amounts {
        let bounds = &ranges.container;
        let edge = |bound: Option<&Quantity>| boundary(*resource, (pod, container), ranges, bound);
        let least = edge(bounds.min.get(resource)).max(bounds.min.get(resource).copied());
        let most = edge(bounds.max.get(resource));
        let limit = pod.limits(container).get(resource.as_str());
        let limit = limit.filter(|_| policy.is_some_and(|policy| policy.requests_only));
        let positive = |amount: &Quantity| amount.is_positive();
        let before = *amount;
        let mut note = |old: Quantity, new: Quantity, why: &str| {
            if old != new {
                notes.push(format!("{} capped to {why}", resource.as_str()));
            }
            new
        };
        let raised = least
            .filter(positive)
            .map_or(before, |least| before.max(least));
        let raised = note(before, raised, "fit Min in container LimitRange");
        let lowered = most
            .filter(positive)
            .map_or(raised, |most| raised.min(most));
        let lowered = note(raised, lowered, "fit Max in container LimitRange");
        let least = policy.and_then(|policy| policy.min_allowed.get(resource));
        let allowed = least.map_or(lowered, |least| lowered.max(*least));
        let allowed = note(lowered, allowed, "minAllowed");
        let most = policy.and_then(|policy| policy.max_allowed.get(resource));
        let kept = most.map_or(allowed, |most| allowed.min(*most));
        let kept = note(allowed, kept, "maxAllowed");
        let limited = limit.filter(|limit| kept.millis() > limit.millis());
        *amount = note(kept, limited.copied().unwrap_or(kept), "container limit");
    }
    notes
}

/// The request whose limit, in the proportion that both have, is `bound`.
fn boundary(
    resource: Resource,
    (pod, container): (&Pod, &PodContainer),
    ranges: &LimitRanges,
    bound: Option<&Quantity>,
) -> Option<Quantity> {
    let limit = set(pod.limits(container), resource).or(default_limit(ranges, resource));
    let limit = limit.filter(|limit| limit.units() != 0)?;
    match set(pod.requests(container), resource) {
        None => bound.copied(),
        Some(request) => Some(proportion(resource, request, (*bound?, limit), Rounding::Down).0),
    }
}
