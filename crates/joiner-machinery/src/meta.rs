//! Names, versions, owners and times of an object.

use jiff::Timestamp;
use serde_json::Value;

/// A string under `metadata`, empty when absent.
#[must_use]
pub fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object["metadata"][field].as_str().unwrap_or("")
}

/// `metadata.name`.
#[must_use]
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`, empty when absent.
#[must_use]
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`.
#[must_use]
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// A label's value.
#[must_use]
pub fn label<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["labels"][key].as_str()
}

/// An annotation's value.
#[must_use]
pub fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object["metadata"]["annotations"][key].as_str()
}

/// True when deletion has been asked for.
#[must_use]
pub fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The owner reference with `controller: true`.
#[must_use]
pub fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners
        .iter()
        .find(|owner| owner["controller"] == Value::Bool(true))
}

/// A time as the API writes it: whole seconds, UTC.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time with microseconds, as Leases and Events have it.
#[must_use]
pub fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Reads either form.
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
