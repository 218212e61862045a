//! Carries commands out, and undoes those that cannot be finished.

use std::sync::Arc;

use futures::FutureExt as _;
use joiner_api::conditions::DISRUPTION_REASON;
use joiner_api::labels::DISRUPTED_TAINT;
use joiner_api::types::NodeClaim;
use joiner_engine::conditions::Finished;
use joiner_engine::{Failure, Shared, events, write};
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Conditions as _, Kind, LiveClaim, Snapshot};
use serde_json::json;

use super::intent::{COMMAND, Intent};
use crate::nodeclaim::is_on;
use crate::nodeclaim::lifecycle::{self, Terms};
use crate::taints;

/// How often a claim or node that others write to is tried.
const TRIES: u32 = 6;

/// Begins a command: nodes are tainted, replacements are created, and only then the intent is written
/// on the members: whoever reads it finds the replacements. What cannot be begun is undone; what was
/// bought already is found empty later.
///
/// # Errors
/// What was in the way.
pub(super) async fn begin(
    shared: &Shared,
    terms: Terms,
    intent: &Intent,
    replacements: &[NodeClaim],
) -> Result<(), Failure> {
    let result = try_begin(shared, intent, replacements).await;
    if result.is_err() {
        undo(shared, intent).await;
        // Nodes may have been closed whose claims were not marked yet.
        recover(shared, terms).await;
    }
    result
}

async fn try_begin(
    shared: &Shared,
    intent: &Intent,
    replacements: &[NodeClaim],
) -> Result<(), Failure> {
    for name in &intent.members {
        write::through_conflicts(shared, TRIES, || taint(shared, name).boxed()).await?;
    }
    for replacement in replacements {
        let object = serde_json::to_value(replacement).unwrap_or_default();
        match shared.api.create(Kind::NodeClaim, &object).await {
            // Made by a try whose answer was lost.
            Err(ApiFailure::AlreadyExists) => {
                write::refresh(shared, Kind::NodeClaim, &replacement.metadata.name).await?;
            }
            made => drop(made?),
        }
    }
    for name in &intent.members {
        write::through_conflicts(shared, TRIES, || mark(shared, name, intent).boxed()).await?;
    }
    Ok(())
}

/// Closes the node of a claim, if it has one.
async fn taint(shared: &Shared, claim: &str) -> Result<(), Failure> {
    let snapshot = shared.world.snapshot();
    let Some(claim) = snapshot.claim(claim) else {
        return Err(Failure::Other(format!("NodeClaim {claim} is gone")));
    };
    let node = snapshot.node_of(claim);
    let Some(node) = node.filter(|own| !own.has_taint(&DISRUPTED_TAINT)) else {
        return Ok(());
    };
    let patch = taints::patch(node, &taints::with(node, &DISRUPTED_TAINT));
    write::patch(shared, Kind::Node, node.name(), &patch).await?;
    tracing::info!(
        Node = &**node.name(),
        NodeClaim = &**claim.name(),
        taint.Key = DISRUPTED_TAINT.key,
        taint.Effect = "NoSchedule",
        "tainted node"
    );
    Ok(())
}

async fn mark(shared: &Shared, name: &str, intent: &Intent) -> Result<(), Failure> {
    let patch = json!({"metadata": {"annotations": {COMMAND: intent.text()}}});
    write::patch(shared, Kind::NodeClaim, name, &patch).await?;
    let snapshot = shared.world.snapshot();
    let Some(claim) = snapshot.claim(name) else {
        return Err(Failure::Other("the NodeClaim is gone".to_owned()));
    };
    let mut set = lifecycle::conditions(claim, shared.clock.now());
    set.set_true_for(DISRUPTION_REASON, &intent.reason, &intent.reason);
    write_conditions(shared, claim, set.finished()).await
}

async fn write_conditions(
    shared: &Shared,
    claim: &LiveClaim,
    finished: Finished,
) -> Result<(), Failure> {
    let object = write::Object::new(Kind::NodeClaim, events::claim(claim));
    write::conditions(shared, &object, &claim.meta, finished).await
}

/// How far a command was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undone {
    /// Nothing is left of it.
    All,
    /// Some of its members go all the same.
    AllButGoing,
    /// Something could not be written yet.
    NotYet,
}

/// Takes a command from all members that carry it and are not going yet. What it leaves behind where a
/// write fails is for [`recover`].
pub(super) async fn undo(shared: &Shared, intent: &Intent) -> Undone {
    let mut undone = Undone::All;
    let snapshot = shared.world.snapshot();
    for claim in intent.carriers(&snapshot) {
        if claim.meta.deleting.is_some() {
            if undone == Undone::All {
                undone = Undone::AllButGoing;
            }
        } else if let Err(error) = withdraw(shared, claim).await {
            tracing::warn!(NodeClaim = &**claim.name(), %error, "cannot undo a disruption yet");
            undone = Undone::NotYet;
        } else {
            clean(shared, claim.name()).await;
        }
    }
    undone
}

/// From here on no command is about a claim.
async fn withdraw(shared: &Shared, claim: &LiveClaim) -> Result<(), Failure> {
    let patch = json!({"metadata": {"annotations": {COMMAND: null}}});
    write::patch(shared, Kind::NodeClaim, claim.name(), &patch).await?;
    Ok(())
}

/// Takes what a command has left from a claim and its node, unless the next one is about it already.
async fn clean(shared: &Shared, claim: &str) {
    if let Err(error) = try_clean(shared, claim).await {
        tracing::warn!(NodeClaim = claim, %error, "cannot clean up after a disruption yet");
    }
}

async fn try_clean(shared: &Shared, claim: &str) -> Result<(), Failure> {
    let snapshot = shared.world.snapshot();
    let free = |own: &&Arc<LiveClaim>| Intent::of(own).is_none();
    let Some(claim) = snapshot.claim(claim).filter(free) else {
        return Ok(());
    };
    let node = snapshot.node_of(claim);
    if let Some(node) = node.filter(|own| own.has_taint(&DISRUPTED_TAINT)) {
        let patch = taints::patch(node, &taints::without(node, &DISRUPTED_TAINT));
        write::patch(shared, Kind::Node, node.name(), &patch).await?;
        tracing::info!(Node = &**node.name(), "untainted node");
    }
    if claim.meta.annotation(COMMAND).is_some() {
        // Nobody can read what it says.
        withdraw(shared, claim).await?;
    }
    let snapshot = shared.world.snapshot();
    let Some(claim) = snapshot.claim(claim.name()) else {
        return Ok(());
    };
    let mut set = lifecycle::conditions(claim, shared.clock.now());
    set.clear(DISRUPTION_REASON);
    write_conditions(shared, claim, set.finished()).await
}

/// Claims that are marked, or whose nodes are, though no command is about them: left over from a crash,
/// or from a write that failed.
pub(super) fn left_over(snapshot: &Snapshot) -> Vec<Name> {
    let marked = |claim: &&Arc<LiveClaim>| {
        let node = snapshot.node_of(claim);
        let node = node.filter(|own| own.meta.deleting.is_none());
        claim.is_true(&DISRUPTION_REASON)
            || claim.meta.annotation(COMMAND).is_some()
            || node.is_some_and(|own| own.has_taint(&DISRUPTED_TAINT))
    };
    let stays = |claim: &&Arc<LiveClaim>| claim.meta.deleting.is_none();
    let claims = snapshot.claims().filter(stays).filter(marked);
    let claims = claims.filter(|claim| Intent::of(claim).is_none());
    claims.map(|claim| claim.name().clone()).collect()
}

/// Cleans up what a crash has left. Claims of another provider are its own business.
pub(super) async fn recover(shared: &Shared, terms: Terms) {
    let snapshot = shared.world.snapshot();
    for name in left_over(&snapshot) {
        let claim = snapshot.claim(&name);
        if claim.is_some_and(|own| is_on(terms, own)) {
            clean(shared, &name).await;
        }
    }
}
