//! Objects as they are stored: sets of owned fields as text.
//!
//! Half of a pod's memory would go into the maps of `metadata.managedFields`, which nobody but
//! server-side apply looks into. So `fieldsV1` of each entry is kept as the JSON that it is on the
//! wire, and turned back into maps for those who change the object.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Turns sets of owned fields into text.
pub(crate) fn pack(object: &mut Value) {
    each_set(object, |set| match set {
        // A text is written as it is, so one that somebody else has put there must be JSON, too.
        Value::String(text) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {}
        Value::Object(_) => {
            let mut text = String::new();
            write_value(set, &mut text);
            *set = Value::String(text);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            *set = Value::String("{}".to_owned());
        }
    });
}

/// Turns text back into sets of owned fields.
pub(crate) fn unpack(object: &mut Value) {
    each_set(object, |set| {
        let parsed = set
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        if let Some(parsed) = parsed {
            *set = parsed;
        }
    });
}

/// An object as JSON, whether packed or not.
pub(crate) fn to_text(object: &Value) -> String {
    let mut text = String::with_capacity(1024);
    match object.as_object() {
        Some(fields) => write_fields(fields.iter(), &mut text),
        None => write_value(object, &mut text),
    }
    text
}

/// Fields of an object as JSON.
pub(crate) fn write_fields<'f>(
    fields: impl Iterator<Item = (&'f String, &'f Value)>,
    text: &mut String,
) {
    write_map(fields, text, |key, value, text| match (key, value) {
        ("metadata", Value::Object(metadata)) => write_metadata(metadata, text),
        (_, value) => write_value(value, text),
    });
}

fn write_metadata(metadata: &Map<String, Value>, text: &mut String) {
    write_map(metadata.iter(), text, |key, value, text| {
        match (key, value) {
            ("managedFields", Value::Array(entries)) => {
                text.push('[');
                for (ix, entry) in entries.iter().enumerate() {
                    if ix > 0 {
                        text.push(',');
                    }
                    match entry.as_object() {
                        Some(entry) => write_entry(entry, text),
                        None => write_value(entry, text),
                    }
                }
                text.push(']');
            }
            (_, value) => write_value(value, text),
        }
    });
}

fn write_entry(entry: &Map<String, Value>, text: &mut String) {
    write_map(entry.iter(), text, |key, value, text| match (key, value) {
        ("fieldsV1", Value::String(set)) => text.push_str(set),
        (_, value) => write_value(value, text),
    });
}

fn write_map<'f>(
    fields: impl Iterator<Item = (&'f String, &'f Value)>,
    text: &mut String,
    write: impl Fn(&str, &Value, &mut String),
) {
    text.push('{');
    for (ix, (key, value)) in fields.enumerate() {
        if ix > 0 {
            text.push(',');
        }
        write_key(key, text);
        text.push(':');
        write(key, value, text);
    }
    text.push('}');
}

fn write_key(key: &str, text: &mut String) {
    if is_plain(key) {
        text.push('"');
        text.push_str(key);
        text.push('"');
    } else {
        text.push_str(&Value::from(key).to_string());
    }
}

/// True for what needs no escaping.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    text.bytes().all(is_plain)
}

fn write_value(value: &Value, text: &mut String) {
    // A value can always be written; without the detour over formatting it takes half the time.
    match value.as_str().filter(|plain| is_plain(plain)) {
        Some(plain) => {
            text.push('"');
            text.push_str(plain);
            text.push('"');
        }
        None => text.push_str(&serde_json::to_string(value).unwrap_or_default()),
    }
}

fn each_set(object: &mut Value, act: impl Fn(&mut Value)) {
    let entries = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("managedFields"))
        .and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(set) = entry.get_mut("fieldsV1") {
            act(set);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_packed_reads_the_same() {
        for object in [
            json!({"metadata": {"name": "a\"b", "annotations": {"k\n\"": "v\u{1}"},
                "managedFields": [{"manager": "m", "fieldsV1":
                    {"f:spec": {"k:{\"name\":\"x\"}": {".": {}, "f:y": {}}}}}, {"manager": "n"}]},
                "spec": {"fieldsV1": "{not json", "list": [1, null]}}),
            json!({"metadata": {"managedFields": []}}),
            json!({"metadata": null, "a b": {}}),
            json!({}),
            json!([1]),
        ] {
            let mut packed = object.clone();
            pack(&mut packed);
            assert_eq!(to_text(&packed), object.to_string());
            assert_eq!(to_text(&object), object.to_string());
            unpack(&mut packed);
            assert_eq!(packed, object);
        }
    }

    #[test]
    fn nonsense_is_not_written() {
        let mut object = json!({"metadata": {"managedFields": [{"fieldsV1": "{]"}]}});
        pack(&mut object);
        pack(&mut object);
        let clean = json!({"metadata": {"managedFields": [{"fieldsV1": {}}]}});
        assert_eq!(to_text(&object), clean.to_string());
    }
}
