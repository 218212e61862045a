//! What to do next about a Node that is to go.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use joiner_api::conditions as condition;
use joiner_api::labels::{
    DISRUPTED_TAINT, EXCLUDE_FROM_LOAD_BALANCERS, EXCLUDE_FROM_LOAD_BALANCERS_VALUE,
    TERMINATION_FINALIZER, TERMINATION_TIMESTAMP,
};
use joiner_cloud::{ProviderId, Termination};
use joiner_engine::conditions::ConditionSet;
use joiner_engine::finalizer;
use joiner_engine::write::StatusWrite;
use joiner_model::Name;
use joiner_state::live::{Conditions as _, LiveClaim, LiveNode};
use serde_json::{Map, Value, json};

use super::drain::{Drain, drain};
use super::view::NodeView;
use crate::nodeclaim::lifecycle::{TERMINATION_POLL, conditions};
use crate::taints;

/// A drain takes at least this long: pods may have been bound before the taint was seen.
const DRAIN_MIN: Duration = Duration::from_secs(5);
/// How often a drain is looked at.
pub(super) const DRAIN_POLL: Duration = Duration::from_secs(1);

/// What the cloud has said during this look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// Whether there is a machine, if that was answers.
    pub machine: Option<bool>,
    /// How its end stands, if it was answers for.
    pub termination: Option<Termination>,
}

/// What to do next about a Node that is to go.
#[derive(Clone, Debug)]
pub enum NodeStep {
    /// Nothing, until something changes or this long has passed.
    Wait(Option<Duration>),
    /// Delete its claim: the two go together.
    DeleteClaim,
    /// Ask whether there still is a machine.
    AskMachine(ProviderId),
    /// The deadline on the claim is no time: say so, and stop.
    BadDeadline(String),
    /// Keep new pods off, by this patch.
    Taint(Value),
    /// Write the status of the claim.
    Write(Box<StatusWrite>),
    /// Have pods leave.
    Drain(Drain),
    /// Wait for these volumes.
    AwaitVolumes(Vec<Name>),
    /// End the machine.
    Terminate(ProviderId),
    /// Take our finalizer off, by this patch.
    RemoveFinalizer(Value),
}

/// What to do next.
#[must_use]
pub fn next_step(view: &NodeView<'_>, answers: Answers, now: Timestamp) -> NodeStep {
    let node = view.node;
    let Some(deleted) = node.meta.deleting else {
        return NodeStep::Wait(None);
    };
    if !view.is_managed || !node.meta.has_finalizer(TERMINATION_FINALIZER) {
        return NodeStep::Wait(None);
    }
    if view
        .claim
        .is_some_and(|claim| claim.meta.deleting.is_none())
    {
        return NodeStep::DeleteClaim;
    }
    if let Some(id) = node.provider_id.as_ref().filter(|_| !node.is_ready()) {
        match answers.machine {
            None => return NodeStep::AskMachine(ProviderId(id.clone())),
            // Nothing is left that runs its pods, or could end them.
            Some(false) => return released(node),
            Some(true) => {}
        }
    }
    let deadline = match view.claim.map(deadline).transpose() {
        Ok(deadline) => deadline.flatten(),
        Err(why) => return NodeStep::BadDeadline(why),
    };
    if let Some(patch) = taint(node) {
        return NodeStep::Taint(patch);
    }
    match view.claim {
        Some(claim) => with_claim(view, claim, deadline, answers, now),
        None => without_claim(view, deleted, now),
    }
}

/// When the machine of a claim goes, drained or not.
///
/// # Errors
/// When somebody wrote something else there.
pub fn deadline(claim: &LiveClaim) -> Result<Option<Timestamp>, String> {
    let Some(text) = claim.meta.annotation(TERMINATION_TIMESTAMP) else {
        return Ok(None);
    };
    let at = text.parse();
    let at = at.map_err(|_| format!("annotation {TERMINATION_TIMESTAMP} is no time: {text:?}"))?;
    Ok(Some(at))
}

/// The patch that keeps new pods and load balancers off, unless they are.
fn taint(node: &LiveNode) -> Option<Value> {
    let excluded = node.meta.label(EXCLUDE_FROM_LOAD_BALANCERS);
    let excluded = excluded == Some(EXCLUDE_FROM_LOAD_BALANCERS_VALUE);
    let tainted = node.has_taint(&DISRUPTED_TAINT);
    if excluded && tainted {
        return None;
    }
    let value = EXCLUDE_FROM_LOAD_BALANCERS_VALUE;
    let mut patch = json!({"metadata": {
        "resourceVersion": node.meta.version.to_string(),
        "labels": {EXCLUDE_FROM_LOAD_BALANCERS: value},
    }});
    if !tainted {
        let taints = taints::with(node, &DISRUPTED_TAINT);
        patch["spec"] = json!({"taints": taints});
    }
    Some(patch)
}

/// The end of a Node with its claim, which says how far it has come.
fn with_claim(
    view: &NodeView<'_>,
    claim: &LiveClaim,
    deadline: Option<Timestamp>,
    answers: Answers,
    now: Timestamp,
) -> NodeStep {
    let mut set = conditions(claim, now);
    let drain = drain(view.pods.iter().copied(), deadline, now);
    let drained = claim.is_true(&condition::DRAINED);
    if !drain.is_done() || !drained {
        let since = claim
            .since(&condition::DRAINED)
            .filter(|_| !drained)
            .unwrap_or(now);
        let left = rest_of_drain(since, now);
        if !drain.is_done() || !left.is_zero() {
            set.set_unknown(condition::DRAINED, "Draining", "Draining");
            let step = match drain.is_done() {
                false => NodeStep::Drain(drain),
                true => NodeStep::Wait(Some(left)),
            };
            return write_or(claim, set, step);
        }
    }
    set.set_true(condition::DRAINED);
    if !view.volumes.is_empty() {
        if deadline.is_none_or(|deadline| now <= deadline) {
            let message = awaiting(&view.volumes);
            set.set_unknown(
                condition::VOLUMES_DETACHED,
                "AwaitingVolumeDetachment",
                &message,
            );
            return write_or(claim, set, NodeStep::AwaitVolumes(view.volumes.clone()));
        }
        let reason = "TerminationGracePeriodElapsed";
        set.set_false(condition::VOLUMES_DETACHED, reason, reason);
    } else {
        set.set_true(condition::VOLUMES_DETACHED);
    }
    let release = released(view.node);
    let Some(id) = &claim.provider_id else {
        return write_or(claim, set, release);
    };
    let next = match answers.termination {
        None => NodeStep::Terminate(ProviderId(id.clone())),
        Some(termination) => {
            set.set_true(condition::INSTANCE_TERMINATING);
            match termination {
                Termination::Going => NodeStep::Wait(Some(TERMINATION_POLL)),
                Termination::Gone => release,
            }
        }
    };
    write_or(claim, set, next)
}

/// The end of a Node without a claim: nothing can be written down, and no machine is known.
fn without_claim(view: &NodeView<'_>, deleted: Timestamp, now: Timestamp) -> NodeStep {
    let drain = drain(view.pods.iter().copied(), None, now);
    if !drain.is_done() {
        return NodeStep::Drain(drain);
    }
    let left = rest_of_drain(deleted, now);
    if !left.is_zero() {
        return NodeStep::Wait(Some(left));
    }
    if !view.volumes.is_empty() {
        return NodeStep::AwaitVolumes(view.volumes.clone());
    }
    released(view.node)
}

/// The node may go.
fn released(node: &LiveNode) -> NodeStep {
    let patch = finalizer::remove(&node.meta, TERMINATION_FINALIZER);
    patch.map_or(NodeStep::Wait(None), NodeStep::RemoveFinalizer)
}

/// The conditions are written first, if they changed.
fn write_or(claim: &LiveClaim, set: ConditionSet, step: NodeStep) -> NodeStep {
    let finished = set.finished();
    if !finished.changed {
        return step;
    }
    let fields = Value::Object(Map::new());
    NodeStep::Write(Box::new(StatusWrite::new(&claim.meta, finished, fields)))
}

fn rest_of_drain(since: Timestamp, now: Timestamp) -> Duration {
    let passed = now.duration_since(since).max(SignedDuration::ZERO);
    let passed = Duration::try_from(passed).unwrap_or(Duration::ZERO);
    DRAIN_MIN.saturating_sub(passed)
}

/// What is waited for, in words.
#[must_use]
pub(super) fn awaiting(volumes: &[Name]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = volumes.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let more = match volumes.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let shown = shown.join(", ");
    format!("Awaiting deletion of bound volumeattachments ({shown}{more})")
}
