//! Bodies: JSON, YAML and protobuf to objects, and what upstream says of those that are none.

use joiner_machinery::kinds::builtin;
use joiner_machinery::{ApiError, Cause, Kind, Reason, meta, protobuf};
use serde_json::{Map, Value, json};
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::exchange::Request;
use crate::registry::Served;
use crate::server::OBJECT_MAX;
use crate::verbs::{faults, twice};

/// How much of a body a message quotes.
const QUOTED_MAX: usize = 30;

/// The object in the body, and what it says twice. `kind` is the kind that is wanted.
pub(crate) fn object_noting(
    request: &Request,
    kind: &Kind,
) -> Result<(Value, Vec<String>), ApiError> {
    let (value, twice) = match request.media_type() {
        "application/json" | "" => {
            let text = String::from_utf8_lossy(&request.body);
            twice::read(&text).map_err(|error| {
                let why = format!("{UNKNOWN_KIND}{}", json_fault(&text, &error));
                unrecognized(request, kind, &why)
            })?
        }
        "application/yaml" | "text/yaml" => {
            let value = read_yaml(&request.body);
            (
                value.map_err(|why| unrecognized(request, kind, &why))?,
                Vec::new(),
            )
        }
        protobuf::MEDIA_TYPE => (read_protobuf(request, kind)?, Vec::new()),
        _ => return Err(unsupported()),
    };
    Ok((mapping(value, request, kind)?, twice))
}

/// The object in the body.
pub(crate) fn object(request: &Request, kind: &Kind) -> Result<Value, ApiError> {
    Ok(object_noting(request, kind)?.0)
}

/// What comes before the words of the JSON reader: what the body is, is read first.
const UNKNOWN_KIND: &str = "couldn't get version/kind; json parse error: ";

/// Nothing is an empty object; anything else than a mapping is refused.
fn mapping(value: Value, request: &Request, kind: &Kind) -> Result<Value, ApiError> {
    if value.is_null() {
        return Ok(Value::Object(Map::new()));
    }
    let why = match type_fault(&value) {
        None => return Ok(value),
        Some(why) => format!("{UNKNOWN_KIND}{why}"),
    };
    Err(unrecognized(request, kind, &why))
}

/// What keeps a value from saying what kind it is.
fn type_fault(value: &Value) -> Option<String> {
    let head = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let Some(map) = value.as_object() else {
        return Some(format!(
            "json: cannot unmarshal {} into Go value of type {head}",
            word(value)
        ));
    };
    ["apiVersion", "kind"].iter().find_map(|field| {
        let given = map.get(*field)?;
        (!given.is_string() && !given.is_null()).then(|| {
            format!(
                "json: cannot unmarshal {} into Go struct field .{field} of type string",
                word(given)
            )
        })
    })
}

const fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// 400 for a body that does not even say what it is.
fn unrecognized(request: &Request, kind: &Kind, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): {why} ({})",
        kind.kind,
        summary(&request.body)
    ))
}

/// The start of a body: as it is when it looks like JSON, else in hexadecimal.
fn summary(body: &[u8]) -> String {
    let Some(first) = body.first() else {
        return "<empty>".to_owned();
    };
    let start = &body[..body.len().min(QUOTED_MAX)];
    let mut shown = if *first == b'{' {
        String::from_utf8_lossy(start).into_owned()
    } else {
        start.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    if body.len() > QUOTED_MAX {
        shown.push_str(" ...");
    }
    shown
}

fn read_protobuf(request: &Request, kind: &Kind) -> Result<Value, ApiError> {
    protobuf::decode(&request.body).map_err(|error| {
        if error.given.is_empty() {
            return unrecognized(request, kind, &error.why);
        }
        ApiError::bad_request(format!(
            "{} cannot be handled as a {}: {}",
            error.given, kind.kind, error.why
        ))
    })
}

/// The options in the body of a DELETE; empty when there are none.
pub(crate) fn options(request: &Request) -> Result<Value, ApiError> {
    if request.body.is_empty() {
        return Ok(Value::Null);
    }
    let value = match request.media_type() {
        "application/json" | "" => {
            let text = String::from_utf8_lossy(&request.body);
            serde_json::from_str(&text).map_err(|error| {
                ApiError::bad_request(format!("{UNKNOWN_KIND}{}", json_fault(&text, &error)))
            })?
        }
        "application/yaml" | "text/yaml" => {
            read_yaml(&request.body).map_err(ApiError::bad_request)?
        }
        protobuf::MEDIA_TYPE => {
            protobuf::decode(&request.body).map_err(|error| ApiError::bad_request(error.why))?
        }
        _ => return Err(unsupported()),
    };
    match type_fault(&value) {
        Some(why) if !value.is_null() => Err(ApiError::bad_request(format!("{UNKNOWN_KIND}{why}"))),
        Some(_) | None => Ok(value),
    }
}

/// A patch in JSON.
pub(crate) fn patch(body: &[u8]) -> Result<Value, ApiError> {
    // As upstream has it, a byte that is no text becomes the character that says so.
    let text = String::from_utf8_lossy(body);
    serde_json::from_str(&text).map_err(|error| {
        let why = json_fault(&text, &error);
        ApiError::bad_request(format!("error decoding patch: {why}"))
    })
}

fn json_fault(text: &str, error: &serde_json::Error) -> String {
    // What only our reader minds, such as numbers beyond all bounds, it says itself.
    faults::fault(text).unwrap_or_else(|| error.to_string())
}

/// What is applied: YAML, which JSON is, too.
pub(crate) fn configuration(body: &[u8]) -> Result<Value, ApiError> {
    let value = read_yaml(body).map_err(|why| {
        ApiError::bad_request(format!(
            "error decoding YAML: error converting YAML to JSON: {why}"
        ))
    })?;
    if value.is_object() || value.is_null() {
        return Ok(value);
    }
    Err(ApiError::bad_request(format!(
        "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
         unmarshal {} into Go value of type map[string]interface {{}}",
        word(&value)
    )))
}

/// The first document of a YAML text; of what is said twice the last counts.
fn read_yaml(body: &[u8]) -> Result<Value, String> {
    let text =
        std::str::from_utf8(body).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let read: Result<Value, _> = serde_saphyr::from_str_with_options(first_document(text), options);
    read.map_err(|error| format!("yaml: {error}"))
}

/// The text up to where a second document starts.
fn first_document(text: &str) -> &str {
    let skip = if text.starts_with("---") { 3 } else { 0 };
    let rest = &text[skip..];
    let end = rest.match_indices("\n---").map(|(at, _)| at);
    let mut end = end.filter(|at| {
        let after = rest[at + 4..].chars().next();
        after.is_none_or(char::is_whitespace)
    });
    // What comes before the first mark may be comments only.
    end.find(|at| {
        let before = rest[..*at].lines();
        before
            .map(str::trim)
            .any(|line| !line.is_empty() && !line.starts_with('#'))
    })
    .map_or(text, |at| &text[..skip + at])
}

/// Kind and version in the body must be those of the path; a body without them takes the path's.
pub(crate) fn check_type(
    served: &Served,
    object: &mut Value,
    request: &Request,
) -> Result<(), ApiError> {
    // A patch can put anything in the place of an object.
    if !object.is_object() {
        return Err(ApiError::bad_request("the object is not a mapping"));
    }
    let kind = &served.kind;
    if kind.custom.is_some() {
        check_custom_type(kind, object, request)?;
    } else {
        check_registered(kind, object, request)?;
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

/// Versions that upstream still reads, and we have no kinds of.
const BYGONE: &[&str] = &[
    "extensions/v1beta1",
    "apps/v1beta1",
    "apps/v1beta2",
    "batch/v1beta1",
    "policy/v1beta1",
    "networking.k8s.io/v1beta1",
    "autoscaling/v2beta1",
    "autoscaling/v2beta2",
];

/// What a body says it is must be something that there is, and turn into what the path is about.
fn check_registered(kind: &Kind, object: &Value, request: &Request) -> Result<(), ApiError> {
    let text = |field: &str| object[field].as_str().unwrap_or("").to_owned();
    let (given, version) = (text("kind"), text("apiVersion"));
    if version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {version}");
        return Err(unrecognized(request, kind, &why));
    }
    let is_version = version.is_empty() || version == kind.api_version();
    if given.is_empty() || (given == kind.kind && is_version) {
        return Ok(());
    }
    let version = if version.is_empty() {
        kind.api_version()
    } else {
        version
    };
    let (group, short) = version.rsplit_once('/').unwrap_or(("", &version));
    let all = builtin();
    let same = |known: &&Kind| known.kind == given && known.api_version() == version;
    let why = match all.iter().find(same) {
        Some(_) if given == kind.kind => return Ok(()),
        Some(known) => format!(
            "converting ({short}.{given}) to ({}.{}): unknown conversion",
            package(if known.group == group {
                &kind.group
            } else {
                group
            }),
            kind.kind
        ),
        None if given == kind.kind && BYGONE.contains(&version.as_str()) => return Ok(()),
        None => format!(
            "no kind \"{given}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        ),
    };
    Err(ApiError::bad_request(format!(
        "{given} in version \"{short}\" cannot be handled as a {}: {why}",
        kind.kind
    )))
}

/// The name that upstream has for a group within.
fn package(group: &str) -> &str {
    match group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    }
}

/// Custom kinds are read without a scheme: what a body is, it has to say.
fn check_custom_type(kind: &Kind, object: &Value, request: &Request) -> Result<(), ApiError> {
    let text = |field: &str| object[field].as_str().unwrap_or("").to_owned();
    let (given, version) = (text("kind"), text("apiVersion"));
    for (field, value) in [("Kind", &given), ("apiVersion", &version)] {
        if value.is_empty() {
            let body = String::from_utf8_lossy(&request.body);
            let why = format!("Object '{field}' is missing in '{body}'");
            return Err(unrecognized(request, kind, &why));
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
