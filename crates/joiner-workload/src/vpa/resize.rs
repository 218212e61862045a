//! What a pod's containers should request and may use, once a recommendation is applied.
//!
//! A new pod is told what changes; a running one is told everything, what stays included.

use std::collections::BTreeMap;

use super::amounts::{Resource, Resources};
use super::capping::Capped;
use super::limits::{LimitRanges, Named, proportional_limit};
use super::pod::Pod;
use super::spec::Vpa;
use crate::quantity::Quantity;

/// What a container should request and may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resized {
    /// What it should request.
    pub requests: Resources<Quantity>,
    /// What it may use, where that changes.
    pub limits: Resources<Quantity>,
    /// What could not be kept in proportion.
    pub notes: Vec<String>,
}

/// What each container of a pod gets; those without a recommendation stay as they are.
#[must_use]
pub fn resized(
    vpa: &Vpa,
    pod: &Pod,
    capped: &[Capped],
    ranges: &LimitRanges,
) -> BTreeMap<String, Resized> {
    let mut all = BTreeMap::new();
    for container in &pod.containers {
        let mut found = capped.iter().map(|capped| &capped.recommendation);
        let Some(recommendation) = found.find(|one| one.container == container.name) else {
            continue;
        };
        let requests_only = vpa
            .policy(&container.name)
            .is_some_and(|policy| policy.requests_only);
        let mut resized = Resized {
            requests: recommendation.target.clone(),
            ..Resized::default()
        };
        for (resource, request) in recommendation.target.iter().filter(|_| !requests_only) {
            let now = (pod.limits(container), pod.requests(container));
            let default = ranges.container.default.get(resource).copied();
            let limit = proportional_limit(*resource, now, *request, default);
            if let Some((limit, overflows)) = limit {
                resized.limits.insert(*resource, limit);
                if overflows {
                    let name = resource.as_str();
                    let note = format!("{name} limit is the most there is: its proportion is more");
                    resized.notes.push(note);
                }
            }
        }
        if !resized.requests.is_empty() {
            all.insert(container.name.clone(), resized);
        }
    }
    all
}

/// What each container of a pod gets, with what stays as it is: containers without a recommendation, and
/// resources that none is about.
#[must_use]
pub fn completed(
    vpa: &Vpa,
    pod: &Pod,
    capped: &[Capped],
    ranges: &LimitRanges,
) -> BTreeMap<String, Resized> {
    let mut all = resized(vpa, pod, capped, ranges);
    for container in &pod.containers {
        let entry = all.entry(container.name.clone()).or_default();
        // As the pod was told before, whatever its node has made of it.
        fill_in(&mut entry.requests, &container.requests);
        fill_in(&mut entry.limits, &container.limits);
    }
    all
}

fn fill_in(amounts: &mut Resources<Quantity>, from: &Named) {
    for resource in Resource::ALL {
        if let Some(amount) = from.get(resource.as_str()) {
            amounts.entry(resource).or_insert(*amount);
        }
    }
}
