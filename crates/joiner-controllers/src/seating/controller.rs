//! Writes what the scheduler is to follow: controller `seating`.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use joiner_api::labels::IN_TURN_TAINT;
use joiner_engine::{Controller, Looping, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, PROPOSED, Snapshot, What, rfc3339};
use serde_json::{Value, json};

use super::{Seating, Write};
use crate::taints;

/// Writes at the same time.
const AT_ONCE: usize = 16;
/// Writes of one decision take at most this long; the next decision has those that are left.
const WRITES_MAX: Duration = Duration::from_secs(10);

/// The controllers of this module.
pub(crate) fn controllers(shared: &Shared, seating: &Seating) -> Vec<Controller> {
    vec![Controller::looping(SeatingController {
        shared: shared.clone(),
        seating: seating.clone(),
    })]
}

/// Writes what the scheduler is to follow.
struct SeatingController {
    shared: Shared,
    seating: Seating,
}

impl SeatingController {
    async fn write(&self, now: &Snapshot, write: Write) {
        let written = match write {
            Write::Propose { pod, uid, node } => {
                let at = rfc3339(self.shared.clock.now());
                self.propose(&pod, &proposal(&node, &uid, &at)).await
            }
            Write::Withdraw { pod, uid } => self.propose(&pod, &withdrawal(&uid)).await,
            Write::Close(node) => self.set_closed(now, &node, true).await,
            Write::Open(node) => self.set_closed(now, &node, false).await,
        };
        // What fails is decided about anew, as long as it is still wanted.
        if let Err((object, error)) = written {
            tracing::debug!(object = &*object, %error, "cannot tell the scheduler yet");
        }
    }

    async fn propose(&self, pod: &Name, patch: &Value) -> Result<(), (Name, String)> {
        let written = self.shared.api.merge_status(Kind::Pod, pod, patch).await;
        let written = written.map(|_| ());
        written.map_err(|error| (pod.clone(), error.to_string()))
    }

    async fn set_closed(
        &self,
        now: &Snapshot,
        name: &Name,
        is_closed: bool,
    ) -> Result<(), (Name, String)> {
        let Some(node) = now.node(name) else {
            return Ok(());
        };
        let taints = match is_closed {
            true => taints::with(node, &IN_TURN_TAINT),
            false => taints::without(node, &IN_TURN_TAINT),
        };
        let patch = taints::patch(node, &taints);
        let written = self.shared.api.patch(Kind::Node, name, &patch).await;
        let written = written.map(|_| ());
        written.map_err(|error| (name.clone(), error.to_string()))
    }
}

impl Looping for SeatingController {
    fn name(&self) -> &'static str {
        "seating"
    }

    fn wakes(&mut self, change: &Change, _: &Snapshot) -> bool {
        let has_appeared = change.kind == Kind::Pod && change.what == What::Appeared;
        has_appeared && self.seating.arrived(&change.name)
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn called(&mut self) -> BoxFuture<'_, ()> {
        self.seating.news.notified().boxed()
    }

    fn pass<'a>(&'a mut self, now: &'a Arc<Snapshot>, at: Timestamp) -> Reconcile<'a> {
        async move {
            let decision = self.seating.decide(now, at);
            let writes = stream::iter(decision.writes);
            let writing = writes.map(|write| self.write(now, write));
            let written = writing.buffer_unordered(AT_ONCE).count();
            tokio::select! {
                biased;
                _ = written => {}
                () = self.shared.clock.sleep(WRITES_MAX) => {}
            }
            let ended = self.shared.clock.now();
            let left = |at: Timestamp| Duration::try_from(at.duration_since(ended));
            let left = decision.next.map(|at| left(at).unwrap_or_default());
            Ok(left.map_or(Next::Done, Next::Again))
        }
        .boxed()
    }
}

/// What is written into the status of a pod to propose a node.
fn proposal(node: &str, uid: &str, at: &str) -> Value {
    json!({"metadata": {"uid": uid}, "status": {
        "nominatedNodeName": node,
        "conditions": [{
            "type": PROPOSED,
            "status": "True",
            "reason": "Planned",
            "message": node,
            "lastTransitionTime": at,
        }],
    }})
}

/// What is written into the status of a pod to take that back.
fn withdrawal(uid: &str) -> Value {
    json!({"metadata": {"uid": uid}, "status": {"nominatedNodeName": null}})
}
