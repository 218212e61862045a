//! Which forms a client takes, and the answer in one of them.

use joiner_machinery::{ApiError, Reason};
use serde_json::{Value, json};

use crate::exchange::{Body, Reply, Request};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Forms of objects.
pub(crate) const OBJECTS: &[&str] = &[JSON, YAML, PROTOBUF];
/// Forms of lists, which may be watched.
pub(crate) const LISTS: &[&str] = &[
    JSON,
    YAML,
    PROTOBUF,
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// Forms of what is not an object.
pub(crate) const ONLY_JSON: &[&str] = &[JSON];

/// The media types that a client takes, without their parameters, in its order.
fn types(request: &Request) -> impl Iterator<Item = &str> {
    let all = request.header("accept").split(',');
    all.map(|one| one.split(';').next().unwrap_or("").trim())
}

/// Refuses a client that takes nothing of what there is. As upstream has it, `application/*` is a
/// form that nobody has.
pub(crate) fn check(request: &Request, available: &[&str]) -> Result<(), ApiError> {
    let mut wanted = types(request);
    if wanted.any(|one| matches!(one, "" | "*/*") || available.contains(&one)) {
        return Ok(());
    }
    let text = format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        available.join(", ")
    );
    let mut error = ApiError::new(Reason::NotAcceptable, text);
    error.details = Some(json!({}));
    Err(error)
}

/// Refuses a client that takes nothing that custom objects have, which is not protobuf.
pub(crate) fn check_custom(request: &Request) -> Result<(), ApiError> {
    if types(request)
        .any(|one| matches!(one, "" | "*/*" | "application/*") || one == JSON || one == YAML)
    {
        return Ok(());
    }
    Err(only(OBJECTS))
}

/// Refuses a client that wants to watch in a form that cannot be.
pub(crate) fn check_watch(request: &Request) -> Result<(), ApiError> {
    match is_yaml(request) {
        true => Err(only(&LISTS[3..])),
        false => Ok(()),
    }
}

/// 406 with the forms that there are.
pub(crate) fn only(available: &[&str]) -> ApiError {
    ApiError::new(
        Reason::NotAcceptable,
        format!(
            "only the following media types are accepted: {}",
            available.join(", ")
        ),
    )
}

/// True when the first form that a client takes, of those that there are, is YAML.
fn is_yaml(request: &Request) -> bool {
    let first = types(request).find(|one| matches!(*one, "" | "*/*" | JSON | YAML | PROTOBUF));
    first == Some(YAML)
}

/// The answer as the client wants it written.
pub(crate) fn written(request: &Request, mut reply: Reply) -> Reply {
    if reply.content_type != JSON || !is_yaml(request) {
        return reply;
    }
    let Body::Full(body) = &reply.body else {
        return reply;
    };
    let value = serde_json::from_slice::<Value>(body).unwrap_or(Value::Null);
    if let Ok(text) = serde_saphyr::to_string(&value) {
        reply.body = Body::Full(text.into_bytes().into());
        YAML.clone_into(&mut reply.content_type);
    }
    reply
}
