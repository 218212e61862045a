//! NodePools: their hash, their size, and whether nodes can be made for them.
//!
//! Each controller answers one question about a pool and writes the answer onto it; what a pool is
//! told to do is done elsewhere.

mod counter;
mod hash;
mod readiness;
mod registration_health;
mod validation;

#[cfg(test)]
pub(crate) mod made;

use std::sync::Arc;
use std::time::Duration;

use joiner_api::types::Condition;
use joiner_cloud::Cloud;
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::NodeClassRef;
use joiner_state::live::{Change, Kind, LiveClass, LivePool, Snapshot};
use serde_json::{Value, json};

pub use counter::usage;
pub use hash::{Stamps, stamps};
pub use readiness::{Silence, readiness};
pub use registration_health::{Registration, Verdict, registration};
pub use validation::validation;

use crate::conditions::Finished;
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;
use crate::observe;

/// When to look again after somebody else wrote the same status first.
const AFTER_CONFLICT: Duration = Duration::from_millis(500);

/// The controllers of NodePools.
#[must_use]
pub fn controllers() -> Vec<Arc<dyn Controller>> {
    vec![
        Arc::new(hash::HASH),
        Arc::new(counter::COUNTER),
        Arc::new(readiness::READINESS),
        Arc::new(validation::VALIDATION),
        Arc::new(Registration),
    ]
}

/// True when the cloud knows the kind of class; pools of others belong to somebody else.
#[must_use]
pub fn is_managed(cloud: &dyn Cloud, class: &NodeClassRef) -> bool {
    let same =
        |own: &joiner_cloud::ClassKind| own.group == &*class.group && own.kind == &*class.kind;
    cloud.classes().iter().any(same)
}

/// A pool that is there and ours.
fn managed<'s>(ctx: &Ctx, now: &'s Snapshot, name: &str) -> Option<&'s Arc<LivePool>> {
    now.pool(name)
        .filter(|pool| is_managed(&*ctx.cloud, &pool.class))
}

fn names(now: &Snapshot) -> Vec<Name> {
    now.pools().map(|pool| pool.name().clone()).collect()
}

/// Pools that a change of a pool or of a class concerns.
fn of_pool_or_class(change: &Change, now: &Snapshot) -> Vec<Name> {
    if change.kind == Kind::NodeClass {
        let pools = now.pools();
        let of_class = pools.filter(|pool| LiveClass::key(&pool.class) == change.name);
        return of_class.map(|pool| pool.name().clone()).collect();
    }
    of_pool(change)
}

/// The pool that changed, if one did.
fn of_pool(change: &Change) -> Vec<Name> {
    let own = (change.kind == Kind::NodePool).then(|| change.name.clone());
    own.into_iter().collect()
}

/// The conditions of a pool.
fn conditions(pool: &LivePool) -> &[Condition] {
    let status = pool.pool.status.as_ref();
    status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

/// Writes conditions, and more fields of the status with them, if they say something new. The list
/// is written as a whole, so nobody may have changed it since it was read.
async fn write(
    ctx: &Ctx,
    pool: &LivePool,
    finished: &Finished,
    more: Value,
) -> Result<Next, Failure> {
    let mut status = more;
    status["conditions"] = finished.to_value();
    let patch = json!({
        "metadata": {"resourceVersion": pool.meta.version.to_string()},
        "status": status,
    });
    let written = ctx.api.patch_status(Kind::NodePool, pool.name(), &patch);
    match written.await {
        Ok(_) => {
            observe::transitions(ctx, &observe::pool(pool), &finished.transitions);
            Ok(Next::Done)
        }
        // Several controllers write conditions of the same pool.
        Err(ApiFailure::Conflict(_)) => Ok(Next::Again(AFTER_CONFLICT)),
        Err(ApiFailure::NotFound) => Ok(Next::Done),
        Err(failure) => Err(failure.into()),
    }
}
