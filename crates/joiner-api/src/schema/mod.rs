//! Structural schemas: what an API server does to a custom object, as a library.
//!
//! *Flow.* [`Schema::compile`] reads the `openAPIV3Schema` of any CustomResourceDefinition once:
//! regular expressions and CEL programs are built there. Then, per object and in this order:
//! [`Schema::prune`] or [`Schema::unknown_fields`], [`Schema::apply_defaults`],
//! [`Schema::validate`].
//!
//! *Guarantees.* Nothing here panics on any object. Every violation is reported with the path of
//! its field, up to [`ERRORS_MAX`]. CEL rules of a value are skipped while the value itself is
//! malformed, so one mistake is told once.
//!
//! *Refuses.* `$ref`, and schemas without a type where the API server wants one: definitions are
//! taken as already accepted by an API server.

mod cel;
mod check;
mod defaults;
mod node;
mod path;
mod pattern;
mod unknown;

use node::Node;
use path::Path;
use serde_json::Value;
use std::fmt;

/// No more violations than this are collected for one object.
pub const ERRORS_MAX: usize = 20;

/// One violation, at one field.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FieldError {
    /// Where: `spec.template.spec.requirements[0].values`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// The offending value as JSON, when it is short enough to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        match &self.value {
            Some(value) => write!(f, " (got {value})"),
            None => Ok(()),
        }
    }
}

/// A field that the schema does not know.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct UnknownField {
    /// Where it was found.
    pub path: String,
    /// The field that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl UnknownField {
    /// What to tell the user, without the path.
    #[must_use]
    pub fn message(&self) -> String {
        match &self.hint {
            Some(hint) => format!("unknown field, it has no effect; did you mean {hint}?"),
            None => "unknown field, it has no effect".to_owned(),
        }
    }
}

/// Why a schema cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("cannot compile the schema at {path}: {why}")]
pub struct SchemaError {
    /// Where in the schema.
    pub path: String,
    /// What is wrong there.
    pub why: String,
}

/// A compiled schema: build once, use for every object.
#[derive(Debug)]
pub struct Schema {
    root: Node,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`.
    pub fn compile(open_api: &Value) -> Result<Self, SchemaError> {
        Ok(Self {
            root: Node::compile(open_api, "")?,
        })
    }

    /// Fills in what the user left out, after dropping nulls where null is not a value.
    pub fn apply_defaults(&self, object: &mut Value) {
        defaults::apply(&self.root, object);
    }

    /// Removes fields that the schema does not know; returns their paths.
    ///
    /// `apiVersion`, `kind` and `metadata` of the object itself always stay.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        unknown::prune(&self.root, object)
    }

    /// Fields that [`Self::prune`] would remove, with a guess at what was meant.
    #[must_use]
    pub fn unknown_fields(&self, object: &Value) -> Vec<UnknownField> {
        unknown::report(&self.root, object)
    }

    /// Every violation of the schema and its rules.
    ///
    /// With `old`, transition rules run too, and parts that did not change are not judged again.
    #[must_use]
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = check::Errors::default();
        check::check(&self.root, object, old, &Path::Root, &mut errors);
        errors.list
    }
}
