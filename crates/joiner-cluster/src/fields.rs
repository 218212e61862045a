//! Reading fields of objects, and saying what changes.

use jiff::{SignedDuration, Timestamp};
use joiner_machinery::meta;
use serde_json::{Map, Value, json};

use crate::view::{Action, ObjectKey, Resource};

/// Which way a fraction of a pod goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the next whole number.
    Up,
    /// To the whole number below.
    Down,
}

/// A number, or what the API takes it for when absent.
pub(crate) fn count(value: &Value, absent: i64) -> i64 {
    value.as_i64().unwrap_or(absent)
}

/// A number, or a percentage of a total: `3` or `"25%"`. Absent or malformed is none.
pub(crate) fn scaled(value: &Value, total: i64, rounding: Rounding) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let hundredths = percent.checked_mul(total)?;
    Some(match rounding {
        Rounding::Up => hundredths.div_euclid(100) + i64::from(hundredths.rem_euclid(100) > 0),
        Rounding::Down => hundredths.div_euclid(100),
    })
}

/// Namespace and name of an object.
pub(crate) fn key(object: &Value) -> ObjectKey {
    (
        meta::namespace(object).to_owned(),
        meta::name(object).to_owned(),
    )
}

/// When an object was created; the epoch when it does not say.
pub(crate) fn created(object: &Value) -> Timestamp {
    instant(&object["metadata"]["creationTimestamp"]).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A time on the wire.
pub(crate) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str().and_then(meta::parse_time)
}

/// Some seconds later, or the end of time.
pub(crate) fn after(start: Timestamp, seconds: i64) -> Timestamp {
    let duration = SignedDuration::from_secs(seconds);
    start.checked_add(duration).unwrap_or(Timestamp::MAX)
}

/// The earlier of two times to look again.
pub(crate) fn sooner(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// A condition of an object's status.
pub(crate) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// True when a condition is there and `True`.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Puts in a condition in place of the one of its type. One with the same status and reason stays
/// as it is; one with the same status keeps its time of transition.
pub(crate) fn set_condition(conditions: &mut Vec<Value>, mut new: Value) {
    let same_type = |condition: &Value| condition["type"] == new["type"];
    if let Some(at) = conditions.iter().position(same_type) {
        let old = &conditions[at];
        if old["status"] == new["status"] {
            if old["reason"] == new["reason"] && old["message"] == new["message"] {
                return;
            }
            new["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
        conditions.remove(at);
    }
    conditions.push(new);
}

/// The merge patch that turns one value into another, or none when they are equal.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for (field, value) in after {
        let change = match before.get(field) {
            Some(old) => difference(old, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (field.clone(), change)));
    }
    for field in before.keys().filter(|field| !after.contains_key(*field)) {
        patch.insert(field.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Writes a status, unless it is the one that the object has.
pub(crate) fn patch_status(resource: Resource, object: &Value, status: Value) -> Option<Action> {
    let empty = json!({});
    let old = object.get("status").filter(|old| old.is_object());
    let patch = json!({"status": difference(old.unwrap_or(&empty), &status)?});
    Some(Action::Patch {
        resource,
        key: key(object),
        subresource: Some("status"),
        patch,
    })
}

/// Patches the object itself.
pub(crate) fn patch(resource: Resource, object: &Value, patch: Value) -> Action {
    Action::Patch {
        resource,
        key: key(object),
        subresource: None,
        patch,
    }
}

/// Deletes an object, if it is still the one that was seen.
pub(crate) fn delete(
    resource: Resource,
    object: &Value,
    propagation: Option<&'static str>,
) -> Action {
    Action::Delete {
        resource,
        key: key(object),
        uid: meta::uid(object).to_owned(),
        grace_secs: None,
        propagation,
    }
}

/// A status under construction: numbers that are zero are left out, as upstream's encoding has it.
#[derive(Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// A number, left out when zero.
    pub(crate) fn count(mut self, field: &str, number: i64) -> Self {
        if number != 0 {
            self.0.insert(field.to_owned(), json!(number));
        }
        self
    }

    /// Any value, left out when null.
    pub(crate) fn value(mut self, field: &str, value: Value) -> Self {
        if !value.is_null() {
            self.0.insert(field.to_owned(), value);
        }
        self
    }

    /// A list, left out when empty.
    pub(crate) fn list(self, field: &str, items: Vec<Value>) -> Self {
        if items.is_empty() {
            return self;
        }
        self.value(field, Value::Array(items))
    }

    /// The status.
    pub(crate) fn finish(self) -> Value {
        Value::Object(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_the_way_that_is_asked() {
        for (value, total, up, down) in [
            (json!("25%"), 10, Some(3), Some(2)),
            (json!("0%"), 10, Some(0), Some(0)),
            (json!("100%"), 3, Some(3), Some(3)),
            (json!(4), 3, Some(4), Some(4)),
            (json!("x"), 3, None, None),
            (json!(null), 3, None, None),
        ] {
            assert_eq!(scaled(&value, total, Rounding::Up), up, "{value}");
            assert_eq!(scaled(&value, total, Rounding::Down), down, "{value}");
        }
    }

    #[test]
    fn a_difference_says_what_is_new_and_what_is_gone() {
        let old = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]});
        let new = json!({"a": 1, "b": {"c": 3}, "e": [1, 2], "f": 0});
        let patch = json!({"b": {"c": 3, "d": null}, "e": [1, 2], "f": 0});
        assert_eq!(difference(&old, &new), Some(patch));
        assert_eq!(difference(&old, &old), None);
    }
}
