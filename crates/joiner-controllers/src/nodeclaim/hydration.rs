//! The label that names the node class, where it is missing: controllers `nodeclaim.hydration` and
//! `node.hydration`.

use std::sync::Arc;

use futures::FutureExt as _;
use joiner_api::labels::node_class_label;
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared, write};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveClaim, Meta, Snapshot};
use serde_json::{Value, json};

use super::{all_claims, changed_claim, is_managed};

/// The patch that adds the label, if it is missing.
pub(crate) fn missing(meta: &Meta, claim: &LiveClaim) -> Option<Value> {
    let class = &claim.claim.spec.node_class_ref;
    let key = node_class_label(&class.group, &class.kind);
    if meta.deleting.is_some() || meta.label(&key) == Some(class.name.as_str()) {
        return None;
    }
    Some(json!({"metadata": {"labels": {key: class.name}}}))
}

/// Labels claims.
pub(super) struct ClaimHydration {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl ClaimHydration {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn label(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let claim = now.claim(key);
        let managed = claim.filter(|claim| is_managed(&*self.cloud, claim));
        if let Some(patch) = managed.and_then(|claim| missing(&claim.meta, claim)) {
            write::patch(&self.shared, Kind::NodeClaim, key, &patch).await?;
        }
        Ok(Next::Done)
    }
}

impl Keyed for ClaimHydration {
    fn name(&self) -> &'static str {
        "nodeclaim.hydration"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        changed_claim(change)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        all_claims(now)
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.label(now, key).boxed()
    }
}

/// Labels nodes.
pub(super) struct NodeHydration {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl NodeHydration {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn label(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(node) = now.node(key) else {
            return Ok(Next::Done);
        };
        let claim = now.claim_of(node);
        let managed = claim.filter(|claim| is_managed(&*self.cloud, claim));
        if let Some(patch) = managed.and_then(|claim| missing(&node.meta, claim)) {
            write::patch(&self.shared, Kind::Node, key, &patch).await?;
        }
        Ok(Next::Done)
    }
}

impl Keyed for NodeHydration {
    fn name(&self) -> &'static str {
        "node.hydration"
    }

    /// The node that changed, or whose claim did.
    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        match (change.kind, &change.about) {
            (Kind::Node, _) => vec![change.name.clone()],
            (Kind::NodeClaim, Some(id)) => {
                let nodes = now.nodes_with_id(id);
                nodes.map(|node| node.name().clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        now.nodes().map(|node| node.name().clone()).collect()
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.label(now, key).boxed()
    }
}
