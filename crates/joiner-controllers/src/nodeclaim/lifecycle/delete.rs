//! How a claim is deleted by us, whatever the reason.

use joiner_api::labels::CAPACITY_TYPE;
use joiner_api::types::ConsolidationPolicy;
use joiner_engine::{Failure, Shared, events};
use joiner_runtime::metric_names::{NODECLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED};
use joiner_runtime::{About, ApiFailure, Delete, Events};
use joiner_state::live::{Kind, LiveClaim, Snapshot};

use super::step::grace_period;

/// Deletes a claim, if it is still the one that was looked at; counts and logs it once. The rest is
/// the work of its finalizer. `reason` is a word of the metric, such as `expired`.
///
/// # Errors
/// When the API server cannot be asked, or refuses. A claim that is gone is fine.
pub async fn delete(shared: &Shared, claim: &LiveClaim, reason: &str) -> Result<(), Failure> {
    if claim.meta.deleting.is_some() {
        return Ok(());
    }
    let how = Delete {
        uid: Some(claim.meta.uid.clone()),
        grace_secs: None,
    };
    let snapshot = shared.world.snapshot();
    let n_pods = n_reschedulable(&snapshot, claim);
    match shared.api.delete(Kind::NodeClaim, claim.name(), how).await {
        // A conflict means that the claim of that name is another one by now.
        Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => return Ok(()),
        other => other?,
    }
    if shared.api.is_dry_run() {
        return Ok(());
    }
    let labels = [
        ("reason", reason),
        ("nodepool", claim.pool().unwrap_or_default()),
        (
            "capacity_type",
            claim.meta.label(CAPACITY_TYPE).unwrap_or_default(),
        ),
        ("consolidation_policy", policy(&snapshot, claim, reason)),
        ("termination_mode", termination_mode(claim)),
    ];
    shared.metrics.count(NODECLAIMS_DISRUPTED, &labels, 1.0);
    shared
        .metrics
        .count(PODS_DISRUPTION_INITIATED, &labels, f64::from(n_pods));
    tracing::info!(
        NodeClaim = &**claim.name(),
        Node = claim.node_name().unwrap_or_default(),
        NodePool = claim.pool().unwrap_or_default(),
        provider_id = claim.provider_id.as_deref().unwrap_or_default(),
        reason,
        "deleting nodeclaim"
    );
    Ok(())
}

/// The policy by which a pool gave the node, a word of the metric; empty when that was not asked.
fn policy(snapshot: &Snapshot, claim: &LiveClaim, reason: &str) -> &'static str {
    if !matches!(reason, "empty" | "underutilized") {
        return "";
    }
    let pool = claim.pool().and_then(|name| snapshot.pool(name));
    let Some(pool) = pool else { return "" };
    let disruption = pool.pool.spec.disruption.as_ref();
    match disruption.and_then(|own| own.consolidation_policy) {
        Some(ConsolidationPolicy::WhenEmpty) => "when_empty",
        Some(ConsolidationPolicy::Balanced) => "balanced",
        Some(ConsolidationPolicy::WhenEmptyOrUnderutilized) | None => "when_empty_or_underutilized",
    }
}

/// Pods that need another place when the claim goes.
fn n_reschedulable(snapshot: &Snapshot, claim: &LiveClaim) -> u32 {
    let node = snapshot.node_of(claim);
    let pods = node
        .into_iter()
        .flat_map(|node| snapshot.pods_on(node.name()));
    let n = pods.filter(|pod| pod.is_reschedulable()).count();
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// How far a drain may hold up the end: a word of the metric.
#[must_use]
pub fn termination_mode(claim: &LiveClaim) -> &'static str {
    match grace_period(claim) {
        None => "graceful",
        Some(grace) if grace.is_zero() => "forceful",
        Some(_) => "eventual",
    }
}

/// Reports by when all pods of a node will be gone.
pub(crate) fn report_deadline(events: &Events, about: About, at: &str) {
    let message = format!("All pods will be deleted by {at}");
    events::warn(events, about, "TerminationGracePeriodExpiring", message);
}
