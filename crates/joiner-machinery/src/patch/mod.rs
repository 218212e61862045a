//! What a patch makes of an object: JSON patch, merge patch and strategic merge patch.
//!
//! These are functions from an object and a patch to an object. Which kinds take which patches,
//! whether the result is valid and who owns it is for the caller; server-side apply is in
//! [`crate::apply`].

mod json;
mod merge;
mod strategic;

pub use self::json::json;
pub use self::merge::merge;
pub use self::strategic::strategic;

use serde_json::Value;

use crate::error::{ApiError, Reason};

/// 422 in the words that the API has for all patches that do not fit their object.
fn does_not_fit() -> ApiError {
    let mut error = ApiError::new(
        Reason::Invalid,
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(serde_json::json!({}));
    error
}

/// 400 for a patch of the wrong kind, in upstream's words.
fn unreadable(prefix: &str, found: &Value, wanted: &str) -> ApiError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    ApiError::bad_request(format!(
        "{prefix}json: cannot unmarshal {found} into Go {wanted}"
    ))
}

/// A value as upstream's messages show it: `map[name:web ports:[80 81]]`.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(shown).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{k}:{}", shown(v)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}
