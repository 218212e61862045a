//! Looks after claims and nodes that are up: what is worth consolidating, what has drifted, what is
//! too old, lost, unhealthy, or about to be taken away.

mod conditions;
mod consistency;
mod drift;
mod expiration;
mod garbage;
mod hydration;
mod interruption;
mod pod_events;
mod repair;

use std::sync::Arc;

use futures::future::BoxFuture;
use joiner_cloud::Cloud;
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Change, Kind, LiveClaim, Snapshot};
use serde_json::json;

use crate::claim::Terms;
use crate::conditions::Finished;
use crate::context::Ctx;
use crate::engine::Controller;
use crate::observe;
use crate::settings::FeatureGates;

/// Controllers that look at one object at a time.
#[must_use]
pub fn controllers(gates: FeatureGates) -> Vec<Arc<dyn Controller>> {
    let mut all: Vec<Arc<dyn Controller>> = vec![
        Arc::new(conditions::DisruptionConditions::default()),
        Arc::new(expiration::EXPIRATION),
        Arc::new(hydration::OF_CLAIMS),
        Arc::new(hydration::OF_NODES),
        Arc::new(consistency::Consistency),
        Arc::new(pod_events::PodEvents::default()),
    ];
    if gates.node_repair {
        all.push(Arc::new(repair::NodeRepair));
    }
    all
}

/// What runs by itself.
#[must_use]
pub fn streams(ctx: &Ctx) -> Vec<BoxFuture<'static, ()>> {
    vec![
        Box::pin(garbage::run(ctx.clone())),
        Box::pin(interruption::run(ctx.clone())),
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

/// Writes the conditions of a claim, if they changed, and tells of it.
async fn write_conditions(
    ctx: &Ctx,
    claim: &LiveClaim,
    finished: &Finished,
) -> Result<(), ApiFailure> {
    if !finished.changed {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": claim.meta.version.to_string()},
        "status": {"conditions": finished.to_value()},
    });
    let name = claim.name();
    ctx.api.patch_status(Kind::NodeClaim, name, &patch).await?;
    observe::transitions(ctx, &observe::claim(claim), &finished.transitions);
    Ok(())
}

/// The object of a change, if it is of this kind.
fn own(change: &Change, kind: Kind) -> Vec<Name> {
    let own = (change.kind == kind).then(|| change.name.clone());
    own.into_iter().collect()
}

/// All claims.
fn all_claims(now: &Snapshot) -> Vec<Name> {
    now.claims().map(|claim| claim.name().clone()).collect()
}

#[cfg(test)]
mod drift_tests;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod tests;
