//! Does what was decided about a NodeClaim.

use std::time::Duration;

use joiner_api::conditions as condition;
use joiner_api::labels::{
    CAPACITY_TYPE, INITIALIZED, INSTANCE_TYPE, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP, ZONE,
};
use joiner_api::types::ConditionStatus;
use joiner_cloud::{LaunchError, Order};
use joiner_engine::conditions::{ConditionType, Transition};
use joiner_engine::write::{self, After, StatusWrite};
use joiner_engine::{Failure, Next, events};
use joiner_model::Name;
use joiner_runtime::metric_names::{
    NODECLAIMS_INSTANCE_TERMINATION_DURATION, NODECLAIMS_TERMINATED,
    NODECLAIMS_TERMINATION_DURATION, NODES_CREATED,
};
use joiner_runtime::{ApiFailure, Delete, Written};
use joiner_state::live::{Conditions as _, Kind, LiveClaim, rfc3339};
use serde_json::{Value, json};

use super::launch::{self, Launched, NotLaunched};
use super::step::{Answer, ClaimStep, GiveUp, TERMINATION_POLL};
use super::view::ClaimView;
use super::{Lifecycle, delete, hooks};
use crate::catalogs::cloud_failed;
use crate::nodepool::registrations::RegistrationOutcome;

/// A node that may not be opened yet is looked at this often, should its release get lost.
const OPEN_POLL: Duration = Duration::from_secs(10);

/// Does one thing.
pub(super) async fn apply(
    lifecycle: &Lifecycle,
    view: &ClaimView<'_>,
    step: ClaimStep,
) -> Result<After<Answer>, Failure> {
    let claim = view.claim;
    if lifecycle.shared.api.is_dry_run() && !matches!(step, ClaimStep::Wait(_)) {
        tracing::debug!(
            NodeClaim = &**claim.name(),
            "dry run: would {}",
            word(&step)
        );
        return Ok(After::Rest(Next::Done));
    }
    match step {
        ClaimStep::Wait(None) => return Ok(After::Rest(Next::Done)),
        ClaimStep::Wait(Some(wait)) => return Ok(After::Rest(Next::Again(wait))),
        ClaimStep::AddFinalizer(patch) => patch_claim(lifecycle, claim, &patch).await?,
        ClaimStep::Launch(order) => return launch(lifecycle, view, &order).await,
        ClaimStep::Invalid(why) => {
            return not_launched(lifecycle, view, LaunchError::Other(why)).await;
        }
        ClaimStep::AskRegistration => return Ok(ask_registration(lifecycle, claim).await),
        ClaimStep::AddLabels(patch) => patch_claim(lifecycle, claim, &patch).await?,
        ClaimStep::SyncNode {
            node,
            patch,
            opens,
            lacks_taint,
        } => {
            if lacks_taint {
                report_taint_missing(lifecycle, claim, &node);
            }
            // The pods of the node are to know of it before it is open for all.
            if opens && !lifecycle.seating.may_open(claim.name(), &node) {
                return Ok(After::Rest(Next::Again(OPEN_POLL)));
            }
            write::patch(&lifecycle.shared, Kind::Node, &node, &patch).await?;
        }
        ClaimStep::MarkInitialized(node) => {
            let patch = json!({"metadata": {"labels": {INITIALIZED: "true"}}});
            write::patch(&lifecycle.shared, Kind::Node, &node, &patch).await?;
        }
        ClaimStep::Write(write) => write_status(lifecycle, view, *write).await?,
        ClaimStep::HooksFailed(failure) => return Err(Failure::Other(failure)),
        ClaimStep::GiveUp(given_up) => return give_up(lifecycle, view, given_up).await,
        ClaimStep::SetDeadline(at) => {
            let at = rfc3339(at);
            let patch = json!({"metadata": {"annotations": {TERMINATION_TIMESTAMP: at}}});
            patch_claim(lifecycle, claim, &patch).await?;
            delete::report_deadline(&lifecycle.shared.events, events::claim(claim), &at);
        }
        ClaimStep::DeleteNodes(nodes) => {
            delete_nodes(lifecycle, nodes).await?;
            return Ok(After::Rest(Next::Again(TERMINATION_POLL)));
        }
        ClaimStep::Terminate(id) => {
            let answer = lifecycle.cloud.terminate(&id).await;
            let answer = answer.map_err(cloud_failed)?;
            return Ok(After::Answered(Answer::Termination(answer)));
        }
        ClaimStep::RemoveFinalizer(patch) => return release(lifecycle, claim, &patch).await,
    }
    Ok(After::Look)
}

/// What a step is called in a dry run.
fn word(step: &ClaimStep) -> &'static str {
    match step {
        ClaimStep::Wait(_) => "wait",
        ClaimStep::AddFinalizer(_) => "add the finalizer",
        ClaimStep::Launch(_) | ClaimStep::Invalid(_) => "launch",
        ClaimStep::AskRegistration | ClaimStep::HooksFailed(_) => "ask the registration hooks",
        ClaimStep::AddLabels(_) => "add labels to it",
        ClaimStep::SyncNode { opens: true, .. } => "register its node",
        ClaimStep::SyncNode { opens: false, .. } => "take in its node",
        ClaimStep::MarkInitialized(_) => "initialize its node",
        ClaimStep::Write(_) => "write its status",
        ClaimStep::GiveUp(_) => "delete it",
        ClaimStep::SetDeadline(_) => "set its deadline",
        ClaimStep::DeleteNodes(_) => "delete its node",
        ClaimStep::Terminate(_) => "end its machine",
        ClaimStep::RemoveFinalizer(_) => "remove the finalizer",
    }
}

async fn patch_claim(
    lifecycle: &Lifecycle,
    claim: &LiveClaim,
    patch: &Value,
) -> Result<(), Failure> {
    let patched = write::patch(&lifecycle.shared, Kind::NodeClaim, claim.name(), patch).await;
    patched.map(|_| ())
}

async fn ask_registration(lifecycle: &Lifecycle, claim: &LiveClaim) -> After<Answer> {
    let answer = lifecycle.cloud.registration(&claim.claim).await;
    if !answer.pending.is_empty() {
        tracing::debug!(
            NodeClaim = &**claim.name(),
            hooks = hooks::message(&answer.pending),
            "awaiting registration hooks"
        );
    }
    After::Answered(Answer::Registration(answer))
}

async fn launch(
    lifecycle: &Lifecycle,
    view: &ClaimView<'_>,
    order: &Order,
) -> Result<After<Answer>, Failure> {
    let claim = view.claim;
    let uid = &order.claim_uid;
    let instance = match lifecycle.launches.of(uid, lifecycle.shared.clock.now()) {
        Some(instance) => instance,
        None => match lifecycle.cloud.launch(order).await {
            Ok(instance) => {
                lifecycle
                    .launches
                    .note(uid, &instance, lifecycle.shared.clock.now());
                instance
            }
            Err(error) => return not_launched(lifecycle, view, error).await,
        },
    };
    let launched = launch::launched(view, &instance, lifecycle.shared.clock.now());
    let machine = launched.machine.clone();
    let written = write_launched(lifecycle, view, launched).await;
    if let Err(Failure::Api(ApiFailure::Conflict(_))) = written {
        // The claim was changed while the cloud was at work, maybe deleted it. Its machine must
        // be found in any case; the rest follows with the next look, which launches nothing new.
        let name = claim.name();
        lifecycle
            .shared
            .api
            .patch_status(Kind::NodeClaim, name, &machine)
            .await?;
    }
    written?;
    lifecycle.launches.forget(uid);
    Ok(After::Look)
}

async fn write_launched(
    lifecycle: &Lifecycle,
    view: &ClaimView<'_>,
    launched: Launched,
) -> Result<(), Failure> {
    let name = view.claim.name();
    let mut status = launched.status;
    if let Some(metadata) = &launched.metadata {
        let patched = write::patch(&lifecycle.shared, Kind::NodeClaim, name, metadata).await?;
        if let Written::Object(object) = patched {
            let version = object["metadata"]["resourceVersion"].clone();
            status.patch["metadata"]["resourceVersion"] = version;
        }
    }
    write_status(lifecycle, view, status).await
}

async fn not_launched(
    lifecycle: &Lifecycle,
    view: &ClaimView<'_>,
    error: LaunchError,
) -> Result<After<Answer>, Failure> {
    match launch::failed(view, &error, lifecycle.shared.clock.now()) {
        NotLaunched::GiveUp(given_up) => {
            tracing::warn!(
                NodeClaim = &**view.claim.name(),
                NodePool = view.claim.pool().unwrap_or_default(),
                %error,
                "nodeclaim could not be launched"
            );
            give_up(lifecycle, view, given_up).await
        }
        NotLaunched::Retry(status) => {
            if status.finished.changed {
                write_status(lifecycle, view, status).await?;
            }
            if let LaunchError::Throttled(why) = error {
                return Err(Failure::Throttled(why));
            }
            Err(Failure::Other(format!("launching: {error}")))
        }
    }
}

async fn give_up(
    lifecycle: &Lifecycle,
    view: &ClaimView<'_>,
    given_up: GiveUp,
) -> Result<After<Answer>, Failure> {
    if let Some(why) = given_up.event {
        let message = format!("NodeClaim {} event: {why}", view.claim.name());
        let about = events::claim(view.claim);
        let reason = "InsufficientCapacityError";
        events::warn(&lifecycle.shared.events, about, reason, message);
    }
    if let Some(outcome) = given_up.outcome {
        record(lifecycle, view, outcome);
    }
    delete::delete(&lifecycle.shared, view.claim, given_up.reason).await?;
    // The deletion itself brings the next look.
    Ok(After::Rest(Next::Again(TERMINATION_POLL)))
}

fn record(lifecycle: &Lifecycle, view: &ClaimView<'_>, outcome: RegistrationOutcome) {
    if let Some(pool) = view.pool {
        lifecycle
            .registrations
            .record(&pool.meta.uid, &view.claim.meta.uid, outcome);
    }
}

async fn write_status(
    lifecycle: &Lifecycle,
    view: &ClaimView<'_>,
    status: StatusWrite,
) -> Result<(), Failure> {
    let became = |kind: ConditionType| {
        let mut transitions = status.finished.transitions.iter();
        transitions.any(|changed| changed.kind == *kind && changed.to == ConditionStatus::True)
    };
    // The pool's controller is woken by the write, and is to find the news.
    if became(condition::REGISTERED) {
        record(lifecycle, view, RegistrationOutcome::Registered);
    }
    let name = view.claim.name();
    let object = write::Object::new(Kind::NodeClaim, events::claim(view.claim));
    write::status(&lifecycle.shared, &object, &status).await?;
    let snapshot = lifecycle.shared.world.snapshot();
    let claim = snapshot.claim(name).map_or(view.claim, AsRef::as_ref);
    report(lifecycle, claim, &status.finished.transitions);
    Ok(())
}

/// Reports what became of a claim: metrics, and a line in the log.
fn report(lifecycle: &Lifecycle, claim: &LiveClaim, transitions: &[Transition]) {
    for changed in transitions {
        if changed.to != ConditionStatus::True {
            continue;
        }
        if changed.kind == *condition::LAUNCHED {
            log(claim, "launched nodeclaim");
        } else if changed.kind == *condition::REGISTERED {
            let labels = [
                ("nodepool", claim.pool().unwrap_or_default()),
                ("zone", label(claim, ZONE)),
            ];
            lifecycle.shared.metrics.count(NODES_CREATED, &labels, 1.0);
            log(claim, "registered nodeclaim");
        } else if changed.kind == *condition::INITIALIZED {
            log(claim, "initialized nodeclaim");
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

fn report_taint_missing(lifecycle: &Lifecycle, claim: &LiveClaim, node: &Name) {
    tracing::error!(
        NodeClaim = &**claim.name(),
        Node = &**node,
        "the node joined without the taint karpenter.sh/unregistered: pods may have come too early"
    );
    let message = format!(
        "node {node} joined without the taint karpenter.sh/unregistered; \
         have its image or user data register it with the taint"
    );
    let about = events::claim(claim);
    events::warn(
        &lifecycle.shared.events,
        about,
        "UnregisteredTaintMissing",
        message,
    );
}

async fn delete_nodes(lifecycle: &Lifecycle, nodes: Vec<(Name, Name)>) -> Result<(), Failure> {
    for (node, uid) in nodes {
        let how = Delete {
            uid: Some(uid),
            grace_secs: None,
        };
        match lifecycle.shared.api.delete(Kind::Node, &node, how).await {
            // Gone, or another one of that name: the watch will tell.
            Ok(()) | Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(())
}

async fn release(
    lifecycle: &Lifecycle,
    claim: &LiveClaim,
    patch: &Value,
) -> Result<After<Answer>, Failure> {
    let patched = patch_claim(lifecycle, claim, patch).await;
    if write::unless_gone(patched)?.is_none() {
        return Ok(After::Rest(Next::Done));
    }
    let now = lifecycle.shared.clock.now();
    let pool = [("nodepool", claim.pool().unwrap_or_default())];
    if let Some(deleted) = claim.meta.deleting {
        let secs = now.duration_since(deleted).as_secs_f64();
        lifecycle
            .shared
            .metrics
            .observe(NODECLAIMS_TERMINATION_DURATION, &pool, secs);
    }
    if let Some(since) = claim.since(&condition::INSTANCE_TERMINATING) {
        let secs = now.duration_since(since).as_secs_f64();
        let name = NODECLAIMS_INSTANCE_TERMINATION_DURATION;
        lifecycle.shared.metrics.observe(name, &pool, secs);
    }
    let labels = [
        pool[0],
        ("capacity_type", label(claim, CAPACITY_TYPE)),
        ("zone", label(claim, ZONE)),
    ];
    lifecycle
        .shared
        .metrics
        .count(NODECLAIMS_TERMINATED, &labels, 1.0);
    events::finalized(
        &lifecycle.shared.events,
        events::claim(claim),
        TERMINATION_FINALIZER,
    );
    log(claim, "deleted nodeclaim");
    Ok(After::Rest(Next::Done))
}
