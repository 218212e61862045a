//! What is wrong with a custom object, in upstream's words.
//!
//! Whether an object is fine is decided by [`joiner_api::Schema`]. Only when it is not does this
//! module look at the schema again, to say so as an API server would.

use std::collections::BTreeSet;

use joiner_api::FieldError;
use serde_json::{Map, Value};

use crate::error::Cause;
use crate::validate::report::{Path, Report};

/// The path of complaints that have none.
const NOWHERE: &str = "<nil>";

/// Complains about types, sizes, patterns and the like; true when rules make no sense any more.
pub(super) fn structure(
    schema: &Value,
    object: &Value,
    old: Option<&Value>,
    report: &mut Report,
) -> bool {
    let mut judge = Judge {
        report,
        blocked: false,
    };
    judge.value(schema, object, old, &Path::Root);
    judge.blocked
}

/// What is said when rules were not looked at.
pub(super) fn unchecked(report: &mut Report) {
    nowhere(
        report,
        "Invalid value: null: some validation rules were not checked because the object was \
         invalid; correct the existing errors to complete validation",
    );
}

fn nowhere(report: &mut Report, message: &str) {
    report.causes.push(Cause {
        reason: "FieldValueInvalid",
        message: message.to_owned(),
        field: NOWHERE.to_owned(),
    });
}

/// Complains about a rule that did not hold. The rule is looked up for its reason.
pub(super) fn rule(schema: &Value, error: &FieldError, report: &mut Report) {
    let failed = error
        .message
        .strip_prefix("breaks the rule ")
        .map(|rule| format!("failed rule: {rule}"));
    let message = failed.unwrap_or_else(|| error.message.clone());
    let (reason, word) = match reason_of(schema, error) {
        Some("FieldValueForbidden") => ("FieldValueForbidden", "Forbidden"),
        Some("FieldValueRequired") => ("FieldValueRequired", "Required value"),
        Some("FieldValueDuplicate") => ("FieldValueDuplicate", "Duplicate value"),
        _ => ("FieldValueInvalid", "Invalid value"),
    };
    // Objects and lists are not shown, scalars are.
    let shown = match error.value.as_deref() {
        Some(value) if matches!(reason, "FieldValueInvalid" | "FieldValueDuplicate") => {
            format!("{value}: ")
        }
        _ => String::new(),
    };
    let field = if error.path.is_empty() {
        NOWHERE.to_owned()
    } else {
        error.path.clone()
    };
    report.causes.push(Cause {
        reason,
        message: format!("{word}: {shown}{message}"),
        field,
    });
}

/// The reason that a rule gives, found by its message at the field or above it.
fn reason_of<'s>(schema: &'s Value, error: &FieldError) -> Option<&'s str> {
    let mut at = schema;
    let mut found = None;
    let mut look = |node: &'s Value| {
        for rule in node["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let said = [&rule["message"], &rule["rule"]];
            let by_words = said
                .iter()
                .filter_map(|text| text.as_str())
                .any(|text| error.message.ends_with(text));
            let by_path = rule["fieldPath"]
                .as_str()
                .is_some_and(|path| error.path.ends_with(path));
            if by_words || by_path {
                found = rule["reason"].as_str().or(found);
            }
        }
    };
    look(at);
    for key in error
        .path
        .split(['.', '[', ']'])
        .filter(|key| !key.is_empty())
    {
        let property = &at["properties"][key];
        at = if !property.is_null() {
            property
        } else if at["items"].is_null() {
            &at["additionalProperties"]
        } else {
            &at["items"]
        };
        look(at);
    }
    found
}

struct Judge<'r> {
    report: &'r mut Report,
    /// Something is so wrong that rules cannot be asked.
    blocked: bool,
}

impl Judge<'_> {
    fn value(&mut self, schema: &Value, value: &Value, old: Option<&Value>, path: &Path<'_>) {
        if old == Some(value) {
            return;
        }
        if value.is_null() && schema["nullable"] == true {
            return;
        }
        if !self.has_type(schema, value, path) {
            return;
        }
        match value {
            Value::Object(map) => self.object(schema, map, old, path),
            Value::Array(list) => self.list(schema, list, old, path),
            Value::String(text) => self.text(schema, text, path),
            Value::Number(_) => self.number(schema, value, path),
            Value::Null | Value::Bool(_) => {}
        }
        self.allowed(schema, value, path);
        self.branches(schema, value, path);
    }

    fn wrong(&mut self, reason: &'static str, path: &Path<'_>, message: String) {
        self.report.causes.push(Cause {
            reason,
            message,
            field: path.to_string(),
        });
    }

    fn has_type(&mut self, schema: &Value, value: &Value, path: &Path<'_>) -> bool {
        let found = type_of(value);
        let wanted = match schema["type"].as_str() {
            _ if schema["x-kubernetes-int-or-string"] == true => "integer,string",
            Some(wanted) if !wanted.is_empty() => wanted,
            Some(_) | None => return true,
        };
        let fits = match wanted {
            "number" => matches!(found, "integer" | "number"),
            "integer,string" => matches!(found, "integer" | "string"),
            _ => wanted == found,
        };
        if !fits {
            self.blocked = true;
            let message = format!(
                "Invalid value: {found:?}: {path} in body must be of type {wanted}: {found:?}"
            );
            self.wrong("FieldValueTypeInvalid", path, message);
            if wanted == "integer" && found == "number" {
                let message = format!(
                    "Invalid value: \"\": Checked value must be of type integer (default format) in {path}"
                );
                nowhere(self.report, &message);
            }
            self.allowed(schema, value, path);
        }
        fits
    }

    fn object(
        &mut self,
        schema: &Value,
        map: &Map<String, Value>,
        old: Option<&Value>,
        path: &Path<'_>,
    ) {
        self.count(
            schema,
            ("minProperties", "maxProperties", "properties"),
            map.len(),
            path,
        );
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap_or("");
            if !map.contains_key(name) {
                self.blocked = true;
                self.report.required(&path.field(name), "");
            }
        }
        let is_root = matches!(path, Path::Root);
        for (key, value) in map {
            if is_root && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let before = old.and_then(|old| old.get(key));
            let property = &schema["properties"][key.as_str()];
            let child = if property.is_null() {
                &schema["additionalProperties"]
            } else {
                property
            };
            if child.is_object() {
                self.value(child, value, before, &path.field(key));
            }
        }
    }

    fn count(&mut self, schema: &Value, keys: (&str, &str, &str), count: usize, path: &Path<'_>) {
        let bound = |key: &str| schema[key].as_u64().and_then(|n| usize::try_from(n).ok());
        if let Some(most) = bound(keys.1)
            && count > most
        {
            self.blocked = true;
            let items = if most == 1 { "item" } else { "items" };
            let message = format!("Too many: {count}: must have at most {most} {items}");
            self.wrong("FieldValueTooMany", path, message);
        }
        if let Some(least) = bound(keys.0)
            && count < least
        {
            let what = keys.2;
            let message = format!(
                "Invalid value: {count}: {path} in body should have at least {least} {what}"
            );
            self.wrong("FieldValueInvalid", path, message);
        }
    }

    fn list(&mut self, schema: &Value, list: &[Value], old: Option<&Value>, path: &Path<'_>) {
        self.count(schema, ("minItems", "maxItems", "items"), list.len(), path);
        let keys: Vec<&str> = match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array();
                keys.into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect()
            }
            _ => Vec::new(),
        };
        let old_list = old.and_then(Value::as_array);
        for (index, item) in list.iter().enumerate() {
            let same = |other: &&Value| {
                if keys.is_empty() {
                    *other == item
                } else {
                    keys.iter().all(|key| other[*key] == item[*key])
                }
            };
            let before = old_list.and_then(|old| old.iter().find(same));
            if schema["items"].is_object() {
                self.value(&schema["items"], item, before, &path.index(index));
            }
        }
        self.unique(schema, &keys, list, path);
    }

    fn unique(&mut self, schema: &Value, keys: &[&str], list: &[Value], path: &Path<'_>) {
        let is_set = schema["x-kubernetes-list-type"] == "set";
        if !is_set && keys.is_empty() {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in list.iter().enumerate() {
            let identity = if is_set {
                item.clone()
            } else {
                let pairs = keys.iter().filter(|key| !item[**key].is_null());
                pairs
                    .map(|key| ((*key).to_owned(), item[*key].clone()))
                    .collect()
            };
            if !seen.insert(identity.to_string()) {
                self.report.duplicate(&path.index(index), &identity);
            }
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &Path<'_>) {
        let length = text.chars().count() as u64;
        if let Some(most) = schema["maxLength"].as_u64()
            && length > most
        {
            self.blocked = true;
            self.report
                .too_long(path, usize::try_from(most).unwrap_or(usize::MAX));
            return;
        }
        if let Some(least) = schema["minLength"].as_u64()
            && length < least
        {
            let message = format!(
                "Invalid value: {text:?}: {path} in body should be at least {least} chars long"
            );
            return self.wrong("FieldValueInvalid", path, message);
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && !fits(schema, text)
        {
            let message =
                format!("Invalid value: {text:?}: {path} in body should match '{pattern}'");
            self.wrong("FieldValueInvalid", path, message);
        }
        let format = schema["format"].as_str().unwrap_or("");
        if matches!(format, "date-time" | "duration") && !has_format(format, text) {
            self.blocked = true;
            let message = format!(
                "Invalid value: {text:?}: {path} in body must be of type {format}: {text:?}"
            );
            self.wrong("FieldValueTypeInvalid", path, message);
        }
    }

    fn number(&mut self, schema: &Value, value: &Value, path: &Path<'_>) {
        let Some(number) = value.as_f64() else {
            return;
        };
        let mut bound =
            |key: &str, exclusive: &str, breaks: fn(f64, f64, bool) -> bool, word: &str| {
                let Some(limit) = schema[key].as_f64() else {
                    return;
                };
                let open = schema[exclusive] == true;
                if breaks(number, limit, open) {
                    let shown = &schema[key];
                    let equal = if open { "" } else { " or equal to" };
                    let than = if open {
                        format!("{word} than")
                    } else {
                        format!("{word} than{equal}")
                    };
                    let message =
                        format!("Invalid value: {value}: {path} in body should be {than} {shown}");
                    self.report.causes.push(Cause {
                        reason: "FieldValueInvalid",
                        message,
                        field: path.to_string(),
                    });
                }
            };
        bound(
            "minimum",
            "exclusiveMinimum",
            |n, limit, open| n < limit || (open && n <= limit),
            "greater",
        );
        bound(
            "maximum",
            "exclusiveMaximum",
            |n, limit, open| n > limit || (open && n >= limit),
            "less",
        );
        if let Some(unit) = schema["multipleOf"].as_f64()
            && (number / unit).fract() != 0.0
        {
            let message =
                format!("Invalid value: {value}: {path} in body should be a multiple of {unit}");
            self.wrong("FieldValueInvalid", path, message);
        }
        let is_small = value.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
        if schema["format"] == "int32" && !is_small {
            let message = format!(
                "Invalid value: \"\": Checked value must be of type integer with format int32 in {path}"
            );
            nowhere(self.report, &message);
        }
    }

    fn allowed(&mut self, schema: &Value, value: &Value, path: &Path<'_>) {
        let Some(allowed) = schema["enum"].as_array() else {
            return;
        };
        if allowed.contains(value) {
            return;
        }
        self.blocked = true;
        let quoted = |v: &Value| {
            v.as_str()
                .map_or_else(|| format!("\"{v}\""), |t| format!("{t:?}"))
        };
        let words: Vec<String> = allowed.iter().map(quoted).collect();
        let message = format!(
            "Unsupported value: {value}: supported values: {}",
            words.join(", ")
        );
        self.wrong("FieldValueNotSupported", path, message);
    }

    fn branches(&mut self, schema: &Value, value: &Value, path: &Path<'_>) {
        let list = |key: &str| schema[key].as_array().map_or(&[][..], Vec::as_slice);
        for branch in list("allOf") {
            self.value(branch, value, None, path);
        }
        let probe = |branch: &&Value| {
            let mut report = Report::default();
            structure_at(branch, value, path, &mut report);
            report.causes
        };
        let fits = |branch: &&Value| probe(branch).is_empty();
        let at = path.to_string();
        if !list("anyOf").is_empty() && !list("anyOf").iter().any(|branch| fits(&branch)) {
            let message =
                format!("Invalid value: \"\": \"{at}\" must validate at least one schema (anyOf)");
            nowhere(self.report, &message);
            self.first_branch(list("anyOf"), &probe);
        }
        let fitting = list("oneOf").iter().filter(fits).count();
        if !list("oneOf").is_empty() && fitting != 1 {
            let found = match fitting {
                0 => "none valid".to_owned(),
                n => format!("{n} valid alternatives"),
            };
            let message = format!(
                "Invalid value: \"\": \"{at}\" must validate one and only one schema (oneOf). Found \
                 {found}"
            );
            nowhere(self.report, &message);
            if fitting == 0 {
                self.first_branch(list("oneOf"), &probe);
            }
        }
        if schema["not"].is_object() && fits(&&schema["not"]) {
            let message =
                format!("Invalid value: \"\": \"{at}\" must not validate the schema (not)");
            nowhere(self.report, &message);
        }
    }

    /// Of alternatives that all fail, the first one's complaints are shown.
    fn first_branch(&mut self, branches: &[Value], probe: &dyn Fn(&&Value) -> Vec<Cause>) {
        if let Some(first) = branches.first() {
            let causes = probe(&first);
            let blocks = |cause: &Cause| {
                matches!(cause.reason, "FieldValueRequired" | "FieldValueTypeInvalid")
            };
            self.blocked |= causes.iter().any(blocks);
            self.report.causes.extend(causes);
        }
    }
}

fn structure_at(schema: &Value, value: &Value, path: &Path<'_>, report: &mut Report) {
    let mut judge = Judge {
        report,
        blocked: false,
    };
    judge.value(schema, value, None, path);
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a text fits the pattern of its schema, asked of the one reader of patterns there is.
fn fits(schema: &Value, text: &str) -> bool {
    let only = serde_json::json!({"type": "string", "pattern": schema["pattern"]});
    joiner_api::Schema::compile(&only)
        .is_ok_and(|schema| schema.validate(&Value::from(text), None).is_empty())
}

fn has_format(format: &str, text: &str) -> bool {
    match format {
        "date-time" => {
            let only = serde_json::json!({"type": "string", "format": "date-time"});
            joiner_api::Schema::compile(&only)
                .is_ok_and(|schema| schema.validate(&Value::from(text), None).is_empty())
        }
        _ => {
            !text.is_empty()
                && text.ends_with(|c: char| c.is_ascii_alphabetic())
                && text
                    .starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.' || c == 'P')
        }
    }
}
