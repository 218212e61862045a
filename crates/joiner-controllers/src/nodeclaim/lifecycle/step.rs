//! What to do next about a NodeClaim.
//!
//! One step at a time, each derived from what the objects say: a crash between any two of them
//! loses nothing.

use std::time::Duration;

use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_api::labels::{INITIALIZED, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP};
use joiner_api::types::{ConditionStatus, DurationText};
use joiner_cloud::{Order, Pending, ProviderId, Registration, Termination};
use joiner_engine::conditions::{CLAIM_DEPENDENTS, ConditionSet};
use joiner_engine::finalizer;
use joiner_engine::write::StatusWrite;
use joiner_model::Name;
use joiner_state::live::{Conditions as _, LiveClaim, LiveNode};
use serde_json::{Map, Value, json};

use super::view::ClaimView;
use super::{hooks, initialization, launch, registration};
use crate::nodepool::registrations::{RegistrationOutcome, never_registered};

/// How long a machine may take to become a Node.
pub const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How often a machine that is on its way out is asked after.
pub const TERMINATION_POLL: Duration = Duration::from_secs(5);
/// What the conditions say of a claim without its Node.
pub(super) const NO_NODE: &str = "Node not registered with cluster";

/// What to do next about a NodeClaim.
#[derive(Clone, Debug)]
pub enum ClaimStep {
    /// Nothing, until something changes or this long has passed.
    Wait(Option<Duration>),
    /// Put our finalizer on it, by this patch: nothing is launched without.
    AddFinalizer(Value),
    /// Launch its machine.
    Launch(Box<Order>),
    /// Nothing can be launched: the claim asks for something that cannot be read.
    Invalid(String),
    /// Ask the cloud whether its Node may be registered.
    AskRegistration,
    /// Bring labels of the cloud's registration hooks to the claim, by this patch.
    AddLabels(Value),
    /// Bring what the claim says to its Node.
    SyncNode {
        /// The Node.
        node: Name,
        /// The patch.
        patch: Value,
        /// The Node is open for pods afterwards.
        opens: bool,
        /// The Node came without the taint that keeps pods off.
        lacks_taint: bool,
    },
    /// Label its Node as initialized.
    MarkInitialized(Name),
    /// Write its status.
    Write(Box<StatusWrite>),
    /// Say that registration hooks failed, and try again later.
    HooksFailed(String),
    /// Delete it: it will not become a node.
    GiveUp(GiveUp),
    /// Write down when its machine goes, drained or not.
    SetDeadline(Timestamp),
    /// Delete its Nodes, by name and uid; their end is the work of another controller.
    DeleteNodes(Vec<(Name, Name)>),
    /// End its machine.
    Terminate(ProviderId),
    /// Take our finalizer off, by this patch.
    RemoveFinalizer(Value),
}

/// What the cloud has just said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// About the end of the machine.
    Termination(Termination),
    /// About the registration of the Node.
    Registration(Registration),
}

/// Why a claim is given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiveUp {
    /// For metrics.
    pub reason: &'static str,
    /// What is told of it, when something is.
    pub event: Option<String>,
    /// What it says about the pool, when it says something.
    pub outcome: Option<RegistrationOutcome>,
}

impl GiveUp {
    /// The launch took too long; its last failure says why.
    #[must_use]
    pub fn launch_timeout(reason: String, message: String) -> Self {
        Self {
            reason: "launch_timeout",
            event: None,
            outcome: Some(RegistrationOutcome::Failed { reason, message }),
        }
    }

    fn registration_timeout() -> Self {
        Self {
            reason: "registration_timeout",
            event: None,
            outcome: Some(never_registered()),
        }
    }
}

/// The conditions of a claim, to be changed.
#[must_use]
pub fn conditions(claim: &LiveClaim, now: Timestamp) -> ConditionSet {
    ConditionSet::new(&claim.meta, claim.conditions(), CLAIM_DEPENDENTS, now)
}

/// True when something has lasted this long.
#[must_use]
pub(super) fn timed_out(since: Timestamp, timeout: Duration, now: Timestamp) -> bool {
    left(since, timeout, now).is_zero()
}

/// How much is left of a while.
fn left(since: Timestamp, length: Duration, now: Timestamp) -> Duration {
    let end = since.checked_add(length).unwrap_or(Timestamp::MAX);
    Duration::try_from(end.duration_since(now)).unwrap_or(Duration::ZERO)
}

/// What to do next. `asked` is what the cloud has just said.
#[must_use]
pub fn next_step(view: &ClaimView<'_>, asked: Option<&Answer>, now: Timestamp) -> ClaimStep {
    if !view.is_supported() {
        return ClaimStep::Wait(None);
    }
    let (termination, registration) = match asked {
        Some(Answer::Termination(answer)) => (Some(*answer), None),
        Some(Answer::Registration(answer)) => (None, Some(answer)),
        None => (None, None),
    };
    match view.claim.meta.deleting {
        Some(deleted) => ending(view, deleted, termination, now),
        None => living(view, registration, now),
    }
}

fn living(view: &ClaimView<'_>, asked: Option<&Registration>, now: Timestamp) -> ClaimStep {
    let claim = view.claim;
    if let Some(patch) = finalizer::add(&claim.meta, TERMINATION_FINALIZER) {
        return ClaimStep::AddFinalizer(patch);
    }
    if claim.is_unknown(&condition::LAUNCHED) {
        return match launch::order(view) {
            Ok(order) => ClaimStep::Launch(Box::new(order)),
            Err(why) => ClaimStep::Invalid(why),
        };
    }
    let mut set = conditions(claim, now);
    // What holds is said again, of the object as it is now.
    set.set_true(condition::LAUNCHED);
    let mut fields = Value::Object(Map::new());
    let pending = match register(view, asked, &mut set, &mut fields) {
        Ok(pending) => pending,
        Err(step) => return step,
    };
    if let Some(step) = initialize(view, &mut set) {
        return step;
    }
    let finished = set.finished();
    if finished.changed {
        return ClaimStep::Write(Box::new(StatusWrite::new(&claim.meta, finished, fields)));
    }
    if claim.is_true(&condition::REGISTERED) {
        return ClaimStep::Wait(None);
    }
    let since = claim
        .since(&condition::REGISTERED)
        .unwrap_or(claim.meta.created);
    match left(since, REGISTRATION_TIMEOUT, now) {
        Duration::ZERO => ClaimStep::GiveUp(GiveUp::registration_timeout()),
        left => await_registration(pending, left),
    }
}

/// Waits for a Node, or for the hooks that keep it from being registered.
fn await_registration(pending: &[Pending], left: Duration) -> ClaimStep {
    if pending.is_empty() {
        return ClaimStep::Wait(Some(left));
    }
    match hooks::failure(pending) {
        Some(failure) => ClaimStep::HooksFailed(failure),
        None => ClaimStep::Wait(Some(hooks::pause(pending).min(left))),
    }
}

/// Sets `Registered` and tells which hooks are pending.
///
/// # Errors
/// What comes before it.
fn register<'a>(
    view: &ClaimView<'_>,
    asked: Option<&'a Registration>,
    set: &mut ConditionSet,
    fields: &mut Value,
) -> Result<&'a [Pending], ClaimStep> {
    let known = view.claim.condition(&condition::REGISTERED);
    match known.map_or(ConditionStatus::Unknown, |own| own.status) {
        ConditionStatus::True => {
            set.set_true(condition::REGISTERED);
            return Ok(&[]);
        }
        ConditionStatus::False => return Ok(&[]),
        ConditionStatus::Unknown => {}
    }
    match view.nodes.as_slice() {
        [node] if registration::is_synced(view.claim, node) => {
            fields["nodeName"] = json!(&**node.name());
            set.set_true(condition::REGISTERED);
        }
        // One that is being deleted takes no finalizer any more.
        [node] if node.meta.deleting.is_none() => {
            let pending = adopt(view, node, asked)?;
            set.set_unknown(
                condition::REGISTERED,
                hooks::REASON,
                &hooks::message(pending),
            );
            return Ok(pending);
        }
        [] | [_] => set.set_unknown(condition::REGISTERED, "NodeNotFound", NO_NODE),
        [_, _, ..] => set.set_false(
            condition::REGISTERED,
            "MultipleNodesFound",
            "Invariant violated, matched multiple nodes",
        ),
    }
    Ok(&[])
}

/// The hooks that keep a Node from being registered, when nothing is left to do but to wait for them.
///
/// # Errors
/// What comes before that: the Node is synced when it joins, and opened when no hook is pending.
fn adopt<'a>(
    view: &ClaimView<'_>,
    node: &LiveNode,
    asked: Option<&'a Registration>,
) -> Result<&'a [Pending], ClaimStep> {
    let claim = view.claim;
    let is_adopted = registration::is_adopted(claim, node);
    let sync = |patch: Value, opens: bool| ClaimStep::SyncNode {
        node: node.name().clone(),
        patch,
        opens,
        // That is told once.
        lacks_taint: !is_adopted && registration::lacks_taint(node),
    };
    if !view.terms.has_registration_hooks {
        return Err(sync(registration::open(claim, node), true));
    }
    let Some(answer) = asked else {
        return Err(ClaimStep::AskRegistration);
    };
    if !answer.pending.is_empty() {
        return match is_adopted {
            true => Ok(&answer.pending),
            false => Err(sync(registration::adopt(claim, node), false)),
        };
    }
    Err(match hooks::labels(claim, answer) {
        Some(patch) => ClaimStep::AddLabels(patch),
        None => sync(registration::open(claim, node), true),
    })
}

/// Sets `Initialized`, or says what comes before it. Once true it stays.
fn initialize(view: &ClaimView<'_>, set: &mut ConditionSet) -> Option<ClaimStep> {
    let claim = view.claim;
    if claim.is_true(&condition::INITIALIZED) {
        set.set_true(condition::INITIALIZED);
        return None;
    }
    if !claim.is_true(&condition::REGISTERED) || !claim.is_unknown(&condition::INITIALIZED) {
        return None;
    }
    let [node] = view.nodes.as_slice() else {
        set.set_unknown(condition::INITIALIZED, "NodeNotFound", NO_NODE);
        return None;
    };
    match initialization::blocker(claim, node) {
        Some((reason, message)) => set.set_unknown(condition::INITIALIZED, reason, &message),
        None if !node.says(INITIALIZED) => {
            return Some(ClaimStep::MarkInitialized(node.name().clone()));
        }
        None => set.set_true(condition::INITIALIZED),
    }
    None
}

fn ending(
    view: &ClaimView<'_>,
    deleted: Timestamp,
    asked: Option<Termination>,
    now: Timestamp,
) -> ClaimStep {
    let claim = view.claim;
    let Some(release) = finalizer::remove(&claim.meta, TERMINATION_FINALIZER) else {
        return ClaimStep::Wait(None);
    };
    let known = claim.meta.annotation(TERMINATION_TIMESTAMP);
    if let (Some(grace), None) = (grace_period(claim), known) {
        return ClaimStep::SetDeadline(deleted.checked_add(grace).unwrap_or(Timestamp::MAX));
    }
    // The Node of a claim that never registered is not ours, unless it was taken in already.
    let registered = claim.is_true(&condition::REGISTERED);
    let is_ours = |node: &&&LiveNode| registered || registration::is_adopted(claim, node);
    let ours: Vec<&&LiveNode> = view.nodes.iter().filter(is_ours).collect();
    let alive = ours.iter().filter(|node| node.meta.deleting.is_none());
    let alive: Vec<(Name, Name)> = alive
        .map(|node| (node.name().clone(), node.meta.uid.clone()))
        .collect();
    if !alive.is_empty() {
        return ClaimStep::DeleteNodes(alive);
    }
    if !ours.is_empty() {
        return ClaimStep::Wait(Some(TERMINATION_POLL));
    }
    let Some(id) = &claim.provider_id else {
        return ClaimStep::RemoveFinalizer(release);
    };
    match asked {
        None => ClaimStep::Terminate(ProviderId(id.clone())),
        Some(Termination::Going) if !claim.is_true(&condition::INSTANCE_TERMINATING) => {
            ClaimStep::Write(Box::new(terminating(claim, now)))
        }
        Some(Termination::Going) => ClaimStep::Wait(Some(TERMINATION_POLL)),
        Some(Termination::Gone) => ClaimStep::RemoveFinalizer(release),
    }
}

/// Writes down that the machine of a claim is on its way out.
#[must_use]
pub fn terminating(claim: &LiveClaim, now: Timestamp) -> StatusWrite {
    let mut set = conditions(claim, now);
    set.set_true(condition::INSTANCE_TERMINATING);
    StatusWrite::new(&claim.meta, set.finished(), Value::Object(Map::new()))
}

/// How long a drain may take before it is forced, if that is limited.
#[must_use]
pub fn grace_period(claim: &LiveClaim) -> Option<Duration> {
    let grace = claim.claim.spec.termination_grace_period.as_ref();
    grace.and_then(|text: &DurationText| text.parse().ok().flatten())
}
