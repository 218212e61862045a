//! Metadata of an object that becomes one of another kind.

use super::annotations::{drop_if_empty, rename, rename_keys};
use super::fields::{at, map_at, put, take};
use crate::labels::{self, aws};
use serde_json::{Map, Value};

/// What kubectl remembers of the last apply, which was of another version.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Keys that are spelled differently today; those without a new name are dropped.
pub(super) const RENAMED: &[(&str, Option<&str>)] = &[
    (labels::OLD_PROVISIONER_NAME, Some(labels::NODE_POOL)),
    (
        "karpenter.sh/provisioner-hash",
        Some(labels::NODE_POOL_HASH),
    ),
    (
        "karpenter.k8s.aws/nodetemplate-hash",
        Some(aws::EC2_NODE_CLASS_HASH),
    ),
    ("karpenter.sh/do-not-evict", Some(labels::DO_NOT_DISRUPT)),
    (
        "karpenter.sh/do-not-consolidate",
        Some(labels::DO_NOT_DISRUPT),
    ),
    (
        "karpenter.sh/node-termination-timestamp",
        Some(labels::TERMINATION_TIMESTAMP),
    ),
    ("karpenter.sh/emptiness-timestamp", None),
    ("karpenter.sh/linked", None),
    ("karpenter.sh/managed-by", None),
];

/// What of the metadata goes to an object of another kind: the rest is the server's.
pub(super) fn carried(object: &Value) -> Value {
    let mut whole = Value::Object(Map::new());
    for field in [
        "name",
        "generateName",
        "labels",
        "annotations",
        "finalizers",
    ] {
        if let Some(value) = at(object, &["metadata", field]) {
            put(&mut whole, &["metadata", field], value.clone());
        }
    }
    rename(&mut whole, "labels", RENAMED);
    rename(&mut whole, "annotations", RENAMED);
    rename(&mut whole, "annotations", &[(LAST_APPLIED, None)]);
    take(&mut whole, &["metadata"]).unwrap_or_else(|| Value::Object(Map::new()))
}

/// Takes away what a server or kubectl notes of an object in the version it was in.
pub(super) fn forget_version(object: &mut Value) {
    take(object, &["metadata", "managedFields"]);
    rename(object, "annotations", &[(LAST_APPLIED, None)]);
    drop_if_empty(object, "annotations");
}

/// Keys of today in a map of labels or annotations at a path.
pub(super) fn rename_at(object: &mut Value, path: &[&str]) {
    if let Some(map) = map_at(object, path) {
        rename_keys(map, RENAMED);
    }
}
