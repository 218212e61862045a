//! What manifests of a v1beta1 class leave unsaid, and what only a server has use for.

use super::annotations;
use super::fields::{list_at, map_at, take};
use super::remark::Remarks;
use super::{aws_node_template, volume_size};
use crate::labels::NODE_CLASS_REFERENCE;
use crate::labels::aws::UBUNTU_CONVERSION;
use crate::labels::ours::{V1_FIELDS, V1BETA1_FIELDS};
use serde_json::Value;

/// Writes out what v1beta1 meant without saying so and v1 does not.
pub(super) fn complete(class: &mut Value, remarks: &mut Remarks<'_>) {
    if let Some(spec) = class.get_mut("spec") {
        aws_node_template::hops(spec, "spec", remarks);
    }
    volume_size::rewrite(class, "spec", remarks);
    aws_node_template::images(class, "spec", remarks);
}

/// Takes away what is there for the way back, which manifests do not go, and empty values of taints,
/// which v1 does not take.
pub(super) fn without_leftovers(object: &mut Value) {
    for key in [
        NODE_CLASS_REFERENCE,
        UBUNTU_CONVERSION,
        V1_FIELDS,
        V1BETA1_FIELDS,
    ] {
        annotations::remove(object, key);
    }
    for path in [&["spec", "template", "spec"][..], &["spec"]] {
        for list in ["taints", "startupTaints"] {
            let path: Vec<&str> = path.iter().copied().chain([list]).collect();
            for taint in list_at(object, &path).into_iter().flatten() {
                if taint.get("value").is_some_and(|value| value == "") {
                    take(taint, &["value"]);
                }
            }
        }
    }
    // Metadata of a template that is empty says nothing.
    for path in [&["spec", "template", "metadata"][..], &["metadata"]] {
        for field in ["labels", "annotations"] {
            let path: Vec<&str> = path.iter().copied().chain([field]).collect();
            if map_at(object, &path).is_some_and(|map| map.is_empty()) {
                take(object, &path);
            }
        }
    }
}
