//! What happens to an object before it is believed: recognized, completed, judged.
//!
//! *Flow.* The kind picks the schema. Unknown fields become warnings and are dropped, defaults are
//! filled in, and then the schema, its rules and the metadata are checked, all of them, so that a
//! user sees every mistake at once.
//!
//! *Guarantees.* The schemas are the ones that [`crate::crd::crds`] prints, compiled once per
//! process and kind. An admitted object decodes into its type in [`crate::types`].
//!
//! *Refuses.* Judgment that needs other objects or the provider: see [`crate::validation`].

mod metadata;
mod older;

pub use metadata::validate_metadata;
pub use older::{OlderApi, older_api};

use crate::crd::{Definition, definitions};
use crate::schema::{ERRORS_MAX, FieldError, Schema, UnknownField};
use serde_json::Value;
use std::fmt;
use std::sync::OnceLock;

/// An object that passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Admitted {
    /// What the user should know although the object is fine.
    pub warnings: Vec<Warning>,
}

/// Something odd that does no harm.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// Where.
    pub path: String,
    /// What is odd, and what was probably meant.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Why an object did not pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The value is no Kubernetes object at all.
    #[error("this is not a Kubernetes object: {why}")]
    NotAnObject {
        /// What is missing.
        why: &'static str,
    },
    /// The kind is not one of ours.
    #[error("{api_version} {kind} is not a kind that Joiner defines{}", hint_text(hint.as_ref()))]
    UnknownKind {
        /// Group and version that the object names.
        api_version: String,
        /// Kind that the object names.
        kind: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// The kind was ours, in an older version of the API.
    #[error("{}{older}", subject_text(subject))]
    OlderApi {
        /// `kind name` of the object.
        subject: String,
        /// What the kind has become.
        older: &'static OlderApi,
    },
    /// The kind is ours; the content is wrong.
    #[error("{}{}", subject_text(subject), list_text(errors))]
    Invalid {
        /// `kind name` of the object.
        subject: String,
        /// Every mistake, up to a bound.
        errors: Vec<FieldError>,
    },
}

impl Rejection {
    /// The mistakes, if the content was looked at.
    #[must_use]
    pub fn errors(&self) -> &[FieldError] {
        match self {
            Self::Invalid { errors, .. } => errors,
            Self::NotAnObject { .. } | Self::UnknownKind { .. } | Self::OlderApi { .. } => &[],
        }
    }
}

fn hint_text(hint: Option<&String>) -> String {
    hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"))
}

fn subject_text(subject: &str) -> String {
    format!("{subject}: ")
}

fn list_text(errors: &[FieldError]) -> String {
    errors
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Checks a new object, in place: unknown fields are dropped with a warning, defaults filled in.
///
/// After a rejection the object may be half completed.
pub fn admit(object: &mut Value) -> Result<Admitted, Rejection> {
    let kind = recognize(object)?;
    judge(kind, object, None)
}

/// Checks the new version of an object that exists already.
///
/// Beyond [`admit`], rules about changes apply, and parts that did not change are not judged
/// again. `old` is the stored object, already complete.
pub fn admit_update(old: &Value, new: &mut Value) -> Result<Admitted, Rejection> {
    let kind = recognize(new)?;
    judge(kind, new, Some(old))
}

/// The compiled schema of one of our kinds.
#[must_use]
pub fn schema_of(api_version: &str, kind: &str) -> Option<&'static Schema> {
    kinds()
        .iter()
        .find(|k| k.is(api_version, kind))
        .map(Kind::schema)
}

/// One of our kinds. Its schema is compiled when it is first needed.
struct Kind {
    api_version: String,
    definition: Definition,
    schema: OnceLock<Schema>,
}

impl Kind {
    fn is(&self, api_version: &str, kind: &str) -> bool {
        self.definition.kind == kind && self.api_version == api_version
    }

    fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| {
            Schema::compile(&self.definition.open_api())
                .expect("our own schemas compile: every test of this crate says so")
        })
    }
}

fn kinds() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let kind = |definition: Definition| Kind {
            api_version: format!("{}/{}", definition.group, definition.version),
            definition,
            schema: OnceLock::new(),
        };
        definitions().into_iter().map(kind).collect()
    })
}

fn recognize(object: &Value) -> Result<&'static Kind, Rejection> {
    let text = |key| {
        object
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let Some(api_version) = text("apiVersion") else {
        return Err(Rejection::NotAnObject {
            why: "apiVersion is missing",
        });
    };
    let Some(kind) = text("kind") else {
        return Err(Rejection::NotAnObject {
            why: "kind is missing",
        });
    };
    if let Some(found) = kinds().iter().find(|k| k.is(api_version, kind)) {
        return Ok(found);
    }
    if let Some(older) = older_api(api_version, kind) {
        return Err(Rejection::OlderApi {
            subject: subject(kind, object),
            older,
        });
    }
    let named = |k: &&Kind| k.definition.kind.eq_ignore_ascii_case(kind);
    let hint = kinds()
        .iter()
        .find(named)
        .map(|k| format!("{} {}", k.api_version, k.definition.kind));
    Err(Rejection::UnknownKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        hint,
    })
}

/// `kind name`, or as much of it as there is.
fn subject(kind: &str, object: &Value) -> String {
    let meta = object.get("metadata");
    let name = ["name", "generateName"]
        .iter()
        .find_map(|key| meta?.get(key)?.as_str());
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
}

fn judge(kind: &Kind, object: &mut Value, old: Option<&Value>) -> Result<Admitted, Rejection> {
    let schema = kind.schema();
    let mut warnings = metadata::complete(object);
    warnings.extend(schema.unknown_fields(object).into_iter().map(Warning::from));
    if !warnings.is_empty() {
        schema.prune(object);
    }
    schema.apply_defaults(object);
    let mut errors = validate_metadata(object, old);
    errors.extend(schema.validate(object, old));
    errors.truncate(ERRORS_MAX);
    if errors.is_empty() {
        Ok(Admitted { warnings })
    } else {
        Err(Rejection::Invalid {
            subject: subject(kind.definition.kind, object),
            errors,
        })
    }
}

impl From<UnknownField> for Warning {
    fn from(field: UnknownField) -> Self {
        Self {
            message: field.message(),
            path: field.path,
        }
    }
}
