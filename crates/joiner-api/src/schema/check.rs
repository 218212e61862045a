//! Validation: types, sizes, patterns, lists and maps, then the rules.

use super::cel;
use super::defaults;
use super::node::{Additional, Format, Kind, ListType, Node, Sizes};
use super::path::Path;
use super::unknown::nearest;
use super::{ERRORS_MAX, FieldError};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Longest value that is repeated in a message.
const VALUE_SHOWN_MAX: usize = 120;

/// Violations so far.
#[derive(Default)]
pub(super) struct Errors {
    pub(super) list: Vec<FieldError>,
    /// Those among them that make rules meaningless: wrong types, missing or surplus parts.
    blocking: usize,
}

impl Errors {
    fn is_full(&self) -> bool {
        self.list.len() >= ERRORS_MAX
    }

    fn add(&mut self, path: impl ToString, message: impl Into<String>, value: Option<&Value>) {
        if !self.is_full() {
            let (path, message) = (path.to_string(), message.into());
            self.list.push(FieldError {
                path,
                message,
                value: value.and_then(shown),
            });
        }
    }

    fn block(&mut self, path: impl ToString, message: impl Into<String>, value: Option<&Value>) {
        self.blocking += 1;
        self.add(path, message, value);
    }
}

/// Scalars are shown, containers are not: their path says enough.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Array(_) | Value::Object(_) => None,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Some(value.to_string()).filter(|text| text.chars().count() <= VALUE_SHOWN_MAX)
        }
    }
}

/// Checks a value and everything below it.
pub(super) fn check(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if errors.is_full() || (!node.has_transition_rules && old == Some(value)) {
        return;
    }
    if value.is_null() && (node.nullable || node.kind == Kind::Any) {
        return;
    }
    if !has_kind(node.kind, value) {
        errors.block(path, wrong_kind(node.kind, value), Some(value));
        return;
    }
    let before = errors.blocking;
    match value {
        Value::Object(map) => check_object(node, map, old, path, errors),
        Value::Array(list) => check_list(node, list, old, path, errors),
        Value::String(text) => check_text(node, text, value, path, errors),
        Value::Number(_) => check_number(node, value, path, errors),
        Value::Null | Value::Bool(_) => {}
    }
    check_allowed(node, value, path, errors);
    check_branches(node, value, path, errors);
    if !node.rules.is_empty() && errors.blocking == before && !errors.is_full() {
        for broken in cel::run(node, value, old) {
            match &broken.field_path {
                Some(below) => errors.add(format!("{path}{below}"), broken.message, None),
                None => errors.add(path, broken.message, Some(value)),
            }
        }
    }
}

fn has_kind(kind: Kind, value: &Value) -> bool {
    let is_whole = || value.is_i64() || value.as_f64().and_then(defaults::whole).is_some();
    match kind {
        Kind::Any => true,
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::String => value.is_string(),
        Kind::Integer => is_whole(),
        Kind::Number => value.is_number(),
        Kind::Boolean => value.is_boolean(),
        Kind::IntOrString => value.is_string() || is_whole(),
    }
}

fn wrong_kind(kind: Kind, value: &Value) -> String {
    let got = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let scalar = value.is_number() || value.is_boolean();
    match kind {
        Kind::String if scalar => format!("must be a string, not {got}; quote it: \"{value}\""),
        Kind::String => format!("must be a string, not {got}"),
        Kind::IntOrString if scalar => {
            format!("must be a whole number or a string, not {got}; quote it: \"{value}\"")
        }
        Kind::IntOrString => format!("must be a whole number or a string, not {got}"),
        Kind::Object => format!("must be an object, not {got}"),
        Kind::Array => format!("must be a list, not {got}"),
        Kind::Integer if value.is_number() => "must be a whole number".to_owned(),
        Kind::Integer => format!("must be a whole number, not {got}"),
        Kind::Number => format!("must be a number, not {got}"),
        Kind::Boolean => format!("must be true or false, not {got}"),
        Kind::Any => "has the wrong type".to_owned(),
    }
}

fn check_sizes(sizes: Sizes, count: usize, unit: &str, path: &Path<'_>, errors: &mut Errors) {
    let count = count as u64;
    if let Some(min) = sizes.min
        && count < min
    {
        let message = match min {
            1 => "must not be empty".to_owned(),
            _ => format!("must have at least {min} {unit}, has {count}"),
        };
        errors.add(path, message, None);
    }
    if let Some(max) = sizes.max
        && count > max
    {
        errors.block(
            path,
            format!("must have at most {max} {unit}, has {count}"),
            None,
        );
    }
}

fn check_object(
    node: &Node,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    check_sizes(node.entry_count, map.len(), "entries", path, errors);
    for name in &node.required {
        if !map.contains_key(name) {
            errors.block(Path::Field(path, name), "is required", None);
        }
    }
    for (key, entry) in map {
        let before = old.and_then(|old| old.get(key));
        match (node.properties.get(key), &node.additional) {
            (Some(child), _) => check(child, entry, before, &Path::Field(path, key), errors),
            (None, Additional::Each(child)) => {
                check(child, entry, before, &Path::Key(path, key), errors);
            }
            (None, Additional::Nothing | Additional::Anything) => {}
        }
    }
}

fn check_list(
    node: &Node,
    list: &[Value],
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    check_sizes(node.item_count, list.len(), "items", path, errors);
    if errors.is_full() {
        return;
    }
    check_unique(node, list, path, errors);
    let Some(items) = &node.items else {
        return;
    };
    let old_list = old.and_then(Value::as_array);
    for (index, item) in list.iter().enumerate() {
        // Only lists with keys say which old item an item comes from. For the others an
        // unchanged item is at least not judged again.
        let before = old_list.and_then(|old_list| match &node.list_type {
            ListType::Map(keys) => old_list.iter().find(|old| same_keys(keys, old, item)),
            ListType::Atomic | ListType::Set => old_list
                .iter()
                .find(|old| !items.has_transition_rules && *old == item),
        });
        check(items, item, before, &Path::Index(path, index), errors);
    }
}

fn same_keys(keys: &[String], a: &Value, b: &Value) -> bool {
    keys.iter().all(|key| a.get(key) == b.get(key))
}

fn check_unique(node: &Node, list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let identity = |item: &Value| match &node.list_type {
        ListType::Map(keys) => {
            let of = |key: &String| item.get(key).map(Value::to_string).unwrap_or_default();
            Some(keys.iter().map(of).collect::<Vec<_>>().join("\n"))
        }
        ListType::Set => Some(item.to_string()),
        ListType::Atomic => node.unique.then(|| item.to_string()),
    };
    let mut seen = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        if let Some(identity) = identity(item)
            && !seen.insert(identity)
        {
            errors.add(
                Path::Index(path, index),
                "repeats an earlier item",
                Some(item),
            );
        }
    }
}

fn check_text(node: &Node, text: &str, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    check_sizes(
        node.length,
        text.chars().count(),
        "characters",
        path,
        errors,
    );
    let too_short = node.length.min.is_some_and(|min| min > 0) && text.is_empty();
    if let Some(pattern) = &node.pattern
        && !too_short
        && !pattern.regex.is_match(text)
    {
        errors.add(path, pattern.wanted.clone(), Some(value));
    }
    if node.format == Format::DateTime && !is_date_time(text) {
        errors.add(
            path,
            "must be a time such as 2026-01-31T12:00:00Z",
            Some(value),
        );
    }
}

/// A shallow reading of RFC 3339: the shape, not the calendar.
fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    let fits = bytes.len() > shape.len()
        && shape.iter().zip(bytes).all(|(wanted, got)| match wanted {
            b'0' => got.is_ascii_digit(),
            b'T' => matches!(got, b'T' | b't'),
            _ => wanted == got,
        });
    let zone = text.get(shape.len()..).unwrap_or_default();
    let zone = zone.strip_prefix('.').map_or(zone, |after| {
        after.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    let offset = |sign: char| {
        zone.strip_prefix(sign)
            .is_some_and(|rest| rest.len() == 5 && rest.as_bytes()[2] == b':')
    };
    fits && (zone.eq_ignore_ascii_case("z") || offset('+') || offset('-'))
}

fn check_number(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(number) = value.as_f64() else {
        return;
    };
    if let Some((limit, exclusive)) = node.minimum
        && (number < limit || (exclusive && number <= limit))
    {
        let words = if exclusive { "more than" } else { "at least" };
        errors.add(path, format!("must be {words} {limit}"), Some(value));
    }
    if let Some((limit, exclusive)) = node.maximum
        && (number > limit || (exclusive && number >= limit))
    {
        let words = if exclusive { "less than" } else { "at most" };
        errors.add(path, format!("must be {words} {limit}"), Some(value));
    }
    if let Some(unit) = node.multiple_of
        && (number / unit).fract() != 0.0
    {
        errors.add(path, format!("must be a multiple of {unit}"), Some(value));
    }
    let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
    if node.format == Format::Int32 && !range.contains(&number) {
        errors.add(path, "must fit into 32 bits", Some(value));
    }
}

fn check_allowed(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if node.allowed.is_empty() || node.allowed.contains(value) {
        return;
    }
    let choices = node
        .allowed
        .iter()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let words = node.allowed.iter().filter_map(Value::as_str);
    let message = match value.as_str().and_then(|text| nearest(text, words)) {
        Some(meant) if node.allowed.len() > 1 => {
            format!("must be one of {choices}; did you mean {meant:?}?")
        }
        _ => format!("must be one of {choices}"),
    };
    errors.block(path, message, Some(value));
}

fn check_branches(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Errors) {
    for branch in &node.all_of {
        check(branch, value, None, path, errors);
    }
    let fits = |branch: &&Node| {
        let mut probe = Errors::default();
        check(branch, value, None, path, &mut probe);
        probe.list.is_empty()
    };
    if !node.any_of.is_empty() && !node.any_of.iter().any(|branch| fits(&branch)) {
        errors.add(path, "fits none of the alternatives", Some(value));
    }
    if !node.one_of.is_empty() && node.one_of.iter().filter(fits).count() != 1 {
        errors.add(
            path,
            "must fit exactly one of the alternatives",
            Some(value),
        );
    }
    if let Some(excluded) = &node.not
        && fits(&&**excluded)
    {
        errors.add(path, "has a form that is excluded", Some(value));
    }
}
