//! What two answers have in common once the volatile is gone.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// An answer with its body read.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) warnings: Vec<String>,
    pub(crate) retry_after: String,
    pub(crate) body: Vec<u8>,
}

/// One place where two answers differ.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// `status`, `content-type`, `warning`, `retry-after`, or a JSON pointer into the body.
    pub(crate) place: String,
    pub(crate) real: String,
    pub(crate) ours: String,
}

impl Answer {
    /// The body as JSON: one value, or the list of values of a stream; text stays text.
    pub(crate) fn value(&self) -> Value {
        if let Ok(value) = serde_json::from_slice(&self.body) {
            return value;
        }
        let text = String::from_utf8_lossy(&self.body).into_owned();
        if self.content_type == "application/yaml" {
            return serde_saphyr::from_str(&text).expect("an answer in YAML");
        }
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        match lines {
            Ok(events) if !events.is_empty() => Value::Array(events),
            Ok(_) | Err(_) => Value::String(text),
        }
    }
}

impl Answer {
    /// No answer in time.
    pub(crate) fn late() -> Self {
        Self {
            status: 0,
            content_type: String::new(),
            warnings: Vec::new(),
            retry_after: String::new(),
            body: b"no answer in time".to_vec(),
        }
    }

    fn summary(&self) -> String {
        let body = self.value();
        let said = body.get("message").unwrap_or(&body).to_string();
        let said: String = said.chars().take(400).collect();
        format!("{} {said}", self.status)
    }
}

/// All differences between the answers of the real server and ours.
pub(crate) fn differences(real: &Answer, ours: &Answer) -> Vec<Difference> {
    if real.status != ours.status {
        // Nothing else can be expected to agree then.
        return vec![Difference {
            place: "status".to_owned(),
            real: real.summary(),
            ours: ours.summary(),
        }];
    }
    let mut found = Vec::new();
    let mut plain = |place: &str, real: String, ours: String| {
        if real != ours {
            let place = place.to_owned();
            found.push(Difference { place, real, ours });
        }
    };
    plain(
        "content-type",
        real.content_type.clone(),
        ours.content_type.clone(),
    );
    plain(
        "warning",
        real.warnings.join("\n"),
        ours.warnings.join("\n"),
    );
    plain(
        "retry-after",
        real.retry_after.clone(),
        ours.retry_after.clone(),
    );
    let (mut real, mut ours) = (real.value(), ours.value());
    steady(&mut real, "");
    steady(&mut ours, "");
    walk("", Some(&real), Some(&ours), &mut found);
    found
}

fn walk(place: &str, real: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
    match (real, ours) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let key_text = key.replace('~', "~0").replace('/', "~1");
                walk(
                    &format!("{place}/{key_text}"),
                    a.get(key),
                    b.get(key),
                    found,
                );
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b)))
            if ["/groups", "/resources"].contains(&place) =>
        {
            // What one of them does not serve must not hide the rest.
            let (a, b) = (by_name(a), by_name(b));
            walk(place, Some(&a), Some(&b), found);
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for i in 0..a.len().max(b.len()) {
                walk(&format!("{place}/{i}"), a.get(i), b.get(i), found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => {
            let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            found.push(Difference {
                place: if place.is_empty() { "/" } else { place }.to_owned(),
                real: text(a),
                ours: text(b),
            });
        }
    }
}

fn by_name(items: &[Value]) -> Value {
    let named = |item: &Value| (item["name"].as_str().unwrap_or("").to_owned(), item.clone());
    Value::Object(items.iter().map(named).collect())
}

/// Fields whose values are chance; that they are there is not.
const VOLATILE: &[&str] = &[
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "time",
    "continue",
    "clusterIP",
    "clusterIPs",
    "storageVersionHash",
    "token",
];

fn steady(value: &mut Value, key: &str) {
    match value {
        Value::Object(map) => {
            let prefix = map.get("generateName").and_then(Value::as_str);
            if let Some(prefix) = prefix.map(|prefix| format!("{prefix}*")) {
                map.insert("name".to_owned(), Value::String(prefix));
            }
            for (key, value) in map {
                steady(value, key);
            }
        }
        Value::Array(all) => {
            if key == "managedFields" {
                // Their order goes by seconds, which need not be the same ones on both sides.
                all.sort_by_key(|entry| {
                    let text = |key: &str| entry[key].as_str().unwrap_or("").to_owned();
                    (text("operation"), text("manager"), text("subresource"))
                });
            }
            if key == "causes" {
                // Upstream walks mappings in an order that is never the same.
                all.sort_by_key(ToString::to_string);
            }
            for value in &mut *all {
                steady(value, key);
            }
            if ["resourceRules", "nonResourceRules"].contains(&key) {
                // Upstream looks bindings up in an order that is never the same.
                all.sort_by_key(ToString::to_string);
            }
        }
        Value::String(text) => {
            if VOLATILE.contains(&key) && !text.is_empty() {
                *text = format!("<{key}>");
            } else {
                *text = steady_text(text, key);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The things that are wrong, in one order.
fn sorted_list(text: &str) -> String {
    let Some((start, list)) = text.split_once("is invalid: [") else {
        return text.to_owned();
    };
    let mut parts: Vec<&str> = list.trim_end_matches(']').split(", ").collect();
    parts.sort_unstable();
    format!("{start}is invalid: [{}]", parts.join(", "))
}

fn steady_text(text: &str, key: &str) -> String {
    static UID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").expect("a valid pattern")
    });
    static VERSION: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"(?i)(resource ?version(?: in precondition| in object meta)?: |current: )\d+( \(\d+\))?";
        Regex::new(words).expect("a valid pattern")
    });
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("a valid pattern")
    });
    static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\d+s$").expect("a valid pattern"));
    if text.starts_with("10.") && text.parse::<std::net::Ipv4Addr>().is_ok() {
        return "<address>".to_owned();
    }
    static GENERATED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b(Gen_|gen-|gen\.)[a-z0-9]{5}\b").expect("a valid pattern"));
    static TOO_OLD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(too old resource version: \d+) \(\d+\)").expect("a valid pattern")
    });
    static RECORD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"in record \(\d+\)").expect("a valid pattern"));
    let text = GENERATED.replace_all(text, "$1*");
    let text = TOO_OLD.replace_all(&text, "$1 (<version>)");
    let text = RECORD.replace_all(&text, "in record (<version>)");
    let text = sorted_list(&text);
    let text = UID.replace_all(&text, "<uid>");
    let text = VERSION.replace_all(&text, "$1<version>");
    let text = TIME.replace_all(&text, "<time>");
    if key == "cells" {
        return AGE.replace_all(&text, "<age>").into_owned();
    }
    text.into_owned()
}
