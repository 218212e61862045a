//! Sets of fields, in the form in which `managedFields` writes them.
//!
//! A set is a tree of JSON objects. The keys say one step each: `f:name` a field, `k:{..}` the item
//! of a list with these keys, `v:..` the item of a set, `i:3` the third of a list. A step that ends in
//! an empty object belongs to the set; one that goes on belongs to it when it has the step `.`.
//! Working on the written form saves reading and writing it with every change of an object.

use serde_json::{Map, Value};

use crate::merge_keys::{Keys, ListRule};

/// A set of fields: the steps from one place on.
pub(super) type Fields = Map<String, Value>;

/// The step that says that the place itself belongs to the set.
const SELF: &str = ".";

/// True when the place of this node belongs to the set.
pub(super) fn is_member(node: &Value) -> bool {
    match node.as_object() {
        Some(steps) => steps.is_empty() || steps.contains_key(SELF),
        None => false,
    }
}

/// The node of a place from its steps; nothing when there is nothing to say about it.
pub(super) fn node(member: bool, mut steps: Fields) -> Option<Value> {
    match (member, steps.is_empty()) {
        (false, true) => return None,
        (true, false) => {
            steps.insert(SELF.to_owned(), Value::Object(Map::new()));
        }
        (true, true) | (false, false) => {}
    }
    Some(Value::Object(steps))
}

/// Adds all of `more` to `set`.
pub(super) fn add(set: &mut Fields, more: Fields) {
    for (step, other) in more {
        if step == SELF {
            continue;
        }
        match set.get_mut(&step) {
            None => {
                set.insert(step, other);
            }
            Some(mine) => {
                let member = is_member(mine) || is_member(&other);
                if let (Value::Object(mine), Value::Object(other)) = (mine, other) {
                    add(mine, other);
                    settle(mine, member);
                }
            }
        }
    }
}

/// Takes the members of `less` out of `set`. What lies under a member stays.
pub(super) fn subtract(set: &mut Fields, less: &Fields) {
    for (step, other) in less {
        if step == SELF {
            continue;
        }
        let Some(mine) = set.get_mut(step) else {
            continue;
        };
        let member = is_member(mine) && !is_member(other);
        let (Value::Object(mine), Value::Object(other)) = (mine, other) else {
            continue;
        };
        subtract(mine, other);
        if !settle(mine, member) {
            set.remove(step);
        }
    }
}

/// The members of both sets.
pub(super) fn common(one: &Fields, two: &Fields) -> Fields {
    let mut both = Fields::new();
    for (step, a) in one {
        let Some(b) = two.get(step).filter(|_| step != SELF) else {
            continue;
        };
        let member = is_member(a) && is_member(b);
        if let (Value::Object(a), Value::Object(b)) = (a, b)
            && let Some(node) = node(member, common(a, b))
        {
            both.insert(step.clone(), node);
        }
    }
    both
}

/// Writes membership of a node into its steps; false when nothing is left of it.
fn settle(steps: &mut Fields, member: bool) -> bool {
    steps.remove(SELF);
    if member && !steps.is_empty() {
        steps.insert(SELF.to_owned(), Value::Object(Map::new()));
    }
    member || !steps.is_empty()
}

/// True when every step is well formed, as a set from outside may not be.
pub(super) fn is_well_formed(set: &Fields) -> bool {
    set.iter().all(|(step, node)| {
        let step_is_fine =
            step == SELF || matches!(step.split_once(':'), Some(("f" | "k" | "v" | "i", _)));
        step_is_fine && node.as_object().is_some_and(is_well_formed)
    })
}

/// The members as paths for people: `.spec.containers[name="web"].image`. At each place its members
/// come before what lies deeper.
pub(super) fn paths(set: &Fields) -> Vec<String> {
    fn collect(set: &Fields, prefix: &str, out: &mut Vec<String>) {
        let steps = || set.iter().filter(|(step, _)| *step != SELF);
        for (step, _) in steps().filter(|(_, node)| is_member(node)) {
            out.push(format!("{prefix}{}", readable(step)));
        }
        for (step, node) in steps() {
            if let Some(deeper) = node.as_object().filter(|deeper| !deeper.is_empty()) {
                collect(deeper, &format!("{prefix}{}", readable(step)), out);
            }
        }
    }
    let mut out = Vec::new();
    collect(set, "", &mut out);
    out
}

pub(super) fn readable(step: &str) -> String {
    match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("v", value)) => format!("[={value}]"),
        Some(("k", keys)) => match serde_json::from_str::<Map<String, Value>>(keys) {
            Ok(keys) => {
                let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                format!("[{}]", keys.join(","))
            }
            Err(_) => format!("[{keys}]"),
        },
        Some((_, rest)) => format!("[{rest}]"),
        None => step.to_owned(),
    }
}

/// The step to a field.
pub(super) fn field_step(name: &str) -> String {
    let mut step = String::with_capacity(name.len() + 2);
    step.push_str("f:");
    step.push_str(name);
    step
}

/// The step to an item of a list, or why there is none. Lists that are one piece have none.
pub(super) fn item_step(rule: ListRule<'_>, item: &Value) -> Result<String, String> {
    match rule {
        ListRule::Atomic => Err("the list is one piece".to_owned()),
        ListRule::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => Err(
                "associative list without keys has an element that's an explicit null".to_owned(),
            ),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let mut step = "v:".to_owned();
                write_json(item, &mut step);
                Ok(step)
            }
        },
        ListRule::Keyed(keys) => keyed_step(keys, item),
    }
}

fn keyed_step(keys: Keys<'_>, item: &Value) -> Result<String, String> {
    let Some(item) = item.as_object() else {
        let what = if item.is_null() {
            "a null element"
        } else {
            "non-map elements"
        };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let mut parts: Vec<(&str, &Value)> = Vec::with_capacity(2);
    for name in keys.names() {
        if let Some(value) = item.get(name).or_else(|| keys.default(name)) {
            parts.push((name, value));
        }
    }
    if parts.is_empty() {
        let names: Vec<String> = keys.names().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't \
             have default values for any key fields)",
            names.join(" ")
        ));
    }
    parts.sort_unstable_by_key(|(name, _)| *name);
    let mut step = "k:{".to_owned();
    for (i, (name, value)) in parts.into_iter().enumerate() {
        if i > 0 {
            step.push(',');
        }
        write_text(name, &mut step);
        step.push(':');
        write_json(value, &mut step);
    }
    step.push('}');
    Ok(step)
}

/// True when both items have the same step, told without writing it.
pub(super) fn same_item(rule: ListRule<'_>, a: &Value, b: &Value) -> bool {
    match rule {
        ListRule::Atomic => false,
        ListRule::Set => a == b && !matches!(a, Value::Object(_) | Value::Array(_) | Value::Null),
        ListRule::Keyed(keys) => {
            let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
                return false;
            };
            let mut any = false;
            for name in keys.names() {
                let default = keys.default(name);
                let (a, b) = (a.get(name).or(default), b.get(name).or(default));
                if a != b {
                    return false;
                }
                any |= a.is_some();
            }
            any
        }
    }
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_text(text, out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    if text.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\') {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(value: Value) -> Fields {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn adding_keeps_members_and_what_lies_under_them() {
        let mut a = set(json!({"f:a": {}, "f:b": {"f:c": {}}}));
        add(
            &mut a,
            set(json!({"f:a": {"f:x": {}}, "f:b": {}, "f:d": {}})),
        );
        let expected = json!({"f:a": {".": {}, "f:x": {}}, "f:b": {".": {}, "f:c": {}}, "f:d": {}});
        assert_eq!(Value::Object(a), expected);
    }

    #[test]
    fn subtracting_takes_members_only() {
        let mut a = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {"f:c": {}}, "f:d": {}}));
        subtract(
            &mut a,
            &set(json!({"f:a": {}, "f:b": {"f:c": {}, "f:e": {}}})),
        );
        assert_eq!(Value::Object(a), json!({"f:a": {"f:x": {}}, "f:d": {}}));
    }

    #[test]
    fn common_members() {
        let a = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
        let b = set(json!({"f:a": {}, "f:b": {"f:c": {}}}));
        assert_eq!(Value::Object(common(&a, &b)), json!({"f:a": {}}));
    }

    #[test]
    fn paths_for_people() {
        let a = set(json!({"f:spec": {"f:replicas": {}, "f:c": {
            "k:{\"name\":\"web\"}": {".": {}, "f:image": {}}, "v:\"x\"": {}}}}));
        assert_eq!(
            paths(&a),
            [
                ".spec.replicas",
                ".spec.c[name=\"web\"]",
                ".spec.c[=\"x\"]",
                ".spec.c[name=\"web\"].image"
            ]
        );
    }

    #[test]
    fn what_is_not_a_set() {
        assert!(is_well_formed(&set(json!({"f:a": {".": {}, "k:{}": {}}}))));
        assert!(!is_well_formed(&set(json!({"a": {}}))));
        assert!(!is_well_formed(&set(json!({"f:a": 1}))));
    }
}
