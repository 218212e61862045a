//! What a definition's version asks of its objects, compiled once.

use joiner_api::Schema;
use serde_json::{Map, Value};

use super::judge;
use crate::error::{ApiError, Cause};
use crate::kinds::{Kind, fields};
use crate::validate;
use crate::validate::report::Report;

/// Where the counts of a kind that can be scaled are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted count: `.spec.replicas`.
    pub spec: String,
    /// The count that there is.
    pub status: String,
    /// The selector as text, if the kind has one.
    pub selector: Option<String>,
}

impl ScalePaths {
    /// Reads a simple path such as `.spec.replicas`.
    #[must_use]
    pub fn get<'v>(path: &str, object: &'v Value) -> &'v Value {
        let keys = path.split('.').filter(|key| !key.is_empty());
        keys.fold(object, |value, key| &value[key])
    }

    /// Writes at a simple path; objects on the way are created.
    pub fn set(path: &str, object: &mut Value, new: Value) {
        let mut at = object;
        for key in path.split('.').filter(|key| !key.is_empty()) {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = &mut at[key];
        }
        *at = new;
    }
}

/// The compiled rules of one version of a custom kind.
#[derive(Debug)]
pub struct CustomRules {
    schema: Schema,
    /// The same without rules in CEL: what differs between the two is what CEL said.
    plain: Schema,
    raw: Value,
    /// Present when status is a subresource.
    pub has_status: bool,
    /// Present when the kind can be scaled.
    pub scale: Option<ScalePaths>,
}

impl CustomRules {
    /// Compiles a version's entry of a definition, as it is in [`Kind::custom`].
    ///
    /// # Errors
    /// What is wrong with the schema.
    pub fn compile(version: &Value) -> Result<Self, String> {
        let mut raw = version["schema"]["openAPIV3Schema"].clone();
        if !raw.is_object() {
            raw =
                serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        }
        let compile = |raw: &Value| Schema::compile(raw).map_err(|error| error.to_string());
        let mut without = raw.clone();
        strip_rules(&mut without);
        let scale = &version["subresources"]["scale"];
        let text = |key: &str| scale[key].as_str().map(str::to_owned);
        Ok(Self {
            schema: compile(&raw)?,
            plain: compile(&without)?,
            raw,
            has_status: !version["subresources"]["status"].is_null(),
            scale: text("specReplicasPath").map(|spec| ScalePaths {
                spec,
                status: text("statusReplicasPath").unwrap_or_default(),
                selector: text("labelSelectorPath"),
            }),
        })
    }

    /// Reads an object as the server does: metadata has its known fields only, and what the schema
    /// does not know is dropped. Returns what `fieldValidation` is about.
    ///
    /// # Errors
    /// 400 when the metadata have a value of the wrong type.
    pub fn decode(&self, kind: &Kind, object: &mut Value) -> Result<Vec<String>, ApiError> {
        let mut unknown = Vec::new();
        if let Some(own) = fields::named("meta", "ObjectMeta")
            && let Some(metadata) = object.get_mut("metadata").filter(|m| !m.is_null())
        {
            let found = fields::decode_as(own, &kind.kind, &kind.version, metadata)?;
            let below = |text: String| text.replacen('"', "\"metadata.", 1);
            unknown.extend(found.into_iter().map(below));
        }
        let pruned = self.schema.prune(object);
        unknown.extend(
            pruned
                .iter()
                .map(|path| format!("unknown field \"{path}\"")),
        );
        unknown.sort();
        Ok(unknown)
    }

    /// Fills in what the client left out.
    pub fn apply_defaults(&self, object: &mut Value) {
        self.schema.apply_defaults(object);
    }

    /// What is wrong with a new object.
    #[must_use]
    pub fn create(&self, kind: &Kind, object: &Value) -> Vec<Cause> {
        let mut causes = validate::create(kind, object);
        causes.extend(self.content(object, None));
        causes.extend(self.scale_cause(object));
        causes
    }

    /// What is wrong with the new version of an object. Rules about changes run, too.
    #[must_use]
    pub fn update(&self, kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
        let mut causes = validate::update(kind, old, new);
        causes.extend(self.content(new, Some(old)));
        causes.extend(self.scale_cause(new));
        causes
    }

    /// What can be scaled must have a count where the definition says it has.
    fn scale_cause(&self, object: &Value) -> Option<Cause> {
        let path = &self.scale.as_ref()?.spec;
        let (shown, found) = match ScalePaths::get(path, object) {
            Value::Null | Value::Number(_) => return None,
            Value::String(text) => (text.clone(), "string"),
            Value::Bool(flag) => (flag.to_string(), "bool"),
            Value::Array(list) => (Value::from(list.clone()).to_string(), "[]interface {}"),
            Value::Object(map) => (
                Value::from(map.clone()).to_string(),
                "map[string]interface {}",
            ),
        };
        Some(Cause {
            reason: "FieldValueInvalid",
            message: format!(
                "Invalid value: 0: {path} accessor error: {shown} is of the type {found}, expected int64"
            ),
            field: path.clone(),
        })
    }

    fn content(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let errors = self.schema.validate(object, old);
        if errors.is_empty() {
            return Vec::new();
        }
        let plain = self.plain.validate(object, old);
        let mut report = Report::default();
        let blocked = judge::structure(&self.raw, object, old, &mut report);
        let mut rest = plain;
        for error in &errors {
            match rest.iter().position(|other| other == error) {
                Some(index) => {
                    rest.swap_remove(index);
                }
                None if !blocked => judge::rule(&self.raw, error, &mut report),
                None => {}
            }
        }
        if blocked {
            judge::unchecked(&mut report);
        }
        if report.causes.is_empty() {
            // The two readings of the schema disagree: say it in our own words rather than let it pass.
            report.causes.extend(errors.iter().map(|error| Cause {
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {}", error.message),
                field: error.path.clone(),
            }));
        }
        report.causes
    }
}

/// Removes the rules in CEL from a schema. Only schemas are looked at, not defaults or examples.
fn strip_rules(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    map.remove("x-kubernetes-validations");
    for key in ["items", "additionalProperties", "not"] {
        if let Some(child) = map.get_mut(key) {
            strip_rules(child);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(strip_rules);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = map.get_mut(key) {
            branches.iter_mut().for_each(strip_rules);
        }
    }
}
