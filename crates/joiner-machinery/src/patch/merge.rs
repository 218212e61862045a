//! Merge patch, RFC 7396: objects are merged, nulls delete, everything else replaces.

use serde_json::Value;

use crate::error::ApiError;

/// The object after a merge patch.
///
/// # Errors
///
/// 400 when the patch is not an object.
pub fn merge(target: &Value, patch: &Value) -> Result<Value, ApiError> {
    match patch {
        Value::Object(_) => {}
        Value::Null => return Err(ApiError::bad_request("Invalid JSON Patch")),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let wanted = "value of type map[string]interface {}";
            return Err(super::unreadable("error decoding patch: ", patch, wanted));
        }
    }
    let mut out = target.clone();
    json_patch::merge(&mut out, patch);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_delete_and_lists_replace() {
        let target = json!({"a": {"b": 1, "c": 2}, "l": [1, 2], "s": "x"});
        let patch = json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [3], "s": {"t": 1}});
        let out = merge(&target, &patch).unwrap();
        assert_eq!(
            out,
            json!({"a": {"c": 2, "d": {"f": 1}}, "l": [3], "s": {"t": 1}})
        );
    }

    #[test]
    fn a_patch_is_an_object() {
        for patch in [json!(null), json!([]), json!("x"), json!(1)] {
            assert_eq!(merge(&json!({}), &patch).unwrap_err().reason.code(), 400);
        }
    }
}
