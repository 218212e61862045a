//! Objects of earlier releases.

mod alone;
mod examples;
mod from_v1alpha;
mod never_valid;
mod round_trip;
mod together;
mod written_through;

use joiner_api::legacy::{Replacement, convert_all};
use serde_json::Value;

/// What some objects become, one after the other.
#[track_caller]
fn all(objects: &[Value]) -> Vec<Replacement> {
    let replaced = convert_all(objects).expect("the objects are fine");
    let kept = |(ix, replacement): (usize, Option<Replacement>)| {
        replacement.unwrap_or_else(|| Replacement {
            objects: vec![objects[ix].clone()],
            remarks: Vec::new(),
        })
    };
    replaced.into_iter().enumerate().map(kept).collect()
}

/// What one object becomes.
#[track_caller]
fn one(object: &Value) -> Replacement {
    all(std::slice::from_ref(object)).remove(0)
}

/// Lines about what changed, without the name of the object.
fn said(replacement: &Replacement) -> Vec<String> {
    let line = |remark: &joiner_api::legacy::Remark| {
        let mark = if remark.needs_hand { "! " } else { "" };
        format!("{mark}{}: {}", remark.path, remark.message)
    };
    replacement.remarks.iter().map(line).collect()
}
