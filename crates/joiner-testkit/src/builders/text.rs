//! From the short texts that builders take to pieces of wire JSON.

use serde_json::{Value, json};

/// A requirement of node affinity or of a pool.
pub(crate) fn expression(key: &str, operator: &str, values: &str) -> Value {
    let values = list(values);
    if values.is_empty() {
        json!({"key": key, "operator": operator})
    } else {
        json!({"key": key, "operator": operator, "values": values})
    }
}

/// The words of a list, separated by spaces or commas.
pub(crate) fn list(text: &str) -> Vec<&str> {
    text.split([' ', ',']).filter(|w| !w.is_empty()).collect()
}

/// A taint: `key=value:Effect` or `key:Effect`.
pub(crate) fn taint(text: &str) -> Value {
    let Some((name, effect)) = text.rsplit_once(':') else {
        panic!("taint {text:?} has no effect: write key=value:NoSchedule");
    };
    match name.split_once('=') {
        Some((key, value)) => json!({"key": key, "value": value, "effect": effect}),
        None => json!({"key": name, "effect": effect}),
    }
}

/// A toleration: `key=value:Effect`, any part of which may be missing; nothing tolerates all.
pub(crate) fn toleration(text: &str) -> Value {
    let (name, effect) = match text.rsplit_once(':') {
        Some((name, effect)) => (name, Some(effect)),
        None => (text, None),
    };
    let mut toleration = match name.split_once('=') {
        Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value}),
        None if name.is_empty() => json!({"operator": "Exists"}),
        None => json!({"key": name, "operator": "Exists"}),
    };
    if let Some(effect) = effect {
        toleration["effect"] = json!(effect);
    }
    toleration
}

/// Appends to a list that may not be there yet.
pub(crate) fn push(list: &mut Value, item: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    match list.as_array_mut() {
        Some(items) => items.push(item),
        None => panic!("{list} was patched in where a list belongs"),
    }
}

/// Lays `patch` over `target`: objects are merged, everything else is replaced.
pub(crate) fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_and_tolerations_as_users_write_them() {
        assert_eq!(
            taint("team=a:NoSchedule"),
            json!({"key": "team", "value": "a", "effect": "NoSchedule"})
        );
        assert_eq!(taint("gpu:NoExecute")["key"], "gpu");
        assert_eq!(toleration(""), json!({"operator": "Exists"}));
        assert_eq!(
            toleration("team=a"),
            json!({"key": "team", "operator": "Equal", "value": "a"})
        );
        assert_eq!(toleration("gpu:NoExecute")["effect"], "NoExecute");
    }

    #[test]
    fn a_patch_merges_objects_and_replaces_the_rest() {
        let mut target = json!({"a": {"b": 1, "c": [1]}});
        merge(&mut target, json!({"a": {"c": [2], "d": 3}}));
        assert_eq!(target, json!({"a": {"b": 1, "c": [2], "d": 3}}));
    }
}
