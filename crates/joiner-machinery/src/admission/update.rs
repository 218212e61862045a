//! New versions of objects: what a write may touch, and when a generation ends.

use serde_json::{Map, Value, json};

use super::{Context, counts_generations, service};
use crate::error::ApiError;
use crate::kinds::{Kind, Subresource};
use crate::meta;

/// Completes the new version of an object, written as a whole or through a subresource: what the
/// write may not touch is taken from the old version.
///
/// # Errors
/// 409 when the new version claims to be of another object.
pub fn prepare_update(
    kind: &Kind,
    old: &Value,
    new: &mut Value,
    subresource: Option<Subresource>,
    context: &Context<'_>,
) -> Result<(), ApiError> {
    if !new.is_object() {
        return Err(ApiError::bad_request("the body is not an object"));
    }
    keep_identity(kind, old, new)?;
    match subresource {
        Some(Subresource::Status) => {
            write_status(kind, old, new);
            return Ok(());
        }
        Some(Subresource::Finalize) => {
            let finalizers = new["spec"]["finalizers"].clone();
            *new = with_metadata(old, &new["metadata"]);
            set_or_remove(&mut new["spec"], "finalizers", &finalizers);
            return Ok(());
        }
        // A pod that gets its node gets a condition with it, and stays of its generation.
        Some(Subresource::Binding) => return Ok(()),
        Some(
            Subresource::Scale
            | Subresource::Eviction
            | Subresource::Log
            | Subresource::Token
            | Subresource::Unserved,
        )
        | None => {}
    }
    if kind.has(Subresource::Status) {
        set_or_remove(new, "status", &old["status"]);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        _ if kind.custom.is_some() => {}
        // A namespace's own finalizers change through its subresource only.
        ("", "Namespace") => {
            let name = meta::name(old).to_owned();
            new["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            set_or_remove(&mut new["spec"], "finalizers", &old["spec"]["finalizers"]);
        }
        ("", "Pod") => pod(old, new),
        ("", "Service") => service::update(old, new, context),
        ("apps", "DaemonSet") => daemon_set(old, new),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let storage = crate::crd::storage_version(new).map(str::to_owned);
            if let (Some(storage), Some(list)) =
                (storage, new["status"]["storedVersions"].as_array_mut())
                && !list.iter().any(|version| *version == storage)
            {
                list.push(json!(storage));
            }
        }
        _ => {}
    }
    count_generation(kind, old, new);
    Ok(())
}

fn keep_identity(kind: &Kind, old: &Value, new: &mut Value) -> Result<(), ApiError> {
    let claimed = meta::uid(new).to_owned();
    let uid = meta::uid(old);
    if !claimed.is_empty() && claimed != uid {
        let name = meta::name(old);
        let key = match meta::namespace(old) {
            "" => format!("/{}/{name}", kind.plural),
            namespace => format!("/{}/{namespace}/{name}", kind.plural),
        };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {claimed}, UID in object \
             meta: {uid}"
        );
        return Err(ApiError::conflict(kind, name, &why));
    }
    if !new["metadata"].is_object() {
        new["metadata"] = json!({});
    }
    for field in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        set_or_remove(&mut new["metadata"], field, &old["metadata"][field]);
    }
    Ok(())
}

/// Sets a field to a value, or removes it where there is none.
fn set_or_remove(object: &mut Value, field: &str, value: &Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(map) = object.as_object_mut() else {
        return;
    };
    if value.is_null() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), value.clone());
    }
}

/// The old object with other metadata.
fn with_metadata(old: &Value, metadata: &Value) -> Value {
    let mut object = old.clone();
    object["metadata"] = metadata.clone();
    object
}

/// A write of the status: everything else stays, but for those metadata that upstream lets pass.
fn write_status(kind: &Kind, old: &Value, new: &mut Value) {
    let status = new["status"].clone();
    let mut metadata = old["metadata"].clone();
    let sealed = kind.custom.is_some()
        || matches!(
            kind.kind.as_str(),
            "CustomResourceDefinition" | "VolumeAttachment"
        );
    if !sealed {
        metadata = new["metadata"].clone();
        for field in ["ownerReferences", "generation"] {
            set_or_remove(&mut metadata, field, &old["metadata"][field]);
        }
        if kind.kind == "Deployment" {
            set_or_remove(&mut metadata, "labels", &old["metadata"]["labels"]);
        }
    }
    // Who wrote what, and which version was read, is the caller's.
    for field in ["managedFields", "resourceVersion"] {
        let value = new["metadata"][field].clone();
        set_or_remove(&mut metadata, field, &value);
    }
    *new = with_metadata(old, &metadata);
    set_or_remove(new, "status", &status);
    if kind.is("", "Pod") && new["status"]["qosClass"].is_null() {
        set_or_remove(&mut new["status"], "qosClass", &old["status"]["qosClass"]);
    }
}

/// Tolerations are only ever added to; what a write leaves out stays.
fn pod(old: &Value, new: &mut Value) {
    let left_out = new["spec"]["tolerations"]
        .as_array()
        .is_none_or(Vec::is_empty);
    if left_out {
        set_or_remove(&mut new["spec"], "tolerations", &old["spec"]["tolerations"]);
    }
    for field in [
        "priority",
        "preemptionPolicy",
        "serviceAccountName",
        "serviceAccount",
    ] {
        if new["spec"][field].is_null() {
            set_or_remove(&mut new["spec"], field, &old["spec"][field]);
        }
    }
}

fn daemon_set(old: &Value, new: &mut Value) {
    let annotation = "deprecated.daemonset.template.generation";
    let count = meta::annotation(old, annotation)
        .and_then(|text| text.parse::<i64>().ok())
        .unwrap_or(1);
    let changed = old["spec"]["template"] != new["spec"]["template"];
    let count = count + i64::from(changed);
    new["metadata"]["annotations"][annotation] = json!(count.to_string());
}

/// A new generation starts when what is wanted changes; custom kinds say it anywhere but in
/// metadata and status.
fn count_generation(kind: &Kind, old: &Value, new: &mut Value) {
    if !counts_generations(kind) {
        return;
    }
    let whole = kind.custom.is_some() || kind.group == "discovery.k8s.io";
    let changed = if kind.group == "scheduling.k8s.io" {
        false
    } else if whole {
        wanted(kind, old) != wanted(kind, new)
    } else {
        // The annotations of a Deployment reach its replica sets.
        let annotations = |object: &Value| object["metadata"]["annotations"].clone();
        old["spec"] != new["spec"]
            || (kind.is("apps", "Deployment") && annotations(old) != annotations(new))
    };
    if changed {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
        new["metadata"]["generation"] = json!(generation + 1);
    }
}

/// What an object says besides its metadata, and besides its status where that is apart.
fn wanted<'v>(kind: &Kind, object: &'v Value) -> Vec<(&'v String, &'v Value)> {
    let apart = kind.has(Subresource::Status);
    let entries = object.as_object().into_iter().flatten();
    entries
        .filter(|(key, _)| *key != "metadata" && *key != "apiVersion")
        .filter(|(key, _)| !(apart && *key == "status"))
        .collect()
}
