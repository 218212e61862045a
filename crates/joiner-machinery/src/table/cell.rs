//! What cells are made of.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::meta;

/// Stands for what is not there.
pub(super) const NONE: &str = "<none>";
/// Stands for a setting that nobody made.
pub(super) const UNSET: &str = "<unset>";
/// How many items of a list are printed before the rest is only counted.
const LIST_MAX: usize = 3;

/// An object on its way into a row.
pub(super) struct Shown<'o> {
    pub(super) object: &'o Value,
    pub(super) now: Timestamp,
}

impl<'o> Shown<'o> {
    /// The cell of the name.
    pub(super) fn name(&self) -> Value {
        json!(meta::name(self.object))
    }

    /// The cell of the age.
    pub(super) fn age(&self) -> Value {
        json!(self.since(&self.object["metadata"]["creationTimestamp"]))
    }

    /// How long ago a time on the wire is.
    pub(super) fn since(&self, time: &Value) -> String {
        age::since(time.as_str(), self.now)
    }

    /// `spec`.
    pub(super) fn spec(&self) -> &'o Value {
        &self.object["spec"]
    }

    /// `status`.
    pub(super) fn status(&self) -> &'o Value {
        &self.object["status"]
    }

    /// The cells of names and images of a pod template's containers.
    pub(super) fn containers(&self, template: &Value) -> [Value; 2] {
        let containers = &template["spec"]["containers"];
        let joined = |field: &str| {
            let texts: Vec<&str> = items(containers).iter().map(|c| text(&c[field])).collect();
            json!(texts.join(","))
        };
        [joined("name"), joined("image")]
    }
}

/// A string, empty when there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// A value, unless it is null.
pub(super) fn some(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
}

/// A string, or the word for what is not there.
pub(super) fn text_or<'v>(value: &'v Value, otherwise: &'v str) -> &'v str {
    match value.as_str() {
        Some(text) if !text.is_empty() => text,
        Some(_) | None => otherwise,
    }
}

/// A whole number, zero when there is none.
pub(super) fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A list, empty when there is none.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A number or a string as it stands, such as a quantity or a percentage.
pub(super) fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The status of a condition, empty when it is not there.
pub(super) fn condition<'v>(status: &'v Value, of: &str) -> &'v str {
    let found = items(&status["conditions"])
        .iter()
        .find(|c| c["type"] == of);
    found.map_or("", |condition| text(&condition["status"]))
}

/// `a=1,b=2`, by key.
pub(super) fn labels(map: &Value) -> String {
    let pairs: Vec<String> = map.as_object().map_or_else(Vec::new, |map| {
        let mut pairs: Vec<_> = map.iter().collect();
        pairs.sort_by(|a, b| a.0.cmp(b.0));
        let pair = |(key, value): (&String, &Value)| format!("{key}={}", text(value));
        pairs.into_iter().map(pair).collect()
    });
    or_none(pairs.join(","))
}

/// The text, or the word for what is not there.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

/// A label selector in the form that `kubectl -l` takes, by key; empty for one that selects all.
pub(super) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    if let Some(labels) = selector["matchLabels"].as_object() {
        parts.extend(
            labels
                .iter()
                .map(|(k, v)| (k.as_str(), format!("{k}={}", text(v)))),
        );
    }
    for expression in items(&selector["matchExpressions"]) {
        let key = text(&expression["key"]);
        let mut values: Vec<&str> = items(&expression["values"]).iter().map(text).collect();
        values.sort_unstable();
        let values = values.join(",");
        let part = match text(&expression["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key, part));
    }
    parts.sort_by(|a, b| a.0.cmp(b.0));
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

/// The first few, and how many more there are.
pub(super) fn first_few(list: &[String]) -> String {
    if list.len() <= LIST_MAX {
        return list.join(",");
    }
    let first = list[..LIST_MAX].join(",");
    format!("{first} + {} more...", list.len() - LIST_MAX)
}

/// `True` or `False`, as some columns have it.
pub(super) fn word(value: &Value) -> &'static str {
    match value {
        Value::Bool(true) => "True",
        Value::Bool(false) => "False",
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            UNSET
        }
    }
}
