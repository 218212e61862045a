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
    let mut total = Sum::default();
    let statuses = status.and_then(|s| s.container_statuses.as_deref());
    for container in spec.containers.iter().flatten() {
        total.add(&of_container(container, statuses));
    }
    let statuses = status.and_then(|s| s.init_container_statuses.as_deref());
    let (mut sidecars, mut peak) = (Sum::default(), Sum::default());
    for container in spec.init_containers.iter().flatten() {
        let own = of_container(container, statuses);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&own);
            peak.raise_to(&sidecars.0);
        } else {
            let mut running = sidecars.clone();
            running.add(&own);
            peak.raise_to(&running.0);
        }
    }
    total.add(&sidecars.0);
    total.raise_to(&peak.0);
    for (name, amount) in spec.resources.iter().flat_map(requested) {
        *total.slot(name) = amount;
    }
    total.add(&amounts(spec.overhead.as_ref()));
    let mut requests = rounded_up(&total.0);
    requests.set(ResourceName::Pods, 1);
    requests
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
