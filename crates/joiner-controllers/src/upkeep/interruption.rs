//! Machines that the cloud will take away: controller `interruption`.
//!
//! *Flow*: the claim is deleted at once. From that moment its pods are part of the next plan, so that
//! another node is bought while the old one is drained.
//!
//! *Guarantees*: a notice that stands when the process starts is heard after everything is listed; a
//! deletion that fails is tried again.

use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use joiner_api::labels::CAPACITY_TYPE;
use joiner_cloud::{Interruption, InterruptionKind};
use joiner_model::keys;
use joiner_receipts::Decision;
use joiner_runtime::metric_names::INTERRUPTION_MESSAGES;
use joiner_state::live::{LiveClaim, Snapshot};
use serde_json::json;

use crate::claim;
use crate::context::Ctx;
use crate::observe;
use crate::pauses::insist;

/// Upstream's name of it.
const NAME: &str = "interruption";

/// Notices that are handled at a time.
const AT_ONCE: usize = 10;
/// A notice comes once, so that a deletion that fails is tried again for about
/// a minute.
const TRIES: u32 = 12;
/// Until everything is listed, it is looked this often whether it is.
const LISTED_POLL: Duration = Duration::from_millis(100);

/// What a notice means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// Reason of the event.
    pub(crate) event: &'static str,
    /// For people.
    pub(crate) words: &'static str,
    /// Kind of the message, in metrics.
    pub(crate) message: &'static str,
    /// The node has to go; else it is only told.
    pub(crate) ends: bool,
}

/// What a notice means.
pub(crate) fn meaning(kind: InterruptionKind) -> Meaning {
    let (event, words, message, ends) = match kind {
        InterruptionKind::SpotInterruption => (
            "SpotInterrupted",
            "the cloud takes its spot capacity back in two minutes",
            "spot_interrupted",
            true,
        ),
        InterruptionKind::RebalanceRecommendation => (
            "SpotRebalanceRecommendation",
            "its spot capacity may be taken back soon",
            "rebalance_recommendation",
            false,
        ),
        InterruptionKind::ScheduledChange => (
            "InstanceUnhealthy",
            "the machine under it is about to be serviced",
            "scheduled_change",
            true,
        ),
        InterruptionKind::StateChange => (
            "InstanceTerminating",
            "its machine was stopped or ended from outside",
            "instance_terminated",
            true,
        ),
    };
    Meaning {
        event,
        words,
        message,
        ends,
    }
}

/// Listens until the future is dropped.
pub(crate) async fn run(ctx: Ctx) {
    let notices = ctx.cloud.interruptions();
    while !ctx.world.is_listed() {
        ctx.clock.sleep(LISTED_POLL).await;
    }
    let handled = notices.for_each_concurrent(AT_ONCE, |notice| handle(&ctx, notice));
    handled.await;
    // The stream ends with the process only; nothing else may end because of it.
    std::future::pending::<()>().await;
}

async fn handle(ctx: &Ctx, notice: Interruption) {
    let snapshot = ctx.world.snapshot();
    let meaning = meaning(notice.kind);
    let labels = [("message_type", meaning.message)];
    ctx.metrics.count(INTERRUPTION_MESSAGES, &labels, 1.0);
    for claim in snapshot.claims_with_id(&notice.id.0) {
        if claim.meta.deleting.is_some() {
            continue;
        }
        tell(ctx, &snapshot, claim, meaning);
        if meaning.ends {
            delete(ctx, claim, meaning.message).await;
        }
    }
}

/// Events, the log, and what it comes to.
fn tell(ctx: &Ctx, snapshot: &Snapshot, claim: &LiveClaim, meaning: Meaning) {
    let node = snapshot.node_of(claim);
    let name = node.map_or("", |node| node.name());
    tracing::info!(
        controller = NAME,
        NodeClaim = &**claim.name(),
        Node = name,
        reason = meaning.event,
        "interruption: {}",
        meaning.words
    );
    let both = || {
        let node = node.map(|node| observe::node(node));
        [observe::claim(claim)].into_iter().chain(node)
    };
    for about in both() {
        let words = meaning.words.to_owned();
        match meaning.ends {
            true => observe::warn(ctx, about, meaning.event, words),
            false => observe::note(ctx, about, meaning.event, words),
        }
    }
    if !meaning.ends {
        return;
    }
    for about in both() {
        let words = "It is drained, and its pods get another node".to_owned();
        observe::warn(ctx, about, "TerminatingOnInterruption", words);
    }
    let at = ctx.clock.now();
    ctx.decisions.record(Decision {
        time: at,
        kind: NAME.to_owned(),
        generation: snapshot.generation,
        outcome: outcome(snapshot, claim, meaning, at),
        reasons: vec![format!("{}: {}", meaning.event, meaning.words)],
        about: vec![
            format!("nodeclaim/{}", claim.name()),
            format!("node/{name}"),
        ],
        details: json!({"message": meaning.message}),
        ..Decision::default()
    });
}

/// One line about what follows from a notice.
fn outcome(
    snapshot: &Snapshot,
    claim: &LiveClaim,
    meaning: Meaning,
    at: jiff::Timestamp,
) -> String {
    let label = |key: &str| claim.meta.label(key).unwrap_or("unknown").to_owned();
    let node = snapshot.node_of(claim);
    let pods = node
        .into_iter()
        .flat_map(|node| snapshot.movable_pods(node.name(), at));
    let need = match pods.count() {
        0 => "nothing runs on it".to_owned(),
        1 => "its pod is planned anew at once".to_owned(),
        n => format!("its {n} pods are planned anew at once"),
    };
    format!(
        "{} ({} {} in {}) goes: {}; {need}",
        node.map_or_else(|| claim.name(), |node| node.name()),
        label(CAPACITY_TYPE),
        label(keys::INSTANCE_TYPE),
        label(keys::ZONE),
        meaning.words,
    )
}

async fn delete(ctx: &Ctx, claim: &LiveClaim, metric: &str) {
    let deleted = insist(&ctx.clock, TRIES, || {
        claim::delete(ctx, claim, metric).boxed()
    });
    if let Err(error) = deleted.await {
        tracing::error!(controller = NAME, NodeClaim = &**claim.name(), %error, "cannot delete");
    }
}
