//! Reads the bodies that some clients send as protobuf, `kubectl create deployment` among them, as the
//! JSON that they stand for.
//!
//! Types come from the table of fields, numbers from a table beside it; what neither knows is skipped.

mod message;
mod numbers;
mod wire;

use serde_json::{Map, Value};

use crate::kinds::fields::{self, Struct};
use wire::{Malformed, Reader};

/// The media type of such bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Every body starts with this.
const MAGIC: &[u8] = b"k8s\0";

/// The object in a body, with its `apiVersion` and `kind`.
///
/// # Errors
/// When the body is cut short or is no protobuf, or when its kind is not known.
pub fn decode(body: &[u8]) -> Result<Value, Unreadable> {
    let unknown = |why: &str| Unreadable {
        given: String::new(),
        why: why.to_owned(),
    };
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        return Err(unknown(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ));
    };
    if envelope.is_empty() {
        return Err(unknown("empty body"));
    }
    let envelope = Envelope::read(envelope).map_err(|Malformed(why)| unknown(why))?;
    let bad = |why: &str| Unreadable {
        given: format!("{} in version {:?}", envelope.kind, envelope.version()),
        why: why.to_owned(),
    };
    let Some(of) = envelope.struct_of() else {
        return Err(bad(&format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            envelope.kind, envelope.api_version
        )));
    };
    let mut object = envelope.object(of).map_err(|Malformed(why)| bad(why))?;
    object.insert("apiVersion".to_owned(), Value::from(envelope.api_version));
    object.insert("kind".to_owned(), Value::from(envelope.kind));
    let mut object = Value::Object(object);
    // The wire has a value for every field; JSON leaves out the empty ones.
    let read = fields::decode_as(of, envelope.kind, envelope.version(), &mut object);
    read.map_err(|error| bad(&error.message))?;
    Ok(object)
}

/// Why a body is no object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What the body says it is, `Pod in version "v1"`; empty when it does not come to that.
    pub given: String,
    /// What is wrong with it.
    pub why: String,
}

/// What is around every object.
#[derive(Default)]
struct Envelope<'b> {
    api_version: &'b str,
    kind: &'b str,
    content_type: &'b str,
    raw: &'b [u8],
}

impl<'b> Envelope<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, Malformed> {
        let mut envelope = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, value)) = reader.next_field()? {
            match number {
                1 => {
                    let mut names = Reader::new(value.bytes()?);
                    while let Some((number, value)) = names.next_field()? {
                        match number {
                            1 => envelope.api_version = value.text()?,
                            2 => envelope.kind = value.text()?,
                            _ => {}
                        }
                    }
                }
                2 => envelope.raw = value.bytes()?,
                4 => envelope.content_type = value.text()?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn object(&self, of: &'static Struct) -> Result<Map<String, Value>, Malformed> {
        if self.content_type == "application/json" {
            let read = serde_json::from_slice(self.raw);
            return read.map_err(|_| Malformed("the JSON in it cannot be read"));
        }
        message::read(of, self.raw)
    }

    fn version(&self) -> &'b str {
        self.api_version.rsplit('/').next().unwrap_or("")
    }

    fn struct_of(&self) -> Option<&'static Struct> {
        let (group, version) = match self.api_version.split_once('/') {
            Some(parts) => parts,
            None => ("", self.api_version),
        };
        let package = match (group, version) {
            // Options go under the version of whatever they are about.
            _ if self.kind == "DeleteOptions" => "meta",
            ("", "v1") => "core",
            ("autoscaling", "v1") => "autoscaling1",
            ("autoscaling", "v2") => "autoscaling2",
            (group, "v1") => group.split('.').next().unwrap_or(group),
            _ => return None,
        };
        fields::named(package, self.kind)
    }
}

#[cfg(test)]
mod tests;
