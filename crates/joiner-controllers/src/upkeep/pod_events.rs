//! When pods last came to or left a node: controller `nodeclaim.podevents`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveClaim, LivePod, Snapshot, rfc3339};
use serde_json::json;

use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// The time is written this often at most.
const EVERY: SignedDuration = SignedDuration::from_secs(10);
/// Pods that are gone may be remembered, up to the number of those that are not and this many.
const SEEN_SLACK: usize = 1_000;

/// Where a pod stands, as far as its node is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Finished.
    terminal: bool,
    /// Being deleted.
    terminating: bool,
}

impl Standing {
    /// Where a pod stands, if it counts for its node: it is bound, and not by a DaemonSet.
    pub(crate) fn of(pod: &LivePod) -> Option<Self> {
        pod.node.as_ref()?;
        (!pod.is_daemon()).then_some(Self {
            terminal: pod.is_terminal(),
            terminating: pod.deleting.is_some(),
        })
    }

    /// True when something happened since it stood like `before`; none for a pod that was not
    /// known, or not bound.
    pub(crate) fn is_news(self, before: Option<Self>) -> bool {
        let Some(before) = before else {
            return true;
        };
        (self.terminal && !before.terminal) || (self.terminating && !before.terminating)
    }
}

/// True when the time was written so lately that it is not written again.
pub(crate) fn is_too_soon(claim: &LiveClaim, now: Timestamp) -> bool {
    let status = claim.claim.status.as_ref();
    let last = status.and_then(|own| own.last_pod_event_time.as_deref());
    let last = last.and_then(|text| text.parse::<Timestamp>().ok());
    last.is_some_and(|last| now.duration_since(last) < EVERY)
}

/// Writes down when pods last came or went. Keys are nodes.
#[derive(Debug, Default)]
pub(crate) struct PodEvents {
    /// Pods as they last stood, by uid: memory, so that a heartbeat is not an event.
    seen: Mutex<BTreeMap<Name, Standing>>,
}

impl PodEvents {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<Name, Standing>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node for which a pod is news, if it is. What is gone was news when its end began.
    fn news(&self, pod: &LivePod) -> Option<Name> {
        let standing = Standing::of(pod)?;
        let before = self.seen().insert(pod.uid.clone(), standing);
        pod.node.clone().filter(|_| standing.is_news(before))
    }

    async fn look(&self, ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let snapshot = ctx.world.snapshot();
        self.forget(&snapshot);
        let node = snapshot.node(key);
        let claim = node.and_then(|node| snapshot.claim_of(node));
        let Some(claim) = claim.filter(|claim| super::is_managed(&*ctx.cloud, claim)) else {
            return Ok(Next::Done);
        };
        let now = ctx.clock.now();
        // What comes within ten seconds of the last time is not written, as upstream has it.
        if claim.meta.deleting.is_some() || is_too_soon(claim, now) {
            return Ok(Next::Done);
        }
        let patch = json!({"status": {"lastPodEventTime": rfc3339(now)}});
        ctx.api
            .patch_status(Kind::NodeClaim, claim.name(), &patch)
            .await?;
        Ok(Next::Done)
    }

    /// Pods that are gone are forgotten, now and then.
    fn forget(&self, snapshot: &Snapshot) {
        let mut seen = self.seen();
        if seen.len() > 2 * snapshot.n_pods() + SEEN_SLACK {
            let living: BTreeSet<&Name> = snapshot.pods().map(|pod| &pod.uid).collect();
            seen.retain(|uid, _| living.contains(uid));
        }
    }
}

impl Controller for PodEvents {
    fn name(&self) -> &'static str {
        "nodeclaim.podevents"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind != Kind::Pod {
            return Vec::new();
        }
        let pod = now.pod(&change.name);
        pod.and_then(|pod| self.news(pod)).into_iter().collect()
    }

    /// Pods that are seen for the first time are news, also at the start.
    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let nodes: BTreeSet<Name> = now.pods().filter_map(|pod| self.news(pod)).collect();
        nodes.into_iter().collect()
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key).boxed()
    }
}
