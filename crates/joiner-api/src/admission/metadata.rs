//! Metadata: the same for every kind, and not part of any definition.

use super::Warning;
use crate::names::{key_error, label_value_error, object_name_error};
use crate::schema::{FieldError, Schema};
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// Most bytes in all annotations together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        Schema::compile(&open_api()).expect("the metadata schema compiles: tests say so")
    })
}

fn open_api() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let owner = json!({
        "type": "object",
        "required": ["apiVersion", "kind", "name", "uid"],
        "properties": {
            "apiVersion": text, "kind": text, "name": text, "uid": text,
            "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
        },
    });
    let metadata = json!({
        "type": "object",
        "properties": {
            "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
            "resourceVersion": text, "generation": number, "creationTimestamp": time,
            "deletionTimestamp": time, "deletionGracePeriodSeconds": number,
            "labels": texts, "annotations": texts,
            "ownerReferences": {"type": "array", "items": owner},
            "finalizers": {"type": "array", "items": text},
            "managedFields": {"type": "array", "items": open},
        },
    });
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["metadata"],
        "properties": {"metadata": metadata},
    })
}

/// Drops nulls and unknown fields of the metadata; tells about the latter.
pub(super) fn complete(object: &mut Value) -> Vec<Warning> {
    let unknown = schema().unknown_fields(object);
    if !unknown.is_empty() {
        schema().prune(object);
    }
    schema().apply_defaults(object);
    unknown.into_iter().map(Warning::from).collect()
}

/// Every mistake in the metadata of an object of any kind.
#[must_use]
pub fn validate_metadata(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = schema().validate(object, None);
    let Some(meta) = object.get("metadata").and_then(Value::as_object) else {
        return errors;
    };
    let mut add = |path: &str, message: &str, value: Option<&str>| {
        let value = value.map(|value| Value::from(value).to_string());
        errors.push(FieldError {
            path: path.to_owned(),
            message: message.to_owned(),
            value,
        });
    };
    check_name(meta, old, &mut add);
    for (path, key) in keys_of(meta, "labels").chain(keys_of(meta, "annotations")) {
        if let Some(why) = key_error(&key.to_lowercase()) {
            add(&path, &format!("the key {why}"), None);
        }
    }
    for (key, value) in entries(meta, "labels") {
        if let Some(why) = value.as_str().and_then(label_value_error) {
            add(&format!("metadata.labels[{key}]"), why, value.as_str());
        }
    }
    let bytes = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if entries(meta, "annotations").map(bytes).sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        add(
            "metadata.annotations",
            "must have at most 256 KiB in all",
            None,
        );
    }
    errors
}

fn check_name(
    meta: &Map<String, Value>,
    old: Option<&Value>,
    add: &mut impl FnMut(&str, &str, Option<&str>),
) {
    let text = |key: &str| {
        meta.get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let (name, start) = (text("name"), text("generateName"));
    if let Some(name) = name {
        if let Some(why) = object_name_error(name) {
            add("metadata.name", why, Some(name));
        }
        let before = old
            .and_then(|old| old.pointer("/metadata/name"))
            .and_then(Value::as_str);
        if before.is_some_and(|before| before != name) {
            add("metadata.name", "cannot be changed", Some(name));
        }
    } else if start.is_none() {
        add("metadata.name", "is required", None);
    }
    if let Some(start) = start {
        // The server appends to it, so a dash at the end is fine; a dot is not. It is judged even
        // where a name makes it useless.
        let end = if start.ends_with('-') { "x" } else { "" };
        if let Some(why) = object_name_error(&format!("{start}{end}")) {
            add("metadata.generateName", why, Some(start));
        }
    }
}

fn entries<'a>(
    meta: &'a Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    meta.get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn keys_of<'a>(
    meta: &'a Map<String, Value>,
    field: &'a str,
) -> impl Iterator<Item = (String, &'a String)> {
    entries(meta, field).map(move |(key, _)| (format!("metadata.{field}[{key}]"), key))
}
