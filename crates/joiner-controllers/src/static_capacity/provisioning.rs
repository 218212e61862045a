//! Controller `static.provisioning`: makes the claims that a static pool lacks.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use joiner_api::types::NodeClaim;
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_runtime::metric_names::NODECLAIMS_CREATED;
use joiner_state::live::{Change, Kind, LivePool, Snapshot};

use super::{AT_ONCE, CLAIMS_MAX, Counts, Reservations, concerned, limit, names, replicas};
use crate::nodeclaim::template::{claim_name, claim_without_pods};
use crate::nodepool::is_managed;

/// Between two reconciles when nothing happens.
const EVERY: Duration = Duration::from_secs(60);
/// Between two reconciles of a pool that is at its limit.
const AT_LIMIT: Duration = Duration::from_secs(30);
/// Until the next reconcile when more is to be made, or something was made that we have not seen.
const SOON: Duration = Duration::from_secs(1);

/// How many claims a pool lacks, its limit aside. One that is about to be replaced is still there,
/// so it keeps the pool from growing; but it does not count for good.
#[must_use]
pub fn missing(pool: &LivePool, counts: Counts) -> u64 {
    let Some(replicas) = replicas(pool).filter(|_| pool.is_usable()) else {
        return 0;
    };
    if counts.running + counts.pending >= replicas {
        return 0;
    }
    replicas - counts.running
}

/// New claims of a pool, in the first places that are free.
#[must_use]
pub fn new_claims(now: &Snapshot, pool: &LivePool, n: u64) -> Vec<NodeClaim> {
    let mut claims = Vec::new();
    let mut place: u64 = 0;
    while (claims.len() as u64) < n {
        let name = place_name(pool, place);
        place += 1;
        if now.claim(&name).is_some() {
            continue;
        }
        claims.push(claim_without_pods(&pool.pool, &name));
    }
    claims
}

/// The pool's uid keeps a pool apart from an earlier one of the same name.
fn place_name(pool: &LivePool, place: u64) -> String {
    claim_name(pool.name(), &[&pool.meta.uid, &place.to_string()])
}

/// Makes claims for static pools.
pub(super) struct StaticProvisioning {
    shared: Shared,
    rooms: Reservations,
    cloud: Arc<dyn Cloud>,
}

impl StaticProvisioning {
    pub(super) fn new(shared: &Shared, rooms: &Reservations, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            rooms: rooms.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn provision(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(pool) = now.pool(key).filter(|pool| !pool.is_dynamic()) else {
            return Ok(Next::Done);
        };
        if !is_managed(&*self.cloud, &pool.class) || !pool.is_usable() {
            return Ok(Next::Done);
        }
        let world = &self.shared.world;
        let mut wanted = 0;
        let reserved = self.rooms.reserve(key, limit(pool), || {
            let counts = Counts::of(&world.snapshot(), key);
            wanted = missing(pool, counts);
            (counts, wanted.min(CLAIMS_MAX))
        });
        if wanted == 0 {
            return Ok(Next::Again(EVERY));
        }
        if reserved.granted() == 0 {
            tracing::info!(pool = &**key, "nodepool node limit reached");
            return Ok(Next::Again(AT_LIMIT));
        }
        let claims = new_claims(&world.snapshot(), pool, reserved.granted());
        let all_seen = self.create(key, claims).await?;
        Ok(match all_seen && reserved.granted() == wanted {
            true => Next::Again(EVERY),
            false => Next::Again(SOON),
        })
    }

    /// Creates claims; false when one was there that we had not seen yet.
    async fn create(&self, pool: &Name, claims: Vec<NodeClaim>) -> Result<bool, Failure> {
        let Shared { api, metrics, .. } = &self.shared;
        let made = stream::iter(claims).map(|claim| async move {
            let object = serde_json::to_value(&claim).unwrap_or_default();
            let result = api.create(Kind::NodeClaim, &object).await;
            (claim.metadata.name, result)
        });
        let mut made = made.buffer_unordered(AT_ONCE);
        let (mut all_seen, mut failed) = (true, None);
        while let Some((name, result)) = made.next().await {
            match result {
                Ok(_) => {
                    tracing::info!(pool = &**pool, node_claim = name, "created nodeclaim");
                    let labels = [
                        ("reason", "provisioned"),
                        ("nodepool", &**pool),
                        ("min_values_relaxed", "false"),
                    ];
                    metrics.count(NODECLAIMS_CREATED, &labels, 1.0);
                }
                Err(ApiFailure::AlreadyExists) => all_seen = false,
                Err(failure) => failed = Some(failure),
            }
        }
        match failed {
            Some(failure) => Err(failure.into()),
            None => Ok(all_seen),
        }
    }
}

impl Keyed for StaticProvisioning {
    fn name(&self) -> &'static str {
        "static.provisioning"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        concerned(change, now)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        names(now)
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.provision(now, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodepool::made::{claim, made, merged, pool};
    use serde_json::{Value, json};

    fn static_pool(spec: Value) -> (Kind, Value) {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True",
            "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        pool("p", merged(ready, spec))
    }

    fn deleting() -> Value {
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["karpenter.sh/termination"]}})
    }

    fn pending() -> Value {
        json!({"status": {"conditions": [{"type": "DisruptionReason", "status": "True",
            "reason": "Drifted", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    /// What one reconcile makes of a pool with claims like these.
    fn made_by(pool: (Kind, Value), claims: &[Value]) -> Vec<NodeClaim> {
        let mut objects = vec![pool];
        let named = claims.iter().enumerate();
        objects.extend(named.map(|(n, more)| claim(&format!("c{n}"), more.clone())));
        let now = made(objects);
        let pool = now.pool("p").unwrap();
        let counts = Counts::of(&now, "p");
        let all = Reservations::default();
        let reserved = all.reserve(&"p".into(), limit(pool), || (counts, missing(pool, counts)));
        new_claims(&now, pool, reserved.granted())
    }

    #[test]
    fn core_338_to_341_as_many_claims_as_are_missing_and_allowed() {
        let five = || static_pool(json!({"spec": {"replicas": 5}}));
        let limited =
            |limit: &str| static_pool(json!({"spec": {"replicas": 5, "limits": {"nodes": limit}}}));
        let here = || json!({});
        let not_ready = json!({"spec": {"replicas": 5}, "status": {"conditions": []}});
        let leaving = merged(json!({"spec": {"replicas": 5}}), deleting());
        for (case, pool, claims, expected) in [
            (338, five(), vec![], 5),
            (338, five(), vec![here(); 3], 2),
            (338, five(), vec![here(); 5], 0),
            (338, five(), vec![here(); 6], 0),
            (338, five(), vec![here(), deleting()], 4),
            (339, static_pool(not_ready), vec![], 0),
            (339, static_pool(leaving), vec![], 0),
            (339, static_pool(json!({})), vec![], 0),
            (340, limited("3"), vec![], 3),
            (340, limited("3"), vec![here(), deleting()], 1),
            (
                340,
                limited("3"),
                vec![deleting(), deleting(), deleting()],
                0,
            ),
            (340, limited("nonsense"), vec![], 0),
            (
                341,
                five(),
                vec![here(), here(), here(), here(), pending()],
                0,
            ),
            (341, five(), vec![here(), here(), here(), pending()], 2),
        ] {
            let made = made_by(pool, &claims);
            assert_eq!(made.len(), expected, "{case}: {claims:?}");
        }
    }

    #[test]
    fn core_340_a_repeated_try_makes_the_same_claims() {
        let limited = || static_pool(json!({"spec": {"replicas": 9, "limits": {"nodes": "4"}}}));
        let name = |claim: &NodeClaim| claim.metadata.name.clone();
        let first: Vec<String> = made_by(limited(), &[]).iter().map(name).collect();
        assert_eq!(first.len(), 4);
        // Whichever of them came to be before the crash: only the others are made.
        for kept in 0..16u32 {
            let is_kept = |n: &usize| kept >> n & 1 == 1;
            let mut objects = vec![limited()];
            objects.extend((0..4).filter(is_kept).map(|n| claim(&first[n], json!({}))));
            let now = made(objects);
            let pool = now.pool("p").unwrap();
            let again = new_claims(&now, pool, u64::from(4 - kept.count_ones()));
            let others: Vec<String> = (0..4)
                .filter(|n| !is_kept(n))
                .map(|n| first[n].clone())
                .collect();
            assert_eq!(again.iter().map(name).collect::<Vec<_>>(), others);
        }
    }

    #[test]
    fn claims_carry_the_requirements_of_the_pool_and_their_labels() {
        let requirements = json!([
            {"key": "team", "operator": "In", "values": ["b"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["t", "u"]},
        ]);
        let pool = static_pool(json!({"spec": {"replicas": 1,
            "template": {"spec": {"requirements": requirements}}}}));
        let claim = made_by(pool, &[]).pop().unwrap();
        let spec = serde_json::to_value(&claim.spec).unwrap();
        assert_eq!(spec["requirements"], requirements);
        assert_eq!(spec["resources"], Value::Null);
        assert_eq!(claim.metadata.labels["team"], "b");
        assert!(
            !claim
                .metadata
                .labels
                .contains_key("node.kubernetes.io/instance-type")
        );
    }
}
