//! What one line of the log looks like.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
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

/// Fields that name objects, and the key that upstream's logs have for each.
const OBJECTS: &[(&str, &str)] = &[
    ("pool", "NodePool"),
    ("node_claim", "NodeClaim"),
    ("node", "Node"),
    ("pod", "Pod"),
];

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
    /// As JSON, with upstream's keys.
    pub(crate) fn json(&self) -> String {
        let mut line = Map::new();
        line.insert("level".to_owned(), json!(self.level.as_str()));
        line.insert("time".to_owned(), json!(format!("{:.3}", self.now)));
        line.insert("logger".to_owned(), json!("controller"));
        if let Some((file, number)) = self.caller {
            line.insert("caller".to_owned(), json!(format!("{file}:{number}")));
        }
        line.insert("message".to_owned(), json!(self.fields.message));
        line.insert("commit".to_owned(), json!(self.commit));
        for (name, value) in &self.fields.others {
            let (key, value) = shown(name, value);
            line.insert(key.to_owned(), value);
        }
        let mut text = Value::Object(line).to_string();
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
        for (name, value) in &self.fields.others {
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

/// Key and value of a field in JSON.
fn shown<'a>(name: &'a str, value: &Value) -> (&'a str, Value) {
    if name == "reconcile_id" {
        return ("reconcileID", value.clone());
    }
    let object = OBJECTS.iter().find(|(field, _)| *field == name);
    let (Some((_, key)), Some(text)) = (object, value.as_str()) else {
        return (name, value.clone());
    };
    let object = match text.split_once('/') {
        Some((namespace, name)) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": text}),
    };
    (key, object)
}
