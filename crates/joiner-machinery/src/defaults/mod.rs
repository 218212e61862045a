//! What the API server fills in where a client said nothing.
//!
//! Objects come from [`crate::kinds::fields::decode`], so an absent field is absent, not null or
//! empty. What needs to know more than the object (its uid, priority classes, free addresses) is in
//! [`crate::admission`].

mod cluster;
mod network;
mod pod;
mod scaling;
mod service;
mod workload;

use serde_json::{Map, Value};

use crate::kinds::Kind;

pub use pod::qos_class;

/// Fills in the defaults of a built-in kind. Custom kinds have theirs in [`crate::crd`].
pub fn apply(kind: &Kind, object: &mut Value) {
    if kind.custom.is_some() {
        return;
    }
    let Some(map) = object.as_object_mut() else {
        return;
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::pod(map),
        ("", "Service") => service::service(map),
        ("", "Endpoints") => service::endpoints(map),
        ("", "Namespace") => cluster::namespace(map),
        ("", "Node") => cluster::node(map),
        ("", "Secret") => cluster::secret(map),
        ("", "PersistentVolume") => cluster::volume(map),
        ("", "PersistentVolumeClaim") => cluster::claim(map),
        ("", "LimitRange") => cluster::limit_range(map),
        ("discovery.k8s.io", "EndpointSlice") => service::endpoint_slice(map),
        ("networking.k8s.io", "IngressClass") => network::ingress_class(map),
        ("networking.k8s.io", "NetworkPolicy") => network::policy(map),
        ("apps", "Deployment") => workload::deployment(map),
        ("apps", "ReplicaSet") => workload::replica_set(map),
        ("apps", "StatefulSet") => workload::stateful_set(map),
        ("apps", "DaemonSet") => workload::daemon_set(map),
        ("batch", "Job") => workload::job(map),
        ("batch", "CronJob") => workload::cron_job(map),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::autoscaler(map, &kind.version),
        ("storage.k8s.io", "StorageClass") => cluster::storage_class(map),
        ("storage.k8s.io", "CSIDriver") => cluster::csi_driver(map),
        ("scheduling.k8s.io", "PriorityClass") => {
            put(map, "preemptionPolicy", "PreemptLowerPriority");
        }
        ("rbac.authorization.k8s.io", _) => cluster::rbac(map),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::definition(map),
        _ => {}
    }
}

/// Sets a field that is not there. Fields that are always written may be there and empty.
fn put(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let unset = map
        .get(key)
        .is_none_or(|value| value.is_null() || value == "");
    if unset {
        map.insert(key.to_owned(), value.into());
    }
}

/// Works on the object under a key, which is created where there is none.
fn under(map: &mut Map<String, Value>, key: &str, work: impl FnOnce(&mut Map<String, Value>)) {
    let slot = map.entry(key).or_insert(Value::Null);
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    if let Value::Object(inner) = slot {
        work(inner);
    }
}

/// The object under a key, if there is one.
fn existing<'m>(map: &'m mut Map<String, Value>, key: &str) -> Option<&'m mut Map<String, Value>> {
    map.get_mut(key).and_then(Value::as_object_mut)
}

/// The objects in the list under a key.
fn items<'m>(
    map: &'m mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'m mut Map<String, Value>> {
    let list = map.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A text field, empty when absent.
fn text<'m>(map: &'m Map<String, Value>, key: &str) -> &'m str {
    map.get(key).and_then(Value::as_str).unwrap_or("")
}
