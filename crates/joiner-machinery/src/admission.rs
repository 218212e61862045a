//! What an API server does to an object between reading it and judging it.
//!
//! *Flow of a create.* [`crate::kinds::fields::decode`], [`crate::defaults::apply`],
//! [`prepare_create`], [`crate::validate::create`]; custom kinds go through
//! [`crate::crd::CustomRules`] in the place of the first, second and last.
//!
//! *Flow of an update.* The same with [`prepare_update`] and [`crate::validate::update`].
//!
//! *Guarantees.* Clients cannot set what belongs to the server: uid, times, generation, status
//! through the object, spec through the status. Managed fields and resource versions are left to
//! the caller.

mod pod;
mod service;
mod update;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::kinds::{Kind, Subresource, fields};
use crate::meta;
pub use update::prepare_update;

/// What preparing has to know of the rest of the cluster. A cluster without any of it is fine.
pub trait Lookup {
    /// The PriorityClass of that name.
    fn priority_class(&self, _name: &str) -> Option<Arc<Value>> {
        None
    }

    /// The PriorityClass with `globalDefault`.
    fn default_priority_class(&self) -> Option<Arc<Value>> {
        None
    }

    /// The RuntimeClass of that name.
    fn runtime_class(&self, _name: &str) -> Option<Arc<Value>> {
        None
    }

    /// The name of the StorageClass that is marked as the default.
    fn default_storage_class(&self) -> Option<String> {
        None
    }

    /// True when a Service has the address.
    fn is_address_taken(&self, _address: &str) -> bool {
        false
    }

    /// True when a Service has the port on every node.
    fn is_node_port_taken(&self, _port: u16) -> bool {
        false
    }
}

/// A cluster with nothing in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Lookup for Nothing {}

/// What preparing rests on besides the object.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The time.
    pub now: Timestamp,
    /// The uid of a new object; whatever looks random is derived from it.
    pub uid: &'c str,
    /// The rest of the cluster.
    pub lookup: &'c dyn Lookup,
    /// Pods without a service account get the one called `default`, as in clusters that have the
    /// admission plugin of that name.
    pub default_service_account: bool,
}

/// Completes a new object: identity, times, generation, first status, and what comes from the rest
/// of the cluster. The namespace is already there.
///
/// # Errors
/// 403 where the rest of the cluster says no.
pub fn prepare_create(
    kind: &Kind,
    object: &mut Value,
    context: &Context<'_>,
) -> Result<(), ApiError> {
    if !object.is_object() {
        return Err(ApiError::bad_request("the body is not an object"));
    }
    identify(kind, object, context);
    if kind.custom.is_some() {
        if kind.has(Subresource::Status) {
            remove(object, "status");
        }
        return Ok(());
    }
    reset_status(kind, object);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::create(kind, object, context)?,
        ("", "Namespace") => namespace(object),
        ("", "Node") => node(object),
        ("", "Service") => service::create(object, context),
        ("", "PersistentVolumeClaim") => {
            object["status"] = json!({"phase": "Pending"});
            add_finalizer(object, "kubernetes.io/pvc-protection");
            let class = &object["spec"]["storageClassName"];
            if class.is_null()
                && let Some(name) = context.lookup.default_storage_class()
            {
                object["spec"]["storageClassName"] = json!(name);
            }
        }
        ("", "PersistentVolume") => {
            object["status"] = json!({
                "phase": "Pending",
                "lastPhaseTransitionTime": meta::time(context.now),
            });
            add_finalizer(object, "kubernetes.io/pv-protection");
        }
        ("apps", "DaemonSet") => {
            let annotation = "deprecated.daemonset.template.generation";
            object["metadata"]["annotations"][annotation] = json!("1");
        }
        ("batch", "Job") => job(object, context),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let stored = crate::crd::storage_version(object).map(str::to_owned);
            let stored: Vec<String> = stored.into_iter().collect();
            let stored = if stored.is_empty() {
                Value::Null
            } else {
                json!(stored)
            };
            object["status"]["storedVersions"] = stored;
        }
        _ => {}
    }
    Ok(())
}

fn identify(kind: &Kind, object: &mut Value, context: &Context<'_>) {
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let Some(map) = metadata.as_object_mut() else {
        return;
    };
    for field in [
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        map.remove(field);
    }
    map.insert("uid".to_owned(), json!(context.uid));
    map.insert(
        "creationTimestamp".to_owned(),
        json!(meta::time(context.now)),
    );
    if counts_generations(kind) {
        map.insert("generation".to_owned(), json!(1));
    }
    let text = |map: &Map<String, Value>, key: &str| {
        map.get(key)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let start = text(map, "generateName");
    if text(map, "name").is_empty() && !start.is_empty() {
        map.insert(
            "name".to_owned(),
            json!(generated_name(&start, context.uid)),
        );
    }
}

/// Whether objects of a kind count their specs.
fn counts_generations(kind: &Kind) -> bool {
    const COUNTING: &[(&str, &str)] = &[
        ("", "Pod"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("policy", "PodDisruptionBudget"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("networking.k8s.io", "Ingress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ];
    kind.custom.is_some() || COUNTING.contains(&(kind.group.as_str(), kind.kind.as_str()))
}

/// A name that starts as asked and ends in five signs that follow from the uid.
#[must_use]
pub fn generated_name(start: &str, uid: &str) -> String {
    const SIGNS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    /// A name must fit into a label.
    const START_MAX: usize = 58;
    let mut seed = hash(uid);
    let mut name: String = start.chars().take(START_MAX).collect();
    for _ in 0..5 {
        let index = usize::try_from(seed % 27).unwrap_or(0);
        name.push(char::from(SIGNS[index]));
        seed /= 27;
    }
    name
}

/// A number that follows from a text, the same on every machine (FNV-1a).
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn remove(object: &mut Value, field: &str) {
    if let Some(map) = object.as_object_mut() {
        map.remove(field);
    }
}

/// Clients do not say what a new object's status is. A Node's agent does, upstream lets it.
fn reset_status(kind: &Kind, object: &mut Value) {
    if !kind.has(Subresource::Status) || kind.kind == "Node" {
        return;
    }
    match fields::empty_status(kind) {
        Some(status) => object["status"] = status,
        None => remove(object, "status"),
    }
}

fn add_finalizer(object: &mut Value, name: &str) {
    let list = &mut object["metadata"]["finalizers"];
    match list {
        Value::Array(list) if list.iter().any(|f| f == name) => {}
        Value::Array(list) => list.push(json!(name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *list = json!([name]);
        }
    }
}

fn namespace(object: &mut Value) {
    let name = meta::name(object).to_owned();
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    object["status"] = json!({"phase": "Active"});
    let list = &mut object["spec"]["finalizers"];
    match list {
        Value::Array(list) if list.iter().any(|f| f == "kubernetes") => {}
        Value::Array(list) => list.push(json!("kubernetes")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *list = json!(["kubernetes"]);
        }
    }
}

/// A new node takes no pods until somebody says that it is ready.
fn node(object: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = &mut object["spec"]["taints"];
    match taints {
        Value::Array(list) => {
            let same = |t: &Value| t["key"] == taint["key"] && t["effect"] == taint["effect"];
            if !list.iter().any(same) {
                list.push(taint);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *taints = json!([taint]);
        }
    }
}

/// Pods of a job are found by its uid, unless the job brings a selector of its own.
fn job(object: &mut Value, context: &Context<'_>) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let name = meta::name(object).to_owned();
    let uid = context.uid;
    let labels = [
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name.as_str()),
        ("controller-uid", uid),
        ("job-name", name.as_str()),
    ];
    // A job without labels of its own takes those of its template, as it did in the first API.
    let bare = object["metadata"]["labels"].is_null();
    for (key, value) in labels {
        object["spec"]["template"]["metadata"]["labels"][key] = json!(value);
    }
    if bare {
        object["metadata"]["labels"] = object["spec"]["template"]["metadata"]["labels"].clone();
    }
    object["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = json!(uid);
}

#[cfg(test)]
#[path = "admission/admission_tests.rs"]
mod tests;
