//! Names of earlier releases in objects that are not converted.

use super::fields::{subject, text};
use super::remark::{Remark, Remarks};
use crate::labels::{DO_NOT_DISRUPT, NODE_POOL, OLD_PROVISIONER_NAME};
use serde_json::Value;

/// More remarks than this are not made on one object.
const REMARKS_MAX: usize = 10;

/// What another object says in words that mean nothing any longer: pods that select nodes by a label of
/// Provisioners, and annotations that held nodes.
#[must_use]
pub fn mentions(object: &Value) -> Vec<Remark> {
    let mut list = Vec::new();
    // Nodes have what they were made with, and change with the nodes.
    if text(object, "kind") == "Node" {
        return list;
    }
    let namespace = object
        .pointer("/metadata/namespace")
        .and_then(Value::as_str);
    let mut subject = subject(object);
    if let (Some(namespace), Some((kind, name))) = (namespace, subject.split_once(' ')) {
        subject = format!("{kind} {namespace}/{name}");
    }
    let mut remarks = Remarks {
        subject: &subject,
        list: &mut list,
    };
    walk(object, "", &mut remarks);
    list.truncate(REMARKS_MAX);
    list
}

/// Whether a text has one of these names at all.
#[must_use]
pub fn may_mention(text: &str) -> bool {
    [OLD_PROVISIONER_NAME, "karpenter.sh/do-not-"]
        .iter()
        .any(|name| text.contains(name))
}

fn walk(value: &Value, path: &str, remarks: &mut Remarks<'_>) {
    if remarks.list.len() >= REMARKS_MAX {
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, entry) in map {
                let below = match path {
                    "" => key.clone(),
                    path if key.contains(['.', '/']) => format!("{path}[{key}]"),
                    path => format!("{path}.{key}"),
                };
                name(key, &below, remarks);
                if let ("key" | "topologyKey", Some(label)) = (key.as_str(), entry.as_str()) {
                    name(label, &below, remarks);
                }
                walk(entry, &below, remarks);
            }
        }
        Value::Array(list) => {
            for (ix, item) in list.iter().enumerate() {
                walk(item, &format!("{path}[{ix}]"), remarks);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn name(key: &str, path: &str, remarks: &mut Remarks<'_>) {
    match key {
        OLD_PROVISIONER_NAME => remarks.hand(
            path,
            format!("nodes of NodePools do not have the label {key}; write {NODE_POOL}"),
        ),
        "karpenter.sh/do-not-evict" | "karpenter.sh/do-not-consolidate" => remarks.hand(
            path,
            format!("the annotation {key} keeps nothing any longer; write {DO_NOT_DISRUPT}"),
        ),
        _ => {}
    }
}

/// An object whose selectors name NodePools instead of Provisioners.
#[must_use]
pub fn with_pool_names(value: &Value) -> Value {
    let renamed = |text: &str| match text {
        OLD_PROVISIONER_NAME => NODE_POOL.to_owned(),
        other => other.to_owned(),
    };
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                let value = match (key.as_str(), value) {
                    ("key" | "topologyKey", Value::String(label)) => renamed(label).into(),
                    (_, value) => with_pool_names(value),
                };
                (renamed(key), value)
            };
            Value::Object(map.iter().map(entry).collect())
        }
        Value::Array(list) => list.iter().map(with_pool_names).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
