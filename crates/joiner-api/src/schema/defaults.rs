//! Filling in what was left out.

use super::node::{Kind, Node};
use serde_json::Value;

/// Floats up to here hold every whole number exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Drops nulls that are not values and inserts defaults, top down: what a default brings in is
/// itself completed. Whole numbers written as `2.0` become `2`.
pub(super) fn apply(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, entry| {
                !entry.is_null()
                    || node
                        .entry(key)
                        .is_none_or(|child| child.nullable || child.kind == Kind::Any)
            });
            for (name, child) in &node.properties {
                if let Some(default) = &child.default
                    && !map.contains_key(name)
                {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (key, entry) in map.iter_mut() {
                if let Some(child) = node.entry(key) {
                    apply(child, entry);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for item in list {
                    apply(items, item);
                }
            }
        }
        Value::Number(number) if matches!(node.kind, Kind::Integer | Kind::IntOrString) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
                *value = whole.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The whole number that a float stands for, if it is one.
pub(super) fn whole(float: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (float.fract() == 0.0 && float.abs() <= WHOLE_MAX).then_some(float as i64)
}
