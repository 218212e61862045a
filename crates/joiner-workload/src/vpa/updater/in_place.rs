//! Whether a pod may be resized where it runs, and when trying that is given up.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::groups::{Group, is_pending};
use super::settings::UpdaterSettings;
use crate::condition::Truth;
use crate::durations::after;
use crate::quantity::Quantity;
use crate::vpa::amounts::Resources;
use crate::vpa::capping::Capped;
use crate::vpa::pod::{Pod, PodCondition};
use crate::vpa::spec::UpdateMode;

/// How long a node may put a resize off.
const DEFERRED_MAX: SignedDuration = SignedDuration::from_mins(5);
/// How long a resize may take.
const IN_PROGRESS_MAX: SignedDuration = SignedDuration::from_hours(1);

/// What may be done with a pod where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// It may be resized.
    Approved,
    /// Not now.
    Deferred,
    /// It must be evicted instead.
    Evict,
    /// Its node cannot do it; only a smaller size is worth another try.
    Infeasible,
}

/// What is remembered of resizes between rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResizeMemory {
    /// Since when pods are in the middle of a resize.
    pub since: BTreeMap<String, Timestamp>,
    /// Targets of containers that a node could not give a pod.
    pub infeasible: BTreeMap<String, BTreeMap<String, Resources<Quantity>>>,
}

impl ResizeMemory {
    /// Forgets pods that are no more.
    pub fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.since.retain(|pod, _| is_there(pod));
        self.infeasible.retain(|pod, _| is_there(pod));
    }
}

/// What a pod's status says of a resize on its way; one that waits comes first.
fn resize(pod: &Pod) -> Option<&PodCondition> {
    let of = |kind: &str| {
        let mut all = pod.conditions.iter();
        all.find(|condition| condition.kind == kind && condition.status == Truth::True)
    };
    of(PENDING).or_else(|| of("PodResizeInProgress"))
}

const PENDING: &str = "PodResizePending";

/// Whether a pod is in the middle of a resize.
pub(super) fn is_resizing(pod: &Pod) -> bool {
    resize(pod).is_some()
}

/// Whether a resize on its way is given up for an eviction.
pub(super) fn is_given_up(
    pod: &Pod,
    group: &Group,
    memory: &mut ResizeMemory,
    now: Timestamp,
) -> bool {
    let Some(condition) = resize(pod) else {
        return false;
    };
    let since = *memory.since.entry(pod.name.clone()).or_insert(now);
    if !group.is_disruptable() {
        return false;
    }
    let longer_than = |duration| after(since, duration) < now;
    if condition.kind == PENDING {
        return condition.reason != "Deferred" || longer_than(DEFERRED_MAX);
    }
    !condition.reason.is_empty() || longer_than(IN_PROGRESS_MAX)
}

/// What may be done with a pod where it runs; `None` as its group stands for a pod of no group.
pub(super) fn decide(
    pod: &Pod,
    group: Option<&Group>,
    (mode, capped): (UpdateMode, &[Capped]),
    settings: &UpdaterSettings,
    (memory, now): (&mut ResizeMemory, Timestamp),
) -> InPlace {
    let in_place_only = mode == UpdateMode::InPlace;
    let Some(group) = group.filter(|_| settings.in_place || !in_place_only) else {
        return InPlace::Deferred;
    };
    if is_pending(pod) || capped.is_empty() {
        return InPlace::Deferred;
    }
    let tried = memory.infeasible.get(&pod.name).filter(|_| in_place_only);
    let is_lower = tried.is_some_and(|tried| is_any_lower(tried, capped));
    if tried.is_some() && !is_lower {
        return InPlace::Infeasible;
    }
    // What the pod says is about the larger size.
    if let Some(condition) = resize(pod).filter(|_| !is_lower) {
        return if in_place_only {
            match condition.reason.as_str() {
                "Infeasible" | "Error" => InPlace::Infeasible,
                _ => InPlace::Deferred,
            }
        } else if is_given_up(pod, group, memory, now) {
            InPlace::Evict
        } else {
            InPlace::Deferred
        };
    }
    let restarts = pod
        .containers
        .iter()
        .any(|container| !container.restarts_on.is_empty());
    if (settings.skip_budget && !restarts) || group.is_disruptable() {
        InPlace::Approved
    } else {
        InPlace::Deferred
    }
}

/// The targets of containers, to be remembered.
pub(super) fn targets(capped: &[Capped]) -> BTreeMap<String, Resources<Quantity>> {
    let target = |capped: &Capped| {
        let one = &capped.recommendation;
        (one.container.clone(), one.target.clone())
    };
    capped.iter().map(target).collect()
}

fn is_any_lower(tried: &BTreeMap<String, Resources<Quantity>>, capped: &[Capped]) -> bool {
    targets(capped).iter().any(|(container, target)| {
        let old = tried.get(container);
        target.iter().any(|(resource, amount)| {
            old.and_then(|old| old.get(resource))
                .is_some_and(|old| amount < old)
        })
    })
}
