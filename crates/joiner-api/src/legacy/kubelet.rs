//! Kubelet settings, which were part of pools and claims and are part of node classes.

use super::annotations;
use super::fields::{put, take};
use crate::labels::KUBELET_CONVERSION;
use serde_json::{Map, Value};

/// Moves the settings at a path into an annotation, as upstream does.
pub(super) fn raise(object: &mut Value, path: &[&str]) {
    if let Some(kubelet) = take(object, path) {
        annotations::set(object, KUBELET_CONVERSION, kubelet.to_string());
    }
}

/// Moves settings out of the annotation to a path, if there are any.
pub(super) fn lower(object: &mut Value, path: &[&str]) {
    if let Some(kubelet) = take_kept(object) {
        put(object, path, kubelet);
    }
}

/// The settings in the annotation, which is taken away.
pub(super) fn take_kept(object: &mut Value) -> Option<Value> {
    let kept = annotations::get(object, KUBELET_CONVERSION)?;
    let kubelet: Value = serde_json::from_str(kept).ok()?;
    if kubelet.is_object() {
        annotations::remove(object, KUBELET_CONVERSION);
        Some(kubelet)
    } else {
        None
    }
}

/// Settings as a node class takes them: amounts as text, without what no kubelet has any longer.
pub(super) fn as_in_class(mut kubelet: Value) -> Value {
    take(&mut kubelet, &["containerRuntime"]);
    for field in ["systemReserved", "kubeReserved"] {
        let amounts = kubelet.get_mut(field).and_then(Value::as_object_mut);
        for amount in amounts.into_iter().flat_map(Map::values_mut) {
            if amount.is_number() {
                *amount = amount.to_string().into();
            }
        }
    }
    kubelet
}
