//! When to look at everything again, and when not yet.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_state::live::{COMMAND, Change, Conditions as _, Kind, PLANNED, Snapshot, What};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use super::SOON;
use crate::claim::Terms;
use crate::context::Ctx;
use crate::upkeep::is_on;

/// A "nothing to do" holds this long at most.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// Waits this long, or until the last command under way has ended: now all can be seen in its place.
pub(super) async fn rest(ctx: &Ctx, pause: Duration) {
    if !is_busy(&ctx.world.snapshot()) {
        return ctx.clock.sleep(pause).await;
    }
    let end = ctx.clock.now().checked_add(pause);
    let end = end.unwrap_or(Timestamp::MAX);
    while ctx.clock.now() < end && is_busy(&ctx.world.snapshot()) {
        let left = end.duration_since(ctx.clock.now()).unsigned_abs();
        ctx.clock.sleep(left.min(SOON)).await;
    }
}

/// True while a command is under way. None begins but by the one who asks.
pub(super) fn is_busy(snapshot: &Snapshot) -> bool {
    let mut claims = snapshot.claims();
    claims.any(|claim| claim.meta.annotation(COMMAND).is_some())
}

/// True when some node must go, whatever else happens: one step after the other is a burst of its own.
pub(super) fn has_drifted(snapshot: &Snapshot) -> bool {
    let mut claims = snapshot.claims();
    claims.any(|claim| claim.is_true("Drifted") && claim.meta.deleting.is_none())
}

/// True when everything is looked at anew, though nothing has changed.
pub(super) fn is_stale(changed: Timestamp, now: Timestamp) -> bool {
    let age = Duration::try_from(now.duration_since(changed)).unwrap_or_default();
    age >= REMEMBERED_FOR
}

/// True when some claim has no machine yet: it is better known in a moment what it will be. Nodes that
/// must go do not wait for that; what is planned is good enough for them.
pub(super) fn is_too_early(terms: Terms, snapshot: &Snapshot) -> bool {
    let has_drifted = has_drifted(snapshot);
    let mut claims = snapshot.claims();
    claims.any(|claim| {
        let is_launching = claim.provider_id.is_none() && claim.meta.deleting.is_none();
        let is_planned = claim.meta.annotation(PLANNED).is_some();
        // One of a class that the cloud does not know may never be launched.
        is_launching && !(has_drifted && is_planned) && is_on(terms, claim)
    })
}

/// Whether there is something new.
pub(super) enum News {
    Some,
    None,
    /// There will never be.
    End,
}

/// Hears all that has happened since it was called last.
pub(super) fn news(changes: &mut Receiver<Arc<[Change]>>) -> News {
    let mut heard = News::None;
    loop {
        match changes.try_recv() {
            Ok(told) if !told.iter().any(matters) => {}
            Ok(_) | Err(TryRecvError::Lagged(_)) => heard = News::Some,
            Err(TryRecvError::Empty) => return heard,
            Err(TryRecvError::Closed) => return News::End,
        }
    }
}

/// A change that may turn a "nothing to do" around.
pub(super) fn matters(change: &Change) -> bool {
    match change.kind {
        // Nodes say often that they are alive; a pod that is bound may have just been.
        Kind::Node => change.what != What::Changed,
        Kind::Pod => change.what != What::Changed || change.about.is_some(),
        Kind::NodeClaim
        | Kind::NodePool
        | Kind::NodeOverlay
        | Kind::NodeClass
        | Kind::PodDisruptionBudget => true,
        _ => false,
    }
}
