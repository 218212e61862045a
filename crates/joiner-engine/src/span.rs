//! What is logged and counted of each reconcile.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use joiner_model::Name;
use joiner_runtime::metric_names::{RECONCILE_ERRORS, RECONCILE_TIME, RECONCILES};
use tracing::{Instrument as _, Span};

use crate::controller::{Failure, Next, Reconcile, Shared};

/// Waits for a reconcile, and logs and counts it. Passes have an empty key.
pub(crate) async fn measured(
    shared: &Shared,
    controller: &'static str,
    key: &Name,
    reconciling: Reconcile<'_>,
) -> Result<Next, Failure> {
    let started = shared.clock.now();
    let span = span(controller, key, started);
    let result = reconciling.instrument(span.clone()).await;
    span.in_scope(|| report(controller, key, &result));
    let took = shared.clock.now().duration_since(started).as_secs_f64();
    let outcome = match &result {
        Ok(Next::Done) => "success",
        Ok(Next::Again(_)) => "requeue_after",
        Err(_) => "error",
    };
    let labels = [("controller", controller), ("result", outcome)];
    shared.metrics.count(RECONCILES, &labels, 1.0);
    let labels = [("controller", controller)];
    if result.is_err() {
        shared.metrics.count(RECONCILE_ERRORS, &labels, 1.0);
    }
    shared.metrics.observe(RECONCILE_TIME, &labels, took);
    result
}

/// Group and kind of what a controller looks at, by its name.
fn kind_of(controller: &str) -> Option<(&'static str, &'static str)> {
    const KARPENTER: &str = "karpenter.sh";
    match controller.split('.').next()? {
        "nodeclaim" => Some((KARPENTER, "NodeClaim")),
        "nodepool" | "static" => Some((KARPENTER, "NodePool")),
        "node" => Some(("", "Node")),
        "eviction-queue" => Some(("", "Pod")),
        _ => None,
    }
}

/// What all lines of one reconcile have in common, as upstream has it.
fn span(controller: &'static str, key: &Name, now: Timestamp) -> Span {
    use tracing::field::Empty;
    // Also lines about errors alone carry it.
    let span = tracing::error_span!(
        "reconcile",
        controller,
        controller_group = Empty,
        controller_kind = Empty,
        NodeClaim = Empty,
        NodePool = Empty,
        Node = Empty,
        Pod = Empty,
        namespace = Empty,
        name = Empty,
        reconcile_id = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    span.record("reconcile_id", reconcile_id(controller, key, now));
    if let Some((group, kind)) = kind_of(controller).filter(|_| !key.is_empty()) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", &**key));
        span.record("controller_group", group);
        span.record("controller_kind", kind);
        span.record(kind, &**key);
        span.record("namespace", namespace);
        span.record("name", name);
    }
    span
}

/// A name for one reconcile, in the form that upstream's have.
fn reconcile_id(controller: &str, key: &Name, now: Timestamp) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let part = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, n, now.as_nanosecond(), controller, &**key).hash(&mut hasher);
        hasher.finish()
    };
    let (high, low) = (part(0), part(1));
    let digits = format!("{high:016x}{low:016x}");
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

fn report(controller: &'static str, key: &Name, result: &Result<Next, Failure>) {
    if let Err(failure) = result {
        if failure.is_ordinary() {
            tracing::debug!(controller, key = &**key, "reconciling again: {failure}");
        } else {
            tracing::error!(controller, key = &**key, error = %failure, "reconciler error");
        }
    }
}
