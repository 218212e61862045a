//! The Node of a claim becomes one of ours.

use std::collections::BTreeMap;

use joiner_api::labels::{
    DO_NOT_SYNC_TAINTS, IN_TURN_TAINT, REGISTERED, TERMINATION_FINALIZER, UNREGISTERED_TAINT,
    node_class_label,
};
use joiner_api::types::Taint;
use joiner_state::live::{LiveClaim, LiveNode, Owner};
use serde_json::{Value, json};

/// True when all of the claim has reached its Node, and the Node is open for pods.
#[must_use]
pub(super) fn is_synced(claim: &LiveClaim, node: &LiveNode) -> bool {
    node.says(REGISTERED) && is_adopted(claim, node) && !node.has_taint(&UNREGISTERED_TAINT)
}

/// True when what the claim says has reached its Node, whether or not that is open for pods. From
/// then on the Node is ours: it ends as our Nodes do.
#[must_use]
pub(super) fn is_adopted(claim: &LiveClaim, node: &LiveNode) -> bool {
    node.meta.has_finalizer(TERMINATION_FINALIZER) && is_owned(claim, node)
}

/// True when the Node came without what keeps pods off until it is registered. They may have come
/// too early: somebody should look at how the machine boots.
#[must_use]
pub(super) fn lacks_taint(node: &LiveNode) -> bool {
    !node.has_taint(&UNREGISTERED_TAINT) && node.meta.label(REGISTERED).is_none()
}

fn is_owned(claim: &LiveClaim, node: &LiveNode) -> bool {
    node.meta.owners.iter().any(|own| own.uid == claim.meta.uid)
}

/// The patch that makes a Node one of ours and opens it for pods. It holds only for the Node as it was
/// looked at.
#[must_use]
pub(super) fn open(claim: &LiveClaim, node: &LiveNode) -> Value {
    let mut patch = sync(claim, node);
    patch["metadata"]["labels"][REGISTERED] = json!("true");
    let mut taints = taints(claim, node);
    taints.retain(|own| !keeps_pods_off(own));
    patch["spec"] = json!({"taints": taints});
    patch
}

/// The patch that makes a Node one of ours and leaves it closed: something else must be done first.
/// A Node says that it is registered only when it is.
#[must_use]
pub(super) fn adopt(claim: &LiveClaim, node: &LiveNode) -> Value {
    let mut patch = sync(claim, node);
    let labels = &mut patch["metadata"]["labels"];
    if node.meta.label(REGISTERED).is_some() || labels.get(REGISTERED).is_some() {
        labels[REGISTERED] = Value::Null;
    }
    patch["spec"] = json!({"taints": taints(claim, node)});
    patch
}

/// What every Node of ours has of its claim.
fn sync(claim: &LiveClaim, node: &LiveNode) -> Value {
    let own = &claim.claim.metadata;
    let class = &claim.claim.spec.node_class_ref;
    let class_label = node_class_label(&class.group, &class.kind);
    // By this label the Node is known to be ours; a claim made by hand may not have it.
    let mut labels = BTreeMap::from([(class_label.as_str(), class.name.as_str())]);
    labels.extend(texts(&own.labels));
    let annotations: BTreeMap<&str, &str> = texts(&own.annotations).collect();
    let mut finalizers: Vec<&str> = node.meta.finalizers.iter().map(AsRef::as_ref).collect();
    if !node.meta.has_finalizer(TERMINATION_FINALIZER) {
        finalizers.push(TERMINATION_FINALIZER);
    }
    let mut metadata = json!({
        "resourceVersion": node.meta.version.to_string(),
        "labels": labels,
        "finalizers": finalizers,
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    if !is_owned(claim, node) {
        let others = node.meta.owners.iter().map(owner);
        let owners: Vec<Value> = others.chain([owner_of(claim)]).collect();
        metadata["ownerReferences"] = Value::Array(owners);
    }
    json!({"metadata": metadata})
}

fn texts(map: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    map.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

fn owner(own: &Owner) -> Value {
    let mut owner = json!({
        "apiVersion": &*own.api_version,
        "kind": &*own.kind,
        "name": &*own.name,
        "uid": &*own.uid,
    });
    if own.controller {
        owner["controller"] = json!(true);
    }
    owner
}

/// The owner reference of a Node, to the letter: others compare it.
fn owner_of(claim: &LiveClaim) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "name": &**claim.name(),
        "uid": &*claim.meta.uid,
        "blockOwnerDeletion": true,
    })
}

/// The taint of a Node that is not open for pods yet.
fn keeps_pods_off(taint: &Taint) -> bool {
    taint.key == UNREGISTERED_TAINT.key && taint.effect == UNREGISTERED_TAINT.effect
}

/// The taints of the Node and those of the claim. Where both have a taint of the same key and effect,
/// the Node's stays.
fn taints(claim: &LiveClaim, node: &LiveNode) -> Vec<Taint> {
    let mut taints: Vec<Taint> = node.taints.clone();
    // Taints that were synced once are not brought back: whoever lifted them meant it.
    let synced = is_adopted(claim, node) || (node.says(REGISTERED) && is_owned(claim, node));
    if node.says(DO_NOT_SYNC_TAINTS) || synced {
        return taints;
    }
    let spec = &claim.claim.spec;
    for taint in [&spec.taints, &spec.startup_taints]
        .into_iter()
        .flatten()
        .flatten()
    {
        if !taints.iter().any(|own| same(own, taint)) {
            taints.push(Taint {
                time_added: None,
                ..taint.clone()
            });
        }
    }
    if claim.in_turn && !node.has_taint(&IN_TURN_TAINT) {
        taints.push(IN_TURN_TAINT.to_taint());
    }
    taints
}

/// The same key and effect.
#[must_use]
pub(super) fn same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}
