//! The entries of `managedFields`: who owns what, by which operation, since when.

use serde_json::{Map, Value};

use super::Writer;
use super::fields::{self, Fields};
use crate::kinds::Kind;
use crate::meta;

/// How many entries of the operation `Update` there may be.
const MOST_UPDATES: usize = 10;

/// Who stands for the oldest entries when there are more.
const ANCIENT: &str = "ancient-changes";

/// Whether somebody stated an intent or just wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub name: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
    pub time: Option<String>,
    pub fields: Fields,
}

impl Operation {
    const fn word(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Entry {
    /// An entry for somebody who writes now.
    pub(super) fn new(
        kind: &Kind,
        writer: &Writer<'_>,
        operation: Operation,
        fields: Fields,
    ) -> Self {
        let name = if writer.manager.is_empty() {
            "unknown"
        } else {
            writer.manager
        };
        Self {
            name: name.to_owned(),
            operation,
            api_version: kind.api_version(),
            subresource: writer.subresource.unwrap_or("").to_owned(),
            // As upstream has it, a write through a scale leaves no time.
            time: (writer.subresource != Some("scale")).then(|| meta::time(writer.now)),
            fields,
        }
    }

    /// True when both are entries of the same owner. An owner by apply has one entry, whatever
    /// version it applies.
    pub(super) fn same_owner(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.name == other.name
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// The owner as messages name it.
    pub(super) fn owner(&self) -> String {
        let mut owner = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            owner.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            owner.push_str(&format!(" using {}", self.api_version));
        }
        owner
    }

    /// What orders owners in messages.
    pub(super) fn rank(&self) -> (&str, Operation, &str, &str) {
        (
            &self.name,
            self.operation,
            &self.api_version,
            &self.subresource,
        )
    }

    fn read(entry: Value) -> Option<Self> {
        let Value::Object(mut entry) = entry else {
            return None;
        };
        let mut text = |name: &str| match entry.remove(name) {
            Some(Value::String(text)) => text,
            Some(_) | None => String::new(),
        };
        let operation = match &text("operation")[..] {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let (api_version, fields_type) = (text("apiVersion"), text("fieldsType"));
        if api_version.is_empty() || fields_type != "FieldsV1" {
            return None;
        }
        let (name, subresource, time) = (text("manager"), text("subresource"), text("time"));
        let fields = match entry.remove("fieldsV1") {
            Some(Value::Object(fields)) if fields::is_well_formed(&fields) => fields,
            Some(Value::Null) | None => Fields::new(),
            Some(_) => return None,
        };
        Some(Self {
            name,
            operation,
            api_version,
            subresource,
            time: Some(time).filter(|time| !time.is_empty()),
            fields,
        })
    }

    fn write(self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, text: String| {
            if !text.is_empty() {
                entry.insert(name.to_owned(), Value::String(text));
            }
        };
        put("manager", self.name);
        put("operation", self.operation.word().to_owned());
        put("apiVersion", self.api_version);
        put("subresource", self.subresource);
        put("time", self.time.unwrap_or_default());
        put("fieldsType", "FieldsV1".to_owned());
        entry.insert("fieldsV1".to_owned(), Value::Object(self.fields));
        Value::Object(entry)
    }
}

/// Takes the entries out of an object.
pub(super) fn detach(object: &mut Value) -> Option<Value> {
    object
        .get_mut("metadata")?
        .as_object_mut()?
        .remove("managedFields")
}

/// Reads entries; nothing when one of them makes no sense.
pub(super) fn read(entries: Value) -> Option<Vec<Entry>> {
    match entries {
        Value::Array(entries) => entries.into_iter().map(Entry::read).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            None
        }
    }
}

/// Writes entries into an object, appliers first, then by time.
pub(super) fn attach(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    if entries.is_empty() {
        metadata.remove("managedFields");
        return;
    }
    entries.sort_by(|a, b| {
        let rank = |e: &Entry| (e.operation, seconds(e.time.as_deref()));
        let names = |e: &Entry| (e.name.clone(), e.api_version.clone(), e.subresource.clone());
        rank(a).cmp(&rank(b)).then_with(|| names(a).cmp(&names(b)))
    });
    let entries = entries.into_iter().map(Entry::write).collect();
    metadata.insert("managedFields".to_owned(), Value::Array(entries));
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(meta::parse_time)
        .map_or(0, |at| at.as_second())
}

/// Puts the oldest entries of the operation `Update` together until there are not too many.
pub(super) fn cap(entries: &mut Vec<Entry>) {
    let is_update = |entry: &Entry| entry.operation == Operation::Update;
    while entries.iter().filter(|entry| is_update(entry)).count() > MOST_UPDATES {
        let mut updates: Vec<usize> = (0..entries.len())
            .filter(|&at| is_update(&entries[at]))
            .collect();
        updates.sort_by_key(|&at| {
            let entry = &entries[at];
            (seconds(entry.time.as_deref()), entry.name.clone())
        });
        // Entries of one version go together; the oldest of them takes in the next.
        let Some((into, from)) = updates.iter().enumerate().find_map(|(i, &old)| {
            let version = &entries[old].api_version;
            let newer = updates[i + 1..]
                .iter()
                .find(|&&at| entries[at].api_version == *version);
            newer.map(|&newer| (old, newer))
        }) else {
            return;
        };
        let moved = std::mem::take(&mut entries[from].fields);
        let time = entries[from].time.take();
        let bucket = &mut entries[into];
        fields::add(&mut bucket.fields, moved);
        bucket.time = time;
        ANCIENT.clone_into(&mut bucket.name);
        bucket.subresource.clear();
        entries.remove(from);
    }
}
