//! The label that names the node class, where it is missing: controllers `nodeclaim.hydration` and
//! `node.hydration`.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_api::labels::node_class_label;
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveClaim, Meta, Snapshot};
use serde_json::{Value, json};

use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

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
#[derive(Debug)]
pub(crate) struct ClaimHydration;

/// Labels nodes.
#[derive(Debug)]
pub(crate) struct NodeHydration;

impl Controller for ClaimHydration {
    fn name(&self) -> &'static str {
        "nodeclaim.hydration"
    }

    fn concerned(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        super::own(change, Kind::NodeClaim)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        super::all_claims(now)
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        async move {
            let snapshot = ctx.world.snapshot();
            let claim = snapshot.claim(key);
            let managed = claim.filter(|claim| super::is_managed(&*ctx.cloud, claim));
            if let Some(patch) = managed.and_then(|claim| missing(&claim.meta, claim)) {
                ctx.api.patch(Kind::NodeClaim, key, &patch).await?;
            }
            Ok(Next::Done)
        }
        .boxed()
    }
}

impl Controller for NodeHydration {
    fn name(&self) -> &'static str {
        "node.hydration"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
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

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        async move {
            let snapshot = ctx.world.snapshot();
            let Some(node) = snapshot.node(key) else {
                return Ok(Next::Done);
            };
            let claim = snapshot.claim_of(node);
            let managed = claim.filter(|claim| super::is_managed(&*ctx.cloud, claim));
            if let Some(patch) = managed.and_then(|claim| missing(&node.meta, claim)) {
                ctx.api.patch(Kind::Node, key, &patch).await?;
            }
            Ok(Next::Done)
        }
        .boxed()
    }
}
