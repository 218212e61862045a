//! Controller `static.deprovisioning`: deletes the claims that a static pool has too many.
//!
//! Budgets and pods that do not want to be disrupted do not prevent it; they only decide who goes
//! last.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_runtime::{ApiFailure, Delete};
use joiner_state::live::{Change, Kind, LiveClaim, LivePod, LivePool, Snapshot};

use super::{AT_ONCE, CLAIMS_MAX, concerned, is_pending, names, replicas};
use crate::nodepool::is_managed;

/// Between two reconciles when nothing happens.
const EVERY: Duration = Duration::from_secs(60);
/// Until the next reconcile when more is to be deleted.
const SOON: Duration = Duration::from_secs(1);
/// One unit of eviction cost; deletion costs are counted in it.
const UNIT: i64 = 1 << 27;
/// What is left of a life, when nothing of it has passed.
const WHOLE_LIFE: i128 = 1_000_000;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// No machine yet.
    Unlaunched,
    /// Nothing on it but daemons.
    Empty,
    /// Pods that can move.
    Movable,
    /// Some pod asks not to be disrupted.
    Protected,
}

/// The claims that a pool has too many, in the order in which they go.
#[must_use]
pub fn excess(now: &Snapshot, pool: &LivePool, at: Timestamp) -> Vec<Arc<LiveClaim>> {
    let Some(replicas) = replicas(pool).filter(|_| pool.meta.deleting.is_none()) else {
        return Vec::new();
    };
    let claims = now.claims_of_pool(pool.name());
    let running = claims.filter(|claim| claim.meta.deleting.is_none() && !is_pending(now, claim));
    let mut running: Vec<Arc<LiveClaim>> = running.cloned().collect();
    let n_excess = (running.len() as u64).saturating_sub(replicas);
    if n_excess == 0 {
        return Vec::new();
    }
    running.sort_by_cached_key(|claim| {
        let (group, cost) = rank(now, claim, at);
        (group, cost, claim.name().clone())
    });
    running.truncate(usize::try_from(n_excess).unwrap_or(usize::MAX));
    running
}

fn rank(now: &Snapshot, claim: &LiveClaim, at: Timestamp) -> (Group, i128) {
    if claim.provider_id.is_none() {
        return (Group::Unlaunched, 0);
    }
    let pods = now.node_of(claim).map(|node| now.pods_on(node.name()));
    let pods: Vec<&LivePod> = pods.into_iter().flatten().map(AsRef::as_ref).collect();
    let movable = pods.iter().filter(|pod| pod.is_reschedulable());
    let cost: i128 = movable
        .map(|pod| i128::from(eviction_cost(pod).max(0)))
        .sum();
    let cost = (i128::from(UNIT) + cost) * life_left(claim, at);
    let group = if pods.iter().any(|pod| pod.is_protected(at)) {
        Group::Protected
    } else if pods
        .iter()
        .all(|pod| pod.is_terminal() || pod.is_daemon() || pod.mirror)
    {
        Group::Empty
    } else {
        Group::Movable
    };
    (group, cost)
}

/// What it costs to evict a pod, in parts of [`UNIT`]: one, more for what is dear to delete or has
/// priority, within ten on either side.
fn eviction_cost(pod: &LivePod) -> i64 {
    let cost = UNIT + i64::from(pod.deletion_cost) + i64::from(pod.priority) * 4;
    cost.clamp(-10 * UNIT, 10 * UNIT)
}

/// How much of a claim's life is left, in parts of [`WHOLE_LIFE`].
fn life_left(claim: &LiveClaim, at: Timestamp) -> i128 {
    let expiry = claim.claim.spec.expire_after.as_ref();
    let Some(expiry) = expiry.and_then(|text| text.parse().ok().flatten()) else {
        return WHOLE_LIFE;
    };
    let life = i128::try_from(expiry.as_nanos()).unwrap_or(i128::MAX);
    let age = at.as_nanosecond() - claim.meta.created.as_nanosecond();
    if life == 0 {
        return 0;
    }
    (WHOLE_LIFE - age.saturating_mul(WHOLE_LIFE) / life).clamp(0, WHOLE_LIFE)
}

/// Deletes what static pools have too many.
pub(super) struct StaticDeprovisioning {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl StaticDeprovisioning {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn deprovision(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(pool) = now.pool(key).filter(|pool| !pool.is_dynamic()) else {
            return Ok(Next::Done);
        };
        if !is_managed(&*self.cloud, &pool.class) {
            return Ok(Next::Done);
        }
        let excess = excess(now, pool, self.shared.clock.now());
        let n_max = usize::try_from(CLAIMS_MAX).unwrap_or(usize::MAX);
        let more = excess.len() > n_max;
        self.delete(key, excess.into_iter().take(n_max)).await?;
        Ok(Next::Again(if more { SOON } else { EVERY }))
    }

    async fn delete(
        &self,
        pool: &Name,
        claims: impl Iterator<Item = Arc<LiveClaim>>,
    ) -> Result<(), Failure> {
        let api = &self.shared.api;
        let deleted = stream::iter(claims).map(|claim| async move {
            let how = Delete {
                uid: Some(claim.meta.uid.clone()),
                grace_secs: None,
            };
            let result = api.delete(Kind::NodeClaim, claim.name(), how).await;
            (claim.name().clone(), result)
        });
        let mut deleted = deleted.buffer_unordered(AT_ONCE);
        let mut failed = None;
        while let Some((name, result)) = deleted.next().await {
            match result {
                Ok(()) => {
                    tracing::info!(
                        pool = &**pool,
                        node_claim = &*name,
                        "deleting excess nodeclaim"
                    );
                }
                // A conflict means that the claim of that name is another one by now.
                Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => {}
                Err(failure) => failed = Some(failure),
            }
        }
        failed.map_or(Ok(()), |failure| Err(failure.into()))
    }
}

impl Keyed for StaticDeprovisioning {
    fn name(&self) -> &'static str {
        "static.deprovisioning"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        concerned(change, now)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        names(now)
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.deprovision(now, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodepool::made::{claim, launched, made, node, pod, pool};
    use serde_json::{Value, json};

    fn owned_by(kind: &str) -> Value {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind,
            "name": "o", "uid": "uid-o", "controller": true}]}})
    }

    /// A world with a claim for every place in the line, and the order they go in.
    fn world(replicas: u64) -> Vec<String> {
        let deletion_cost = |cost: &str| json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}});
        let protected =
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        let mut protected_daemon = owned_by("DaemonSet");
        protected_daemon["metadata"]["annotations"] = protected["metadata"]["annotations"].clone();
        let old = json!({"metadata": {"creationTimestamp": "2025-12-12T00:00:00Z"}});
        let mut objects = vec![
            pool("p", json!({"spec": {"replicas": replicas}})),
            claim("unlaunched", json!({})),
            pod("d1", "daemons", owned_by("DaemonSet")),
            pod("c1", "cheap", deletion_cost("-100000000")),
            pod("o1", "old", json!({})),
            pod("e1", "dear", deletion_cost("100000000")),
            pod("x1", "protected", protected),
            pod("x2", "protected-daemon", protected_daemon),
        ];
        for name in ["daemons", "cheap", "dear", "protected", "protected-daemon"] {
            objects.push(launched(name, json!({})));
            objects.push(node(name, json!({})));
        }
        objects.push(launched("old", old));
        objects.push(node("old", json!({})));
        let now = made(objects);
        let at = "2026-01-02T00:00:00Z".parse().unwrap();
        let gone = excess(&now, now.pool("p").unwrap(), at);
        gone.iter().map(|claim| claim.name().to_string()).collect()
    }

    #[test]
    fn core_342_the_least_missed_go_first() {
        let order = [
            "unlaunched",
            "daemons",
            "old",
            "cheap",
            "dear",
            "protected-daemon",
            "protected",
        ];
        assert_eq!(world(0), order);
        assert_eq!(world(4), order[..3]);
        assert!(world(7).is_empty());
        assert!(world(9).is_empty());
    }

    #[test]
    fn claims_on_their_way_out_and_pools_on_theirs_are_left_alone() {
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["karpenter.sh/termination"]}});
        let one = json!({"spec": {"replicas": 1}});
        let at = "2026-01-02T00:00:00Z".parse().unwrap();
        let going = made(vec![
            pool("p", one.clone()),
            launched("a", json!({})),
            launched("b", deleting.clone()),
        ]);
        assert!(excess(&going, going.pool("p").unwrap(), at).is_empty());
        let tainted = json!({"spec": {"taints": [
            {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}});
        let replaced = made(vec![
            pool("p", one.clone()),
            launched("a", json!({})),
            node("a", tainted),
            claim("its-replacement", json!({})),
        ]);
        assert!(excess(&replaced, replaced.pool("p").unwrap(), at).is_empty());
        let whole = made(vec![
            pool("p", crate::nodepool::made::merged(one, deleting)),
            launched("a", json!({})),
            launched("b", json!({})),
        ]);
        assert!(excess(&whole, whole.pool("p").unwrap(), at).is_empty());
        let dynamic = made(vec![pool("p", json!({})), launched("a", json!({}))]);
        assert!(excess(&dynamic, dynamic.pool("p").unwrap(), at).is_empty());
    }
}
