//! The life of a NodeClaim, from the wish to its end: controller `nodeclaim.lifecycle`.
//!
//! *Flow*: finalizer, launch, registration, initialization; and, once it is deleted, deadline,
//! Nodes, machine, finalizer. [`step::next_step`] decides from what the objects say, `apply` does
//! one thing, and the next look starts from what came of it.
//!
//! *Guarantees*: nothing is launched for a claim without our finalizer, and the finalizer stays
//! until the cloud says that the machine is gone.

mod apply;
mod delete;
mod hooks;
mod initialization;
mod launch;
mod launches;

mod registration;
mod step;
mod view;

#[cfg(test)]
pub(crate) mod made;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_cloud::Cloud;
use joiner_engine::{After, Controller, Failure, Keyed, Next, Reconcile, Shared, settle};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, Snapshot};

pub(crate) use delete::report_deadline;
pub use delete::{delete, termination_mode};
pub use launch::cut;
pub use launches::Launches;
pub use step::{
    Answer, ClaimStep, GiveUp, REGISTRATION_TIMEOUT, TERMINATION_POLL, conditions, grace_period,
    next_step, terminating,
};
pub use view::{ClaimView, Terms};

use crate::nodepool::registrations::RegistrationHealth;
use crate::seating::Seating;

/// The controllers of this module.
#[must_use]
pub fn controllers(
    shared: &Shared,
    cloud: &Arc<dyn Cloud>,
    registrations: &RegistrationHealth,
    seating: &Seating,
) -> Vec<Controller> {
    vec![Controller::keyed(Lifecycle {
        shared: shared.clone(),
        cloud: Arc::clone(cloud),
        launches: Launches::default(),
        registrations: registrations.clone(),
        seating: seating.clone(),
    })]
}

/// Looks after NodeClaims.
struct Lifecycle {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    launches: Launches,
    registrations: RegistrationHealth,
    seating: Seating,
}

impl Lifecycle {
    /// Decides about a claim, and does one thing.
    async fn step(&self, key: &Name, answer: Option<Answer>) -> Result<After<Answer>, Failure> {
        let snapshot = self.shared.world.snapshot();
        let Some(view) = ClaimView::of(&snapshot, key, Terms::of(&*self.cloud)) else {
            return Ok(After::Rest(Next::Done));
        };
        let step = next_step(&view, answer.as_ref(), self.shared.clock.now());
        apply::apply(self, &view, step).await
    }
}

impl Keyed for Lifecycle {
    fn name(&self) -> &'static str {
        "nodeclaim.lifecycle"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        match (change.kind, &change.about) {
            (Kind::NodeClaim, _) => vec![change.name.clone()],
            (Kind::Node, Some(id)) => {
                let claims = now.claims_with_id(id);
                claims.map(|claim| claim.name().clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        now.claims().map(|claim| claim.name().clone()).collect()
    }

    /// Most of a launch is waiting for the cloud.
    fn concurrency(&self) -> usize {
        1_000
    }

    /// Claims whose nodes may be opened now.
    fn called(&self) -> BoxFuture<'_, Vec<Name>> {
        self.seating.released().boxed()
    }

    fn reconcile<'a>(&'a self, _: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        settle(move |answer| self.step(key, answer).boxed()).boxed()
    }
}
