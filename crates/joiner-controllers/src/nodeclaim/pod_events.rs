//! When pods last came to or left a node: controller `nodeclaim.podevents`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveClaim, LivePod, Snapshot, rfc3339};
use serde_json::json;

use super::is_managed;

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
    let last = status.and_then(|status| status.last_pod_event_time.as_deref());
    let last = last.and_then(|text| text.parse::<Timestamp>().ok());
    last.is_some_and(|last| now.duration_since(last) < EVERY)
}

/// Pods as they last stood, by uid: memory, so that a heartbeat is not an event.
#[derive(Debug, Default)]
pub(crate) struct SeenPods(Mutex<BTreeMap<Name, Standing>>);

impl SeenPods {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node for which a pod is news, if it is. What is gone was news when its end began.
    fn news(&self, pod: &LivePod) -> Option<Name> {
        let standing = Standing::of(pod)?;
        let before = self.lock().insert(pod.uid.clone(), standing);
        pod.node.clone().filter(|_| standing.is_news(before))
    }

    /// The node for which a change is news.
    pub(crate) fn changed(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind != Kind::Pod {
            return Vec::new();
        }
        let pod = now.pod(&change.name);
        pod.and_then(|pod| self.news(pod)).into_iter().collect()
    }

    /// The nodes of pods that are news: those that are seen for the first time are, also at the start.
    pub(crate) fn all(&self, now: &Snapshot) -> Vec<Name> {
        let nodes: BTreeSet<Name> = now.pods().filter_map(|pod| self.news(pod)).collect();
        nodes.into_iter().collect()
    }

    /// Pods that are gone are forgotten, now and then.
    fn forget(&self, now: &Snapshot) {
        let mut seen = self.lock();
        if seen.len() > 2 * now.n_pods() + SEEN_SLACK {
            let living: BTreeSet<&Name> = now.pods().map(|pod| &pod.uid).collect();
            seen.retain(|uid, _| living.contains(uid));
        }
    }
}

/// Writes down when pods last came or went. Keys are nodes.
pub(super) struct PodEvents {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    seen: SeenPods,
}

impl PodEvents {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
            seen: SeenPods::default(),
        }
    }

    async fn write(&self, snapshot: &Snapshot, key: &Name) -> Result<Next, Failure> {
        self.seen.forget(snapshot);
        let node = snapshot.node(key);
        let claim = node.and_then(|node| snapshot.claim_of(node));
        let Some(claim) = claim.filter(|claim| is_managed(&*self.cloud, claim)) else {
            return Ok(Next::Done);
        };
        let now = self.shared.clock.now();
        // What comes within ten seconds of the last time is not written, as upstream has it.
        if claim.meta.deleting.is_some() || is_too_soon(claim, now) {
            return Ok(Next::Done);
        }
        // No other controller writes this field, so that the version does not matter.
        let patch = json!({"status": {"lastPodEventTime": rfc3339(now)}});
        let api = &self.shared.api;
        api.patch_status(Kind::NodeClaim, claim.name(), &patch)
            .await?;
        Ok(Next::Done)
    }
}

impl Keyed for PodEvents {
    fn name(&self) -> &'static str {
        "nodeclaim.podevents"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        self.seen.changed(change, now)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        self.seen.all(now)
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.write(now, key).boxed()
    }
}
