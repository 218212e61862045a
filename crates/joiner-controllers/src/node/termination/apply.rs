//! Does what was decided about a Node that is to go.

use joiner_api::conditions as condition;
use joiner_api::labels::{CAPACITY_TYPE, DISRUPTED_TAINT, INSTANCE_TYPE, ZONE};
use joiner_api::types::ConditionStatus;
use joiner_engine::conditions::Transition;
use joiner_engine::write::{self, After, StatusWrite};
use joiner_engine::{Failure, Next, events};
use joiner_runtime::metric_names::{
    NODES_DRAINED, NODES_LIFETIME_DURATION, NODES_TERMINATED, NODES_TERMINATION_DURATION,
};
use joiner_runtime::{ApiFailure, Delete};
use joiner_state::live::{Kind, LiveClaim, LiveNode, rfc3339};
use serde_json::Value;

use super::NodeTermination;
use super::step::{Answers, DRAIN_POLL, NodeStep, awaiting, deadline};
use super::view::NodeView;
use crate::catalogs::cloud_failed;
use crate::nodeclaim::lifecycle::report_deadline;

/// Does one thing.
pub(super) async fn apply(
    termination: &NodeTermination,
    view: &NodeView<'_>,
    answers: Answers,
    step: NodeStep,
) -> Result<After<Answers>, Failure> {
    let node = view.node;
    if termination.shared.api.is_dry_run() {
        return Ok(After::Rest(Next::Done));
    }
    match step {
        NodeStep::Wait(None) => Ok(After::Rest(Next::Done)),
        NodeStep::Wait(Some(wait)) => Ok(After::Rest(Next::Again(wait))),
        NodeStep::DeleteClaim => {
            if let Some(claim) = view.claim {
                delete_claim(termination, claim).await?;
            }
            // The deletion brings the next look.
            Ok(After::Rest(Next::Again(DRAIN_POLL)))
        }
        NodeStep::AskMachine(id) => {
            let machine = termination.cloud.instance(&id).await;
            let machine = machine.map_err(cloud_failed)?.is_some();
            Ok(After::Answered(Answers {
                machine: Some(machine),
                ..answers
            }))
        }
        NodeStep::BadDeadline(why) => Err(Failure::Other(why)),
        NodeStep::Taint(patch) => {
            write::patch(&termination.shared, Kind::Node, node.name(), &patch).await?;
            if !node.has_taint(&DISRUPTED_TAINT) {
                log(view, "tainted node");
            }
            report_drain_deadline(termination, view);
            Ok(After::Look)
        }
        NodeStep::Write(write) => {
            if let Some(claim) = view.claim {
                write_status(termination, claim, *write).await?;
            }
            Ok(After::Look)
        }
        NodeStep::Drain(drain) => {
            report_drain_deadline(termination, view);
            let n = drain.n_waiting;
            let message = format!("Failed to drain node, {n} pods are waiting to be evicted");
            events::warn(
                &termination.shared.events,
                events::node(node),
                "FailedDraining",
                message,
            );
            termination
                .queue
                .add(&drain.now, termination.shared.clock.now());
            Ok(After::Rest(Next::Again(DRAIN_POLL)))
        }
        NodeStep::AwaitVolumes(volumes) => {
            let message = awaiting(&volumes);
            let about = events::node(node);
            events::note(
                &termination.shared.events,
                about,
                "AwaitingVolumeDetachment",
                message,
            );
            Ok(After::Rest(Next::Again(DRAIN_POLL)))
        }
        NodeStep::Terminate(id) => {
            let answer = termination.cloud.terminate(&id).await;
            let answer = answer.map_err(cloud_failed)?;
            Ok(After::Answered(Answers {
                termination: Some(answer),
                ..answers
            }))
        }
        NodeStep::RemoveFinalizer(patch) => release(termination, view, answers, &patch).await,
    }
}

/// The deletion of a Node is its owner's wish, not a disruption of ours: it is not counted as one.
async fn delete_claim(termination: &NodeTermination, claim: &LiveClaim) -> Result<(), Failure> {
    let how = Delete {
        uid: Some(claim.meta.uid.clone()),
        grace_secs: None,
    };
    match termination
        .shared
        .api
        .delete(Kind::NodeClaim, claim.name(), how)
        .await
    {
        // Gone, or another one of that name: the watch will tell.
        Ok(()) | Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

async fn write_status(
    termination: &NodeTermination,
    claim: &LiveClaim,
    status: StatusWrite,
) -> Result<(), Failure> {
    let object = write::Object::new(Kind::NodeClaim, events::claim(claim));
    write::status(&termination.shared, &object, &status).await?;
    let is_drained = |changed: &Transition| {
        changed.kind == *condition::DRAINED && changed.to == ConditionStatus::True
    };
    if status.finished.transitions.iter().any(is_drained) {
        let labels = [("nodepool", claim.pool().unwrap_or_default())];
        termination
            .shared
            .metrics
            .count(NODES_DRAINED, &labels, 1.0);
    }
    Ok(())
}

/// Reports by when all pods of the node will be gone, if that is known.
fn report_drain_deadline(termination: &NodeTermination, view: &NodeView<'_>) {
    let deadline = view.claim.and_then(|claim| deadline(claim).ok().flatten());
    if let Some(at) = deadline {
        let events = &termination.shared.events;
        report_deadline(events, events::node(view.node), &rfc3339(at));
    }
}

async fn release(
    termination: &NodeTermination,
    view: &NodeView<'_>,
    answers: Answers,
    patch: &Value,
) -> Result<After<Answers>, Failure> {
    let node = view.node;
    let patched = write::patch(&termination.shared, Kind::Node, node.name(), patch).await;
    if write::unless_gone(patched)?.is_none() {
        return Ok(After::Rest(Next::Done));
    }
    let now = termination.shared.clock.now();
    let pool = [("nodepool", node.pool().unwrap_or_default())];
    let labels = [pool[0], ("zone", label(node, ZONE))];
    termination
        .shared
        .metrics
        .count(NODES_TERMINATED, &labels, 1.0);
    if view.claim.is_none() && answers.machine != Some(false) {
        // With a claim this is counted when its condition says so.
        termination.shared.metrics.count(NODES_DRAINED, &pool, 1.0);
    }
    if let Some(deleted) = node.meta.deleting {
        let secs = now.duration_since(deleted).as_secs_f64();
        termination
            .shared
            .metrics
            .observe(NODES_TERMINATION_DURATION, &pool, secs);
    }
    let age = now.duration_since(node.meta.created).as_secs_f64();
    termination
        .shared
        .metrics
        .observe(NODES_LIFETIME_DURATION, &pool, age);
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
