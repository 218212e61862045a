//! Reaching into objects that are not typed.

use serde_json::{Map, Value};

/// Text under a key, or nothing.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// `kind name`, or as much of it as there is.
pub(super) fn subject(object: &Value) -> String {
    let kind = text(object, "kind");
    let meta = object.get("metadata").unwrap_or(&Value::Null);
    match (text(meta, "name"), text(meta, "generateName")) {
        ("", "") => kind.to_owned(),
        ("", start) => format!("{kind} {start}"),
        (name, _) => format!("{kind} {name}"),
    }
}

/// What is at a path.
pub(super) fn at<'v>(object: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// The object at a path, if there is one.
pub(super) fn map_at<'v>(
    object: &'v mut Value,
    path: &[&str],
) -> Option<&'v mut Map<String, Value>> {
    path.iter()
        .try_fold(object, |value, key| value.get_mut(key))?
        .as_object_mut()
}

/// The list at a path, if there is one.
pub(super) fn list_at<'v>(object: &'v mut Value, path: &[&str]) -> Option<&'v mut Vec<Value>> {
    path.iter()
        .try_fold(object, |value, key| value.get_mut(key))?
        .as_array_mut()
}

/// Takes away what is at a path.
pub(super) fn take(object: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    map_at(object, above)?.remove(*last)
}

/// Puts a value at a path, making objects on the way. What is no object on the way stays, and nothing
/// is put below it.
pub(super) fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, above)) = path.split_last() else {
        return;
    };
    let mut here = object;
    for key in above {
        let Some(map) = here.as_object_mut() else {
            return;
        };
        here = map.entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Some(map) = here.as_object_mut() {
        map.insert((*last).to_owned(), value);
    }
}

/// Moves a value from one path to another, if it is there.
pub(super) fn shift(object: &mut Value, from: &[&str], to: &[&str]) {
    if let Some(value) = take(object, from) {
        put(object, to, value);
    }
}

/// The same object in another version.
pub(super) fn with_version(object: &Value, api_version: &str) -> Value {
    let mut object = object.clone();
    put(&mut object, &["apiVersion"], api_version.into());
    object
}

/// Drops entries that are null, at any depth: for a server they are not there.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, entry| !entry.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
