//! Whether an old object ever was valid, by the schema of its own version.

use super::fields::{drop_nulls, put, subject};
use super::kind::OldKind;
use super::remark::{Remark, Remarks};
use super::{Error, not_old};
use crate::admission::{schema_of, validate_metadata};
use crate::crd::Definition;
use crate::crd::legacy::definitions;
use crate::schema::{ERRORS_MAX, FieldError, Schema};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Looks at an old object as its API server would have: what is wrong is an error, and fields that had
/// no effect are remarked on.
///
/// # Errors
/// The object is of no old kind, or never was valid.
pub fn check(object: &Value) -> Result<Vec<Remark>, Error> {
    checked(object).map(|(_, remarks)| remarks)
}

/// The object without nulls and without fields that had no effect.
pub(super) fn checked(object: &Value) -> Result<(Value, Vec<Remark>), Error> {
    let Some(kind) = OldKind::of_object(object) else {
        return Err(not_old(object));
    };
    let subject = subject(object);
    let mut object = object.clone();
    drop_nulls(&mut object);
    let mut remarks = Vec::new();
    let mut remark = Remarks {
        subject: &subject,
        list: &mut remarks,
    };
    let mut errors = validate_metadata(&object, None);
    if let Some(schema) = schema(kind) {
        for unknown in schema.unknown_fields(&object) {
            let hint = unknown
                .hint
                .map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
            let message = format!("unknown field, it had no effect and is left out{hint}");
            remark.note(unknown.path, message);
        }
        schema.prune(&mut object);
        errors.extend(mistakes(schema, &object));
    }
    if kind == OldKind::Provisioner
        && let Some(provider) = object.pointer("/spec/provider")
    {
        errors.extend(mistakes_inline(provider));
    }
    errors.truncate(ERRORS_MAX);
    if errors.is_empty() {
        return Ok((object, remarks));
    }
    errors.iter_mut().for_each(explain_variables);
    Err(Error::NeverValid { subject, errors })
}

fn mistakes(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut complete = object.clone();
    schema.apply_defaults(&mut complete);
    schema.validate(&complete, None)
}

/// Settings of the provider that are part of a Provisioner follow the rules of an AWSNodeTemplate.
fn mistakes_inline(provider: &Value) -> Vec<FieldError> {
    let Some(schema) = schema(OldKind::AwsNodeTemplate) else {
        return Vec::new();
    };
    let mut template = json!({"metadata": {"name": "inline"}});
    put(&mut template, &["spec"], provider.clone());
    let below = |mut error: FieldError| {
        let rest = error.path.strip_prefix("spec").unwrap_or(&error.path);
        error.path = format!("spec.provider{rest}");
        error
    };
    mistakes(schema, &template).into_iter().map(below).collect()
}

/// Manifests of tutorials are full of variables.
fn explain_variables(error: &mut FieldError) {
    if error
        .value
        .as_ref()
        .is_some_and(|value| value.contains('$'))
    {
        error
            .message
            .push_str("; fill in its variables first, for instance with envsubst");
    }
}

/// The schema of an old kind; that of a kind whose fields are the same is the one of today.
fn schema(kind: OldKind) -> Option<&'static Schema> {
    if kind == OldKind::CapacityBuffer {
        let (api_version, kind) = kind.successor();
        return schema_of(api_version, kind);
    }
    static SCHEMAS: OnceLock<Vec<KindSchema>> = OnceLock::new();
    let all = SCHEMAS.get_or_init(|| definitions().iter().map(KindSchema::new).collect());
    let found = all
        .iter()
        .find(|one| (one.api_version.as_str(), one.kind) == kind.header())?;
    Some(found.compiled.get_or_init(|| {
        Schema::compile(&found.open_api)
            .expect("our own schemas compile: a test of this module says so")
    }))
}

/// The schema of an old kind, compiled when it is first needed.
struct KindSchema {
    api_version: String,
    kind: &'static str,
    open_api: Value,
    compiled: OnceLock<Schema>,
}

impl KindSchema {
    fn new(definition: &Definition) -> Self {
        Self {
            api_version: format!("{}/{}", definition.group, definition.version),
            kind: definition.kind,
            open_api: definition.open_api(),
            compiled: OnceLock::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_old_kind_has_a_schema() {
        for kind in OldKind::ALL {
            assert!(schema(*kind).is_some(), "{kind:?}");
        }
    }
}
