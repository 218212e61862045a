//! Laying an applied configuration over an object, and taking fields out of one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fields::{Fields, is_member, item_step};
use crate::merge_keys::{ListRule, Place};

/// The object with the configuration laid over it. Fields that the configuration does not name stay;
/// its nulls stay, too, since they are owned and may conflict.
pub(super) fn lay_over(place: Place<'_>, live: &Value, config: &Value) -> Value {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) if !place.is_atomic_map() => {
            let mut out = live.clone();
            for (name, value) in config {
                let value = match live.get(name) {
                    Some(live) => lay_over(place.field(name), live, value),
                    None => value.clone(),
                };
                out.insert(name.clone(), value);
            }
            Value::Object(out)
        }
        (Value::Array(live), Value::Array(config)) => match place.list() {
            ListRule::Atomic => Value::Array(config.clone()),
            rule @ (ListRule::Set | ListRule::Keyed(_)) => {
                Value::Array(lay_over_list(rule, place.items(), live, config))
            }
        },
        // A null does not clear what is merged part by part.
        (Value::Object(map), Value::Null) if !place.is_atomic_map() && !map.is_empty() => {
            live.clone()
        }
        (Value::Array(list), Value::Null)
            if !matches!(place.list(), ListRule::Atomic) && !list.is_empty() =>
        {
            live.clone()
        }
        (_, _) => config.clone(),
    }
}

/// Drops the nulls that mean nothing.
pub(super) fn drop_nulls(place: Place<'_>, object: &mut Value) {
    match object {
        Value::Object(map) => {
            map.retain(|name, value| {
                let place = place.field(name);
                drop_nulls(place, value);
                !value.is_null() || place.keeps_null()
            });
        }
        Value::Array(list) => {
            let items = place.items();
            list.iter_mut().for_each(|item| drop_nulls(items, item));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The order of the configuration wins among the items that it names; other items keep their place
/// among their neighbors.
fn lay_over_list(
    rule: ListRule<'_>,
    items: Place<'_>,
    live: &[Value],
    config: &[Value],
) -> Vec<Value> {
    let step = |item: &Value| item_step(rule, item).unwrap_or_else(|_| item.to_string());
    let live_steps: Vec<String> = live.iter().map(step).collect();
    let config_steps: Vec<String> = config.iter().map(step).collect();
    let named: BTreeSet<&str> = config_steps.iter().map(String::as_str).collect();
    // An item that is in the live list twice is not merged with anything.
    let mut by_step: BTreeMap<&str, Option<&Value>> = BTreeMap::new();
    for (step, item) in live_steps.iter().zip(live) {
        by_step
            .entry(step)
            .and_modify(|known| *known = None)
            .or_insert(Some(item));
    }
    let merged = |at: usize| match by_step.get(&config_steps[at][..]) {
        Some(Some(live)) => lay_over(items, live, &config[at]),
        Some(None) | None => config[at].clone(),
    };
    let mut shared = config_steps
        .iter()
        .filter(|step| by_step.contains_key(&step[..]))
        .peekable();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut c) = (0, 0);
    while l < live.len() || c < config.len() {
        let next = config_steps.get(c);
        if let Some(step) = live_steps.get(l) {
            let is_named = named.contains(&step[..]);
            if !is_named {
                out.push(live[l].clone());
                l += 1;
                continue;
            }
            let another_is_due = shared.peek().is_some_and(|due| *due != step);
            if next.is_some_and(|next| next != step) && another_is_due {
                l += 1;
                continue;
            }
            if next == Some(step) || done.contains(&step[..]) {
                l += 1;
            }
        }
        if let Some(step) = next {
            out.push(merged(c));
            done.insert(step);
            shared.next_if(|due| *due == step);
            c += 1;
        }
    }
    out
}

/// Takes the members of the set out of the object; what is empty then becomes null.
pub(super) fn take_out(place: Place<'_>, object: &mut Value, set: &Fields) {
    match object {
        Value::Object(map) => take_out_of_map(place, map, set),
        Value::Array(list) => take_out_of_list(place, list, set),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn take_out_of_map(place: Place<'_>, map: &mut Map<String, Value>, set: &Fields) {
    for (step, node) in set {
        let Some(name) = step.strip_prefix("f:") else {
            continue;
        };
        if is_member(node) {
            map.remove(name);
        } else if let (Some(value), Some(below)) = (map.get_mut(name), node.as_object()) {
            take_out(place.field(name), value, below);
            if is_blank(value) {
                *value = Value::Null;
            }
        }
    }
}

fn take_out_of_list(place: Place<'_>, list: &mut Vec<Value>, set: &Fields) {
    let (rule, items) = (place.list(), place.items());
    list.retain_mut(|item| {
        let Some(node) = item_step(rule, item).ok().and_then(|step| set.get(&step)) else {
            return true;
        };
        if is_member(node) {
            return false;
        }
        if let Some(below) = node.as_object() {
            take_out(items, item, below);
        }
        true
    });
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What is wrong with the lists of a configuration: items without keys, two with the same.
pub(super) fn faults(place: Place<'_>, config: &Value) -> Vec<String> {
    fn visit(place: Place<'_>, value: &Value, path: &str, out: &mut Vec<String>) {
        match value {
            Value::Object(_) if place.is_atomic_map() => {}
            Value::Object(map) => {
                for (name, value) in map {
                    visit(place.field(name), value, &format!("{path}.{name}"), out);
                }
            }
            Value::Array(list) => visit_list(place, list, path, out),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    fn visit_list(place: Place<'_>, list: &[Value], path: &str, out: &mut Vec<String>) {
        let rule = place.list();
        if matches!(rule, ListRule::Atomic) {
            return;
        }
        let mut seen = BTreeSet::new();
        for (i, item) in list.iter().enumerate() {
            match item_step(rule, item) {
                Err(why) => out.push(format!("{path}: element {i}: {why}")),
                Ok(step) => {
                    let at = super::fields::readable(&step);
                    if seen.insert(step) {
                        visit(place.items(), item, &format!("{path}{at}"), out);
                    } else {
                        out.push(format!("{path}: duplicate entries for key {at}"));
                    }
                }
            }
        }
    }
    let mut out = Vec::new();
    visit(place, config, "", &mut out);
    out
}
