//! The volume that a class makes for a claim.

use std::collections::BTreeSet;

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::{VOLUMES, reference_to};
use crate::names::{Digest, hex};
use crate::scheduler::NODES;
use crate::scheduler::labels::{items, texts};
use crate::view::{Action, View};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Creates a volume for a claim, near the selected node if there is one.
pub(crate) fn provision(
    view: &View<'_>,
    claim: &Value,
    class: &Value,
    node: Option<&Value>,
) -> Action {
    let driver = class["provisioner"].as_str().unwrap_or("");
    let uid = meta::uid(claim);
    let policy = class["reclaimPolicy"].as_str().unwrap_or("Delete");
    let handle = hex(Digest::default().number(view.seed).text(uid).finish());
    let mut spec = json!({
        "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
        "accessModes": claim["spec"]["accessModes"],
        "volumeMode": claim["spec"]["volumeMode"].as_str().unwrap_or("Filesystem"),
        "storageClassName": meta::name(class),
        "persistentVolumeReclaimPolicy": policy,
        "claimRef": reference_to(claim),
        "csi": {"driver": driver, "volumeHandle": format!("vol-{handle}")},
    });
    if class["mountOptions"].is_array() {
        spec["mountOptions"] = class["mountOptions"].clone();
    }
    if let Some((key, value)) = place(view, class, node, uid) {
        let expression = json!({"key": key, "operator": "In", "values": [value]});
        spec["nodeAffinity"] =
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}});
    }
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(claim),
            "annotations": {"pv.kubernetes.io/provisioned-by": driver},
            "finalizers": ["kubernetes.io/pv-protection"],
        },
        "spec": spec,
    });
    Action::Create(VOLUMES, volume)
}

/// What a claim's volume is called.
pub(crate) fn volume_name(claim: &Value) -> String {
    format!("pvc-{}", meta::uid(claim))
}

/// The label that the volume is tied to: the zone of the node; without a node a zone that the class
/// allows, or any that there is.
fn place(
    view: &View<'_>,
    class: &Value,
    node: Option<&Value>,
    uid: &str,
) -> Option<(String, String)> {
    let allowed = items(&class["allowedTopologies"])
        .flat_map(|term| items(&term["matchLabelExpressions"]))
        .filter_map(|one| {
            Some((
                one["key"].as_str()?,
                texts(&one["values"]).collect::<Vec<_>>(),
            ))
        });
    let mut allowed: Vec<(&str, Vec<&str>)> = allowed.collect();
    let key = allowed.first().map_or(ZONE, |(key, _)| *key);
    if let Some(node) = node {
        let value = meta::label(node, key)?;
        return Some((key.to_owned(), value.to_owned()));
    }
    if allowed.is_empty() {
        let zones: BTreeSet<&str> = view
            .all(NODES)
            .filter_map(|node| meta::label(node, ZONE))
            .collect();
        allowed.push((ZONE, zones.into_iter().collect()));
    }
    let (key, values) = allowed.first()?;
    let draw = Digest::default().number(view.seed).text(uid).finish();
    let ix = draw
        % u64::try_from(values.len())
            .ok()
            .filter(|count| *count > 0)?;
    let value = values.get(usize::try_from(ix).ok()?)?;
    Some(((*key).to_owned(), (*value).to_owned()))
}
