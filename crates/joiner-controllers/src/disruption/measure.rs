//! Upstream's metrics about looking for nodes to give back, and what Balanced pools approve.

use joiner_disruption::{Decision, Judgement, Method, Policy, Reason};
use joiner_engine::{Shared, events};
use joiner_runtime::metric_names::{
    CONSOLIDATION_MOVES, CONSOLIDATION_SCORE, CONSOLIDATION_TIMEOUTS, DISRUPTION_ELIGIBLE_NODES,
    DISRUPTION_EVALUATION_DURATION, NODEPOOLS_NODES_CONSUMING_BUDGETS,
};
use joiner_runtime::{Event, Metrics};
use joiner_state::live::Snapshot;

use super::orders::Order;

/// The consolidations whose searches can be cut short.
const SEARCHES: [Method; 2] = [Method::Multi, Method::Single];

/// Makes counters that nothing has counted yet visible.
pub(super) fn begin(metrics: &Metrics) {
    for method in SEARCHES {
        let labels = [("consolidation_type", method.consolidation_type())];
        metrics.count(CONSOLIDATION_TIMEOUTS, &labels, 0.0);
    }
}

/// What one pass says about the fleet.
pub(super) fn decided(metrics: &Metrics, decision: &Decision, snapshot: &Snapshot, secs: f64) {
    for (reason, n) in &decision.eligible {
        let labels = [("reason", &*word(*reason))];
        metrics.gauge(DISRUPTION_ELIGIBLE_NODES, &labels, f64::from(*n));
    }
    for (pool, n) in snapshot.pools().zip(&decision.consuming) {
        for reason in Reason::ALL {
            let labels = [("nodepool", &**pool.name()), ("reason", reason.as_str())];
            metrics.gauge(NODEPOOLS_NODES_CONSUMING_BUDGETS, &labels, f64::from(*n));
        }
    }
    for method in &decision.cut_short {
        let labels = [("consolidation_type", method.consolidation_type())];
        metrics.count(CONSOLIDATION_TIMEOUTS, &labels, 1.0);
    }
    for own in &decision.turned_down {
        judged(metrics, own);
    }
    // One pass goes through the methods until one has something to do: it took this long to get
    // there.
    let last = decision.commands.last();
    let method = last.map_or(Method::Single, |command| command.method);
    let labels = [
        ("reason", &*word(method.reason())),
        ("consolidation_type", method.consolidation_type()),
    ];
    metrics.observe(DISRUPTION_EVALUATION_DURATION, &labels, secs);
}

fn word(reason: Reason) -> String {
    reason.as_str().to_lowercase()
}

/// Counts what a pool thought of a consolidation.
fn judged(metrics: &Metrics, own: &Judgement) {
    let policy = match own.policy {
        Policy::WhenEmpty => "when_empty",
        Policy::WhenEmptyOrUnderutilized => "when_empty_or_underutilized",
        Policy::Balanced => "balanced",
    };
    let decision = if own.approves() {
        "approved"
    } else {
        "rejected"
    };
    let labels = [
        ("decision", decision),
        ("nodepool", &*own.pool),
        ("policy", policy),
    ];
    metrics.count(CONSOLIDATION_MOVES, &labels, 1.0);
    if let Some(score) = own.score_milli {
        metrics.observe(CONSOLIDATION_SCORE, &labels, thousandths(score));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a score this large is as good as infinite"
)]
fn thousandths(amount: u64) -> f64 {
    amount as f64 / 1000.0
}

/// Tells what cautious pools approve of, before the second look.
pub(super) fn approved(shared: &Shared, order: &Order) {
    let snapshot = shared.world.snapshot();
    for own in &order.judgements {
        judged(&shared.metrics, own);
        let Some(message) = approval(own) else {
            continue;
        };
        let tell = |about| {
            let event = Event::normal(about, "ConsolidationApproved", message.clone());
            shared.events.tell(event);
        };
        match order.command.method {
            Method::Multi => {
                if let Some(pool) = snapshot.pool(&own.pool) {
                    tell(events::pool(pool));
                }
            }
            Method::Single | Method::Empty | Method::StaticDrift | Method::Drift => {
                let claims = order.command.claims.iter();
                for claim in claims.filter_map(|name| snapshot.claim(name)) {
                    tell(events::claim(claim));
                    if let Some(node) = snapshot.node_of(claim) {
                        tell(events::node(node));
                    }
                }
            }
        }
    }
}

/// What is said of a move that a Balanced pool approves of.
fn approval(own: &Judgement) -> Option<String> {
    let score = own.score_milli.filter(|_| own.approves())?;
    Some(format!(
        "score {:.2} >= threshold 0.50 (k: 2, savings {:.1}%, disruption {:.1}%)",
        thousandths(score),
        thousandths(own.savings_milli) * 100.0,
        thousandths(own.disruption_milli) * 100.0,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(score_milli: Option<u64>) -> Judgement {
        Judgement {
            pool: "p".into(),
            policy: Policy::Balanced,
            score_milli,
            savings_milli: 100,
            disruption_milli: 133,
        }
    }

    #[test]
    fn core_296_only_approval_is_told() {
        let words = "score 0.75 >= threshold 0.50 (k: 2, savings 10.0%, disruption 13.3%)";
        assert_eq!(approval(&judgement(Some(750))).as_deref(), Some(words));
        assert_eq!(approval(&judgement(Some(499))), None, "turned down");
        assert_eq!(approval(&judgement(None)), None, "not weighed");
    }
}
