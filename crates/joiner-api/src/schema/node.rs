//! The compiled form of one schema node.

use super::SchemaError;
use super::cel::Rule;
use super::pattern::Pattern;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What JSON type a value must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// What may stand under keys that are not declared.
#[derive(Debug)]
pub(super) enum Additional {
    Nothing,
    Anything,
    Each(Box<Node>),
}

/// How items of a list are told apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Formats that mean something to validation or CEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    None,
    Int32,
    DateTime,
    Duration,
}

/// A bound on numbers; the flag says that the bound itself is out.
pub(super) type Bound = Option<(f64, bool)>;

/// Sizes of strings, lists or maps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// One node of a schema, ready for use.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) format: Format,
    pub(super) nullable: bool,
    pub(super) preserve_unknown: bool,
    pub(super) embedded: bool,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Additional,
    pub(super) items: Option<Box<Node>>,
    pub(super) required: Vec<String>,
    pub(super) default: Option<Value>,
    pub(super) allowed: Vec<Value>,
    pub(super) pattern: Option<Pattern>,
    pub(super) minimum: Bound,
    pub(super) maximum: Bound,
    pub(super) multiple_of: Option<f64>,
    pub(super) length: Sizes,
    pub(super) item_count: Sizes,
    pub(super) entry_count: Sizes,
    pub(super) list_type: ListType,
    pub(super) unique: bool,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
    pub(super) rules: Vec<Rule>,
    /// Whether this node or one below has a rule about changes.
    pub(super) has_transition_rules: bool,
}

impl Node {
    pub(super) fn compile(schema: &Value, path: &str) -> Result<Self, SchemaError> {
        let Some(map) = schema.as_object() else {
            return Err(fail(path, "it is not an object"));
        };
        let reader = Reader { map, path };
        let kind = reader.kind()?;
        let properties = reader.properties()?;
        let items = reader.child("items")?;
        let additional = reader.additional()?;
        let rules = reader.rules()?;
        let below = |node: &Node| node.has_transition_rules;
        let has_transition_rules = rules.iter().any(|rule| rule.is_transition)
            || properties.values().any(below)
            || items.as_deref().is_some_and(below)
            || matches!(&additional, Additional::Each(node) if below(node));
        // The two branches that people write beside int-or-string say what the type says.
        let any_of = if kind == Kind::IntOrString {
            Vec::new()
        } else {
            reader.branches("anyOf")?
        };
        Ok(Self {
            kind,
            format: reader.format(),
            nullable: reader.flag("nullable"),
            preserve_unknown: reader.flag("x-kubernetes-preserve-unknown-fields"),
            embedded: reader.flag("x-kubernetes-embedded-resource"),
            properties,
            additional,
            items,
            required: reader.strings("required"),
            default: map.get("default").cloned(),
            allowed: map
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            pattern: reader.pattern()?,
            minimum: reader.bound("minimum", "exclusiveMinimum"),
            maximum: reader.bound("maximum", "exclusiveMaximum"),
            multiple_of: map.get("multipleOf").and_then(Value::as_f64),
            length: reader.sizes("minLength", "maxLength"),
            item_count: reader.sizes("minItems", "maxItems"),
            entry_count: reader.sizes("minProperties", "maxProperties"),
            list_type: reader.list_type(),
            unique: reader.flag("uniqueItems"),
            all_of: reader.branches("allOf")?,
            any_of,
            one_of: reader.branches("oneOf")?,
            not: reader.child("not")?,
            rules,
            has_transition_rules,
        })
    }

    /// The schema of one entry, whether declared or not.
    pub(super) fn entry(&self, key: &str) -> Option<&Node> {
        match (self.properties.get(key), &self.additional) {
            (Some(node), _) => Some(node),
            (None, Additional::Each(node)) => Some(node),
            (None, Additional::Nothing | Additional::Anything) => None,
        }
    }

    /// Whether keys are data of the user rather than names of fields.
    pub(super) const fn is_map(&self) -> bool {
        !matches!(self.additional, Additional::Nothing)
    }
}

fn fail(path: &str, why: impl Into<String>) -> SchemaError {
    let path = if path.is_empty() { "the root" } else { path };
    SchemaError {
        path: path.to_owned(),
        why: why.into(),
    }
}

/// Reads the keywords of one node.
struct Reader<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
}

impl Reader<'_> {
    fn flag(&self, key: &str) -> bool {
        self.map.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.map.get(key).and_then(Value::as_str)
    }

    fn strings(&self, key: &str) -> Vec<String> {
        let list = self.map.get(key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }

    fn sizes(&self, min: &str, max: &str) -> Sizes {
        let read = |key: &str| self.map.get(key).and_then(Value::as_u64);
        Sizes {
            min: read(min),
            max: read(max),
        }
    }

    fn bound(&self, key: &str, exclusive: &str) -> Bound {
        self.map
            .get(key)
            .and_then(Value::as_f64)
            .map(|limit| (limit, self.flag(exclusive)))
    }

    fn kind(&self) -> Result<Kind, SchemaError> {
        if self.flag("x-kubernetes-int-or-string") {
            return Ok(Kind::IntOrString);
        }
        match self.text("type") {
            None | Some("") => Ok(Kind::Any),
            Some("object") => Ok(Kind::Object),
            Some("array") => Ok(Kind::Array),
            Some("string") => Ok(Kind::String),
            Some("integer") => Ok(Kind::Integer),
            Some("number") => Ok(Kind::Number),
            Some("boolean") => Ok(Kind::Boolean),
            Some(other) => Err(fail(self.path, format!("there is no type {other:?}"))),
        }
    }

    fn format(&self) -> Format {
        match self.text("format") {
            Some("int32") => Format::Int32,
            Some("date-time") => Format::DateTime,
            Some("duration") => Format::Duration,
            _ => Format::None,
        }
    }

    fn list_type(&self) -> ListType {
        match self.text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(self.strings("x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        }
    }

    fn below(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn child(&self, key: &str) -> Result<Option<Box<Node>>, SchemaError> {
        let Some(schema) = self.map.get(key) else {
            return Ok(None);
        };
        Ok(Some(Box::new(Node::compile(schema, &self.below(key))?)))
    }

    fn branches(&self, key: &str) -> Result<Vec<Node>, SchemaError> {
        let list = self.map.get(key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .map(|branch| Node::compile(branch, &self.below(key)))
            .collect()
    }

    fn properties(&self) -> Result<BTreeMap<String, Node>, SchemaError> {
        let declared = self.map.get("properties").and_then(Value::as_object);
        let compile = |(name, schema): (&String, &Value)| {
            Ok((name.clone(), Node::compile(schema, &self.below(name))?))
        };
        declared.into_iter().flatten().map(compile).collect()
    }

    fn additional(&self) -> Result<Additional, SchemaError> {
        match self.map.get("additionalProperties") {
            None | Some(Value::Bool(false)) => Ok(Additional::Nothing),
            Some(Value::Bool(true)) => Ok(Additional::Anything),
            Some(schema) => {
                let node = Node::compile(schema, &self.below("additionalProperties"))?;
                Ok(Additional::Each(Box::new(node)))
            }
        }
    }

    fn pattern(&self) -> Result<Option<Pattern>, SchemaError> {
        let compile = |text| Pattern::compile(text).map_err(|e| fail(self.path, e.to_string()));
        self.text("pattern").map(compile).transpose()
    }

    fn rules(&self) -> Result<Vec<Rule>, SchemaError> {
        let list = self
            .map
            .get("x-kubernetes-validations")
            .and_then(Value::as_array);
        let compile = |raw| Rule::compile(raw).map_err(|why| fail(self.path, why));
        list.into_iter().flatten().map(compile).collect()
    }
}
