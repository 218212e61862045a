//! What apply refuses: configurations it cannot read, and changes to fields of others.

use serde_json::{Value, json};

use super::entries::Entry;
use super::fields::{self, Fields};
use super::{LAST_APPLIED, Writer, combine, walk};
use crate::error::{ApiError, Reason};
use crate::kinds::Kind;
use crate::merge_keys::Place;
use crate::meta;

/// The field manager that may take over what it applied from the client side.
const KUBECTL: &str = "kubectl";

/// Refuses a configuration that cannot be applied to objects of the kind.
pub(super) fn check_config(kind: &Kind, place: Place<'_>, config: &Value) -> Result<(), ApiError> {
    if !config.is_object() {
        return Err(ApiError::bad_request(
            "error decoding YAML: the configuration must be an object",
        ));
    }
    let (version, word) = (&config["apiVersion"], &config["kind"]);
    let found = type_of(version.as_str().unwrap_or(""), word.as_str().unwrap_or(""));
    let expected = type_of(&kind.api_version(), &kind.kind);
    if found != expected {
        return Err(ApiError::bad_request(format!(
            "invalid object type: {found}"
        )));
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let faults = combine::faults(place, config);
    if faults.is_empty() {
        return Ok(());
    }
    let message = format!(
        "failed to create typed patch object ({}/{}; {expected}): {}",
        meta::namespace(config),
        meta::name(config),
        faults.join("\n")
    );
    Err(ApiError::new(Reason::Unknown, message))
}

/// A type as upstream's messages show it: with a slash, if only in front of the core's version.
fn type_of(version: &str, kind: &str) -> String {
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={kind}")
}

/// Refuses changes to fields of others, except for kubectl where it changes what it applied before
/// from the client side.
pub(super) fn check(
    kind: &Kind,
    place: Place<'_>,
    live: &Value,
    mut conflicts: Vec<(&Entry, Fields)>,
    writer: &Writer<'_>,
) -> Result<(), ApiError> {
    if conflicts.is_empty() {
        return Ok(());
    }
    if writer.manager == KUBECTL
        && let Some(allowed) = applied_by_client(kind, place, live)
    {
        for (_, fields) in &mut conflicts {
            fields::subtract(fields, &allowed);
        }
        conflicts.retain(|(_, fields)| !fields.is_empty());
    }
    conflicts.sort_by(|(a, _), (b, _)| a.rank().cmp(&b.rank()));
    let paths = |(entry, fields): &(&Entry, Fields)| (entry.owner(), fields::paths(fields));
    let conflicts: Vec<(String, Vec<String>)> = conflicts.iter().map(paths).collect();
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(refusal(&conflicts))
}

fn refusal(conflicts: &[(String, Vec<String>)]) -> ApiError {
    let pairs = || {
        conflicts
            .iter()
            .flat_map(|(owner, paths)| paths.iter().map(move |p| (owner, p)))
    };
    let causes: Vec<Value> = pairs()
        .map(|(owner, path)| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {owner}"),
                "field": path,
            })
        })
        .collect();
    let message = match pairs().collect::<Vec<_>>()[..] {
        [(owner, path)] => format!("Apply failed with 1 conflict: conflict with {owner}: {path}"),
        ref many => {
            let mut lines = Vec::new();
            for (owner, paths) in conflicts {
                lines.push(format!("conflicts with {owner}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!(
                "Apply failed with {} conflicts: {}",
                many.len(),
                lines.join("\n")
            )
        }
    };
    let mut error = ApiError::new(Reason::Conflict, message);
    error.details = Some(json!({ "causes": causes }));
    error
}

/// What kubectl applied from the client side and nobody has changed since.
fn applied_by_client(kind: &Kind, place: Place<'_>, live: &Value) -> Option<Fields> {
    let applied: Value = serde_json::from_str(meta::annotation(live, LAST_APPLIED)?).ok()?;
    if applied["apiVersion"].as_str() != Some(&kind.api_version()[..]) {
        return None;
    }
    let mut set = walk::fields_of(place, &applied);
    let delta = walk::compare(place, &applied, live);
    fields::subtract(&mut set, &delta.changed);
    fields::subtract(&mut set, &delta.removed);
    Some(set)
}

/// Keeps the memory of client-side apply in step, so that kubectl can go back to it.
pub(super) fn sync_last_applied(object: &mut Value, config: &Value, writer: &Writer<'_>) {
    let known = meta::annotation(object, LAST_APPLIED).is_some_and(|text| !text.is_empty());
    if writer.manager != KUBECTL || !known {
        return;
    }
    let mut applied = config.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    // The line end is upstream's: it encodes objects as lines.
    let text = format!("{applied}\n");
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        annotations.insert(LAST_APPLIED.to_owned(), Value::String(text));
    }
}
