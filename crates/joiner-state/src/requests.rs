//! What a pod really requests, by the rules of Kubernetes.

use joiner_model::{ResourceName, Resources};

use crate::quantity::Quantity;
use crate::wire::Amounts;
use crate::wire::pod::{Container, ContainerResources, ContainerStatus, PodSpec, PodStatus};

/// Exact amounts while they are being added up; few enough for a list.
#[derive(Default, Clone)]
struct Sum<'s>(Vec<(&'s str, Quantity)>);

impl<'s> Sum<'s> {
    fn slot(&mut self, name: &'s str) -> &mut Quantity {
        let found = self.0.iter().position(|(known, _)| *known == name);
        let ix = found.unwrap_or_else(|| {
            self.0.push((name, Quantity::ZERO));
            self.0.len() - 1
        });
        &mut self.0[ix].1
    }

    fn add(&mut self, other: &[(&'s str, Quantity)]) {
        for (name, amount) in other {
            let slot = self.slot(name);
            *slot = slot.plus(*amount);
        }
    }

    fn raise_to(&mut self, other: &[(&'s str, Quantity)]) {
        for (name, amount) in other {
            let slot = self.slot(name);
            *slot = (*slot).max(*amount);
        }
    }
}

/// The effective requests of a pod, with `pods: 1`. Requests of zero are left out. While a
/// container is being resized, the larger of what it asks and what it has been given counts.
pub(crate) fn effective(spec: &PodSpec<'_>, status: Option<&PodStatus<'_>>) -> Resources {
    let started = status.and_then(|s| s.container_statuses.as_deref());
    let before = status.and_then(|s| s.init_container_statuses.as_deref());
    let mut total = running(
        spec,
        |container| of_container(container, started),
        |container| of_container(container, before),
    );
    for (name, amount) in spec.resources.iter().flat_map(requested) {
        *total.slot(name) = amount;
    }
    total.add(&amounts(spec.overhead.as_ref()));
    let mut requests = rounded_up(&total.0);
    requests.set(ResourceName::Pods, 1);
    requests
}

/// The limits of a pod, with `pods: 1`. Overhead counts where there is a limit.
pub(crate) fn limits(spec: &PodSpec<'_>) -> Resources {
    let mut total = running(spec, limits_of, limits_of);
    let whole = spec.resources.as_ref().and_then(|own| own.limits.as_ref());
    for (name, amount) in amounts(whole) {
        *total.slot(name) = amount;
    }
    let overhead = amounts(spec.overhead.as_ref());
    let limited: Vec<&str> = total.0.iter().map(|(name, _)| *name).collect();
    let counted = overhead
        .into_iter()
        .filter(|(name, _)| limited.contains(name));
    total.add(&counted.collect::<Vec<_>>());
    let mut limits = rounded_up(&total.0);
    limits.set(ResourceName::Pods, 1);
    limits
}

/// What one container requests; where it requests nothing, its limit.
pub(crate) fn requested_by(container: &Container<'_>) -> Resources {
    let own = container.resources.iter().flat_map(requested);
    rounded_up(&own.collect::<Vec<_>>())
}

/// The limits of one container.
pub(crate) fn limits_by(container: &Container<'_>) -> Resources {
    rounded_up(&limits_of(container))
}

fn limits_of<'s>(container: &'s Container<'_>) -> Vec<(&'s str, Quantity)> {
    let resources = container.resources.as_ref();
    amounts(resources.and_then(|own| own.limits.as_ref()))
}

/// What the containers of a pod take at most at any time: all that run together, or an init
/// container with the sidecars before it.
fn running<'s, 'w: 's>(
    spec: &'s PodSpec<'w>,
    container: impl Fn(&'s Container<'w>) -> Vec<(&'s str, Quantity)>,
    init_container: impl Fn(&'s Container<'w>) -> Vec<(&'s str, Quantity)>,
) -> Sum<'s> {
    let mut total = Sum::default();
    for own in spec.containers.iter().flatten() {
        total.add(&container(own));
    }
    let (mut sidecars, mut peak) = (Sum::default(), Sum::default());
    for own in spec.init_containers.iter().flatten() {
        let amounts = init_container(own);
        if own.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&amounts);
            peak.raise_to(&sidecars.0);
        } else {
            let mut running = sidecars.clone();
            running.add(&amounts);
            peak.raise_to(&running.0);
        }
    }
    total.add(&sidecars.0);
    total.raise_to(&peak.0);
    total
}

/// Overhead as the model counts it.
pub(crate) fn overhead(amounts_given: &Amounts<'_>) -> Resources {
    rounded_up(&amounts(Some(amounts_given)))
}

/// Amounts that are there, as the model counts them.
pub(crate) fn available(amounts_given: Option<&Amounts<'_>>) -> Resources {
    amounts(amounts_given)
        .into_iter()
        .map(|(name, amount)| {
            let name = ResourceName::parse(name);
            let units = amount.units_down(&name);
            (name, units)
        })
        .collect()
}

fn rounded_up(total: &[(&str, Quantity)]) -> Resources {
    total
        .iter()
        .filter(|(_, amount)| !amount.is_zero())
        .map(|(name, amount)| {
            let name = ResourceName::parse(name);
            let units = amount.units_up(&name);
            (name, units)
        })
        .collect()
}

fn of_container<'s>(
    container: &'s Container<'_>,
    statuses: Option<&'s [ContainerStatus<'_>]>,
) -> Vec<(&'s str, Quantity)> {
    let mut own = Sum(container.resources.iter().flat_map(requested).collect());
    let status = statuses
        .into_iter()
        .flatten()
        .find(|status| status.name.is_some() && status.name == container.name);
    if let Some(status) = status {
        own.raise_to(&amounts(status.allocated_resources.as_ref()));
    }
    own.0
}

/// Requests, and limits of resources that have no request.
fn requested<'s>(
    resources: &'s ContainerResources<'_>,
) -> impl Iterator<Item = (&'s str, Quantity)> {
    let requests = resources.requests.as_ref();
    let limits = resources
        .limits
        .iter()
        .flatten()
        .filter(move |(name, _)| !requests.is_some_and(|r| r.contains_key(name)));
    resources
        .requests
        .iter()
        .flatten()
        .chain(limits)
        .map(|(name, amount)| (&**name, amount.0))
}

fn amounts<'s>(amounts: Option<&'s Amounts<'_>>) -> Vec<(&'s str, Quantity)> {
    amounts
        .into_iter()
        .flatten()
        .map(|(name, amount)| (&**name, amount.0))
        .collect()
}
