//! NodePools with a fixed number of nodes: controllers `static.provisioning` and
//! `static.deprovisioning`.
//!
//! *Guarantees*: a pool never has more claims than `limits.nodes`, whatever crashed and whatever else
//! makes claims for it. Claims are called by the pool and a place in it, the first that is free, so
//! that a try whose end was not seen is repeated under the same name.

mod deprovisioning;
mod provisioning;
mod reservations;

use std::sync::Arc;

use joiner_api::conditions as condition;
use joiner_api::labels::DISRUPTED_TAINT;
use joiner_cloud::Cloud;
use joiner_engine::{Controller, Shared};
use joiner_model::{Name, ResourceName};
use joiner_runtime::World;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LivePool, Snapshot};
use joiner_state::quantity::Quantity;

pub use deprovisioning::excess;
pub use provisioning::{missing, new_claims};
pub use reservations::{Reservations, Reserved};

use self::deprovisioning::StaticDeprovisioning;
use self::provisioning::StaticProvisioning;

/// Requests of one reconcile that are sent at the same time.
const AT_ONCE: usize = 10;
/// Claims that one reconcile makes or deletes at most; the next one goes on.
const CLAIMS_MAX: u64 = 100;

/// The controllers of static pools. `rooms` are shared with all that make claims for static pools.
#[must_use]
pub fn controllers(
    shared: &Shared,
    rooms: &Reservations,
    cloud: &Arc<dyn Cloud>,
) -> Vec<Controller> {
    vec![
        Controller::keyed(StaticProvisioning::new(shared, rooms, cloud)),
        Controller::keyed(StaticDeprovisioning::new(shared, cloud)),
    ]
}

/// Claims of a pool by what is happening to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Here to stay.
    pub running: u64,
    /// On their way out.
    pub deleting: u64,
    /// To be replaced; still here.
    pub pending: u64,
}

impl Counts {
    /// Those of a pool.
    #[must_use]
    pub fn of(now: &Snapshot, pool: &str) -> Self {
        let mut counts = Self::default();
        for claim in now.claims_of_pool(pool) {
            if claim.meta.deleting.is_some() {
                counts.deleting += 1;
            } else if is_pending(now, claim) {
                counts.pending += 1;
            } else {
                counts.running += 1;
            }
        }
        counts
    }

    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.running + self.deleting + self.pending
    }
}

/// Whether a claim is to be replaced. Its node is tainted before the replacement is made, and the
/// condition is set after that: either says so, else the replacement would be one too many.
fn is_pending(now: &Snapshot, claim: &LiveClaim) -> bool {
    let node = now.node_of(claim);
    claim.is_true(&condition::DISRUPTION_REASON)
        || node.is_some_and(|node| node.has_taint(&DISRUPTED_TAINT))
}

/// Room for one more node of a static pool, held until this is dropped. None when its limit is reached.
#[must_use]
pub fn room_for_one(world: &World, rooms: &Reservations, pool: &LivePool) -> Option<Reserved> {
    let count = || (Counts::of(&world.snapshot(), pool.name()), 1);
    let room = rooms.reserve(pool.name(), limit(pool), count);
    (room.granted() == 1).then_some(room)
}

/// How many nodes a pool asks for; none for a pool that follows the pods.
fn replicas(pool: &LivePool) -> Option<u64> {
    let replicas = pool.pool.spec.replicas?;
    Some(u64::try_from(replicas).unwrap_or(0))
}

/// How many nodes a pool may have, surge included. A limit that cannot be read allows none.
fn limit(pool: &LivePool) -> Option<u64> {
    let nodes = "nodes";
    let text = pool.pool.spec.limits.as_ref()?.get(nodes)?;
    let amount = Quantity::parse(text.as_str()).unwrap_or_default();
    Some(amount.units_down(&ResourceName::parse(nodes)))
}

fn names(now: &Snapshot) -> Vec<Name> {
    let pools = now.pools().filter(|pool| !pool.is_dynamic());
    pools.map(|pool| pool.name().clone()).collect()
}

/// Static pools that a change concerns.
fn concerned(change: &Change, now: &Snapshot) -> Vec<Name> {
    let named = if change.kind == Kind::NodeClaim {
        match now.claim(&change.name) {
            Some(claim) => claim.pool(),
            // It is gone, and with it the name of its pool.
            None => return names(now),
        }
    } else {
        (change.kind == Kind::NodePool).then_some(&*change.name)
    };
    let pool = named.and_then(|name| now.pool(name));
    let pool = pool.filter(|pool| !pool.is_dynamic());
    pool.map(|pool| pool.name().clone()).into_iter().collect()
}
