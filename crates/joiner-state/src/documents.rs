//! Single objects, not yet typed: what they say they are, and how they are read.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::error::{Place, ReadError};
use crate::unique::{self, UniqueKeys};
use crate::wire::{Named, Text, TypeMeta, text};
use crate::wording;

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
        let mut error = ReadError::new(wording::problem(&inner)).at(within(place, &inner));
        if path != "." {
            error = error.field(path);
        }
        error.of(self.title())
    }

    /// Refuses an object that has a key twice. YAML was looked through when it was read.
    pub(crate) fn check_keys(self, place: &Place) -> Result<(), ReadError> {
        match self {
            Self::Json(text) if unique::suspect(text) => {
                self.parse::<UniqueKeys>(place).map(|_| ())
            }
            Self::Json(_) | Self::Value(_) => Ok(()),
        }
    }

    /// True for an element of a catalog file, which is a common thing to mix up with manifests.
    pub(crate) fn is_instance_type(self) -> bool {
        let offers = |entry: &TypeMeta<'_>| entry.offerings.is_some();
        match self {
            Self::Json(text) => serde_json::from_str(text).is_ok_and(|entry| offers(&entry)),
            Self::Value(value) => TypeMeta::deserialize(value).is_ok_and(|entry| offers(&entry)),
        }
    }

    /// Kind and name for messages, as far as they can be made out.
    pub(crate) fn title(self) -> String {
        let header = self.quick_header().unwrap_or_default();
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

    /// Version and kind.
    pub(crate) fn header(self, place: &Place) -> Result<Header, ReadError> {
        self.quick_header()
            .map_err(|_| self.explain::<TypeMeta<'_>>(place))
    }

    /// Version and kind; reading stops as soon as both are known.
    fn quick_header(self) -> Result<Header, serde_json::Error> {
        let mut header = Header::default();
        let outcome = match self {
            Self::Json(text) => {
                let mut deserializer = serde_json::Deserializer::from_str(text);
                deserializer.deserialize_map(HeaderVisitor(&mut header))
            }
            Self::Value(value) => value.deserialize_map(HeaderVisitor(&mut header)),
        };
        match outcome {
            Err(_) if !header.kind.is_empty() && !header.api_version.is_empty() => Ok(header),
            other => other.map(|()| header),
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
