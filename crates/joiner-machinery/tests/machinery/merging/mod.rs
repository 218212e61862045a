//! Patches, server-side apply and the ownership of fields, from the outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod apply;
mod properties;
mod record;
mod recorded;
mod strategic;

use std::sync::Arc;

use joiner_machinery::apply::Writer;
use joiner_machinery::{Kind, Subresource, meta};
use serde_json::{Value, json};

const TEN: &str = "2026-01-01T10:00:00Z";
const ELEVEN: &str = "2026-01-01T11:00:00Z";

fn kind(group: &str, version: &str, name: &str) -> Kind {
    let lower = name.to_lowercase();
    let has_status = !matches!(name, "ConfigMap" | "Secret" | "ServiceAccount");
    Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: name.to_owned(),
        plural: format!("{lower}s"),
        singular: lower,
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        subresources: has_status
            .then_some(Subresource::Status)
            .into_iter()
            .collect(),
        custom: None,
    }
}

fn deployment() -> Kind {
    kind("apps", "v1", "Deployment")
}

fn pod() -> Kind {
    kind("", "v1", "Pod")
}

fn config_map() -> Kind {
    kind("", "v1", "ConfigMap")
}

fn service() -> Kind {
    kind("", "v1", "Service")
}

/// A custom kind with the given schema of `spec`.
fn custom(spec: Value) -> Kind {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    custom_version(json!({"schema": {"openAPIV3Schema": schema}}))
}

fn custom_version(version: Value) -> Kind {
    Kind {
        custom: Some(Arc::new(version)),
        ..kind("ex.dev", "v1", "Thing")
    }
}

fn by<'w>(manager: &'w str, at: &str) -> Writer<'w> {
    Writer {
        manager,
        subresource: None,
        now: meta::parse_time(at).unwrap(),
    }
}

/// An object of the kind: `part` is laid over its bare bones.
fn object(kind: &Kind, part: Value) -> Value {
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": "x", "namespace": "default"},
    });
    json_merge(&mut object, part);
    object
}

fn json_merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                json_merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// The fields that somebody owns by an operation.
fn owned(object: &Value, manager: &str, operation: &str) -> Value {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mine = |entry: &&Value| entry["manager"] == manager && entry["operation"] == operation;
    entries
        .iter()
        .find(mine)
        .map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    entries
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap().to_owned())
        .collect()
}
