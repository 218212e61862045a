//! Bodies: JSON, YAML and protobuf to objects.

use joiner_machinery::{ApiError, Reason, protobuf};
use serde_json::Value;

use crate::exchange::Request;
use crate::registry::Served;
use crate::server::OBJECT_MAX;

/// The object in the body.
pub(crate) fn object(request: &Request) -> Result<Value, ApiError> {
    if request.body.len() > OBJECT_MAX {
        return Err(too_large());
    }
    let value = match request.media_type() {
        "application/json" | "" => json(&request.body)?,
        "application/yaml" | "text/yaml" => yaml(&request.body)?,
        "application/vnd.kubernetes.protobuf" => protobuf::decode(&request.body)?,
        other => return Err(unsupported(other)),
    };
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
    serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("the body is not valid JSON: {error}")))
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
    let kind = &served.kind;
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

/// 413.
pub(crate) fn too_large() -> ApiError {
    ApiError::new(
        Reason::RequestEntityTooLarge,
        format!("Request entity too large: limit is {OBJECT_MAX}"),
    )
}

/// 415.
pub(crate) fn unsupported(media_type: &str) -> ApiError {
    ApiError::new(
        Reason::UnsupportedMediaType,
        format!(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf (given: {media_type})"
        ),
    )
}
