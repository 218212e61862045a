//! Filling in what was left out.

use super::node::{Additional, Kind, Node};
use serde_json::Value;

/// Drops nulls that are not values, then inserts defaults, top down: what a default brings in is
/// itself completed.
pub(super) fn apply(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, entry| {
                let keep_null = match node.properties.get(key) {
                    Some(child) => child.nullable || child.kind == Kind::Any,
                    None => true,
                };
                keep_null || !entry.is_null()
            });
            for (name, child) in &node.properties {
                if let Some(default) = &child.default
                    && !map.contains_key(name)
                {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (key, entry) in map.iter_mut() {
                let child = match (node.properties.get(key), &node.additional) {
                    (Some(child), _) => child,
                    (None, Additional::Each(child)) => child,
                    (None, Additional::Nothing | Additional::Anything) => continue,
                };
                if entry.is_null()
                    && !child.nullable
                    && let Some(default) = &child.default
                {
                    *entry = default.clone();
                }
                apply(child, entry);
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for item in list {
                    apply(items, item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
