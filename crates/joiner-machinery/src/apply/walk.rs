//! Walks over objects that yield sets of fields: what differs, what is there, what has a name.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, field_step, is_member, item_step, node, same_item};
use crate::merge_keys::{ListRule, Place};

/// What differs between two objects.
#[derive(Debug, Default)]
pub(super) struct Delta {
    /// Fields that are new or have another value.
    pub changed: Fields,
    /// Fields that are gone.
    pub removed: Fields,
}

/// What differs at one place: the nodes to put under the step to it.
#[derive(Default)]
struct Change {
    changed: Option<Value>,
    removed: Option<Value>,
}

/// What differs between two whole objects.
pub(super) fn compare(place: Place<'_>, before: &Value, after: &Value) -> Delta {
    let mut delta = Delta::default();
    if let (Value::Object(before), Value::Object(after)) = (before, after) {
        compare_maps(place, Some(before), Some(after), &mut delta);
    }
    delta
}

fn compare_at(place: Place<'_>, before: Option<&Value>, after: Option<&Value>) -> Change {
    let (l, r) = (
        before.filter(|v| !v.is_null()),
        after.filter(|v| !v.is_null()),
    );
    let mut delta = Delta::default();
    match (l, r) {
        (None | Some(Value::Object(_)), None | Some(Value::Object(_)))
            if !(place.is_atomic_map() || empty(l) && empty(r)) =>
        {
            let (l, r) = (l.and_then(Value::as_object), r.and_then(Value::as_object));
            compare_maps(place, l, r, &mut delta);
        }
        (None | Some(Value::Array(_)), None | Some(Value::Array(_)))
            if !(matches!(place.list(), ListRule::Atomic) || empty(l) && empty(r)) =>
        {
            compare_lists(place, list_of(l), list_of(r), &mut delta);
        }
        _ => return compare_leaves(place, before, after),
    }
    Change {
        changed: node(before.is_none(), delta.changed),
        removed: node(after.is_none(), delta.removed),
    }
}

fn list_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn empty(value: Option<&Value>) -> bool {
    match value {
        None => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => false,
    }
}

/// Scalars, pieces, and values whose kind has changed.
fn compare_leaves(place: Place<'_>, before: Option<&Value>, after: Option<&Value>) -> Change {
    let member = || Some(Value::Object(Map::new()));
    match (before, after) {
        (None, None) => Change::default(),
        (None, Some(_)) => Change {
            changed: member(),
            removed: None,
        },
        (Some(_), None) => Change {
            changed: None,
            removed: member(),
        },
        (Some(l), Some(r)) if l == r => Change::default(),
        (Some(l), Some(r)) if std::mem::discriminant(l) == std::mem::discriminant(r) => Change {
            changed: member(),
            removed: None,
        },
        // A value of another kind: the place has changed, and so has all that lies under it.
        (Some(l), Some(r)) => {
            let parts = |node: Option<Value>| node.map(steps_of).unwrap_or_default();
            let gone = if l.is_null() {
                None
            } else {
                compare_at(place, Some(l), None).removed
            };
            let new = if r.is_null() {
                None
            } else {
                compare_at(place, None, Some(r)).changed
            };
            Change {
                changed: node(true, parts(new)),
                removed: node(false, parts(gone)),
            }
        }
    }
}

/// The steps of a node without its own membership.
fn steps_of(node: Value) -> Fields {
    match node {
        Value::Object(mut steps) => {
            steps.remove(".");
            steps
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Fields::new()
        }
    }
}

fn compare_maps(
    place: Place<'_>,
    before: Option<&Fields>,
    after: Option<&Fields>,
    delta: &mut Delta,
) {
    // A field that the server always has is there as soon as its parent is.
    let stand_in = |parent: Option<&Fields>, name: &str| parent.and_then(|_| place.stand_in(name));
    for (name, r) in after.into_iter().flatten() {
        let l = before
            .and_then(|before| before.get(name))
            .or_else(|| stand_in(before, name));
        let change = compare_at(place.field(name), l, Some(r));
        delta.put(change, || field_step(name));
    }
    for (name, l) in before.into_iter().flatten() {
        if after.is_none_or(|after| !after.contains_key(name)) {
            let change = compare_at(place.field(name), Some(l), stand_in(after, name));
            delta.put(change, || field_step(name));
        }
    }
}

fn compare_lists(place: Place<'_>, before: &[Value], after: &[Value], delta: &mut Delta) {
    let (rule, items) = (place.list(), place.items());
    let aligned =
        before.len() == after.len() && before.iter().zip(after).all(|(l, r)| same_item(rule, l, r));
    if aligned {
        for (l, r) in before.iter().zip(after) {
            let change = compare_at(items, Some(l), Some(r));
            delta.put(change, || item_step(rule, r).unwrap_or_default());
        }
        return;
    }
    let mut by_step: BTreeMap<String, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in before {
        if let Ok(step) = item_step(rule, item) {
            by_step.entry(step).or_default().0.push(item);
        }
    }
    for item in after {
        if let Ok(step) = item_step(rule, item) {
            by_step.entry(step).or_default().1.push(item);
        }
    }
    for (step, (l, r)) in by_step {
        let change = compare_items(items, &l, &r);
        delta.put(change, || step);
    }
}

/// Items that share their keys with another of the same list are owned as one piece.
fn compare_items(place: Place<'_>, before: &[&Value], after: &[&Value]) -> Change {
    let member = || Some(Value::Object(Map::new()));
    match (before, after) {
        ([] | [_], [] | [_]) => compare_at(place, before.first().copied(), after.first().copied()),
        ([] | [_], _) => {
            let gone = before
                .first()
                .and_then(|l| compare_at(place, Some(l), None).removed);
            Change {
                changed: member(),
                removed: gone,
            }
        }
        (_, [] | [_]) => {
            let new = after
                .first()
                .and_then(|r| compare_at(place, None, Some(r)).changed);
            Change {
                changed: new,
                removed: member(),
            }
        }
        (_, _) => Change {
            changed: if before == after { None } else { member() },
            removed: None,
        },
    }
}

impl Delta {
    fn put(&mut self, change: Change, step: impl FnOnce() -> String) {
        match (change.changed, change.removed) {
            (None, None) => {}
            (Some(changed), None) => {
                self.changed.insert(step(), changed);
            }
            (None, Some(removed)) => {
                self.removed.insert(step(), removed);
            }
            (Some(changed), Some(removed)) => {
                let step = step();
                self.changed.insert(step.clone(), changed);
                self.removed.insert(step, removed);
            }
        }
    }
}

/// All fields of an object, as somebody owns them who applies it.
pub(super) fn fields_of(place: Place<'_>, object: &Value) -> Fields {
    match object {
        Value::Object(map) => map_fields(place, map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Fields::new()
        }
    }
}

fn map_fields(place: Place<'_>, map: &Fields) -> Fields {
    let mut set = Fields::new();
    for (name, value) in map {
        let blank = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let (member, steps) = value_fields(place.field(name), value);
        if let Some(node) = node(member || blank || !place.names(name), steps) {
            set.insert(field_step(name), node);
        }
    }
    set
}

fn value_fields(place: Place<'_>, value: &Value) -> (bool, Fields) {
    match value {
        Value::Object(_) if place.is_atomic_map() => (true, Fields::new()),
        Value::Object(map) => (false, map_fields(place, map)),
        Value::Array(list) => match place.list() {
            ListRule::Atomic => (true, Fields::new()),
            rule @ (ListRule::Set | ListRule::Keyed(_)) => {
                (false, list_fields(rule, place.items(), list))
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (true, Fields::new()),
    }
}

fn list_fields(rule: ListRule<'_>, items: Place<'_>, list: &[Value]) -> Fields {
    let mut set = Fields::new();
    for item in list {
        let Ok(step) = item_step(rule, item) else {
            continue;
        };
        let steps = if set.contains_key(&step) {
            Fields::new()
        } else {
            value_fields(items, item).1
        };
        if let Some(node) = node(true, steps) {
            set.insert(step, node);
        }
    }
    set
}

/// The set with the named fields on the way to its members.
pub(super) fn with_named(place: Place<'_>, set: &Fields) -> Fields {
    let mut out = Fields::new();
    for (step, below) in set {
        let Some(steps) = below.as_object().filter(|_| step != ".") else {
            continue;
        };
        let (named, place) = match step.strip_prefix("f:") {
            Some(name) => (place.names(name), place.field(name)),
            None => (false, place.items()),
        };
        if let Some(node) = node(is_member(below) || named, with_named(place, steps)) {
            out.insert(step.clone(), node);
        }
    }
    out
}
