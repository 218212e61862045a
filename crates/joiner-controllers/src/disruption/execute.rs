//! Carries commands out, and undoes those that cannot be finished.

use std::sync::Arc;
use std::time::Duration;

use joiner_api::labels::DISRUPTED_TAINT;
use joiner_api::types::NodeClaim;
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Kind, LiveClaim, LiveNode, Snapshot};
use serde_json::json;

use super::intent::{COMMAND, Intent};
use crate::claim;
use crate::context::{Ctx, Failure};
use crate::observe;
use crate::taints;

/// How often a claim that others write to is tried again.
const CONFLICTS_MAX: usize = 5;
/// And after which pause.
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);
/// The condition that says why a claim goes.
const DISRUPTION_REASON: &str = "DisruptionReason";

/// Begins a command: nodes are tainted, replacements are created, and only then the intent is written
/// on the members: whoever reads it finds the replacements. What cannot be begun is undone; what was
/// bought already is found empty later.
///
/// # Errors
/// What was in the way.
pub(super) async fn begin(
    ctx: &Ctx,
    intent: &Intent,
    replacements: &[NodeClaim],
) -> Result<(), Failure> {
    let result = try_begin(ctx, intent, replacements).await;
    if result.is_err() {
        undo(ctx, intent).await;
    }
    result
}

async fn try_begin(ctx: &Ctx, intent: &Intent, replacements: &[NodeClaim]) -> Result<(), Failure> {
    for name in &intent.members {
        let snapshot = ctx.world.snapshot();
        let Some(claim) = snapshot.claim(name) else {
            return Err(Failure::Other(format!("NodeClaim {name} is gone")));
        };
        if let Some(node) = snapshot.node_of(claim) {
            taint(ctx, node).await?;
        }
    }
    for replacement in replacements {
        let object = serde_json::to_value(replacement).unwrap_or_default();
        ctx.api.create(Kind::NodeClaim, &object).await?;
    }
    for name in &intent.members {
        mark_patiently(ctx, name, intent).await?;
    }
    Ok(())
}

/// Marks a claim; others write to it, too, and then it is tried again.
async fn mark_patiently(ctx: &Ctx, name: &str, intent: &Intent) -> Result<(), Failure> {
    for _ in 0..CONFLICTS_MAX {
        match mark(ctx, name, intent).await {
            Err(Failure::Api(ApiFailure::Conflict(_))) => {
                ctx.clock.sleep(CONFLICT_PAUSE).await;
            }
            other => return other,
        }
    }
    mark(ctx, name, intent).await
}

async fn taint(ctx: &Ctx, node: &LiveNode) -> Result<(), Failure> {
    if node.has_taint(&DISRUPTED_TAINT) {
        return Ok(());
    }
    let patch = taints::patch(node, &taints::with(node, &DISRUPTED_TAINT));
    ctx.api.patch(Kind::Node, node.name(), &patch).await?;
    tracing::info!(Node = &**node.name(), "tainted node");
    Ok(())
}

async fn mark(ctx: &Ctx, name: &str, intent: &Intent) -> Result<(), Failure> {
    let patch = json!({"metadata": {"annotations": {COMMAND: intent.text()}}});
    ctx.api.patch(Kind::NodeClaim, name, &patch).await?;
    let snapshot = ctx.world.snapshot();
    let Some(claim) = snapshot.claim(name) else {
        return Err(Failure::Other("the NodeClaim is gone".to_owned()));
    };
    let mut set = claim::conditions(claim, ctx.clock.now());
    set.set_true_for(DISRUPTION_REASON, &intent.reason, &intent.reason);
    write(ctx, claim, set.finished()).await
}

async fn write(
    ctx: &Ctx,
    claim: &LiveClaim,
    finished: crate::conditions::Finished,
) -> Result<(), Failure> {
    if !finished.changed {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"resourceVersion": claim.meta.version.to_string()},
        "status": {"conditions": finished.to_value()},
    });
    ctx.api
        .patch_status(Kind::NodeClaim, claim.name(), &patch)
        .await?;
    observe::transitions(ctx, &observe::claim(claim), &finished.transitions);
    Ok(())
}

/// Takes marks away from all members of a command that are not going yet. What fails is tried again
/// by [`recover`]. True when nothing is left of it.
pub(super) async fn undo(ctx: &Ctx, intent: &Intent) -> bool {
    let mut all = true;
    for name in &intent.members {
        let snapshot = ctx.world.snapshot();
        let Some(claim) = snapshot.claim(name) else {
            continue;
        };
        if claim.meta.deleting.is_some() {
            all = false;
        } else if let Err(error) = release(ctx, claim, snapshot.node_of(claim)).await {
            tracing::warn!(NodeClaim = &**claim.name(), %error, "cannot undo a disruption yet");
            all = false;
        }
    }
    all
}

/// Takes all marks from one claim and its node.
async fn release(
    ctx: &Ctx,
    claim: &LiveClaim,
    node: Option<&Arc<LiveNode>>,
) -> Result<(), Failure> {
    if let Some(node) = node.filter(|own| own.has_taint(&DISRUPTED_TAINT)) {
        let patch = taints::patch(node, &taints::without(node, &DISRUPTED_TAINT));
        ctx.api.patch(Kind::Node, node.name(), &patch).await?;
        tracing::info!(Node = &**node.name(), "untainted node");
    }
    if claim.meta.annotation(COMMAND).is_some() {
        let patch = json!({"metadata": {"annotations": {COMMAND: null}}});
        ctx.api.patch(Kind::NodeClaim, claim.name(), &patch).await?;
    }
    let snapshot = ctx.world.snapshot();
    let Some(claim) = snapshot.claim(claim.name()) else {
        return Ok(());
    };
    let mut set = claim::conditions(claim, ctx.clock.now());
    set.clear(DISRUPTION_REASON);
    write(ctx, claim, set.finished()).await
}

/// Nodes that carry the taint though no command is about them: left over from a crash.
pub(super) fn left_over(snapshot: &Snapshot) -> Vec<Name> {
    let marked = |node: &&Arc<LiveNode>| {
        let claim = snapshot.claim_of(node);
        node.has_taint(&DISRUPTED_TAINT)
            && node.meta.deleting.is_none()
            && claim.is_some_and(|own| own.meta.deleting.is_none() && Intent::of(own).is_none())
    };
    let nodes = snapshot.nodes().filter(marked);
    nodes.map(|node| node.name().clone()).collect()
}

/// Cleans up what a crash has left.
pub(super) async fn recover(ctx: &Ctx) {
    let snapshot = ctx.world.snapshot();
    for name in left_over(&snapshot) {
        let node = snapshot.node(&name);
        let claim = node.and_then(|node| snapshot.claim_of(node));
        if let Some(claim) = claim
            && let Err(error) = release(ctx, claim, node).await
        {
            tracing::warn!(Node = &*name, %error, "cannot untaint a node yet");
        }
    }
}
