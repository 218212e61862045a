//! The same object under another version.

use joiner_machinery::Kind;
use joiner_machinery::kinds::convert;
use serde_json::{Value, json};

use crate::store::packed;

/// An object as a client of `kind` wants to see it.
#[must_use]
pub fn shown(kind: &Kind, stored: &Value) -> Value {
    let mut object = stored.clone();
    packed::unpack(&mut object);
    convert::from_stored(kind, &mut object);
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    object
}

/// An object as it is stored.
#[must_use]
pub fn stored(kind: &Kind, mut object: Value) -> Value {
    convert::to_stored(kind, &mut object);
    object
}
