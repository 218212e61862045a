//! Does what was decided about a NodeClaim.

use joiner_api::labels::{
    CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP, ZONE,
};
use joiner_api::types::ConditionStatus;
use joiner_cloud::{CloudError, LaunchError, Order};
use joiner_model::Name;
use joiner_runtime::metric_names::{
    NODECLAIMS_INSTANCE_TERMINATION_DURATION, NODECLAIMS_TERMINATED,
    NODECLAIMS_TERMINATION_DURATION, NODES_CREATED,
};
use joiner_runtime::{ApiFailure, Delete, Written};
use joiner_state::live::{Conditions as _, Kind, LiveClaim, rfc3339};
use serde_json::{Value, json};

use super::launch::{self, Launched, NotLaunched};
use super::step::{Answer, GiveUp, StatusWrite, Step, TERMINATION_POLL};
use super::view::ClaimView;
use super::{After, delete, hooks};
use crate::conditions::Transition;
use crate::context::{Ctx, Failure, Next};
use crate::health::Outcome;
use crate::observe;
use crate::provisioning::propose;

/// Does one thing.
pub(super) async fn perform(
    ctx: &Ctx,
    view: &ClaimView<'_>,
    step: Step,
) -> Result<After<Answer>, Failure> {
    let claim = view.claim;
    if ctx.api.is_dry_run() && !matches!(step, Step::Wait(_)) {
        tracing::debug!(
            NodeClaim = &**claim.name(),
            "dry run: would {}",
            word(&step)
        );
        return Ok(After::Rest(Next::Done));
    }
    match step {
        Step::Wait(None) => return Ok(After::Rest(Next::Done)),
        Step::Wait(Some(wait)) => return Ok(After::Rest(Next::Again(wait))),
        Step::Hold(patch) => patch_claim(ctx, claim, &patch).await?,
        Step::Launch(order) => return launch(ctx, view, &order).await,
        Step::Misunderstood(why) => {
            return not_launched(ctx, view, LaunchError::Other(why)).await;
        }
        Step::AskRegistration => return Ok(ask_registration(ctx, claim).await),
        Step::AddLabels(patch) => patch_claim(ctx, claim, &patch).await?,
        Step::SyncNode {
            node,
            patch,
            opens,
            lacks_taint,
        } => {
            if lacks_taint {
                tell_taint_missing(ctx, claim, &node);
            }
            // Before the node is open for pods: the scheduler is to find it said. That takes a while,
            // and others write to the node.
            if opens && propose::pods(ctx, claim, &node).await {
                return Ok(After::Look);
            }
            ctx.api.patch(Kind::Node, &node, &patch).await?;
        }
        Step::MarkInitialized(node) => {
            let patch = json!({"metadata": {"labels": {INITIALIZED: "true"}}});
            ctx.api.patch(Kind::Node, &node, &patch).await?;
        }
        Step::Write(write) => self::write(ctx, view, *write).await?,
        Step::HooksFailed(failure) => return Err(Failure::Other(failure)),
        Step::GiveUp(given_up) => return give_up(ctx, view, given_up).await,
        Step::SetDeadline(at) => {
            let at = rfc3339(at);
            let patch = json!({"metadata": {"annotations": {TERMINATION_TIMESTAMP: at}}});
            patch_claim(ctx, claim, &patch).await?;
            observe::grace_period_expiring(ctx, observe::claim(claim), &at);
        }
        Step::DeleteNodes(nodes) => {
            delete_nodes(ctx, nodes).await?;
            return Ok(After::Rest(Next::Again(TERMINATION_POLL)));
        }
        Step::Terminate(id) => {
            let answer = ctx.cloud.terminate(&id).await?;
            return Ok(After::Answered(Answer::Termination(answer)));
        }
        Step::Release(patch) => return release(ctx, claim, &patch).await,
    }
    Ok(After::Look)
}

/// What a step is called in a dry run.
fn word(step: &Step) -> &'static str {
    match step {
        Step::Wait(_) => "wait",
        Step::Hold(_) => "add the finalizer",
        Step::Launch(_) | Step::Misunderstood(_) => "launch",
        Step::AskRegistration | Step::HooksFailed(_) => "ask the registration hooks",
        Step::AddLabels(_) => "add labels to it",
        Step::SyncNode { opens: true, .. } => "register its node",
        Step::SyncNode { opens: false, .. } => "take in its node",
        Step::MarkInitialized(_) => "initialize its node",
        Step::Write(_) => "write its status",
        Step::GiveUp(_) => "delete it",
        Step::SetDeadline(_) => "set its deadline",
        Step::DeleteNodes(_) => "delete its node",
        Step::Terminate(_) => "end its machine",
        Step::Release(_) => "remove the finalizer",
    }
}

async fn patch_claim(ctx: &Ctx, claim: &LiveClaim, patch: &Value) -> Result<(), ApiFailure> {
    let patched = ctx.api.patch(Kind::NodeClaim, claim.name(), patch).await;
    patched.map(|_| ())
}

async fn ask_registration(ctx: &Ctx, claim: &LiveClaim) -> After<Answer> {
    let answer = ctx.cloud.registration(&claim.claim).await;
    if !answer.pending.is_empty() {
        tracing::debug!(
            NodeClaim = &**claim.name(),
            hooks = hooks::message(&answer.pending),
            "awaiting registration hooks"
        );
    }
    After::Answered(Answer::Registration(answer))
}

async fn launch(ctx: &Ctx, view: &ClaimView<'_>, order: &Order) -> Result<After<Answer>, Failure> {
    let claim = view.claim;
    let uid = &order.claim_uid;
    let instance = match ctx.launches.of(uid, ctx.clock.now()) {
        Some(instance) => instance,
        None => match ctx.cloud.launch(order).await {
            Ok(instance) => {
                ctx.launches.note(uid, &instance, ctx.clock.now());
                instance
            }
            Err(error) => return not_launched(ctx, view, error).await,
        },
    };
    let launched = launch::launched(view, &instance, ctx.clock.now());
    let machine = launched.machine.clone();
    let written = write_launched(ctx, view, launched).await;
    if let Err(Failure::Api(ApiFailure::Conflict(_))) = written {
        // Somebody changed the claim while the cloud was at work, maybe deleted it. Its machine must
        // be found in any case; the rest follows with the next look, which launches nothing new.
        let name = claim.name();
        ctx.api
            .patch_status(Kind::NodeClaim, name, &machine)
            .await?;
    }
    written?;
    ctx.launches.forget(uid);
    Ok(After::Look)
}

async fn write_launched(
    ctx: &Ctx,
    view: &ClaimView<'_>,
    launched: Launched,
) -> Result<(), Failure> {
    let name = view.claim.name();
    let mut status = launched.status;
    if let Some(metadata) = &launched.metadata {
        let patched = ctx.api.patch(Kind::NodeClaim, name, metadata).await?;
        if let Written::Object(object) = patched {
            let version = object["metadata"]["resourceVersion"].clone();
            status.patch["metadata"]["resourceVersion"] = version;
        }
    }
    write(ctx, view, status).await
}

async fn not_launched(
    ctx: &Ctx,
    view: &ClaimView<'_>,
    error: LaunchError,
) -> Result<After<Answer>, Failure> {
    match launch::failed(view, &error, ctx.clock.now()) {
        NotLaunched::GiveUp(given_up) => {
            tracing::warn!(
                NodeClaim = &**view.claim.name(),
                NodePool = view.claim.pool().unwrap_or_default(),
                %error,
                "nodeclaim could not be launched"
            );
            give_up(ctx, view, given_up).await
        }
        NotLaunched::Retry(status) => {
            if status.finished.changed {
                write(ctx, view, status).await?;
            }
            if let LaunchError::Throttled(why) = error {
                return Err(CloudError::Throttled(why).into());
            }
            Err(Failure::Other(format!("launching: {error}")))
        }
    }
}

async fn give_up(
    ctx: &Ctx,
    view: &ClaimView<'_>,
    given_up: GiveUp,
) -> Result<After<Answer>, Failure> {
    if let Some(why) = given_up.event {
        observe::insufficient_capacity(ctx, view.claim, &why);
    }
    if let Some(outcome) = given_up.outcome {
        record(ctx, view, outcome);
    }
    delete::delete(ctx, view.claim, given_up.reason).await?;
    // The deletion itself brings the next look.
    Ok(After::Rest(Next::Again(TERMINATION_POLL)))
}

fn record(ctx: &Ctx, view: &ClaimView<'_>, outcome: Outcome) {
    if let Some(pool) = view.pool {
        ctx.health
            .record(&pool.meta.uid, &view.claim.meta.uid, outcome);
    }
}

async fn write(ctx: &Ctx, view: &ClaimView<'_>, write: StatusWrite) -> Result<(), Failure> {
    let became = |kind: &str| {
        let mut transitions = write.finished.transitions.iter();
        transitions.any(|own| own.kind == kind && own.to == ConditionStatus::True)
    };
    // The pool's controller is woken by the write, and is to find the news.
    if became("Registered") {
        record(ctx, view, Outcome::Registered);
    }
    let name = view.claim.name();
    ctx.api
        .patch_status(Kind::NodeClaim, name, &write.patch)
        .await?;
    let snapshot = ctx.world.snapshot();
    let claim = snapshot.claim(name).map_or(view.claim, AsRef::as_ref);
    announce(ctx, claim, &write.finished.transitions);
    Ok(())
}

/// Tells what became of a claim: events, metrics, and a line in the log.
fn announce(ctx: &Ctx, claim: &LiveClaim, transitions: &[Transition]) {
    observe::transitions(ctx, &observe::claim(claim), transitions);
    for own in transitions {
        if own.to != ConditionStatus::True {
            continue;
        }
        match own.kind.as_str() {
            "Launched" => log(claim, "launched nodeclaim"),
            "Registered" => {
                let labels = [
                    ("nodepool", claim.pool().unwrap_or_default()),
                    ("zone", label(claim, ZONE)),
                ];
                ctx.metrics.count(NODES_CREATED, &labels, 1.0);
                log(claim, "registered nodeclaim");
            }
            "Initialized" => log(claim, "initialized nodeclaim"),
            _ => {}
        }
    }
}

fn label<'a>(claim: &'a LiveClaim, key: &str) -> &'a str {
    claim.meta.label(key).unwrap_or_default()
}

/// One line about something that became of a claim.
fn log(claim: &LiveClaim, phrase: &'static str) {
    tracing::info!(
        NodeClaim = &**claim.name(),
        Node = claim.node_name().unwrap_or_default(),
        NodePool = claim.pool().unwrap_or_default(),
        "provider-id" = claim.provider_id.as_deref().unwrap_or_default(),
        "instance-type" = label(claim, INSTANCE_TYPE),
        zone = label(claim, ZONE),
        "capacity-type" = label(claim, CAPACITY_TYPE),
        "{phrase}"
    );
}

fn tell_taint_missing(ctx: &Ctx, claim: &LiveClaim, node: &Name) {
    tracing::error!(
        NodeClaim = &**claim.name(),
        Node = &**node,
        "the node joined without the taint karpenter.sh/unregistered: pods may have come too early"
    );
    observe::taint_missing(ctx, claim, node);
}

async fn delete_nodes(ctx: &Ctx, nodes: Vec<(Name, Name)>) -> Result<(), Failure> {
    for (node, uid) in nodes {
        let how = Delete {
            uid: Some(uid),
            grace_secs: None,
        };
        match ctx.api.delete(Kind::Node, &node, how).await {
            // Gone, or another one of that name: the watch will tell.
            Ok(()) | Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(())
}

async fn release(ctx: &Ctx, claim: &LiveClaim, patch: &Value) -> Result<After<Answer>, Failure> {
    match patch_claim(ctx, claim, patch).await {
        Ok(()) => {}
        Err(ApiFailure::NotFound) => return Ok(After::Rest(Next::Done)),
        Err(failure) => return Err(failure.into()),
    }
    let now = ctx.clock.now();
    let pool = [("nodepool", claim.pool().unwrap_or_default())];
    if let Some(deleted) = claim.meta.deleting {
        let secs = now.duration_since(deleted).as_secs_f64();
        ctx.metrics
            .observe(NODECLAIMS_TERMINATION_DURATION, &pool, secs);
    }
    if let Some(since) = claim.since("InstanceTerminating") {
        let secs = now.duration_since(since).as_secs_f64();
        let name = NODECLAIMS_INSTANCE_TERMINATION_DURATION;
        ctx.metrics.observe(name, &pool, secs);
    }
    let labels = [
        pool[0],
        ("capacity_type", label(claim, CAPACITY_TYPE)),
        ("zone", label(claim, ZONE)),
    ];
    ctx.metrics.count(NODECLAIMS_TERMINATED, &labels, 1.0);
    observe::finalized(ctx, observe::claim(claim), TERMINATION_FINALIZER);
    log(claim, "deleted nodeclaim");
    Ok(After::Rest(Next::Done))
}
