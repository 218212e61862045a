//! Bodies: JSON, YAML and protobuf to objects.

use joiner_machinery::{ApiError, Cause, Kind, Reason, meta, protobuf};
use serde_json::{Value, json};

use crate::exchange::Request;
use crate::registry::Served;
use crate::server::OBJECT_MAX;
use crate::verbs::twice;

/// The object in the body, and what it says twice.
pub(crate) fn object_noting(request: &Request) -> Result<(Value, Vec<String>), ApiError> {
    if request.media_type() != "application/json" {
        return Ok((object(request)?, Vec::new()));
    }
    let (value, twice) = twice::read(&String::from_utf8_lossy(&request.body)).map_err(not_json)?;
    Ok((whole(value)?, twice))
}

/// The object in the body.
pub(crate) fn object(request: &Request) -> Result<Value, ApiError> {
    let value = match request.media_type() {
        "application/json" | "" => json(&request.body)?,
        "application/yaml" | "text/yaml" => yaml(&request.body)?,
        "application/vnd.kubernetes.protobuf" => protobuf::decode(&request.body)?,
        _ => return Err(unsupported()),
    };
    whole(value)
}

fn whole(value: Value) -> Result<Value, ApiError> {
    if value.is_object() {
        Ok(value)
    } else {
        Err(ApiError::bad_request(
            "the request body is not an object: expected a JSON or YAML mapping",
        ))
    }
}

/// The options in the body of a DELETE; empty when there are none.
pub(crate) fn options(request: &Request) -> Result<Value, ApiError> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    object(request)
}

/// JSON, with the position of a mistake.
pub(crate) fn json(body: &[u8]) -> Result<Value, ApiError> {
    // As upstream has it, a byte that is no text becomes the character that says so.
    serde_json::from_str(&String::from_utf8_lossy(body)).map_err(not_json)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what map_err hands over"
)]
fn not_json(error: serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("the body is not valid JSON: {error}"))
}

/// YAML.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(body)
        .map_err(|_| ApiError::bad_request("the body is not valid UTF-8"))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("the body is not valid YAML: {error}")))
}

/// Kind and version in the body must be those of the path; a body without them takes the path's.
pub(crate) fn check_type(served: &Served, object: &mut Value) -> Result<(), ApiError> {
    // A patch can put anything in the place of an object.
    if !object.is_object() {
        return Err(ApiError::bad_request("the object is not a mapping"));
    }
    let kind = &served.kind;
    if kind.custom.is_some() {
        check_custom_type(kind, object)?;
    }
    for (field, expected, what) in [
        ("apiVersion", kind.api_version(), "API version"),
        ("kind", kind.kind.clone(), "kind"),
    ] {
        match object[field].as_str() {
            Some(given) if given == expected => {}
            Some("") | None => object[field] = Value::String(expected),
            Some(given) => {
                return Err(ApiError::bad_request(format!(
                    "the {what} in the data ({given}) does not match the expected {what} ({expected})"
                )));
            }
        }
    }
    Ok(())
}

/// Custom kinds are read without a scheme: what a body is, it has to say.
fn check_custom_type(kind: &Kind, object: &Value) -> Result<(), ApiError> {
    let text = |field: &str| object[field].as_str().unwrap_or("").to_owned();
    let (given, version) = (text("kind"), text("apiVersion"));
    for (field, value) in [("Kind", &given), ("apiVersion", &version)] {
        if value.is_empty() {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object '{field}' is missing in '{object}'",
                kind.kind
            )));
        }
    }
    if given != kind.kind && version == kind.api_version() {
        let cause = Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"{given}\": must be {}", kind.kind),
            field: "kind".to_owned(),
        };
        let other = Kind {
            kind: given,
            ..kind.clone()
        };
        return Err(ApiError::invalid(&other, meta::name(object), &[cause]));
    }
    Ok(())
}

/// True when an object is larger than what the store takes. Characters that JSON escapes count once.
pub(crate) fn is_too_large(object: &Value) -> bool {
    size(object) > OBJECT_MAX
}

fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(number) => number.as_u64().map_or(8, |n| n.to_string().len()),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            let sizes = fields
                .iter()
                .map(|(key, value)| key.len() + 4 + size(value));
            sizes.sum::<usize>() + 2
        }
    }
}

/// An object that the store does not take, in the words of the store that upstream has.
pub(crate) fn too_large() -> ApiError {
    ApiError::new(Reason::Unknown, "etcdserver: request is too large")
}

/// 415 for a patch.
pub(crate) fn unsupported_patch(kind: &Kind, media_type: &str) -> ApiError {
    if kind.custom.is_some() && media_type == "application/strategic-merge-patch+json" {
        return ApiError::new(
            Reason::UnsupportedMediaType,
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        );
    }
    let mut error = ApiError::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
    error.details = Some(json!({}));
    error
}

/// 415.
fn unsupported() -> ApiError {
    ApiError::new(
        Reason::UnsupportedMediaType,
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )
}
