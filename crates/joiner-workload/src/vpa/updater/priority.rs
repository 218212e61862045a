//! Which pods are worth an update, and which first.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::settings::UpdaterSettings;
use crate::durations::after;
use crate::vpa::amounts::{Resource, Resources};
use crate::vpa::capping::{Capped, capped};
use crate::vpa::limits::LimitRanges;
use crate::vpa::oom::OOM_KILLED;
use crate::vpa::pod::{Pod, PodContainer};
use crate::vpa::spec::{Requirement, Vpa};

/// The annotation with the containers that were looked at when the pod was made.
const OBSERVED: &str = "vpaObservedContainers";

/// How much a pod is off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Priority {
    /// Whether a container requests less than its target, or nothing.
    pub grows: bool,
    /// Whether a container requests what is out of its bounds, or nothing.
    pub is_outside: bool,
    /// By how much requests differ from targets, in parts of the requests, over all resources.
    pub difference: f64,
}

/// A pod that is worth an update.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted<'p> {
    /// The pod.
    pub pod: &'p Pod,
    /// How much it is off.
    pub priority: Priority,
    /// What it should request.
    pub capped: Vec<Capped>,
    /// Why it is updated, in words for people.
    pub because: &'static str,
}

/// Pods that are worth an update and that the VPA's requirements let go, the most urgent first.
#[must_use]
pub(super) fn in_order<'p>(
    vpa: &Vpa,
    pods: impl IntoIterator<Item = &'p Pod>,
    ranges: &LimitRanges,
    settings: &UpdaterSettings,
    now: Timestamp,
) -> Vec<Accepted<'p>> {
    let mut accepted = Vec::new();
    for pod in pods {
        let capped = capped(vpa, pod, ranges);
        let priority = priority(pod, &capped);
        let reason = reason(vpa, pod, priority, settings, now);
        if let Some(because) = reason.filter(|_| admits(&vpa.requirements, pod, &capped)) {
            accepted.push(Accepted {
                pod,
                priority,
                capped,
                because,
            });
        }
    }
    accepted.sort_by(|a, b| {
        let (a, b) = (a.priority, b.priority);
        b.grows
            .cmp(&a.grows)
            .then(b.difference.total_cmp(&a.difference))
    });
    accepted
}

/// The containers that were looked at when the pod was made; `None` for all.
fn observed(pod: &Pod) -> Option<Vec<&str>> {
    let text = pod.annotations.get(OBSERVED)?;
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let is_name = |name: &&str| {
        let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends = name.starts_with('-') || name.ends_with('-');
        !name.is_empty() && name.len() <= 63 && !ends && name.chars().all(fine)
    };
    names.iter().all(is_name).then_some(names)
}

fn priority(pod: &Pod, capped: &[Capped]) -> Priority {
    let observed = observed(pod);
    let mut priority = Priority::default();
    let mut sums: Resources<(i64, i64)> = BTreeMap::new();
    for container in &pod.containers {
        if observed
            .as_ref()
            .is_some_and(|names| !names.contains(&container.name.as_str()))
        {
            continue;
        }
        let Some(recommendation) = of(capped, container) else {
            continue;
        };
        let requests = pod.requests(container);
        for (resource, target) in &recommendation.target {
            let sum = sums.entry(*resource).or_default();
            sum.1 = sum.1.wrapping_add(target.millis());
            let Some(request) = requests.get(resource.as_str()) else {
                priority.grows = true;
                priority.is_outside = true;
                continue;
            };
            sum.0 = sum.0.wrapping_add(request.millis());
            priority.grows |= target.millis() > request.millis();
            let below = recommendation
                .lower
                .get(resource)
                .is_some_and(|lower| request < lower);
            let above = recommendation
                .upper
                .get(resource)
                .is_some_and(|upper| request > upper);
            priority.is_outside |= below || above;
        }
    }
    for (requested, wanted) in sums.values() {
        let requested = (*requested as f64).max(1.0);
        priority.difference += (requested - *wanted as f64).abs() / requested;
    }
    priority
}

fn of<'c>(
    capped: &'c [Capped],
    container: &PodContainer,
) -> Option<&'c crate::vpa::spec::ContainerRecommendation> {
    let mut all = capped.iter().map(|capped| &capped.recommendation);
    all.find(|one| one.container == container.name)
}

/// Why a pod is worth an update, if it is.
fn reason(
    vpa: &Vpa,
    pod: &Pod,
    priority: Priority,
    settings: &UpdaterSettings,
    now: Timestamp,
) -> Option<&'static str> {
    let ran_out = ran_out_quickly(vpa, pod, settings);
    // Memory that ran out is no reason where nothing would change.
    if ran_out && priority.difference == 0.0 {
        return None;
    }
    if priority.is_outside {
        return Some("a request is out of its bounds");
    }
    if ran_out {
        return Some("memory ran out soon after a start");
    }
    let lived = pod
        .started
        .is_some_and(|s| now >= after(s, settings.lifetime_threshold));
    let is_off = priority.difference >= settings.update_threshold;
    (lived && is_off).then_some("it is old, and its requests are off")
}

/// Whether memory ran out of a container soon after it was started.
fn ran_out_quickly(vpa: &Vpa, pod: &Pod, settings: &UpdaterSettings) -> bool {
    let mine = vpa.evict_after_oom.filter(|_| settings.per_vpa);
    let threshold = mine.unwrap_or(settings.evict_after_oom);
    let observed = observed(pod);
    pod.statuses.iter().any(|status| {
        let is_on = !vpa.policy(&status.name).is_some_and(|policy| policy.is_off);
        let is_seen = observed
            .as_ref()
            .is_none_or(|names| names.contains(&status.name.as_str()));
        let ended = status
            .last
            .as_ref()
            .filter(|ended| ended.reason == OOM_KILLED);
        let lived = ended.map(|ended| match (ended.started, ended.finished) {
            (Some(started), Some(finished)) => finished.duration_since(started),
            (Some(_), None) => SignedDuration::MIN,
            (None, Some(_)) => SignedDuration::MAX,
            (None, None) => SignedDuration::ZERO,
        });
        is_on && is_seen && lived.is_some_and(|lived| lived < threshold)
    })
}

/// Whether the requirements of a VPA let a pod go.
fn admits(requirements: &[Requirement], pod: &Pod, capped: &[Capped]) -> bool {
    if requirements.is_empty() {
        return true;
    }
    pod.containers.iter().any(|container| {
        let Some(recommendation) = of(capped, container) else {
            return false;
        };
        let requests = pod.requests(container);
        if Resource::ALL
            .iter()
            .any(|resource| !requests.contains_key(resource.as_str()))
        {
            return true;
        }
        let moves = |requirement: &Requirement, name: &String| {
            // What is not recommended counts as nothing.
            let zero = Resource::Cpu.quantity(0);
            let target = Resource::of(name).and_then(|r| recommendation.target.get(&r));
            let (target, request) = (target.unwrap_or(&zero), requests.get(name));
            let request = request.unwrap_or(&zero);
            if requirement.higher {
                target > request
            } else {
                target < request
            }
        };
        let holds = |requirement: &Requirement| {
            requirement
                .resources
                .iter()
                .any(|name| moves(requirement, name))
        };
        requirements.iter().all(holds)
    })
}
