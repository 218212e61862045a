//! The life of a NodeClaim, from the wish to its end: controller `nodeclaim.lifecycle`.
//!
//! *Flow*: finalizer, launch, registration, initialization; and, once it is deleted, deadline,
//! Nodes, machine, finalizer. [`step::next_step`] decides from what the objects say, `perform` does
//! one thing, and the next look starts from what came of it.
//!
//! *Guarantees*: nothing is launched for a claim without our finalizer, and the finalizer stays
//! until the cloud says that the machine is gone.

mod delete;
mod hooks;
mod initialization;
mod launch;
mod launches;
mod perform;
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
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Change, Kind, Snapshot};

pub use delete::{delete, termination_mode};
pub use launch::cut;
pub use launches::Launches;
pub use step::{
    Answer, GiveUp, REGISTRATION_TIMEOUT, StatusWrite, Step, TERMINATION_POLL, conditions,
    grace_period, next_step, terminating, without_finalizer,
};
pub use view::{ClaimView, Terms};

use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// The controllers of this module.
#[must_use]
pub fn controllers() -> Vec<Arc<dyn Controller>> {
    vec![Arc::new(ClaimLifecycle)]
}

/// Steps that are taken in one look; no claim needs as many.
const STEPS_MAX: usize = 12;
/// Conflicts in one look after which it waits: kubelets and others write to a node that boots.
const CONFLICTS_MAX: usize = 3;

/// What a step came to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum After<T> {
    /// Something changed: decide anew.
    Look,
    /// The cloud answered: decide anew, with the answer.
    Answered(T),
    /// That is all for now.
    Rest(Next),
}

/// Looks after NodeClaims.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimLifecycle;

impl ClaimLifecycle {
    async fn look(&self, ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let terms = Terms::of(&*ctx.cloud);
        let (mut asked, mut n_conflicts) = (None, 0);
        for _ in 0..STEPS_MAX {
            let snapshot = ctx.world.snapshot();
            let Some(view) = ClaimView::of(&snapshot, key, terms) else {
                return Ok(Next::Done);
            };
            let step = next_step(&view, asked.as_ref(), ctx.clock.now());
            match perform::perform(ctx, &view, step).await {
                Ok(After::Look) => {}
                Ok(After::Answered(answer)) => asked = Some(answer),
                Ok(After::Rest(next)) => return Ok(next),
                Err(Failure::Api(ApiFailure::Conflict(_))) if n_conflicts < CONFLICTS_MAX => {
                    n_conflicts += 1;
                    refresh(ctx, Kind::NodeClaim, key).await?;
                    for node in &view.nodes {
                        refresh(ctx, Kind::Node, node.name()).await?;
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        // Something undoes what is done here: that must not become a race.
        Err(Failure::Other(format!(
            "the claim is not settled after {STEPS_MAX} steps"
        )))
    }
}

impl Controller for ClaimLifecycle {
    fn name(&self) -> &'static str {
        "nodeclaim.lifecycle"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
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

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key).boxed()
    }
}

/// Reads an object again after somebody else was faster: the watch may take its time.
pub(crate) async fn refresh(ctx: &Ctx, kind: Kind, name: &str) -> Result<(), Failure> {
    if let Some(object) = ctx.api.get(kind, name).await? {
        ctx.world.note(kind, object).await;
    }
    Ok(())
}
