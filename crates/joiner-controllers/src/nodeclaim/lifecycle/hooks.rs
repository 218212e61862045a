//! What a cloud's registration hooks keep a Node from, and for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use joiner_cloud::{Pending, Registration};
use joiner_state::live::LiveClaim;
use serde_json::{Map, Value, json};

use super::launch::cut;

/// Why `Registered` is not known while hooks are pending.
pub(super) const REASON: &str = "RegistrationHookPending";
/// How long hooks are left alone when none of them says.
const PAUSE: Duration = Duration::from_secs(5);
/// However soon a hook wants to be asked again, it is not asked more often than that.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// What the condition says: the names of all hooks that are pending, and what went wrong.
#[must_use]
pub(super) fn message(pending: &[Pending]) -> String {
    let names: BTreeSet<&str> = pending.iter().map(|own| &*own.hook).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let names = names.join(", ");
    match failure(pending) {
        Some(failure) => cut(&format!("{names}: {failure}")),
        None => cut(&names),
    }
}

/// What went wrong, if anything did.
#[must_use]
pub(super) fn failure(pending: &[Pending]) -> Option<String> {
    let failed = pending.iter().filter_map(|own| {
        let error = own.error.as_ref()?;
        Some(format!("registration hook {:?} failed, {error}", own.hook))
    });
    let failed: BTreeSet<String> = failed.collect();
    let failed: Vec<String> = failed.into_iter().collect();
    (!failed.is_empty()).then(|| failed.join("; "))
}

/// When to ask again: as soon as the most impatient hook wants it.
#[must_use]
pub(super) fn pause(pending: &[Pending]) -> Duration {
    let asked = pending.iter().filter_map(|own| own.again).min();
    asked.unwrap_or(PAUSE).max(PAUSE_MIN)
}

/// The patch that brings labels of hooks to a claim, when it lacks some. What the claim says already
/// stays.
#[must_use]
pub(super) fn labels(claim: &LiveClaim, answer: &Registration) -> Option<Value> {
    let lacking = answer
        .labels
        .iter()
        .filter(|(key, _)| claim.meta.label(key).is_none());
    let lacking: Map<String, Value> = lacking
        .map(|(key, value)| (key.to_string(), json!(&**value)))
        .collect();
    (!lacking.is_empty()).then(|| {
        json!({"metadata": {
            "resourceVersion": claim.meta.version.to_string(),
            "labels": lacking,
        }})
    })
}
