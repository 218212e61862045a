//! Strategic merge patch: a merge patch that knows which lists have keys.
//!
//! A patch is laid over an object field by field. Nulls delete. A list is replaced, unless the
//! [table of merge keys](crate::merge_keys) says that its items are merged by a key or added.
//! Directives in the patch say more: `$patch` replaces or deletes an object or an item,
//! `$deleteFromPrimitiveList/f` takes scalars out of `f`, `$setElementOrder/f` orders `f`, and
//! `$retainKeys` drops all other fields of an object.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shown;
use crate::error::{ApiError, Reason};
use crate::kinds::Kind;
use crate::merge_keys::{PatchRule, Place};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// The object after a strategic merge patch, by the merge keys of a built-in kind.
///
/// # Errors
///
/// 400 when the patch or a directive is malformed, 500 when an item has no merge key, as upstream
/// has it.
pub fn strategic(kind: &Kind, target: &Value, patch: &Value) -> Result<Value, ApiError> {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            merge_objects(Place::root(kind), target.clone(), patch).map(Value::Object)
        }
        (target, Value::Null) => Ok(target.clone()),
        (_, patch) => Err(super::unreadable(
            "",
            patch,
            "value of type map[string]interface {}",
        )),
    }
}

fn merge_objects(place: Place<'_>, mut target: Object, patch: &Object) -> Result<Object, ApiError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                let mut rest = patch.clone();
                rest.remove(DIRECTIVE);
                Ok(plain_object(&rest))
            }
            Some("delete") => Ok(Object::new()),
            Some(_) | None => Err(unknown(directive, &Value::Object(patch.clone()))),
        };
    }
    if let Some(retained) = patch.get(RETAIN) {
        retain(&mut target, patch, retained)?;
    }
    for (name, order) in patch {
        if let Some(field) = after_prefix(name, ORDER)? {
            set_order(place, &mut target, patch, field, order)?;
        }
    }
    for (name, value) in patch {
        if name == RETAIN || name.starts_with(ORDER) {
            continue;
        }
        if let Some(field) = after_prefix(name, DELETE_FROM)? {
            delete_from(&mut target, field, value);
        } else if !patch.contains_key(&format!("{ORDER}/{name}")[..]) {
            merge_field(place, &mut target, name, value)?;
        }
    }
    Ok(target)
}

fn merge_field(
    place: Place<'_>,
    target: &mut Object,
    name: &str,
    patch: &Value,
) -> Result<(), ApiError> {
    let place = place.field(name);
    if patch.is_null() {
        target.remove(name);
        return Ok(());
    }
    let merged = match (target.get_mut(name).map(Value::take), patch) {
        (Some(Value::Object(old)), Value::Object(patch)) => match place.patch() {
            PatchRule::Replace => plain(&Value::Object(patch.clone())),
            PatchRule::Usual | PatchRule::MergeBy(_) | PatchRule::Add => {
                Some(Value::Object(merge_objects(place, old, patch)?))
            }
        },
        (Some(Value::Array(old)), Value::Array(patch)) => {
            Some(Value::Array(merge_lists(place, old, patch)?))
        }
        (Some(_) | None, _) => plain(patch),
    };
    match merged {
        Some(value) => {
            target.insert(name.to_owned(), value);
        }
        None => {
            target.remove(name);
        }
    }
    Ok(())
}

fn merge_lists(place: Place<'_>, old: Vec<Value>, patch: &[Value]) -> Result<Vec<Value>, ApiError> {
    match place.patch() {
        PatchRule::Usual | PatchRule::Replace => Ok(plain_list(patch)),
        PatchRule::Add => {
            let mut merged: Vec<Value> = Vec::with_capacity(old.len() + patch.len());
            let mut seen = BTreeMap::new();
            for item in old.iter().chain(patch) {
                if seen.insert(item.to_string(), ()).is_none() {
                    merged.push(item.clone());
                }
            }
            Ok(in_order(merged, patch, &old, None))
        }
        PatchRule::MergeBy(key) => {
            if !old.iter().chain(patch).all(Value::is_object) {
                return Err(failed(
                    "the items of a list with a merge key must be objects".to_owned(),
                ));
            }
            merge_keyed(place, old, patch, key)
        }
    }
}

fn merge_keyed(
    place: Place<'_>,
    mut old: Vec<Value>,
    patch: &[Value],
    key: &str,
) -> Result<Vec<Value>, ApiError> {
    let mut usual = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            usual.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let doomed = item.get(key).ok_or_else(|| no_key(item, key))?;
                old.retain(|item| item.get(key) != Some(doomed));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(failed(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(_) | None => return Err(unknown(directive, item)),
        }
    }
    if replace {
        return Ok(usual.into_iter().filter_map(plain).collect());
    }
    let mut merged = old.clone();
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    for (at, item) in merged.iter().enumerate() {
        let value = item.get(key).ok_or_else(|| no_key(item, key))?;
        by_key.entry(value.to_string()).or_insert(at);
    }
    for item in &usual {
        let value = item.get(key).ok_or_else(|| no_key(item, key))?.to_string();
        match (by_key.get(&value), item) {
            (Some(&at), Value::Object(patch)) => {
                if let Value::Object(object) = merged[at].take() {
                    merged[at] = Value::Object(merge_objects(place.items(), object, patch)?);
                }
            }
            (_, item) => {
                by_key.insert(value, merged.len());
                merged.extend(plain(item));
            }
        }
    }
    let usual: Vec<Value> = usual.into_iter().cloned().collect();
    Ok(in_order(merged, &usual, &old, Some(key)))
}

/// Orders a merged list: items that `order` names as it has them, other items of the old list where
/// they were among those.
fn in_order(merged: Vec<Value>, order: &[Value], old: &[Value], key: Option<&str>) -> Vec<Value> {
    let id = |item: &Value| match key {
        Some(key) => item.get(key).map(Value::to_string),
        None => Some(item.to_string()),
    };
    let positions = |list: &[Value]| -> BTreeMap<String, usize> {
        let ids = list.iter().enumerate().rev();
        ids.filter_map(|(at, item)| Some((id(item)?, at))).collect()
    };
    let (wanted, was) = (positions(order), positions(old));
    let position = |in_list: &BTreeMap<String, usize>, item: &Value| {
        id(item).and_then(|id| in_list.get(&id).copied())
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| position(&wanted, item).is_some());
    named.sort_by_key(|item| position(&wanted, item));
    others.sort_by_key(|item| position(&was, item));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (named.peek(), others.peek()) {
            (None, None) => return out,
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (Some(a), Some(b)) => match (position(&was, a), position(&was, b)) {
                (Some(a), Some(b)) => b < a,
                // One that is new goes where the patch has it: before what follows.
                (None, _) | (Some(_), None) => false,
            },
        };
        out.extend(if other_first {
            others.next()
        } else {
            named.next()
        });
    }
}

fn set_order(
    place: Place<'_>,
    target: &mut Object,
    patch: &Object,
    field: &str,
    order: &Value,
) -> Result<(), ApiError> {
    let bad = || ApiError::bad_request("invalid patch format of setElementOrder list");
    let order = order.as_array().ok_or_else(bad)?;
    let place = place.field(field);
    let key = match place.patch() {
        PatchRule::MergeBy(key) => Some(key),
        PatchRule::Usual | PatchRule::Add | PatchRule::Replace => None,
    };
    let list = |object: &Object| match object.get(field) {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list.clone())),
        Some(_) => Err(bad()),
    };
    let (old, new) = (list(target)?, list(patch)?);
    check_order(new.as_deref().unwrap_or_default(), order, key)?;
    let was = old.clone().unwrap_or_default();
    let merged = match (old, new) {
        (None, None) => return Ok(()),
        (Some(old), None) => old,
        (None, Some(new)) => plain_list(&new),
        (Some(old), Some(new)) => merge_lists(place, old, &new)?,
    };
    if let Some(key) = key
        && let Some(item) = merged.iter().find(|item| item.get(key).is_none())
    {
        return Err(no_key(item, key));
    }
    target.insert(
        field.to_owned(),
        Value::Array(in_order(merged, order, &was, key)),
    );
    Ok(())
}

/// The items of a patch must come in the order that it asks for.
fn check_order(items: &[Value], order: &[Value], key: Option<&str>) -> Result<(), ApiError> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let id = |item: &Value| key.map_or(Some(item.clone()), |key| item.get(key).cloned());
    let mut wanted = order.iter();
    for item in items.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if !wanted.any(|wanted| id(wanted) == id(item)) {
            let show = |list: &[Value]| shown(&Value::Array(list.to_vec()));
            return Err(failed(format!(
                "The order in patch list:\n{}\n doesn't match {ORDER} list:\n{}\n",
                show(items),
                show(order)
            )));
        }
    }
    Ok(())
}

fn delete_from(target: &mut Object, field: &str, doomed: &Value) {
    match (target.get_mut(field), doomed) {
        (Some(_), Value::Null) => {
            target.remove(field);
        }
        (Some(Value::Array(list)), Value::Array(doomed)) => {
            list.retain(|item| !doomed.contains(item));
        }
        (Some(_) | None, _) => {}
    }
}

fn retain(target: &mut Object, patch: &Object, retained: &Value) -> Result<(), ApiError> {
    let bad = || ApiError::bad_request("invalid patch format of retainKeys");
    let retained = retained.as_array().ok_or_else(bad)?;
    let is_retained = |name: &str| retained.iter().any(|kept| kept.as_str() == Some(name));
    let excess = patch.iter().any(|(name, value)| {
        let directive = name == RETAIN || name.starts_with(DELETE_FROM) || name.starts_with(ORDER);
        !directive && !value.is_null() && !is_retained(name)
    });
    if excess {
        return Err(bad());
    }
    target.retain(|name, _| is_retained(name));
    Ok(())
}

/// A value of the patch that meets nothing to merge with: without nulls, without directives, and
/// without objects that carry one.
fn plain(patch: &Value) -> Option<Value> {
    match patch {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(plain_object(map))),
        Value::Array(list) => Some(Value::Array(plain_list(list))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(patch.clone()),
    }
}

fn plain_object(map: &Object) -> Object {
    let is_directive =
        |name: &str| name == RETAIN || name.starts_with(DELETE_FROM) || name.starts_with(ORDER);
    let fields = map
        .iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name));
    fields
        .filter_map(|(name, value)| Some((name.clone(), plain(value)?)))
        .collect()
}

fn plain_list(list: &[Value]) -> Vec<Value> {
    list.iter().filter_map(plain).collect()
}

/// The field that a directive is about.
fn after_prefix<'n>(name: &'n str, prefix: &str) -> Result<Option<&'n str>, ApiError> {
    let Some(rest) = name.strip_prefix(prefix) else {
        return Ok(None);
    };
    match rest.strip_prefix('/') {
        Some(field) => Ok(Some(field)),
        None if prefix == ORDER => Err(ApiError::bad_request(
            "invalid patch format of setElementOrder list",
        )),
        None => Err(ApiError::bad_request(
            "invalid patch format of primitive list",
        )),
    }
}

fn unknown(directive: &Value, patch: &Value) -> ApiError {
    failed(format!(
        "unknown patch type: {} in map: {}",
        shown(directive),
        shown(patch)
    ))
}

fn no_key(item: &Value, key: &str) -> ApiError {
    failed(format!(
        "map: {} does not contain declared merge key: {key}",
        shown(item)
    ))
}

/// What upstream does not sort into the mistakes of clients.
fn failed(message: String) -> ApiError {
    ApiError::new(Reason::Unknown, message)
}
