//! References to node classes: with a version until v1beta1, with a group since v1.

use super::annotations;
use super::fields::{at, put, text};
use crate::labels::{NODE_CLASS_REFERENCE, aws};
use serde_json::{Value, json};

/// Group and kind of what is meant where nothing is said.
pub(super) const DEFAULT: (&str, &str) = (aws::GROUP, "EC2NodeClass");

/// A reference as v1 has it. What is not said is the class of AWS.
pub(super) fn up(reference: &Value) -> Value {
    let version = text(reference, "apiVersion");
    let group = match version.split_once('/') {
        Some((group, _)) if !group.is_empty() => group,
        _ => DEFAULT.0,
    };
    let kind = match text(reference, "kind") {
        "" => DEFAULT.1,
        kind => kind,
    };
    let mut new = json!({"group": group, "kind": kind});
    if let Some(name) = reference.get("name") {
        new["name"] = name.clone();
    }
    new
}

/// The class of AWS of this name.
pub(super) fn named(name: &str) -> Value {
    json!({"group": DEFAULT.0, "kind": DEFAULT.1, "name": name})
}

/// A reference of v1alpha5, which meant the template of AWS where it did not say.
pub(super) fn of_v1alpha5(reference: &Value) -> Value {
    match text(reference, "kind") {
        "" | "AWSNodeTemplate" => named(text(reference, "name")),
        _ => up(reference),
    }
}

fn down(reference: &Value) -> Value {
    let mut old = reference.clone();
    if let Some(group) = reference.get("group").and_then(Value::as_str) {
        put(&mut old, &["apiVersion"], format!("{group}/v1beta1").into());
        super::fields::take(&mut old, &["group"]);
    }
    old
}

/// Turns the reference at a path into one of v1. One that could not be told from it is kept in an
/// annotation, as upstream does.
pub(super) fn raise(object: &mut Value, path: &[&str]) {
    let Some(old) = at(object, path).filter(|old| old.is_object()).cloned() else {
        return;
    };
    let new = up(&old);
    if down(&new) != old {
        annotations::set(object, NODE_CLASS_REFERENCE, old.to_string());
    }
    put(object, path, new);
}

/// Turns the reference at a path into one of v1beta1: the kept one, if it is about the same class.
pub(super) fn lower(object: &mut Value, path: &[&str]) {
    let Some(new) = at(object, path).filter(|new| new.is_object()).cloned() else {
        return;
    };
    let kept = annotations::get(object, NODE_CLASS_REFERENCE)
        .and_then(|kept| serde_json::from_str::<Value>(kept).ok())
        .filter(|kept| kept.is_object() && up(kept) == new);
    let old = match kept {
        Some(kept) => {
            annotations::remove(object, NODE_CLASS_REFERENCE);
            kept
        }
        None => down(&new),
    };
    put(object, path, old);
}
