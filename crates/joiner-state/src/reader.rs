//! From text to single objects: JSON and YAML, streams, arrays, lists.

use joiner_model::Name;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::documents::{Document, Header, Sink, Source};
use crate::error::{Place, ReadError};
use crate::json::{Items, TopLevel};
use crate::wording;
use crate::yaml::{self, YamlError};

/// Lists within lists deeper than this are an error.
const LIST_DEPTH_MAX: usize = 8;
const TOO_DEEP: &str = "lists are nested too deeply";

/// Feeds every object of `source` to `sink`, lists taken apart. False when there is nothing in it,
/// not even an empty list.
pub(crate) fn feed(source: &Source, sink: &mut dyn Sink) -> Result<bool, ReadError> {
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let name = Name::from(source.name.as_str());
    let (mut line, mut any) = (1, false);
    let mut parts = yaml::parts(text).peekable();
    while let Some(part) = parts.next() {
        let body = part.strip_prefix("---").unwrap_or(part);
        let reader = Reader {
            source: &name,
            line,
            text: body,
        };
        any |= match body.trim_start().as_bytes().first() {
            None => false,
            Some(b'{' | b'[') if !reader.is_flow_yaml() => reader.json(sink)?,
            Some(_) => reader.yaml(sink)?,
        };
        if parts.peek().is_some() {
            line += newlines(part);
        }
    }
    Ok(any)
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

/// What items of a list are when they do not say so themselves, and how deep the list is.
#[derive(Clone, Copy)]
struct Within<'h> {
    implied: &'h Header,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn place(&self, line: usize, column: Option<usize>) -> Place {
        Place {
            source: self.source.clone(),
            line,
            column,
        }
    }

    fn json(&self, sink: &mut dyn Sink) -> Result<bool, ReadError> {
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
                return Ok(true);
            };
            let top = match next {
                Ok(top) => top,
                Err(_) if start == 0 && self.reads_as_yaml() => return self.yaml(sink),
                Err(error) => return Err(self.malformed(&error)),
            };
            let whole = self.text[start..stream.byte_offset()].trim();
            self.take_json(whole, top, &mut cursor, sink)?;
        }
    }

    fn malformed(&self, error: &serde_json::Error) -> ReadError {
        let line = self.line + error.line().saturating_sub(1);
        let problem = match error.classify() {
            serde_json::error::Category::Data => wording::problem(error),
            serde_json::error::Category::Io
            | serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof => {
                format!("malformed JSON: {}", wording::problem(error))
            }
        };
        ReadError::new(problem).at(self.place(line, Some(error.column().max(1))))
    }

    /// True when what starts like JSON is YAML at first sight.
    fn is_flow_yaml(&self) -> bool {
        !self.source.ends_with(".json") && yaml::is_flow(self.text)
    }

    /// True when what looks like JSON and is not is YAML.
    fn reads_as_yaml(&self) -> bool {
        !self.source.ends_with(".json") && yaml::parse(self.text).is_ok()
    }

    fn take_json(
        &self,
        whole: &'a str,
        top: TopLevel<'a>,
        cursor: &mut Cursor<'a>,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let place = self.json_place(whole, cursor);
        let (items, implied) = match top {
            TopLevel::Array(items) => (items, Header::default()),
            TopLevel::Object {
                header,
                items,
                twice,
            } => match self.json_list(&header, items, (whole, twice), &place)? {
                Some(list) => list,
                None => return offer(&header, Document::Json(whole), &place, sink),
            },
        };
        let within = Within {
            implied: &implied,
            depth: 1,
        };
        for (ix, item) in items.into_iter().enumerate() {
            self.json_item((ix, item.get()), within, cursor, sink)?;
        }
        Ok(())
    }

    fn json_item(
        &self,
        (ix, item): (usize, &'a str),
        within: Within<'_>,
        cursor: &mut Cursor<'a>,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let place = self.json_place(item, cursor);
        let document = Document::Json(item);
        let header = item_header(document, ix, within.implied, &place)?;
        if list_of(&header).is_none() {
            return offer(&header, document, &place, sink);
        }
        if within.depth >= LIST_DEPTH_MAX {
            return Err(ReadError::new(TOO_DEEP).at(place));
        }
        let TopLevel::Object { items, twice, .. } = document.parse(&place)? else {
            return Err(not_a_list(document, &place));
        };
        let Some((items, implied)) = self.json_list(&header, items, (item, twice), &place)? else {
            return offer(&header, document, &place, sink);
        };
        let within = Within {
            implied: &implied,
            depth: within.depth + 1,
        };
        for (ix, item) in items.into_iter().enumerate() {
            self.json_item((ix, item.get()), within, cursor, sink)?;
        }
        Ok(())
    }

    /// The items of a list, and what they are when they do not say so themselves; `None` for an
    /// object that only sounds like a list.
    fn json_list(
        &self,
        header: &Header,
        items: Items<'a>,
        (whole, twice): (&str, bool),
        place: &Place,
    ) -> Result<Option<(Vec<&'a RawValue>, Header)>, ReadError> {
        let Some(implied) = list_of(header) else {
            return Ok(None);
        };
        if twice {
            Document::Json(whole).check_keys(place)?;
        }
        match items {
            Items::List(items) => Ok(Some((items, implied))),
            Items::Absent if header.kind != "List" => Ok(None),
            Items::Absent | Items::Other => Err(not_a_list(Document::Json(whole), place)),
        }
    }

    /// Where `item`, a slice of this part, starts.
    fn json_place(&self, item: &str, cursor: &mut Cursor<'_>) -> Place {
        let offset = (item.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let (line, column) = cursor.advance(offset);
        self.place(line, Some(column))
    }

    fn yaml(&self, sink: &mut dyn Sink) -> Result<bool, ReadError> {
        let place = self.place(self.line + yaml::lead(self.text), None);
        let value = yaml::parse(self.text).map_err(|error| self.unusable(error))?;
        if value.is_null() {
            return Ok(false);
        }
        let none = Header::default();
        let within = Within {
            implied: &none,
            depth: 1,
        };
        if let Value::Array(items) = &value {
            self.yaml_items(items, within, &place, sink)?;
            return Ok(true);
        }
        let document = Document::Value(&value);
        let header = document.header(&place)?;
        self.yaml_object(&header, document, within, &place, sink)?;
        Ok(true)
    }

    fn unusable(&self, error: YamlError) -> ReadError {
        let line = self.line + error.line.unwrap_or(1).saturating_sub(1);
        let place = self.place(line, error.column);
        match error.spot {
            Some(spot) => {
                let (object, field) = spot.named();
                ReadError::new(error.message)
                    .field(field)
                    .of(object)
                    .at(place)
            }
            None => ReadError::new(format!("malformed YAML: {}", error.message)).at(place),
        }
    }

    fn yaml_items(
        &self,
        items: &[Value],
        within: Within<'_>,
        place: &Place,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        for (ix, item) in items.iter().enumerate() {
            let document = Document::Value(item);
            let header = item_header(document, ix, within.implied, place)?;
            self.yaml_object(&header, document, within, place, sink)?;
        }
        Ok(())
    }

    fn yaml_object(
        &self,
        header: &Header,
        document: Document<'_>,
        within: Within<'_>,
        place: &Place,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let items = match document {
            Document::Value(value) => value.get("items"),
            Document::Json(_) => None,
        };
        let Some(implied) = list_of(header) else {
            return offer(header, document, place, sink);
        };
        let is_list = header.kind == "List";
        match items {
            Some(Value::Array(_)) if within.depth >= LIST_DEPTH_MAX => {
                Err(ReadError::new(TOO_DEEP).at(place.clone()))
            }
            Some(Value::Array(items)) => {
                let within = Within {
                    implied: &implied,
                    depth: within.depth + 1,
                };
                self.yaml_items(items, within, place, sink)
            }
            Some(Value::Null) => Ok(()),
            None if !is_list => offer(header, document, place, sink),
            _ => Err(not_a_list(document, place)),
        }
    }
}

/// Hands an object on that says what it is.
fn offer(
    header: &Header,
    document: Document<'_>,
    place: &Place,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let problem = match (header.kind.as_str(), header.api_version.as_str()) {
        ("", _) if document.is_instance_type() => {
            "this is an instance type, not a Kubernetes object; give files of instance types with \
             --instance-types"
        }
        ("", _) => "there is no kind; is this a Kubernetes object?",
        (_, "") => "there is no apiVersion; is this a Kubernetes object?",
        _ => {
            document.check_keys(place)?;
            return sink.accept(header, document, place);
        }
    };
    let error = ReadError::new(problem).at(place.clone());
    Err(error.of(document.title()))
}

fn not_a_list(document: Document<'_>, place: &Place) -> ReadError {
    let error = ReadError::new("must be a list of objects").field("items");
    error.of(document.title()).at(place.clone())
}

/// Version and kind of an item, where the list may speak for it.
fn item_header(
    document: Document<'_>,
    ix: usize,
    implied: &Header,
    place: &Place,
) -> Result<Header, ReadError> {
    let mut header = document
        .header(place)
        .map_err(|error| error.below(&format!("items[{ix}]")))?;
    if header.kind.is_empty() {
        header.kind.clone_from(&implied.kind);
    }
    if header.api_version.is_empty() {
        header.api_version.clone_from(&implied.api_version);
    }
    Ok(header)
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

fn newlines(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}
