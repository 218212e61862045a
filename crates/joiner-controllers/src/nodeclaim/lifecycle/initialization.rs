//! What keeps a registered Node from being ready for pods.

use joiner_api::labels::is_ephemeral_taint;
use joiner_api::types::Taint;
use joiner_state::live::{LiveClaim, LiveNode};

use super::launch::requests;
use super::registration::same;

/// The first thing that a Node lacks: reason and message for the condition.
#[must_use]
pub(super) fn blocker(claim: &LiveClaim, node: &LiveNode) -> Option<(&'static str, String)> {
    if !node.is_ready() {
        return Some(("NodeNotReady", "Node status is NotReady".to_owned()));
    }
    let startup = claim.claim.spec.startup_taints.iter().flatten();
    for taint in startup {
        if node.taints.iter().any(|own| same(own, taint)) {
            let message = format!("StartupTaint \"{}\" still exists", render(taint));
            return Some(("StartupTaintsExist", message));
        }
    }
    let ephemeral = |own: &&Taint| is_ephemeral_taint(&own.key, own.effect);
    if let Some(taint) = node.taints.iter().find(ephemeral) {
        let message = format!("KnownEphemeralTaint \"{}\" still exists", render(taint));
        return Some(("KnownEphemeralTaintsExist", message));
    }
    // Requests that cannot be understood did not get the claim launched.
    let requests = requests(claim).unwrap_or_default();
    let missing = requests
        .iter()
        .find(|(name, amount)| *amount > 0 && node.allocatable().get(name) == 0);
    let (name, _) = missing?;
    let message = format!("Resource \"{name}\" was requested but not registered");
    Some(("ResourceNotRegistered", message))
}

/// A taint as kubectl writes it: `key=value:Effect`.
fn render(taint: &Taint) -> String {
    let effect = taint.effect.as_str();
    match taint.value.as_deref() {
        None | Some("") => format!("{}:{effect}", taint.key),
        Some(value) => format!("{}={value}:{effect}", taint.key),
    }
}
