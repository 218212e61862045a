//! The end of a Node: controller `node.termination`.
//!
//! *Flow*: claim, taint, drain, volumes, machine, finalizer. [`step::next_step`] decides from what
//! the objects say; the drain itself is the work of the [`EvictionQueue`]. Single replicas can be
//! given a successor first (`surge`).
//!
//! *Guarantees*: the finalizer stays until nobody waits for a pod of the node and the cloud says
//! that the machine is gone, or until the machine is known to be gone.

mod book;
mod drain;
mod perform;
mod queue;
mod step;
mod surge;
mod view;

#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod queue_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Change, Kind, Snapshot};

pub use drain::{Drain, Evictee, drain, is_waited_for};
pub use queue::EvictionQueue;
pub(crate) use queue::tell_invalid;
pub use step::{Asked, Step, deadline, next_step};
pub use surge::SURGE_ON_MOVE;
pub use view::NodeView;

use crate::claim::{After, Terms, refresh};
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// The controllers of this module.
#[must_use]
pub fn controllers(_: &Ctx) -> Vec<Arc<dyn Controller>> {
    let queue = EvictionQueue::default();
    vec![
        Arc::new(NodeTermination::new(queue.clone())),
        Arc::new(queue),
        Arc::new(surge::Surges),
    ]
}

/// Steps that are taken in one look; no node needs as many.
const STEPS_MAX: usize = 12;

/// Looks after Nodes that are to go.
#[derive(Clone, Debug, Default)]
pub struct NodeTermination {
    queue: EvictionQueue,
}

impl NodeTermination {
    /// Looks after Nodes that are to go; their pods leave through `queue`.
    #[must_use]
    pub fn new(queue: EvictionQueue) -> Self {
        Self { queue }
    }

    async fn look(&self, ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let terms = Terms::of(&*ctx.cloud);
        let (mut asked, mut refreshed) = (Asked::default(), false);
        for _ in 0..STEPS_MAX {
            let snapshot = ctx.world.snapshot();
            let now = ctx.clock.now();
            let Some(view) = NodeView::of(&snapshot, key, &terms, now) else {
                return Ok(Next::Done);
            };
            let step = next_step(&view, asked, now);
            match perform::perform(ctx, &self.queue, &view, asked, step).await {
                Ok(After::Look) => {}
                Ok(After::Answered(answers)) => asked = answers,
                Ok(After::Rest(next)) => return Ok(next),
                Err(Failure::Api(ApiFailure::Conflict(_))) if !refreshed => {
                    refreshed = true;
                    refresh(ctx, Kind::Node, key).await?;
                    if let Some(claim) = view.claim {
                        refresh(ctx, Kind::NodeClaim, claim.name()).await?;
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
        // Something undoes what is done here: that must not become a race.
        Err(Failure::Other(format!(
            "the node is not settled after {STEPS_MAX} steps"
        )))
    }
}

/// A node that this controller has something to do with.
fn is_going(now: &Snapshot, node: &str) -> bool {
    now.node(node)
        .is_some_and(|node| node.meta.deleting.is_some())
}

impl Controller for NodeTermination {
    fn name(&self) -> &'static str {
        "node.termination"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        let nodes: Vec<Name> = match (change.kind, &change.about) {
            (Kind::Node, _) => vec![change.name.clone()],
            (Kind::NodeClaim, Some(id)) => {
                let nodes = now.nodes_with_id(id);
                nodes.map(|node| node.name().clone()).collect()
            }
            (Kind::Pod | Kind::VolumeAttachment, Some(node)) => vec![node.clone()],
            _ => Vec::new(),
        };
        let going = nodes.into_iter().filter(|node| is_going(now, node));
        going.collect()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let going = now.nodes().filter(|node| node.meta.deleting.is_some());
        going.map(|node| node.name().clone()).collect()
    }

    fn concurrency(&self) -> usize {
        100
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key).boxed()
    }
}
