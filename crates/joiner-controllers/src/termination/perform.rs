//! Does what was decided about a Node that is to go.

use joiner_api::labels::{CAPACITY_TYPE, DISRUPTED_TAINT, INSTANCE_TYPE, ZONE};
use joiner_api::types::ConditionStatus;
use joiner_runtime::metric_names::{
    NODES_DRAINED, NODES_LIFETIME_DURATION, NODES_TERMINATED, NODES_TERMINATION_DURATION,
};
use joiner_runtime::{ApiFailure, Delete};
use joiner_state::live::{Kind, LiveClaim, LiveNode, rfc3339};
use serde_json::Value;

use super::queue::EvictionQueue;
use super::step::{Asked, DRAIN_POLL, Step, awaiting, deadline};
use super::view::NodeView;
use crate::claim::{After, StatusWrite};
use crate::context::{Ctx, Failure, Next};
use crate::observe;

/// Does one thing.
pub(super) async fn perform(
    ctx: &Ctx,
    queue: &EvictionQueue,
    view: &NodeView<'_>,
    asked: Asked,
    step: Step,
) -> Result<After<Asked>, Failure> {
    let node = view.node;
    if ctx.api.is_dry_run() {
        return Ok(After::Rest(Next::Done));
    }
    match step {
        Step::Wait(None) => Ok(After::Rest(Next::Done)),
        Step::Wait(Some(wait)) => Ok(After::Rest(Next::Again(wait))),
        Step::DeleteClaim => {
            if let Some(claim) = view.claim {
                delete_claim(ctx, claim).await?;
            }
            // The deletion brings the next look.
            Ok(After::Rest(Next::Again(DRAIN_POLL)))
        }
        Step::AskMachine(id) => {
            let machine = ctx.cloud.instance(&id).await?.is_some();
            Ok(After::Answered(Asked {
                machine: Some(machine),
                ..asked
            }))
        }
        Step::BadDeadline(why) => Err(Failure::Other(why)),
        Step::Taint(patch) => {
            ctx.api.patch(Kind::Node, node.name(), &patch).await?;
            if !node.has_taint(&DISRUPTED_TAINT) {
                log(view, "tainted node");
            }
            tell_deadline(ctx, view);
            Ok(After::Look)
        }
        Step::Write(write) => {
            if let Some(claim) = view.claim {
                self::write(ctx, claim, *write).await?;
            }
            Ok(After::Look)
        }
        Step::Drain(drain) => {
            tell_deadline(ctx, view);
            let n = drain.n_waiting;
            let message = format!("Failed to drain node, {n} pods are waiting to be evicted");
            observe::warn(ctx, observe::node(node), "FailedDraining", message);
            queue.add(&drain.now, ctx.clock.now());
            Ok(After::Rest(Next::Again(DRAIN_POLL)))
        }
        Step::AwaitVolumes(volumes) => {
            let message = awaiting(&volumes);
            let about = observe::node(node);
            observe::note(ctx, about, "AwaitingVolumeDetachment", message);
            Ok(After::Rest(Next::Again(DRAIN_POLL)))
        }
        Step::Terminate(id) => {
            let termination = ctx.cloud.terminate(&id).await?;
            Ok(After::Answered(Asked {
                termination: Some(termination),
                ..asked
            }))
        }
        Step::Release(patch) => release(ctx, view, asked, &patch).await,
    }
}

/// The deletion of a Node is its owner's wish, not a disruption of ours: it is not counted as one.
async fn delete_claim(ctx: &Ctx, claim: &LiveClaim) -> Result<(), Failure> {
    let how = Delete {
        uid: Some(claim.meta.uid.clone()),
        grace_secs: None,
    };
    match ctx.api.delete(Kind::NodeClaim, claim.name(), how).await {
        // Gone, or another one of that name: the watch will tell.
        Ok(()) | Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

async fn write(ctx: &Ctx, claim: &LiveClaim, write: StatusWrite) -> Result<(), Failure> {
    let name = claim.name();
    let written = ctx.api.patch_status(Kind::NodeClaim, name, &write.patch);
    written.await?;
    let transitions = &write.finished.transitions;
    observe::transitions(ctx, &observe::claim(claim), transitions);
    let drained = |own: &crate::conditions::Transition| {
        own.kind == "Drained" && own.to == ConditionStatus::True
    };
    if transitions.iter().any(drained) {
        let labels = [("nodepool", claim.pool().unwrap_or_default())];
        ctx.metrics.count(NODES_DRAINED, &labels, 1.0);
    }
    Ok(())
}

/// Tells by when all pods of the node will be gone, if that is known.
fn tell_deadline(ctx: &Ctx, view: &NodeView<'_>) {
    let deadline = view.claim.and_then(|claim| deadline(claim).ok().flatten());
    if let Some(at) = deadline {
        observe::grace_period_expiring(ctx, observe::node(view.node), &rfc3339(at));
    }
}

async fn release(
    ctx: &Ctx,
    view: &NodeView<'_>,
    asked: Asked,
    patch: &Value,
) -> Result<After<Asked>, Failure> {
    let node = view.node;
    match ctx.api.patch(Kind::Node, node.name(), patch).await {
        Ok(_) => {}
        Err(ApiFailure::NotFound) => return Ok(After::Rest(Next::Done)),
        Err(failure) => return Err(failure.into()),
    }
    let now = ctx.clock.now();
    let pool = [("nodepool", node.pool().unwrap_or_default())];
    let labels = [pool[0], ("zone", label(node, ZONE))];
    ctx.metrics.count(NODES_TERMINATED, &labels, 1.0);
    if view.claim.is_none() && asked.machine != Some(false) {
        // With a claim this is counted when its condition says so.
        ctx.metrics.count(NODES_DRAINED, &pool, 1.0);
    }
    if let Some(deleted) = node.meta.deleting {
        let secs = now.duration_since(deleted).as_secs_f64();
        ctx.metrics.observe(NODES_TERMINATION_DURATION, &pool, secs);
    }
    let age = now.duration_since(node.meta.created).as_secs_f64();
    ctx.metrics.observe(NODES_LIFETIME_DURATION, &pool, age);
    log(view, "deleted node");
    Ok(After::Rest(Next::Done))
}

fn label<'a>(node: &'a LiveNode, key: &str) -> &'a str {
    node.meta.label(key).unwrap_or_default()
}

/// One line about something that became of a node.
fn log(view: &NodeView<'_>, phrase: &'static str) {
    let node = view.node;
    let claim = view.claim.map_or("", |claim| claim.name());
    tracing::info!(
        Node = &**node.name(),
        NodeClaim = claim,
        NodePool = node.pool().unwrap_or_default(),
        "provider-id" = node.provider_id.as_deref().unwrap_or_default(),
        "instance-type" = label(node, INSTANCE_TYPE),
        zone = label(node, ZONE),
        "capacity-type" = label(node, CAPACITY_TYPE),
        "{phrase}"
    );
}
