//! From text to single objects: JSON and YAML, streams, arrays, lists.

use std::fmt;

use joiner_model::Name;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::error::{Place, ReadError};
use crate::json::TopLevel;
use crate::wire::{Named, Text, text};
use crate::yaml;

/// Lists within lists deeper than this are an error.
const LIST_DEPTH_MAX: usize = 8;

/// A piece of input with the name to call it by in messages.
#[derive(Clone, Debug)]
pub struct Source {
    /// Usually a file name, or `-`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// A source of this name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
        }
    }
}

/// What an object says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) api_version: String,
    pub(crate) kind: String,
}

/// One object, not yet typed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Document<'a> {
    /// JSON text of exactly this object.
    Json(&'a str),
    /// An object read from YAML.
    Value(&'a Value),
}

/// Takes objects one by one.
pub(crate) trait Sink {
    /// Takes one object.
    fn accept(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError>;
}

impl<'a> Document<'a> {
    /// The object as a typed value. The error names the field, and the place within the object
    /// for JSON; the slow search for the path starts only when something is wrong.
    pub(crate) fn parse<T: Deserialize<'a>>(self, place: &Place) -> Result<T, ReadError> {
        let quick = match self {
            Self::Json(text) => serde_json::from_str(text),
            Self::Value(value) => T::deserialize(value),
        };
        quick.map_err(|_| self.explain::<T>(place))
    }

    fn explain<T: Deserialize<'a>>(self, place: &Place) -> ReadError {
        let found = match self {
            Self::Json(text) => {
                let mut deserializer = serde_json::Deserializer::from_str(text);
                serde_path_to_error::deserialize::<_, T>(&mut deserializer).err()
            }
            Self::Value(value) => serde_path_to_error::deserialize::<_, T>(value).err(),
        };
        let Some(found) = found else {
            return ReadError::new("the object cannot be read").at(place.clone());
        };
        let path = found.path().to_string();
        let inner = found.into_inner();
        let mut error = ReadError::new(bare_message(&inner)).at(within(place, &inner));
        if path != "." {
            error = error.field(path);
        }
        error.of(self.title())
    }

    /// Kind and name for messages, as far as they can be made out.
    pub(crate) fn title(self) -> String {
        let header = self.header().unwrap_or_default();
        let named: Named<'_> = match self {
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
            Self::Value(value) => Named::deserialize(value).unwrap_or_default(),
        };
        let meta = named.metadata.unwrap_or_default();
        let kind = match header.kind.as_str() {
            "" => "object",
            kind => kind,
        };
        let name = match text(&meta.name) {
            "" => text(&meta.generate_name),
            name => name,
        };
        match (text(&meta.namespace), name) {
            (_, "") => kind.to_owned(),
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }

    /// Version and kind; reading stops as soon as both are known.
    pub(crate) fn header(self) -> Result<Header, ReadError> {
        let mut header = Header::default();
        let outcome = match self {
            Self::Json(text) => {
                let mut deserializer = serde_json::Deserializer::from_str(text);
                deserializer.deserialize_map(HeaderVisitor(&mut header))
            }
            Self::Value(value) => value.deserialize_map(HeaderVisitor(&mut header)),
        };
        match outcome {
            _ if !header.kind.is_empty() && !header.api_version.is_empty() => Ok(header),
            Ok(()) => Ok(header),
            Err(error) => Err(ReadError::new(bare_message(&error))),
        }
    }
}

struct HeaderVisitor<'h>(&'h mut Header);

impl<'de> Visitor<'de> for HeaderVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "apiVersion" => self.0.api_version = map.next_value::<Text<'de>>()?.to_string(),
                "kind" => self.0.kind = map.next_value::<Text<'de>>()?.to_string(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if !self.0.kind.is_empty() && !self.0.api_version.is_empty() {
                return Err(A::Error::custom("known"));
            }
        }
        Ok(())
    }
}

/// Feeds every object of `source` to `sink`, lists taken apart.
pub(crate) fn feed(source: &Source, sink: &mut dyn Sink) -> Result<(), ReadError> {
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let name = Name::from(source.name.as_str());
    let mut line = 1;
    let mut parts = yaml::parts(text).peekable();
    while let Some(part) = parts.next() {
        let body = part.strip_prefix("---").unwrap_or(part);
        let reader = Reader {
            source: &name,
            line,
            text: body,
        };
        match body.trim_start().as_bytes().first() {
            None => {}
            Some(b'{' | b'[') => reader.json(sink)?,
            Some(_) => reader.yaml(sink)?,
        }
        if parts.peek().is_some() {
            line += newlines(part);
        }
    }
    Ok(())
}

/// Reads one part of a source.
struct Reader<'a> {
    source: &'a Name,
    /// The line on which the part starts.
    line: usize,
    text: &'a str,
}

/// Follows a position through a text, so that lines are counted once.
struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    line_start: usize,
}

impl Cursor<'_> {
    fn advance(&mut self, offset: usize) -> (usize, usize) {
        let passed = self.text.as_bytes().get(self.offset..offset);
        if let Some(passed) = passed {
            let lines = passed.iter().filter(|b| **b == b'\n').count();
            self.line += lines;
            if lines > 0 {
                let last = passed.iter().rposition(|b| *b == b'\n').unwrap_or(0);
                self.line_start = self.offset + last + 1;
            }
            self.offset = offset;
        }
        (self.line, self.offset - self.line_start + 1)
    }
}

impl<'a> Reader<'a> {
    fn place(&self, line: usize, column: Option<usize>) -> Place {
        Place {
            source: self.source.clone(),
            line,
            column,
        }
    }

    fn json(&self, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let mut stream = serde_json::Deserializer::from_str(self.text).into_iter::<TopLevel<'a>>();
        let mut cursor = Cursor {
            text: self.text,
            offset: 0,
            line: self.line,
            line_start: 0,
        };
        loop {
            let start = stream.byte_offset();
            let Some(next) = stream.next() else {
                return Ok(());
            };
            let top = match next {
                Ok(top) => top,
                Err(_) if start == 0 && self.is_flow_yaml() => return self.yaml(sink),
                Err(error) => return Err(self.malformed(&error)),
            };
            let whole = self.text[start..stream.byte_offset()].trim();
            self.take_json(whole, top, &mut cursor, sink)?;
        }
    }

    fn malformed(&self, error: &serde_json::Error) -> ReadError {
        let line = self.line + error.line().saturating_sub(1);
        ReadError::new(format!("malformed JSON: {}", bare_message(error)))
            .at(self.place(line, Some(error.column())))
    }

    /// True when what looks like JSON is YAML that happens to start with a brace.
    fn is_flow_yaml(&self) -> bool {
        !self.source.ends_with(".json") && yaml::parse(self.text).is_ok()
    }

    fn take_json(
        &self,
        whole: &'a str,
        top: TopLevel<'a>,
        cursor: &mut Cursor<'a>,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        match top {
            TopLevel::Array(items) => {
                for item in items {
                    self.json_item(item.get(), &Header::default(), cursor, sink, 1)?;
                }
            }
            TopLevel::Object { header, items } => match (list_of(&header), items) {
                (Some(implied), Some(items)) => {
                    for item in items {
                        self.json_item(item.get(), &implied, cursor, sink, 1)?;
                    }
                }
                _ => {
                    let place = self.json_place(whole, cursor);
                    self.offer(&header, Document::Json(whole), &place, sink)?;
                }
            },
        }
        Ok(())
    }

    fn json_item(
        &self,
        item: &'a str,
        implied: &Header,
        cursor: &mut Cursor<'a>,
        sink: &mut dyn Sink,
        depth: usize,
    ) -> Result<(), ReadError> {
        let place = self.json_place(item, cursor);
        let document = Document::Json(item);
        let header = completed(document.header().map_err(|e| e.at(place.clone()))?, implied);
        let Some(implied) = list_of(&header) else {
            return self.offer(&header, document, &place, sink);
        };
        if depth >= LIST_DEPTH_MAX {
            return Err(ReadError::new("lists are nested too deeply").at(place));
        }
        if let TopLevel::Object {
            items: Some(items), ..
        } = document.parse(&place)?
        {
            for item in items {
                self.json_item(item.get(), &implied, cursor, sink, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Where `item`, a slice of this part, starts.
    fn json_place(&self, item: &str, cursor: &mut Cursor<'_>) -> Place {
        let offset = (item.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let (line, column) = cursor.advance(offset);
        self.place(line, Some(column))
    }

    fn yaml(&self, sink: &mut dyn Sink) -> Result<(), ReadError> {
        let place = self.place(self.line + yaml::lead(self.text), None);
        let value = yaml::parse(self.text).map_err(|error| {
            let line = self.line + error.line.unwrap_or(1).saturating_sub(1);
            ReadError::new(format!("malformed YAML: {}", error.message))
                .at(self.place(line, error.column))
        })?;
        self.yaml_item(&value, &Header::default(), &place, sink, 0)
    }

    fn yaml_item(
        &self,
        value: &Value,
        implied: &Header,
        place: &Place,
        sink: &mut dyn Sink,
        depth: usize,
    ) -> Result<(), ReadError> {
        if depth >= LIST_DEPTH_MAX {
            return Err(ReadError::new("lists are nested too deeply").at(place.clone()));
        }
        if value.is_null() {
            return Ok(());
        }
        if let (Some(items), 0) = (value.as_array(), depth) {
            for item in items {
                self.yaml_item(item, &Header::default(), place, sink, depth + 1)?;
            }
            return Ok(());
        }
        let document = Document::Value(value);
        let header = completed(document.header().map_err(|e| e.at(place.clone()))?, implied);
        match (list_of(&header), value.get("items")) {
            (Some(implied), Some(Value::Array(items))) => {
                for item in items {
                    self.yaml_item(item, &implied, place, sink, depth + 1)?;
                }
                Ok(())
            }
            (Some(_), None | Some(Value::Null)) => Ok(()),
            (Some(_), Some(_)) => {
                let error = ReadError::new("items is not a list").at(place.clone());
                Err(error.of(document.title()))
            }
            (None, _) => self.offer(&header, document, place, sink),
        }
    }

    fn offer(
        &self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let problem = match (header.kind.as_str(), header.api_version.as_str()) {
            ("", _) => "there is no kind; is this a Kubernetes object?",
            (_, "") => "there is no apiVersion; is this a Kubernetes object?",
            _ => return sink.accept(header, document, place),
        };
        let error = ReadError::new(problem).at(place.clone());
        Err(error.of(document.title()))
    }
}

/// For a list, what its items are when they do not say so themselves.
fn list_of(header: &Header) -> Option<Header> {
    if header.kind == "List" {
        return Some(Header::default());
    }
    let kind = header.kind.strip_suffix("List")?;
    Some(Header {
        api_version: header.api_version.clone(),
        kind: kind.to_owned(),
    })
}

fn completed(mut header: Header, implied: &Header) -> Header {
    if header.kind.is_empty() {
        header.kind.clone_from(&implied.kind);
    }
    if header.api_version.is_empty() {
        header.api_version.clone_from(&implied.api_version);
    }
    header
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}

/// The message without the position that is shown elsewhere.
fn bare_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

/// The place of an error inside an object that starts at `start`.
fn within(start: &Place, error: &serde_json::Error) -> Place {
    let column = match (error.line(), start.column) {
        (0, column) => column,
        (1, Some(column)) => Some(column + error.column().saturating_sub(1)),
        (_, Some(_)) => Some(error.column()),
        (_, None) => None,
    };
    Place {
        source: start.source.clone(),
        line: start.line + error.line().saturating_sub(1),
        column,
    }
}
