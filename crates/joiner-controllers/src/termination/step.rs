//! What to do next about a Node that is to go.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use joiner_api::labels::{
    DISRUPTED_TAINT, EXCLUDE_FROM_LOAD_BALANCERS, EXCLUDE_FROM_LOAD_BALANCERS_VALUE,
    TERMINATION_FINALIZER, TERMINATION_TIMESTAMP,
};
use joiner_cloud::{ProviderId, Termination};
use joiner_model::Name;
use joiner_state::live::{Conditions as _, LiveClaim, LiveNode};
use serde_json::{Map, Value, json};

use super::drain::{Drain, drain};
use super::view::NodeView;
use crate::claim::{StatusWrite, TERMINATION_POLL, conditions, without_finalizer};
use crate::conditions::ConditionSet;
use crate::taints;

/// A drain takes at least this long: pods may have been bound before the taint was seen.
const DRAIN_MIN: Duration = Duration::from_secs(5);
/// How often a drain is looked at.
pub(super) const DRAIN_POLL: Duration = Duration::from_secs(1);

/// What the cloud has said during this look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Whether there is a machine, if that was asked.
    pub machine: Option<bool>,
    /// How its end stands, if it was asked for.
    pub termination: Option<Termination>,
}

/// What to do next about a Node that is to go.
#[derive(Clone, Debug)]
pub enum Step {
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
    Release(Value),
}

/// What to do next.
#[must_use]
pub fn next_step(view: &NodeView<'_>, asked: Asked, now: Timestamp) -> Step {
    let node = view.node;
    let Some(deleted) = node.meta.deleting else {
        return Step::Wait(None);
    };
    if !view.is_managed || !node.meta.has_finalizer(TERMINATION_FINALIZER) {
        return Step::Wait(None);
    }
    if view
        .claim
        .is_some_and(|claim| claim.meta.deleting.is_none())
    {
        return Step::DeleteClaim;
    }
    if let Some(id) = node.provider_id.as_ref().filter(|_| !node.is_ready()) {
        match asked.machine {
            None => return Step::AskMachine(ProviderId(id.clone())),
            // Nobody is left to run its pods, and nobody to end them.
            Some(false) => return Step::Release(without_finalizer(&node.meta)),
            Some(true) => {}
        }
    }
    let deadline = match view.claim.map(deadline).transpose() {
        Ok(deadline) => deadline.flatten(),
        Err(why) => return Step::BadDeadline(why),
    };
    if let Some(patch) = taint(node) {
        return Step::Taint(patch);
    }
    match view.claim {
        Some(claim) => with_claim(view, claim, deadline, asked, now),
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
    asked: Asked,
    now: Timestamp,
) -> Step {
    let mut set = conditions(claim, now);
    let drain = drain(view.pods.iter().copied(), deadline, now);
    let drained = claim.is_true("Drained");
    if !drain.is_done() || !drained {
        let since = claim.since("Drained").filter(|_| !drained).unwrap_or(now);
        let left = rest_of_drain(since, now);
        if !drain.is_done() || !left.is_zero() {
            set.set_unknown("Drained", "Draining", "Draining");
            let step = match drain.is_done() {
                false => Step::Drain(drain),
                true => Step::Wait(Some(left)),
            };
            return write_or(claim, set, step);
        }
    }
    set.set_true("Drained");
    if !view.volumes.is_empty() {
        if deadline.is_none_or(|deadline| now <= deadline) {
            let message = awaiting(&view.volumes);
            set.set_unknown("VolumesDetached", "AwaitingVolumeDetachment", &message);
            return write_or(claim, set, Step::AwaitVolumes(view.volumes.clone()));
        }
        let reason = "TerminationGracePeriodElapsed";
        set.set_false("VolumesDetached", reason, reason);
    } else {
        set.set_true("VolumesDetached");
    }
    let release = Step::Release(without_finalizer(&view.node.meta));
    let Some(id) = &claim.provider_id else {
        return write_or(claim, set, release);
    };
    let next = match asked.termination {
        None => Step::Terminate(ProviderId(id.clone())),
        Some(termination) => {
            set.set_true("InstanceTerminating");
            match termination {
                Termination::Going => Step::Wait(Some(TERMINATION_POLL)),
                Termination::Gone => release,
            }
        }
    };
    write_or(claim, set, next)
}

/// The end of a Node without a claim: nothing can be written down, and no machine is known.
fn without_claim(view: &NodeView<'_>, deleted: Timestamp, now: Timestamp) -> Step {
    let drain = drain(view.pods.iter().copied(), None, now);
    if !drain.is_done() {
        return Step::Drain(drain);
    }
    let left = rest_of_drain(deleted, now);
    if !left.is_zero() {
        return Step::Wait(Some(left));
    }
    if !view.volumes.is_empty() {
        return Step::AwaitVolumes(view.volumes.clone());
    }
    Step::Release(without_finalizer(&view.node.meta))
}

/// The conditions are written first, if they changed.
fn write_or(claim: &LiveClaim, set: ConditionSet, step: Step) -> Step {
    let finished = set.finished();
    if !finished.changed {
        return step;
    }
    let fields = Value::Object(Map::new());
    Step::Write(Box::new(StatusWrite::new(claim, finished, fields)))
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
