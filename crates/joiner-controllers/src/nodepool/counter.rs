//! Controller `nodepool.counter`: how large a pool is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use joiner_api::labels::{INITIALIZED, NODE_POOL, REGISTERED};
use joiner_api::types::ResourceMap;
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::{Name, ResourceName, Resources};
use joiner_runtime::ApiFailure;
use joiner_state::live::{Change, Kind, LiveClaim, LiveNode, Snapshot, What};
use serde_json::json;

use super::{managed, names};

/// Between two counts: a pool of many nodes would else be written for each of them.
const EVERY: Duration = Duration::from_secs(5);
/// The synthetic resource that counts nodes.
const NODES: &str = "nodes";

/// What the nodes of a pool have together, and how many they are; those on their way out do not
/// count. Resources that every node has are there even for a pool without nodes.
#[must_use]
pub fn usage(now: &Snapshot, pool: &str) -> Resources {
    let mut total: Resources = [
        ResourceName::Cpu,
        ResourceName::Memory,
        ResourceName::Pods,
        ResourceName::EphemeralStorage,
        ResourceName::parse(NODES),
    ]
    .into_iter()
    .map(|name| (name, 0))
    .collect();
    let mut add = |capacity: &Resources| {
        total.add(capacity);
        total.add(&Resources::new().with(ResourceName::parse(NODES), 1));
    };
    for claim in now.claims() {
        let node = now.node_of(claim).map(AsRef::as_ref);
        let launched = claim.provider_id.is_some();
        if launched && !claim.is_going() && pool_of(claim, node) == Some(pool) {
            add(&capacity(claim, node));
        }
    }
    for node in now.nodes() {
        let alone = node.provider_id.as_deref();
        let alone = alone.is_none_or(|id| now.claims_with_id(id).next().is_none());
        if alone && node.pool() == Some(pool) && node.meta.deleting.is_none() {
            add(node.capacity());
        }
    }
    total
}

/// Once it is registered, the Node has the say.
fn pool_of<'s>(claim: &'s LiveClaim, node: Option<&'s LiveNode>) -> Option<&'s str> {
    match node.filter(|node| node.says(REGISTERED)) {
        Some(node) => node.meta.label(NODE_POOL),
        None => claim.pool(),
    }
}

/// What the cloud promised, until the Node is initialized: its own figures may be missing or zero
/// before.
fn capacity(claim: &LiveClaim, node: Option<&LiveNode>) -> Resources {
    let node_says = node.map(|node| node.capacity().clone()).unwrap_or_default();
    if node.is_some_and(|node| node.says(INITIALIZED)) {
        return node_says;
    }
    let mut all = node_says;
    for (name, amount) in claim.capacity().iter() {
        if all.get(name) == 0 {
            all.set(name.clone(), amount);
        }
    }
    all
}

/// Counts what pools have.
pub(super) struct Counter {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl Counter {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn count(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(pool) = managed(&*self.cloud, now, key) else {
            return Ok(Next::Done);
        };
        let usage = usage(now, key);
        let n_nodes = i64::try_from(usage.get(&ResourceName::parse(NODES))).unwrap_or(i64::MAX);
        let wanted: BTreeMap<&str, String> = usage.rendered().collect();
        let status = pool.pool.status.as_ref();
        let known = status.and_then(|status| status.resources.as_ref());
        let counted = status.and_then(|status| status.nodes) == Some(n_nodes);
        if counted && known.is_some_and(|known| is_same(known, &wanted)) {
            return Ok(Next::Again(EVERY));
        }
        let mut resources = json!(wanted);
        for gone in known.iter().flat_map(|known| known.keys()) {
            if !wanted.contains_key(gone.as_str()) {
                resources[gone.as_str()] = serde_json::Value::Null;
            }
        }
        // No other controller writes these fields, so that the version does not matter.
        let patch = json!({"status": {"resources": resources, "nodes": n_nodes}});
        let api = &self.shared.api;
        match api.patch_status(Kind::NodePool, key, &patch).await {
            Ok(_) | Err(ApiFailure::NotFound) => Ok(Next::Again(EVERY)),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn is_same(known: &ResourceMap, wanted: &BTreeMap<&str, String>) -> bool {
    let same = |(name, amount): (&&str, &String)| {
        let known = known.get(*name);
        known.is_some_and(|known| known.as_str() == amount)
    };
    known.len() == wanted.len() && wanted.iter().all(same)
}

/// New pools; afterwards they are counted by the clock.
fn new_pools(change: &Change) -> Vec<Name> {
    let is_new = change.kind == Kind::NodePool && change.what == What::Appeared;
    is_new.then(|| change.name.clone()).into_iter().collect()
}

impl Keyed for Counter {
    fn name(&self) -> &'static str {
        "nodepool.counter"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        new_pools(change)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        names(now)
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.count(now, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodepool::made::{claim, launched, made, node, pool};
    use serde_json::Value;

    fn shown(objects: Vec<(Kind, Value)>) -> String {
        let mut all = vec![pool("p", json!({})), pool("q", json!({}))];
        all.extend(objects);
        let usage = usage(&made(all), "p");
        let of = |name: &str| usage.get(&ResourceName::parse(name));
        format!(
            "{} nodes, {} cpu, {} pods",
            of("nodes"),
            of("cpu") / 1000,
            of("pods")
        )
    }

    fn initialized() -> Value {
        json!({"metadata": {"labels": {"karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true"}}})
    }

    #[test]
    fn core_337_the_count_follows_the_claim_then_the_node() {
        let zero = usage(&made(vec![pool("p", json!({}))]), "p");
        let zero: Vec<(&str, String)> = zero.rendered().collect();
        let names = ["cpu", "memory", "pods", "ephemeral-storage", "nodes"];
        assert_eq!(zero, names.map(|name| (name, "0".to_owned())));
        let young = json!({"status": {"capacity": {"cpu": "0", "pods": "90"}}});
        for (objects, expected) in [
            (vec![claim("c", json!({}))], "0 nodes, 0 cpu, 0 pods"),
            (vec![launched("c", json!({}))], "1 nodes, 4 cpu, 110 pods"),
            (
                vec![launched("c", json!({})), node("c", young)],
                "1 nodes, 4 cpu, 90 pods",
            ),
            (
                vec![launched("c", json!({})), node("c", initialized())],
                "1 nodes, 3 cpu, 100 pods",
            ),
            // The claim of this one is gone.
            (vec![node("c", initialized())], "1 nodes, 3 cpu, 100 pods"),
        ] {
            assert_eq!(shown(objects.clone()), expected, "{objects:?}");
        }
    }

    #[test]
    fn core_333_totals_are_per_pool_and_leave_out_what_is_going() {
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["karpenter.sh/termination"]}});
        let terminating = json!({"status": {"conditions": [{"type": "InstanceTerminating",
            "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        let marked = json!({"metadata": {"annotations": {joiner_state::live::COMMAND: "{}"}}});
        let moved = json!({"metadata": {"labels": {"karpenter.sh/nodepool": "q",
            "karpenter.sh/registered": "true"}}});
        let none = "0 nodes, 0 cpu, 0 pods";
        for (objects, expected) in [
            (
                vec![
                    launched("c", json!({})),
                    launched("d", json!({})),
                    node("d", initialized()),
                ],
                "2 nodes, 7 cpu, 210 pods",
            ),
            (
                vec![launched("c", deleting.clone()), node("c", initialized())],
                none,
            ),
            (
                vec![launched("c", terminating), node("c", initialized())],
                none,
            ),
            (vec![launched("c", marked), node("c", initialized())], none),
            (vec![node("c", deleting)], none),
            (vec![launched("c", json!({})), node("c", moved)], none),
        ] {
            assert_eq!(shown(objects.clone()), expected, "{objects:?}");
        }
    }
}
