//! Headroom: controller `capacitybuffer`, and the pods that stand for it in a plan.
//!
//! A buffer says of which pods there should be room for how many more. [`resolve`] turns it into a
//! pod and a number, [`virtual_pods`] into pods for the planner, which are never created, and
//! [`report`] tells on the buffer what the plan made of them.

mod outcome;
mod pods;
mod resolve;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use joiner_api::types::{ACTIVE_CAPACITY, Condition};
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Change, Kind, LiveBuffer, Snapshot};
use serde_json::{Value, json};

pub use outcome::{Outcome, Placed, outcomes, report};
pub use pods::virtual_pods;
pub use resolve::{Resolved, Unresolved, resolve};

use crate::conditions::{ConditionSet, Finished, READY};
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// Between two looks when nothing happens.
const EVERY: Duration = Duration::from_secs(30);
/// When to look again after somebody else wrote the same status first.
const AFTER_CONFLICT: Duration = Duration::from_millis(500);
/// Says whether it is known which pods to keep room for.
const READY_FOR_PROVISIONING: &str = "ReadyForProvisioning";
/// Says whether there is room for all of them.
const PROVISIONING: &str = "Provisioning";

/// The controller of buffers.
#[must_use]
pub fn controllers() -> Vec<Arc<dyn Controller>> {
    vec![Arc::new(Buffers)]
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

/// Buffers have no root condition.
fn finished(set: ConditionSet, buffer: &LiveBuffer) -> Finished {
    let mut finished = set.finished();
    finished.conditions.retain(|own| own.type_ != READY);
    finished.transitions.retain(|own| own.kind != READY);
    finished.changed = finished.conditions != conditions(buffer);
    finished
}

/// The status of a buffer after it was resolved; nothing when that is no news.
#[must_use]
pub fn status(
    buffer: &LiveBuffer,
    resolution: &Result<Resolved, Unresolved>,
    now: Timestamp,
) -> Option<Value> {
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
    Some(json!({
        "replicas": wanted.replicas,
        "podTemplateRef": wanted.pod_template_ref,
        "podTemplateGeneration": wanted.pod_template_generation,
        "provisioningStrategy": wanted.provisioning_strategy,
        "conditions": finished.to_value(),
    }))
}

/// Writes the status of a buffer, unless somebody else did since it was read: false.
async fn write(ctx: &Ctx, buffer: &LiveBuffer, status: Value) -> Result<bool, Failure> {
    let patch = json!({
        "metadata": {"resourceVersion": buffer.meta.version.to_string()},
        "status": status,
    });
    let name = &buffer.meta.name;
    match ctx
        .api
        .patch_status(Kind::CapacityBuffer, name, &patch)
        .await
    {
        Ok(_) | Err(ApiFailure::NotFound) => Ok(true),
        Err(ApiFailure::Conflict(_)) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

/// Resolves buffers.
#[derive(Clone, Copy, Debug)]
pub struct Buffers;

impl Buffers {
    async fn look(ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let now = ctx.world.snapshot();
        let Some(buffer) = now.buffer(key) else {
            return Ok(Next::Done);
        };
        if !ctx.settings.gates.capacity_buffer || buffer.meta.deleting.is_some() {
            return Ok(Next::Done);
        }
        let resolution = resolve(&now, buffer);
        let Some(status) = status(buffer, &resolution, ctx.clock.now()) else {
            return Ok(Next::Again(EVERY));
        };
        let written = write(ctx, buffer, status).await?;
        Ok(Next::Again(if written { EVERY } else { AFTER_CONFLICT }))
    }
}

impl Controller for Buffers {
    fn name(&self) -> &'static str {
        "capacitybuffer"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind == Kind::CapacityBuffer {
            return vec![change.name.clone()];
        }
        if !Kind::BUFFERS.contains(&change.kind) {
            return Vec::new();
        }
        let about = now.buffers().filter(|buffer| {
            resolve::target(buffer).is_some_and(|own| own == (change.kind, change.name.clone()))
        });
        about.map(|buffer| buffer.meta.name.clone()).collect()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        now.buffers()
            .map(|buffer| buffer.meta.name.clone())
            .collect()
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        Self::look(ctx, key).boxed()
    }
}

#[cfg(test)]
mod tests;
