//! A small builder for schema nodes. Each method adds one keyword.

use super::patterns::QUANTITY;
use serde_json::{Map, Value, json};

/// A schema node under construction.
#[derive(Clone, Debug)]
pub(crate) struct Field(Map<String, Value>);

fn node(kind: &str, description: &str) -> Field {
    Field(Map::new())
        .with("type", kind)
        .with("description", description)
}

/// Text.
pub(super) fn string(description: &str) -> Field {
    node("string", description)
}

/// A time in RFC 3339.
pub(super) fn time(description: &str) -> Field {
    string(description).with("format", "date-time")
}

/// True or false.
pub(super) fn boolean(description: &str) -> Field {
    node("boolean", description)
}

/// A whole number of 32 bits.
pub(super) fn int32(description: &str) -> Field {
    node("integer", description).with("format", "int32")
}

/// A whole number of 64 bits.
pub(super) fn int64(description: &str) -> Field {
    node("integer", description).with("format", "int64")
}

/// A whole number of any width.
pub(super) fn integer(description: &str) -> Field {
    node("integer", description)
}

/// Declared fields.
pub(super) fn object(description: &str) -> Field {
    node("object", description)
}

/// Any number of items of one kind.
pub(super) fn list(description: &str, items: Field) -> Field {
    node("array", description).with("items", items)
}

/// Any number of entries of one kind, under keys of the user's choice.
pub(super) fn map(description: &str, entries: Field) -> Field {
    node("object", description).with("additionalProperties", entries)
}

/// Strings by key.
pub(super) fn string_map(description: &str) -> Field {
    map(description, Field(Map::new()).with("type", "string"))
}

/// A whole number or text.
pub(super) fn int_or_string(description: &str) -> Field {
    Field(Map::new())
        .with("description", description)
        .with("anyOf", json!([{"type": "integer"}, {"type": "string"}]))
        .with("x-kubernetes-int-or-string", true)
}

/// Amounts by resource.
pub(super) fn resource_map(description: &str) -> Field {
    map(
        description,
        int_or_string("An amount such as 500m or 4Gi.").pattern(QUANTITY),
    )
}

/// The object as a whole: the fields that every kind has, and what is added to them.
pub(super) fn whole(description: &str) -> Field {
    object(description)
        .field(
            "apiVersion",
            string("Group and version of this representation."),
        )
        .field("kind", string("Kind of this object."))
        .field("metadata", Field(Map::new()).with("type", "object"))
}

impl Field {
    /// Adds a keyword as it is.
    pub(super) fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.0.insert(keyword.to_owned(), value.into());
        self
    }

    /// Adds to a keyword that holds an object or a list.
    fn push(mut self, keyword: &str, name: Option<&str>, value: Value) -> Self {
        let empty = || if name.is_some() { json!({}) } else { json!([]) };
        let slot = self.0.entry(keyword).or_insert_with(empty);
        match (slot, name) {
            (Value::Object(map), Some(name)) => {
                map.insert(name.to_owned(), value);
            }
            (Value::Array(list), _) => list.push(value),
            _ => {}
        }
        self
    }

    /// A field that may be left out.
    pub(super) fn field(self, name: &str, field: Field) -> Self {
        self.push("properties", Some(name), field.into())
    }

    /// A field that must be there.
    pub(super) fn required(self, name: &str, field: Field) -> Self {
        self.push("required", None, json!(name)).field(name, field)
    }

    /// A CEL rule and what to say when it is broken.
    pub(super) fn rule(self, rule: impl Into<String>, message: impl Into<String>) -> Self {
        let (rule, message) = (rule.into(), message.into());
        self.push(
            "x-kubernetes-validations",
            None,
            json!({"rule": rule, "message": message}),
        )
    }

    /// Several rules at once.
    pub(super) fn rules(self, rules: Vec<(String, String)>) -> Self {
        rules
            .into_iter()
            .fold(self, |field, (rule, message)| field.rule(rule, message))
    }

    pub(super) fn pattern(self, pattern: &str) -> Self {
        self.with("pattern", pattern)
    }

    pub(super) fn default(self, value: Value) -> Self {
        self.with("default", value)
    }

    pub(super) fn one_of(self, words: &[&str]) -> Self {
        self.with("enum", words)
    }

    pub(super) fn range(self, min: i64, max: i64) -> Self {
        self.with("minimum", min).with("maximum", max)
    }

    pub(super) fn at_least(self, min: i64) -> Self {
        self.with("minimum", min)
    }

    /// Text that is not empty.
    pub(super) fn not_empty(self) -> Self {
        self.with("minLength", 1)
    }

    pub(super) fn max_length(self, max: u64) -> Self {
        self.with("maxLength", max)
    }

    pub(super) fn max_items(self, max: u64) -> Self {
        self.with("maxItems", max)
    }

    pub(super) fn max_entries(self, max: u64) -> Self {
        self.with("maxProperties", max)
    }

    /// A list that is replaced as a whole.
    pub(super) fn atomic(self) -> Self {
        self.with("x-kubernetes-list-type", "atomic")
    }

    /// The node as it is so far.
    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

impl From<Field> for Value {
    fn from(field: Field) -> Self {
        Self::Object(field.0)
    }
}
