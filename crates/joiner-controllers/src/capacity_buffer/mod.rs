//! Headroom: controller `capacitybuffer`, and the pods that stand for it in a plan.
//!
//! A buffer says of which pods there should be room for how many more. [`resolve`] turns it into a
//! pod and a number, [`virtual_pods`] into pods for the planner, which are never created, and
//! [`report`] says on the buffer what the plan made of them.

mod headroom;
mod outcome;
mod pods;
mod resolve;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions::{PROVISIONING, READY, READY_FOR_PROVISIONING};
use joiner_api::types::{ACTIVE_CAPACITY, Condition};
use joiner_engine::conditions::{ConditionSet, Finished};
use joiner_engine::write::{self, Object, StatusWrite};
use joiner_engine::{Controller, Failure, Keyed, Next, Reconcile, Shared, events};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveBuffer, Snapshot};
use serde_json::json;

pub use headroom::Headroom;
pub use outcome::{BufferOutcome, Placed, outcomes, report};
pub use pods::virtual_pods;
pub use resolve::{Resolved, Unresolved, resolve};

/// How often a buffer is resolved when nothing happens.
const EVERY: Duration = Duration::from_secs(30);

/// The controller of buffers.
#[must_use]
pub fn controllers(shared: &Shared) -> Vec<Controller> {
    vec![Controller::keyed(Buffers {
        shared: shared.clone(),
    })]
}

/// The conditions of a buffer.
fn conditions(buffer: &LiveBuffer) -> &[Condition] {
    let status = buffer.buffer.status.as_ref();
    status
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

fn condition_set(buffer: &LiveBuffer, now: Timestamp) -> ConditionSet {
    ConditionSet::new(&buffer.meta, conditions(buffer), &[], now)
}

/// Buffers have no root condition, and there are no events about changes of the others.
fn finished(set: ConditionSet, buffer: &LiveBuffer) -> Finished {
    let mut finished = set.finished();
    finished
        .conditions
        .retain(|condition| condition.type_ != *READY);
    finished.transitions.clear();
    finished.changed = finished.conditions != conditions(buffer);
    finished
}

/// The write of a buffer's status after it was resolved; nothing when that is no news.
#[must_use]
pub fn status(
    buffer: &LiveBuffer,
    resolution: &Result<Resolved, Unresolved>,
    now: Timestamp,
) -> Option<StatusWrite> {
    let mut set = condition_set(buffer, now);
    let known = buffer.buffer.status.clone().unwrap_or_default();
    let mut wanted = known.clone();
    let spec = &buffer.buffer.spec;
    let strategy = spec.provisioning_strategy.as_deref();
    wanted.provisioning_strategy = Some(strategy.unwrap_or(ACTIVE_CAPACITY).to_owned());
    match resolution {
        Ok(resolved) => {
            set.set_true_for(
                READY_FOR_PROVISIONING,
                "Resolved",
                "the pod template is known",
            );
            wanted.replicas = Some(resolved.replicas);
            wanted.pod_template_ref = spec.pod_template_ref.clone();
            wanted.pod_template_generation = resolved.template_generation;
            if resolved.replicas == 0 {
                let message = "the buffer asks for no pods";
                set.set_false(PROVISIONING, "BufferEmpty", message);
            }
        }
        Err(why) => {
            set.set_false(READY_FOR_PROVISIONING, why.reason(), &why.to_string());
            let message = "it is not known which pods to keep room for";
            set.set_false(PROVISIONING, "NotReadyForProvisioning", message);
        }
    }
    let finished = finished(set, buffer);
    if wanted == known && !finished.changed {
        return None;
    }
    let fields = json!({
        "replicas": wanted.replicas,
        "podTemplateRef": wanted.pod_template_ref,
        "podTemplateGeneration": wanted.pod_template_generation,
        "provisioningStrategy": wanted.provisioning_strategy,
    });
    Some(StatusWrite::new(&buffer.meta, finished, fields))
}

/// Writes the status of a buffer, unless it is gone.
async fn write(shared: &Shared, buffer: &LiveBuffer, status: &StatusWrite) -> Result<(), Failure> {
    let about = events::about(
        "CapacityBuffer",
        "autoscaling.x-k8s.io/v1beta1",
        &buffer.meta,
    );
    let object = Object::new(Kind::CapacityBuffer, about);
    let written = write::status(shared, &object, status).await;
    write::unless_gone(written).map(|_| ())
}

/// Buffers that a change concerns.
fn concerned(change: &Change, now: &Snapshot) -> Vec<Name> {
    if change.kind == Kind::CapacityBuffer {
        return vec![change.name.clone()];
    }
    if !Kind::BUFFERS.contains(&change.kind) {
        return Vec::new();
    }
    let about = now.buffers().filter(|buffer| {
        let target = resolve::target(buffer);
        target.is_some_and(|target| target == (change.kind, change.name.clone()))
    });
    about.map(|buffer| buffer.meta.name.clone()).collect()
}

/// Resolves buffers.
struct Buffers {
    shared: Shared,
}

impl Buffers {
    async fn resolve(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(buffer) = now.buffer(key) else {
            return Ok(Next::Done);
        };
        if buffer.meta.deleting.is_some() {
            return Ok(Next::Done);
        }
        let resolution = resolve(now, buffer);
        if let Some(status) = status(buffer, &resolution, self.shared.clock.now()) {
            write(&self.shared, buffer, &status).await?;
        }
        Ok(Next::Again(EVERY))
    }
}

impl Keyed for Buffers {
    fn name(&self) -> &'static str {
        "capacitybuffer"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        concerned(change, now)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        now.buffers()
            .map(|buffer| buffer.meta.name.clone())
            .collect()
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.resolve(now, key).boxed()
    }
}

#[cfg(test)]
mod tests;
