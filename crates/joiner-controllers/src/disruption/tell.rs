//! What people hear of disruption: logs, events, metrics, the decision log.

use joiner_disruption::{Decision, Rejection};
use joiner_model::Name;
use joiner_runtime::Decision as Record;
use joiner_runtime::metric_names::{
    DISRUPTION_DECISIONS, DISRUPTION_DECISIONS_BY_NODEPOOL, DISRUPTION_FAILED_VALIDATIONS,
    NODECLAIMS_CREATED, NODEPOOLS_ALLOWED_DISRUPTIONS,
};
use joiner_state::live::Snapshot;
use serde_json::json;

use super::intent::Intent;
use super::{NAME, Order};
use crate::context::Ctx;
use crate::observe;

/// What every pool allows, and why nodes stay.
pub(super) fn decided(ctx: &Ctx, decision: &Decision, nodes: &[Name], snapshot: &Snapshot) {
    for (node, verdict) in nodes.iter().zip(&decision.verdicts) {
        if let Some(why) = &verdict.stays {
            tracing::debug!(controller = NAME, Node = &**node, bound = %verdict.bound, "stays: {why}");
        }
    }
    let pools: Vec<_> = snapshot.pools().collect();
    for (pool, reason, allowed) in &decision.allowed {
        if let Some(pool) = pools.get(*pool) {
            let labels = [("nodepool", &**pool.name()), ("reason", reason.as_str())];
            let metrics = &ctx.metrics;
            metrics.gauge(NODEPOOLS_ALLOWED_DISRUPTIONS, &labels, f64::from(*allowed));
        }
    }
}

/// A command for money was found; it is asked about again before it starts.
pub(super) fn candidate(ctx: &Ctx, order: &Order) {
    let command = &order.command;
    tracing::debug!(
        controller = NAME,
        why = command.why,
        "waiting before disrupting node(s)"
    );
    if command.is_delete() {
        return;
    }
    let snapshot = ctx.world.snapshot();
    let message = format!("Consolidation candidate: {}", command.why);
    for name in &command.claims {
        if let Some(claim) = snapshot.claim(name) {
            let about = observe::claim(claim);
            observe::note(ctx, about, "ConsolidationCandidate", message.clone());
        }
    }
}

/// The second look came to another result.
pub(super) fn rejected(ctx: &Ctx, order: &Order, rejection: Option<&Rejection>) {
    let kind = order.command.method.consolidation_type();
    let labels = [("consolidation_type", kind)];
    ctx.metrics
        .count(DISRUPTION_FAILED_VALIDATIONS, &labels, 1.0);
    let why = rejection.map_or_else(String::new, ToString::to_string);
    tracing::info!(
        controller = NAME,
        why,
        "a disruption is dropped: it no longer holds"
    );
}

/// In a dry run.
pub(super) fn would_begin(order: &Order, intent: &Intent) {
    tracing::info!(
        controller = NAME,
        reason = intent.reason,
        nodes = order.nodes.join(","),
        why = order.command.why,
        "dry run: would disrupt node(s)"
    );
}

/// A command is under way.
pub(super) fn begun(ctx: &Ctx, order: &Order, intent: &Intent) {
    let command = &order.command;
    tracing::info!(
        controller = NAME,
        command_id = intent.id,
        reason = intent.reason,
        decision = intent.decision(),
        nodes = order.nodes.join(","),
        replacements = intent.replacements.join(","),
        price_before = %command.price_before,
        price_after = %command.price_after,
        why = command.why,
        "disrupting node(s)"
    );
    let labels = [
        ("decision", intent.decision()),
        ("reason", &*intent.reason.to_lowercase()),
        ("consolidation_type", &*intent.method),
    ];
    ctx.metrics.count(DISRUPTION_DECISIONS, &labels, 1.0);
    let snapshot = ctx.world.snapshot();
    let mut pools: Vec<&str> = Vec::new();
    for name in &command.claims {
        let pool = snapshot.claim(name).and_then(|claim| claim.pool());
        if let Some(pool) = pool.filter(|pool| !pools.contains(pool)) {
            pools.push(pool);
        }
    }
    for pool in pools {
        let [decision, reason, kind] = labels;
        let labels = [("nodepool", pool), decision, reason, kind];
        ctx.metrics
            .count(DISRUPTION_DECISIONS_BY_NODEPOOL, &labels, 1.0);
    }
    for own in &order.replacements {
        let pool = own.metadata.labels.get(joiner_api::labels::NODE_POOL);
        let labels = [
            ("reason", &*intent.reason.to_lowercase()),
            ("nodepool", pool.map_or("", String::as_str)),
            ("min_values_relaxed", "false"),
        ];
        ctx.metrics.count(NODECLAIMS_CREATED, &labels, 1.0);
    }
    ctx.decisions.record(Record {
        time: intent.started,
        kind: "disruption".to_owned(),
        generation: snapshot.generation,
        outcome: command.why.clone(),
        price_before: Some(command.price_before),
        price_after: Some(command.price_after),
        reasons: vec![format!("{}: {}", intent.reason, command.why)],
        alternatives: Vec::new(),
        about: order
            .nodes
            .iter()
            .map(|node| format!("node/{node}"))
            .collect(),
        details: json!({"command": intent}),
    });
}
