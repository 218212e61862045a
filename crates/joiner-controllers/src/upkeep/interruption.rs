//! Machines that the cloud will take away: controller `interruption`.
//!
//! The claim is deleted at once: its pods are drained while a replacement is bought.

use std::time::Duration;

use futures::StreamExt as _;
use joiner_cloud::{Interruption, InterruptionKind};
use joiner_state::live::LiveClaim;

use crate::claim;
use crate::context::Ctx;
use crate::observe;

/// Upstream's name of it.
const NAME: &str = "interruption";

/// Notices that are handled at a time.
const AT_ONCE: usize = 20;
/// A notice comes once, so that a deletion that fails is tried again, this often.
const TRIES: u32 = 6;
/// The pause after the first try; it doubles.
const PAUSE: Duration = Duration::from_secs(1);

/// Event reason, words for people, and the reason in metrics; none for what is only told.
pub(crate) fn meaning(
    kind: InterruptionKind,
) -> (&'static str, &'static str, Option<&'static str>) {
    match kind {
        InterruptionKind::SpotInterruption => (
            "SpotInterrupted",
            "the cloud takes its spot capacity back in two minutes",
            Some("spot_interrupted"),
        ),
        InterruptionKind::RebalanceRecommendation => (
            "RebalanceRecommendation",
            "its spot capacity may be taken back soon",
            None,
        ),
        InterruptionKind::ScheduledChange => (
            "InstanceUnhealthy",
            "the machine under it is about to be serviced",
            Some("scheduled_change"),
        ),
        InterruptionKind::StateChange => (
            "InstanceTerminating",
            "its machine was stopped or ended from outside",
            Some("instance_terminated"),
        ),
    }
}

/// Listens until the future is dropped.
pub(crate) async fn run(ctx: Ctx) {
    let notices = ctx.cloud.interruptions();
    let handled = notices.for_each_concurrent(AT_ONCE, |notice| handle(&ctx, notice));
    handled.await;
    // The stream ends with the process only; nothing else may end because of it.
    std::future::pending::<()>().await;
}

async fn handle(ctx: &Ctx, notice: Interruption) {
    let snapshot = ctx.world.snapshot();
    let (reason, words, metric) = meaning(notice.kind);
    for claim in snapshot.claims_with_id(&notice.id.0) {
        if claim.meta.deleting.is_some() {
            continue;
        }
        let node = snapshot.node_of(claim);
        tracing::info!(
            controller = NAME,
            NodeClaim = &**claim.name(),
            Node = node.map_or("", |node| node.name()),
            reason,
            "interruption: {words}"
        );
        let told = |about| observe::warn(ctx, about, reason, words.to_owned());
        told(observe::claim(claim));
        if let Some(node) = node {
            told(observe::node(node));
        }
        let Some(metric) = metric else {
            continue;
        };
        delete(ctx, claim, metric).await;
    }
}

async fn delete(ctx: &Ctx, claim: &LiveClaim, metric: &str) {
    for n_tried in 0..TRIES {
        let Err(error) = claim::delete(ctx, claim, metric).await else {
            return;
        };
        tracing::error!(controller = NAME, NodeClaim = &**claim.name(), %error, "cannot delete");
        ctx.clock.sleep(PAUSE * 2u32.pow(n_tried)).await;
    }
}
