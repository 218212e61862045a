//! Which fields the built-in kinds have, and what reading and writing them does to an object.
//!
//! A typed API server reads JSON into structs and writes the structs: unknown fields and nulls are
//! lost, empty fields are left out, some fields are always there, amounts and times are rewritten.
//! [`decode`] does the same from a table, so that what is stored is what upstream would store.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::Kind;
use crate::error::ApiError;
use crate::quantity::Quantity;
use crate::validate::report::Path;

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A string.
    Text,
    /// A boolean.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A number.
    Float,
    /// Base64 text.
    Bytes,
    /// A time in whole seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// An amount of a resource.
    Amount,
    /// A number or a text.
    IntOrText,
    /// Anything.
    Any,
    /// A struct of the table.
    Struct(usize),
    /// An optional value: its zero is kept.
    Pointer(Box<FieldType>),
    /// A list.
    List(Box<FieldType>),
    /// A map with text keys.
    Map(Box<FieldType>),
}

/// When a field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omit {
    Never,
    Empty,
    Zero,
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: FieldType,
    omit: Omit,
}

/// A struct: its fields by name.
#[derive(Clone, Debug)]
pub struct Struct {
    /// `core.PodSpec`.
    pub name: &'static str,
    /// In order of their names.
    pub fields: Vec<Field>,
    /// Fields that are there even if nobody set them.
    always: Vec<usize>,
}

impl Struct {
    /// The field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = self.fields.binary_search_by(|field| field.name.cmp(name));
        found.ok().map(|index| &self.fields[index])
    }
}

/// All structs, by index.
#[must_use]
pub fn structs() -> &'static [Struct] {
    static TABLE: OnceLock<Vec<Struct>> = OnceLock::new();
    TABLE.get_or_init(|| parse(include_str!("fields.txt")))
}

/// The struct of a kind, unless the kind is custom or not stored.
#[must_use]
pub fn root(kind: &Kind) -> Option<&'static Struct> {
    if kind.custom.is_some() {
        return None;
    }
    let package = match (kind.group.as_str(), kind.version.as_str()) {
        ("", _) => "core",
        ("apiextensions.k8s.io", _) => "apiext",
        ("autoscaling", "v1") => "autoscaling1",
        ("autoscaling", _) => "autoscaling2",
        (group, _) => group.split('.').next().unwrap_or(group),
    };
    named(package, &kind.kind)
}

/// The struct of a package by its name: `("core", "Binding")`.
#[must_use]
pub fn named(package: &str, name: &str) -> Option<&'static Struct> {
    let all = structs();
    let found = all.binary_search_by(|s| {
        let (own_package, own_name) = s.name.split_once('.').unwrap_or(("", s.name));
        own_package.cmp(package).then_with(|| own_name.cmp(name))
    });
    found.ok().map(|index| &all[index])
}

fn parse(table: &'static str) -> Vec<Struct> {
    let lines: Vec<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let key = |name: &'static str| name.split_once('.').unwrap_or(("", name));
    let mut names: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| key(line.split(' ').next().unwrap_or("")))
        .collect();
    names.sort_unstable();
    let find = |name: &'static str| names.binary_search(&key(name)).unwrap_or(0);
    let mut all: Vec<Struct> = lines.iter().map(|line| parse_struct(line, &find)).collect();
    all.sort_by(|a, b| key(a.name).cmp(&key(b.name)));
    all
}

fn parse_struct(line: &'static str, find: &dyn Fn(&'static str) -> usize) -> Struct {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let name = words.next().unwrap_or("");
    let field = |word: &'static str| {
        let (name, kind) = word.split_once('=').unwrap_or((word, "any"));
        let (kind, omit) = match kind.strip_suffix('?') {
            Some(kind) => (kind, Omit::Empty),
            None => match kind.strip_suffix('~') {
                Some(kind) => (kind, Omit::Zero),
                None => (kind, Omit::Never),
            },
        };
        let kind = parse_type(kind, find);
        Field { name, kind, omit }
    };
    let mut fields: Vec<Field> = words.map(field).collect();
    fields.sort_by(|a, b| a.name.cmp(b.name));
    let is_always = |(index, field): (usize, &Field)| field.is_always().then_some(index);
    let always = fields.iter().enumerate().filter_map(is_always).collect();
    Struct {
        name,
        fields,
        always,
    }
}

fn parse_type(text: &'static str, find: &dyn Fn(&'static str) -> usize) -> FieldType {
    let boxed = |rest| Box::new(parse_type(rest, find));
    if let Some(rest) = text.strip_prefix('*') {
        return FieldType::Pointer(boxed(rest));
    }
    if let Some(rest) = text.strip_prefix("[]") {
        return FieldType::List(boxed(rest));
    }
    if let Some(rest) = text.strip_prefix("{}") {
        return FieldType::Map(boxed(rest));
    }
    match text {
        "string" | "duration" => FieldType::Text,
        "bool" => FieldType::Bool,
        "int32" => FieldType::Int32,
        "int64" | "int" => FieldType::Int64,
        "float64" => FieldType::Float,
        "bytes" => FieldType::Bytes,
        "time" => FieldType::Time,
        "microtime" => FieldType::MicroTime,
        "quantity" => FieldType::Amount,
        "intstr" => FieldType::IntOrText,
        "any" => FieldType::Any,
        name => FieldType::Struct(find(name)),
    }
}

impl Field {
    /// Structs and their like are written even when empty, unless they say otherwise.
    fn is_always(&self) -> bool {
        match self.omit {
            Omit::Never => true,
            Omit::Zero => false,
            Omit::Empty => matches!(
                self.kind,
                FieldType::Struct(_)
                    | FieldType::Time
                    | FieldType::MicroTime
                    | FieldType::Amount
                    | FieldType::IntOrText
            ),
        }
    }
}

impl FieldType {
    /// What is written when nothing was set.
    fn zero(&self) -> Value {
        match self {
            Self::Text => Value::from(""),
            Self::Bool => Value::Bool(false),
            Self::Int32 | Self::Int64 | Self::Float | Self::IntOrText => Value::from(0),
            Self::Amount => Value::from("0"),
            Self::Bytes
            | Self::Time
            | Self::MicroTime
            | Self::Any
            | Self::Pointer(_)
            | Self::List(_)
            | Self::Map(_) => Value::Null,
            Self::Struct(index) => {
                let mut map = Map::new();
                complete(&structs()[*index], &mut map);
                Value::Object(map)
            }
        }
    }

    /// True for what an omitted field would stand for.
    fn is_empty(&self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) => true,
            (Self::Pointer(_) | Self::Struct(_) | Self::Any, _) => false,
            (Self::Time | Self::MicroTime | Self::Amount | Self::IntOrText, _) => false,
            (_, Value::String(text)) => text.is_empty(),
            (_, Value::Bool(flag)) => !flag,
            (_, Value::Number(number)) => number.as_f64() == Some(0.0),
            (_, Value::Array(list)) => list.is_empty(),
            (_, Value::Object(map)) => map.is_empty(),
        }
    }

    /// The name in messages: upstream speaks of the types of its language.
    fn word(&self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Int64 => "int64".to_owned(),
            Self::Float => "float64".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::MicroTime => "v1.MicroTime".to_owned(),
            Self::Amount => "resource.Quantity".to_owned(),
            Self::Int32 | Self::IntOrText => "int32".to_owned(),
            Self::Any => "interface {}".to_owned(),
            Self::Pointer(inner) => inner.word(),
            Self::List(inner) => format!("[]{}", inner.word()),
            Self::Map(inner) => format!("map[string]{}", inner.word()),
            Self::Struct(index) => {
                let name = structs()[*index].name;
                let (package, name) = name.split_once('.').unwrap_or(("", name));
                let version = if package == "autoscaling2" {
                    "v2"
                } else {
                    "v1"
                };
                format!("{version}.{name}")
            }
        }
    }
}

/// The status of an object that nobody has reported on, for kinds that have one.
#[must_use]
pub fn empty_status(kind: &Kind) -> Option<Value> {
    Some(root(kind)?.field("status")?.kind.zero())
}

/// Adds the fields that are always there.
fn complete(own: &Struct, map: &mut Map<String, Value>) {
    for index in &own.always {
        let field = &own.fields[*index];
        if !map.contains_key(field.name) {
            map.insert(field.name.to_owned(), field.kind.zero());
        }
    }
}

/// Reads an object of a built-in kind as its struct and writes it back, in place. Returns what
/// `fieldValidation` is about: `unknown field "spec.foo"`, with the field removed.
///
/// Objects of other kinds are left as they are.
///
/// # Errors
/// 400 for a value of the wrong type.
pub fn decode(kind: &Kind, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let Some(own) = root(kind) else {
        return Ok(Vec::new());
    };
    decode_as(own, &kind.kind, &kind.version, object)
}

/// [`decode`] for a struct that is no kind of its own: the body of a binding or a scale.
///
/// # Errors
/// 400 for a value of the wrong type.
pub fn decode_as(
    own: &'static Struct,
    kind: &str,
    version: &str,
    object: &mut Value,
) -> Result<Vec<String>, ApiError> {
    let mut decoder = Decoder {
        unknown: Vec::new(),
        error: None,
    };
    match object {
        Value::Object(map) => decoder.record(own, map, &Path::Root),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            decoder.error = Some(format!(
                "json: cannot unmarshal {} into Go value of type {version}.{kind}",
                word_of(object)
            ));
        }
    }
    match decoder.error {
        None => Ok(decoder.unknown),
        Some(why) => Err(undecodable(kind, version, &why)),
    }
}

/// The refusal of a request with `fieldValidation=Strict`.
#[must_use]
pub fn strict_error(kind: &Kind, unknown: &[String]) -> ApiError {
    let why = format!("strict decoding error: {}", unknown.join(", "));
    undecodable(&kind.kind, &kind.version, &why)
}

fn undecodable(kind: &str, version: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

const fn word_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What was found on the way.
struct Decoder {
    unknown: Vec<String>,
    /// The first one; the rest is not told, as upstream.
    error: Option<String>,
}

/// A field on the way down, for messages.
#[derive(Clone, Copy)]
struct Place<'p> {
    own: &'static Struct,
    /// Where the field is.
    field: &'p Path<'p>,
    /// Where we are in the field's value.
    path: &'p Path<'p>,
}

impl Decoder {
    fn record(&mut self, own: &'static Struct, map: &mut Map<String, Value>, path: &Path<'_>) {
        map.retain(|key, value| {
            let Some(field) = own.field(key) else {
                let at = Path::Field(path, key);
                self.unknown.push(format!("unknown field \"{at}\""));
                return false;
            };
            if !value.is_null() {
                let at = Path::Field(path, field.name);
                let place = Place {
                    own,
                    field: &at,
                    path: &at,
                };
                self.value(&field.kind, value, place);
            }
            match field.omit {
                // An empty list is stored as none.
                Omit::Never if field.kind.is_empty(value) && keeps_null(&field.kind) => {
                    *value = Value::Null;
                    true
                }
                Omit::Never => !value.is_null(),
                Omit::Empty | Omit::Zero => !field.kind.is_empty(value),
            }
        });
        complete(own, map);
    }

    fn value(&mut self, kind: &FieldType, value: &mut Value, place: Place<'_>) {
        match (kind, &mut *value) {
            (FieldType::Any, _)
            | (FieldType::Text, Value::String(_))
            | (FieldType::Bool, Value::Bool(_))
            | (FieldType::Float, Value::Number(_)) => {}
            (FieldType::Int32 | FieldType::Int64, Value::Number(number)) => {
                let fits = number
                    .as_i64()
                    .is_some_and(|n| *kind == FieldType::Int64 || i32::try_from(n).is_ok());
                if !fits {
                    let found = format!("number {number}");
                    self.mismatch(&found, kind, place);
                }
            }
            (FieldType::IntOrText, Value::Number(number)) if number.is_i64() => {}
            (FieldType::IntOrText, Value::String(_)) => {}
            (FieldType::Bytes, Value::String(text)) => self.bytes(text),
            (FieldType::Time, Value::String(text)) => self.time(text, "%Y-%m-%dT%H:%M:%SZ"),
            (FieldType::MicroTime, Value::String(text)) => {
                self.time(text, "%Y-%m-%dT%H:%M:%S.%6fZ");
            }
            (FieldType::Amount, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {
                self.amount(value, false);
            }
            (FieldType::Pointer(inner), _) => self.value(inner, value, place),
            (FieldType::Struct(index), Value::Object(map)) => {
                self.record(&structs()[*index], map, place.path);
            }
            (FieldType::List(inner), Value::Array(list)) => self.list(inner, list, place),
            (FieldType::Map(inner), Value::Object(map)) => self.map(inner, map, place),
            (_, other) => {
                let found = word_of(other);
                self.mismatch(found, kind, place);
            }
        }
    }

    fn list(&mut self, inner: &FieldType, list: &mut [Value], place: Place<'_>) {
        for (index, item) in list.iter_mut().enumerate() {
            if item.is_null() {
                *item = inner.zero();
                continue;
            }
            let at = Path::Index(place.path, index);
            self.value(inner, item, Place { path: &at, ..place });
        }
    }

    fn map(&mut self, inner: &FieldType, map: &mut Map<String, Value>, place: Place<'_>) {
        for (key, item) in map.iter_mut() {
            if item.is_null() {
                *item = inner.zero();
                continue;
            }
            if *inner == FieldType::Amount {
                self.amount(item, true);
                continue;
            }
            let at = Path::Field(place.path, key);
            self.value(inner, item, Place { path: &at, ..place });
        }
    }

    /// Amounts are rewritten; those in resource lists are rounded to thousandths, too.
    fn amount(&mut self, value: &mut Value, round: bool) {
        let text = match &*value {
            Value::String(text) => text.trim().to_owned(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value.to_string(),
        };
        match Quantity::parse(&text) {
            Ok(amount) if round => *value = Value::from(amount.round_to_millis().to_string()),
            Ok(amount) => *value = Value::from(amount.to_string()),
            Err(why) => self.fail(why.to_string()),
        }
    }

    fn time(&mut self, text: &mut String, format: &str) {
        // Go wants a T and a zone; so does this reader.
        match text.parse::<jiff::Timestamp>() {
            Ok(at) => *text = at.strftime(format).to_string(),
            Err(_) => self.fail(format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \
                 \"2006\""
            )),
        }
    }

    fn bytes(&mut self, text: &str) {
        let sign = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
        let body = text.trim_end_matches('=');
        let bad = body
            .bytes()
            .position(|b| !sign(b) && b != b'\n' && b != b'\r');
        let bad = match bad {
            Some(at) => Some(at),
            // What is left over is told by where its group of four starts.
            None if !text.len().is_multiple_of(4) || text.len() - body.len() > 2 => {
                Some(body.len() - body.len() % 4)
            }
            None => None,
        };
        if let Some(at) = bad {
            self.fail(format!("illegal base64 data at input byte {at}"));
        }
    }

    fn mismatch(&mut self, found: &str, kind: &FieldType, place: Place<'_>) {
        let name = place.own.name;
        let (_, name) = name.split_once('.').unwrap_or(("", name));
        let path = without_positions(place.field);
        self.fail(format!(
            "json: cannot unmarshal {found} into Go struct field {name}.{path} of type {}",
            kind.word()
        ));
    }

    fn fail(&mut self, why: String) {
        self.error.get_or_insert(why);
    }
}

/// Lists and the like say null when they must say something.
const fn keeps_null(kind: &FieldType) -> bool {
    matches!(
        kind,
        FieldType::List(_) | FieldType::Map(_) | FieldType::Pointer(_) | FieldType::Any
    )
}

/// The fields on the way to a field, without positions in lists.
fn without_positions(at: &Path<'_>) -> String {
    match at {
        Path::Root => String::new(),
        Path::Index(above, _) => without_positions(above),
        Path::Field(above, name) | Path::Key(above, name) => match without_positions(above) {
            start if start.is_empty() => (*name).to_owned(),
            start => format!("{start}.{name}"),
        },
    }
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
