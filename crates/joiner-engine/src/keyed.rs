//! Runs a controller that looks at one object at a time.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use joiner_model::Name;
use joiner_runtime::metric_names::{QUEUE_DEPTH, RECONCILES_ACTIVE, RECONCILES_MAX};
use joiner_state::live::Change;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::controller::{Failure, Keyed, Next, Shared};
use crate::queue::Queue;
use crate::span;

/// Runs until its future is dropped.
pub(crate) async fn run(
    controller: Arc<dyn Keyed>,
    shared: Shared,
    mut changes: Receiver<Arc<[Change]>>,
) {
    let mut queue = Queue::default();
    for key in controller.all(&shared.world.snapshot()) {
        queue.add(key);
    }
    let mut running = FuturesUnordered::new();
    let n_max = controller.concurrency();
    let name = controller.name();
    let labels = [("controller", name)];
    shared.metrics.gauge(RECONCILES_MAX, &labels, number(n_max));
    loop {
        queue.ripen(shared.clock.now());
        while running.len() < n_max
            && let Some(key) = queue.take()
        {
            running.push(reconcile(Arc::clone(&controller), shared.clone(), key));
        }
        let n_running = number(running.len());
        shared.metrics.gauge(RECONCILES_ACTIVE, &labels, n_running);
        let names = [("name", name), ("controller", name)];
        let n_due = number(queue.n_due());
        shared.metrics.gauge(QUEUE_DEPTH, &names, n_due);
        let until = queue.next_time().unwrap_or(Timestamp::MAX);
        let is_full = running.len() >= n_max;
        tokio::select! {
            biased;
            Some((key, result)) = running.next(), if !running.is_empty() => {
                queue.done(key, &result, shared.clock.now());
            }
            change = changes.recv() => match change {
                Ok(changes) => {
                    let now = shared.world.snapshot();
                    for change in changes.iter() {
                        for key in controller.keys(change, &now) {
                            queue.add(key);
                        }
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    for key in controller.all(&shared.world.snapshot()) {
                        queue.add(key);
                    }
                }
                Err(RecvError::Closed) => return,
            },
            keys = controller.called() => {
                for key in keys {
                    queue.add(key);
                }
            }
            () = shared.clock.sleep_until(until), if !is_full && until < Timestamp::MAX => {}
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of keys are small")]
fn number(n: usize) -> f64 {
    n as f64
}

async fn reconcile(
    controller: Arc<dyn Keyed>,
    shared: Shared,
    key: Name,
) -> (Name, Result<Next, Failure>) {
    let now = shared.world.snapshot();
    let reconciling = controller.reconcile(&now, &key);
    let result = span::measured(&shared, controller.name(), &key, reconciling).await;
    (key, result)
}
