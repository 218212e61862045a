//! NodePools: their hash, their size, and whether nodes can be made for them.
//!
//! Each controller answers one question about a pool and writes the answer onto it; what a pool is
//! told to do is done elsewhere.

mod counter;
mod hash;
mod readiness;
mod registration_health;
pub mod registrations;
mod validation;

#[cfg(test)]
pub(crate) mod made;

use std::sync::Arc;

use joiner_api::types::Condition;
use joiner_cloud::Cloud;
use joiner_engine::conditions::Finished;
use joiner_engine::write::{self, Object, StatusWrite};
use joiner_engine::{Controller, Failure, Shared, events};
use joiner_model::Name;
use joiner_state::NodeClassRef;
use joiner_state::live::{Change, Kind, LiveClass, LivePool, Snapshot};
use serde_json::Value;

use self::registrations::RegistrationHealth;

pub use counter::usage;
pub use hash::{Stamps, stamps};
pub use readiness::{Silence, readiness};
pub use registration_health::{Memory, RegistrationReport, registration};
pub use validation::validation;

/// The controllers of NodePools.
#[must_use]
pub fn controllers(
    shared: &Shared,
    cloud: &Arc<dyn Cloud>,
    registrations: &RegistrationHealth,
) -> Vec<Controller> {
    vec![
        Controller::keyed(hash::Hash::new(shared, cloud)),
        Controller::keyed(counter::Counter::new(shared, cloud)),
        Controller::keyed(readiness::Readiness::new(shared, cloud)),
        Controller::keyed(validation::Validation::new(shared, cloud)),
        Controller::keyed(registration_health::Registration::new(
            shared,
            cloud,
            registrations,
        )),
    ]
}

/// True when the cloud knows the kind of class; pools of other kinds are another autoscaler's.
#[must_use]
pub fn is_managed(cloud: &dyn Cloud, class: &NodeClassRef) -> bool {
    let is_kind =
        |kind: &joiner_cloud::ClassKind| kind.group == &*class.group && kind.kind == &*class.kind;
    cloud.classes().iter().any(is_kind)
}

/// A pool that is there and managed.
fn managed<'s>(cloud: &dyn Cloud, now: &'s Snapshot, name: &str) -> Option<&'s Arc<LivePool>> {
    now.pool(name).filter(|pool| is_managed(cloud, &pool.class))
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
    let pool = (change.kind == Kind::NodePool).then(|| change.name.clone());
    pool.into_iter().collect()
}

/// The conditions of a pool.
fn conditions(pool: &LivePool) -> &[Condition] {
    let status = pool.pool.status.as_ref();
    status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

/// Writes conditions, and `fields` of the status with them, unless the pool is gone.
async fn write_status(
    shared: &Shared,
    pool: &LivePool,
    finished: Finished,
    fields: Value,
) -> Result<(), Failure> {
    let object = Object::new(Kind::NodePool, events::pool(pool));
    let status = StatusWrite::new(&pool.meta, finished, fields);
    let written = write::status(shared, &object, &status).await;
    write::unless_gone(written).map(|_| ())
}
