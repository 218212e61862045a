//! The label that names the node class, where it is missing: controllers `nodeclaim.hydration` and
//! `node.hydration`.

use futures::FutureExt as _;
use joiner_api::labels::node_class_label;
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveClaim, Meta, Snapshot};
use serde_json::{Value, json};

use crate::context::{Ctx, Failure, Next};
use crate::engine::Stateless;

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
pub(super) const OF_CLAIMS: Stateless = Stateless {
    name: "nodeclaim.hydration",
    concerned: |change, _| super::own(change, Kind::NodeClaim),
    all: super::all_claims,
    look: |ctx, key| look_at_claim(ctx, key).boxed(),
};

/// Looks at one claim.
async fn look_at_claim(ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
    let snapshot = ctx.world.snapshot();
    let claim = snapshot.claim(key);
    let managed = claim.filter(|claim| super::is_managed(&*ctx.cloud, claim));
    if let Some(patch) = managed.and_then(|claim| missing(&claim.meta, claim)) {
        ctx.api.patch(Kind::NodeClaim, key, &patch).await?;
    }
    Ok(Next::Done)
}

/// Labels nodes.
pub(super) const OF_NODES: Stateless = Stateless {
    name: "node.hydration",
    concerned: nodes_of,
    all: |now| now.nodes().map(|node| node.name().clone()).collect(),
    look: |ctx, key| look_at_node(ctx, key).boxed(),
};

/// The node that changed, or whose claim did.
fn nodes_of(change: &Change, now: &Snapshot) -> Vec<Name> {
    match (change.kind, &change.about) {
        (Kind::Node, _) => vec![change.name.clone()],
        (Kind::NodeClaim, Some(id)) => {
            let nodes = now.nodes_with_id(id);
            nodes.map(|node| node.name().clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// Looks at one node.
async fn look_at_node(ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
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
