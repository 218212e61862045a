//! What one line of the log looks like.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::Level;
use tracing::field::{Field, Visit};

/// Fields of an event or a span by name; the message is one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    /// What happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds fields; those that are there get the new values.
    pub(crate) fn extend(&mut self, other: &Self) {
        if !other.message.is_empty() {
            self.message.clone_from(&other.message);
        }
        for (name, value) in &other.others {
            self.set(name, value.clone());
        }
    }

    fn set(&mut self, name: &'static str, value: Value) {
        match self.others.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => self.set(name, Value::String(text)),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.set(name, json!(value)),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(error) = source {
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        self.set(field.name(), Value::String(text));
    }
}

/// Fields that name objects, and the key that upstream's logs have for each: the kind.
const OBJECTS: &[(&str, &str)] = &[
    ("pool", "NodePool"),
    ("node_claim", "NodeClaim"),
    ("node", "Node"),
    ("pod", "Pod"),
];
/// Kinds that are keys.
const KINDS: &[&str] = &[
    "NodePool",
    "NodeClaim",
    "Node",
    "Pod",
    "NodeOverlay",
    "NodeClass",
    "CapacityBuffer",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "ConfigMap",
];
/// Fields whose key has dashes in upstream's logs, or letters that Rust's names do not have.
const KEYS: &[(&str, &str)] = &[
    ("reconcile_id", "reconcileID"),
    ("controller_group", "controllerGroup"),
    ("controller_kind", "controllerKind"),
    ("provider_id", "provider-id"),
    ("instance_type", "instance-type"),
    ("capacity_type", "capacity-type"),
    ("command_id", "command-id"),
];
/// Fields that say nothing new to people.
const FOR_SCRIPTS: &[&str] = &[
    "controller_group",
    "controller_kind",
    "namespace",
    "name",
    "reconcile_id",
];
/// Fields whose text is JSON.
const NESTED: &[&str] = &["disrupted-nodes", "replacement-nodes"];

/// One line.
pub(crate) struct Line<'a> {
    pub(crate) level: Level,
    pub(crate) now: Timestamp,
    pub(crate) commit: &'a str,
    /// File and line, where these are shown.
    pub(crate) caller: Option<(&'static str, u32)>,
    pub(crate) fields: &'a Fields,
}

impl Line<'_> {
    /// As JSON, with upstream's keys in upstream's order.
    pub(crate) fn json(&self) -> String {
        let mut line = vec![
            ("level", json!(self.level.as_str())),
            ("time", json!(format!("{:.3}", self.now))),
            ("logger", json!("controller")),
        ];
        if let Some((file, number)) = self.caller {
            line.push(("caller", json!(format!("{file}:{number}"))));
        }
        line.push(("message", json!(self.fields.message)));
        line.push(("commit", json!(self.commit)));
        for (name, value) in &self.fields.others {
            let Some((key, value)) = shown(name, value) else {
                continue;
            };
            // Two fields may be spelled differently and mean the same.
            match line.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => line.push((key, value)),
            }
        }
        let pairs = line.iter();
        let pairs = pairs.map(|(key, value)| format!("{}:{value}", json!(key)));
        let mut text = format!("{{{}}}", pairs.collect::<Vec<_>>().join(","));
        text.push('\n');
        text
    }

    /// For people: time, level, message, fields.
    pub(crate) fn human(&self) -> String {
        let time = format!("{:.3}", self.now);
        let time = time.split_once('T').map_or(&*time, |(_, time)| time);
        let time = time.trim_end_matches('Z');
        let mut text = format!(
            "{time} {:<5} {}",
            self.level.as_str(),
            one_line(&self.fields.message)
        );
        let read =
            |(name, _): &&(&str, Value)| !NESTED.contains(name) && !FOR_SCRIPTS.contains(name);
        for (name, value) in self.fields.others.iter().filter(read) {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let is_plain = !value.is_empty() && !value.contains([' ', '"', '\n']);
            // Writing to a string cannot fail.
            let _ = if is_plain {
                write!(text, " {name}={value}")
            } else {
                write!(text, " {name}={value:?}")
            };
        }
        if let Some((file, number)) = self.caller {
            let _ = write!(text, " ({file}:{number})");
        }
        text.push('\n');
        text
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// Key and value of a field in JSON; none for an object without a name.
fn shown<'a>(name: &'a str, value: &Value) -> Option<(&'a str, Value)> {
    if let Some((_, key)) = KEYS.iter().find(|(field, _)| *field == name) {
        return Some((key, value.clone()));
    }
    let text = value.as_str();
    if NESTED.contains(&name)
        && let Some(nested) = text.and_then(|text| serde_json::from_str(text).ok())
    {
        return Some((name, nested));
    }
    let field = OBJECTS.iter().find(|(field, _)| *field == name);
    let kind = field.map(|(_, kind)| *kind);
    let kind = kind.or_else(|| KINDS.iter().find(|kind| **kind == name).copied());
    let (Some(kind), Some(text)) = (kind, text) else {
        return Some((name, value.clone()));
    };
    let object = match text.split_once('/') {
        Some((namespace, name)) => json!({"name": name, "namespace": namespace}),
        None if text.is_empty() => return None,
        None => json!({"name": text}),
    };
    Some((kind, object))
}
