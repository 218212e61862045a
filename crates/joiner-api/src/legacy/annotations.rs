//! Annotations and labels of an object that is not typed.

use super::fields::{at, map_at, put, take};
use serde_json::{Map, Value};

/// The text of an annotation.
pub(super) fn get<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    at(object, &["metadata", "annotations", key])?.as_str()
}

/// Sets an annotation.
pub(super) fn set(object: &mut Value, key: &str, text: String) {
    put(object, &["metadata", "annotations", key], text.into());
}

/// Takes an annotation away, and the map with it when it was the last.
pub(super) fn remove(object: &mut Value, key: &str) -> Option<Value> {
    let removed = take(object, &["metadata", "annotations", key]);
    if removed.is_some() {
        drop_if_empty(object, "annotations");
    }
    removed
}

/// Drops an empty map of the metadata.
pub(super) fn drop_if_empty(object: &mut Value, field: &str) {
    let map = map_at(object, &["metadata", field]);
    if map.is_some_and(|map| map.is_empty()) {
        take(object, &["metadata", field]);
    }
}

/// Renames the keys of a map of the metadata: `None` drops one.
pub(super) fn rename(object: &mut Value, field: &str, names: &[(&str, Option<&str>)]) {
    if let Some(map) = map_at(object, &["metadata", field]) {
        rename_keys(map, names);
        drop_if_empty(object, field);
    }
}

/// Renames keys of a map. A key that is there under its new name already stays as it is.
pub(super) fn rename_keys(map: &mut Map<String, Value>, names: &[(&str, Option<&str>)]) {
    for (old, new) in names {
        if let (Some(value), Some(new)) = (map.remove(*old), new) {
            map.entry(*new).or_insert(value);
        }
    }
}
