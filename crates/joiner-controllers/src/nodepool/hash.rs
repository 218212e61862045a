//! Controller `nodepool.hash`: keeps the hash of the template on the pool, and carries claims over
//! to a new way of hashing.

use std::sync::Arc;

use futures::FutureExt as _;
use joiner_api::conditions as condition;
use joiner_api::labels::{NODE_POOL_HASH, NODE_POOL_HASH_VERSION, NODE_POOL_HASH_VERSION_VALUE};
use joiner_api::node_pool_hash;
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared, write};
use joiner_model::Name;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LivePool, Snapshot};
use serde_json::{Value, json};

use super::{managed, names, of_pool};

/// Annotations to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stamps {
    /// Claims first, by name: when they are done, the pool says so by its version.
    pub claims: Vec<(Name, Value)>,
    /// The pool.
    pub pool: Option<Value>,
}

/// What to write so that the pool tells its hash, and that a new way of hashing makes nothing
/// drift.
pub fn stamps<'s>(pool: &LivePool, claims: impl Iterator<Item = &'s LiveClaim>) -> Stamps {
    let hash = node_pool_hash(&pool.pool);
    let version = NODE_POOL_HASH_VERSION_VALUE;
    let mut stamps = Stamps::default();
    let known = pool.meta.annotation(NODE_POOL_HASH_VERSION);
    if known != Some(version) {
        for claim in claims {
            if claim.meta.annotation(NODE_POOL_HASH_VERSION) == Some(version) {
                continue;
            }
            let mut patch = json!({NODE_POOL_HASH_VERSION: version});
            // One that has drifted stays so.
            if claim.condition(&condition::DRIFTED).is_none() {
                patch[NODE_POOL_HASH] = json!(hash);
            }
            stamps.claims.push((claim.name().clone(), patch));
        }
    }
    if known != Some(version) || pool.meta.annotation(NODE_POOL_HASH) != Some(hash.as_str()) {
        stamps.pool = Some(json!({NODE_POOL_HASH: hash, NODE_POOL_HASH_VERSION: version}));
    }
    stamps
}

/// Keeps hashes current.
pub(super) struct Hash {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl Hash {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn stamp(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(pool) = managed(&*self.cloud, now, key) else {
            return Ok(Next::Done);
        };
        let stamps = stamps(pool, now.claims_of_pool(key).map(AsRef::as_ref));
        for (name, annotations) in &stamps.claims {
            self.annotate(Kind::NodeClaim, name, annotations).await?;
        }
        if let Some(annotations) = &stamps.pool {
            self.annotate(Kind::NodePool, key, annotations).await?;
        }
        Ok(Next::Done)
    }

    async fn annotate(&self, kind: Kind, name: &Name, annotations: &Value) -> Result<(), Failure> {
        let patch = json!({"metadata": {"annotations": annotations}});
        let written = write::patch(&self.shared, kind, name, &patch).await;
        write::unless_gone(written).map(|_| ())
    }
}

impl Keyed for Hash {
    fn name(&self) -> &'static str {
        "nodepool.hash"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        of_pool(change)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        names(now)
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.stamp(now, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodepool::made::{claim, made, pool};

    /// The pool's annotations, the claim's, whether the claim has drifted; then what is written to
    /// the claim and to the pool: `v` for the version, `h` for the hash.
    const CASES: &[(&str, &str, bool, &str, &str)] = &[
        // (241) Another version: both are stamped; a drifted claim keeps its hash.
        ("v2 old", "v2 old", false, "vh", "vh"),
        ("v2 old", "v2 old", true, "v", "vh"),
        ("", "", false, "vh", "vh"),
        ("v2 old", "v3 own", false, "", "vh"),
        // (241) The same version: claims are left alone, even with another hash.
        ("v3 old", "v3 old", false, "", "vh"),
        ("v3 old", "v2 old", false, "", "vh"),
        ("v3 current", "v2 old", false, "", ""),
    ];

    #[test]
    fn core_241_versions_are_carried_over_and_drift_is_not_forgiven() {
        for case in CASES {
            let (on_pool, on_claim, drifted, to_claim, to_pool) = case;
            let annotations = |text: &str| {
                let plain = made(vec![pool("p", json!({}))]);
                let hash = node_pool_hash(&plain.pool("p").unwrap().pool);
                let mut all = json!({});
                if let Some((version, stamp)) = text.split_once(' ') {
                    all[NODE_POOL_HASH_VERSION] = json!(version);
                    all[NODE_POOL_HASH] = json!(if stamp == "current" { &hash } else { stamp });
                }
                all
            };
            let conditions = match drifted {
                true => json!([{"type": "Drifted", "status": "True", "reason": "X",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]),
                false => json!([]),
            };
            let now = made(vec![
                pool(
                    "p",
                    json!({"metadata": {"annotations": annotations(on_pool)}}),
                ),
                claim(
                    "c",
                    json!({"metadata": {"annotations": annotations(on_claim)},
                    "status": {"conditions": conditions}}),
                ),
            ]);
            let claims = now.claims_of_pool("p").map(AsRef::as_ref);
            let stamps = stamps(now.pool("p").unwrap(), claims);
            let shown = |patch: Option<&Value>| {
                let has = |key: &str, sign: &'static str| {
                    let value = patch.and_then(|patch| patch.get(key));
                    value.map_or("", |_| sign)
                };
                format!(
                    "{}{}",
                    has(NODE_POOL_HASH_VERSION, "v"),
                    has(NODE_POOL_HASH, "h")
                )
            };
            let claim = stamps.claims.first().map(|(_, patch)| patch);
            assert_eq!(shown(claim), *to_claim, "{case:?}");
            assert_eq!(shown(stamps.pool.as_ref()), *to_pool, "{case:?}");
        }
    }

    #[test]
    fn core_240_what_was_written_is_what_drift_compares() {
        let now = made(vec![pool("p", json!({}))]);
        let pool = now.pool("p").unwrap();
        let stamped = stamps(pool, std::iter::empty()).pool.unwrap();
        assert_eq!(stamped[NODE_POOL_HASH], node_pool_hash(&pool.pool));
        assert_eq!(stamped[NODE_POOL_HASH_VERSION], "v3");
    }
}
