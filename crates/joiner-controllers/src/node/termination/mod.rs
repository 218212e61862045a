//! The end of a Node: controller `node.termination`.
//!
//! *Flow*: claim, taint, drain, volumes, machine, finalizer. [`step::next_step`] decides from what
//! the objects say; the drain itself is the work of the [`EvictionQueue`]. Single replicas can be
//! given a successor first (`surge`).
//!
//! *Guarantees*: the finalizer stays until nobody waits for a pod of the node and the cloud says
//! that the machine is gone, or until the machine is known to be gone.

mod apply;
mod book;
mod drain;
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
use joiner_cloud::Cloud;
use joiner_engine::{After, Controller, Failure, Keyed, Next, Reconcile, Shared, settle};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, Snapshot};

pub use drain::{Drain, Evictee, drain, is_waited_for};
pub use queue::EvictionQueue;
pub(crate) use queue::report_invalid;
pub use step::{Answers, NodeStep, deadline, next_step};
pub use surge::SURGE_ON_MOVE;
pub use view::NodeView;

use crate::nodeclaim::lifecycle::Terms;
use crate::seating::Seating;

/// The controllers of this module.
#[must_use]
pub fn controllers(shared: &Shared, cloud: &Arc<dyn Cloud>, seating: &Seating) -> Vec<Controller> {
    let queue = EvictionQueue::default();
    let termination = NodeTermination {
        shared: shared.clone(),
        cloud: Arc::clone(cloud),
        queue: queue.clone(),
    };
    vec![
        Controller::keyed(termination),
        queue::controller(shared, queue, seating),
        surge::controller(shared),
    ]
}

/// Looks after Nodes that are to go; their pods leave through the queue.
struct NodeTermination {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    queue: EvictionQueue,
}

impl NodeTermination {
    /// Decides about a node, and does one thing.
    async fn step(&self, key: &Name, answers: Option<Answers>) -> Result<After<Answers>, Failure> {
        let terms = Terms::of(&*self.cloud);
        let answers = answers.unwrap_or_default();
        let snapshot = self.shared.world.snapshot();
        let now = self.shared.clock.now();
        let Some(view) = NodeView::of(&snapshot, key, &terms, now) else {
            return Ok(After::Rest(Next::Done));
        };
        let step = next_step(&view, answers, now);
        apply::apply(self, &view, answers, step).await
    }
}

/// A node that this controller has something to do with.
fn is_going(now: &Snapshot, node: &str) -> bool {
    now.node(node)
        .is_some_and(|node| node.meta.deleting.is_some())
}

impl Keyed for NodeTermination {
    fn name(&self) -> &'static str {
        "node.termination"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
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

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, _: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        settle(move |answers| self.step(key, answers).boxed()).boxed()
    }
}
