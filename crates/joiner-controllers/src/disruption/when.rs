//! When to look at everything again, and when not yet.

use std::time::Duration;

use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_state::live::{COMMAND, Change, Conditions as _, Kind, PLANNED, Snapshot, What};

use crate::nodeclaim::is_on;
use crate::nodeclaim::lifecycle::Terms;

/// A "nothing to do" holds this long at most.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// True while a command is under way. Only the controller that asks begins any.
pub(super) fn is_busy(snapshot: &Snapshot) -> bool {
    let mut claims = snapshot.claims();
    claims.any(|claim| claim.meta.annotation(COMMAND).is_some())
}

/// True when some node must go, whatever else happens: one step after the other is a burst of its own.
pub(super) fn has_drifted(snapshot: &Snapshot) -> bool {
    let mut claims = snapshot.claims();
    claims.any(|claim| claim.is_true(&condition::DRIFTED) && claim.meta.deleting.is_none())
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
