//! NodeClaims: their life, and what is done while they are up: what is worth consolidating, what has
//! drifted, what is too old or lost, and what is smaller than it should be.

mod consistency;
mod disruption;
mod expiration;
mod garbage_collection;
mod hydration;
pub mod lifecycle;
mod pod_events;
pub mod template;

use std::sync::Arc;

use joiner_cloud::Cloud;
use joiner_engine::conditions::Finished;
use joiner_engine::write::{self, Object};
use joiner_engine::{Controller, Failure, Shared, events};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveClaim, Snapshot};

use self::lifecycle::Terms;

/// The controllers of claims, and of the Nodes behind them, except for their life.
#[must_use]
pub fn controllers(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Vec<Controller> {
    vec![
        Controller::keyed(disruption::Disruption::new(shared, cloud)),
        Controller::keyed(expiration::Expiration::new(shared, cloud)),
        Controller::keyed(hydration::ClaimHydration::new(shared, cloud)),
        Controller::keyed(hydration::NodeHydration::new(shared, cloud)),
        Controller::keyed(consistency::Consistency::new(shared, cloud)),
        Controller::keyed(pod_events::PodEvents::new(shared, cloud)),
        Controller::looping(garbage_collection::GarbageCollection::new(shared, cloud)),
    ]
}

/// True when the claim's class is one that the cloud knows.
pub(crate) fn is_managed(cloud: &dyn Cloud, claim: &LiveClaim) -> bool {
    is_on(Terms::of(cloud), claim)
}

/// The same, by what the cloud says of itself.
pub(crate) fn is_on(terms: Terms, claim: &LiveClaim) -> bool {
    let class = &claim.claim.spec.node_class_ref;
    terms.supports(&class.group, &class.kind)
}

/// Writes the conditions of a claim, if they changed.
async fn write_conditions(
    shared: &Shared,
    claim: &LiveClaim,
    finished: Finished,
) -> Result<(), Failure> {
    let object = Object::new(Kind::NodeClaim, events::claim(claim));
    write::conditions(shared, &object, &claim.meta, finished).await
}

/// The claim that changed, if one did.
fn changed_claim(change: &Change) -> Vec<Name> {
    let claim = (change.kind == Kind::NodeClaim).then(|| change.name.clone());
    claim.into_iter().collect()
}

/// All claims.
fn all_claims(now: &Snapshot) -> Vec<Name> {
    now.claims().map(|claim| claim.name().clone()).collect()
}

#[cfg(test)]
mod tests;
