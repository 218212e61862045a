//! What is wrong with the schema of a definition: it must be structural, and its rules must be CEL.

use joiner_api::Schema;
use serde_json::{Value, json};

use crate::validate::report::{Path, Report};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// Deepest nesting that is looked at; deeper schemas are refused elsewhere by their size.
const DEPTH_MAX: usize = 100;

/// Everything that is wrong with a schema.
pub(super) fn check(schema: &Value, has_status: bool, path: &Path<'_>, report: &mut Report) {
    let root = schema["type"].as_str().unwrap_or("");
    if root != "object" {
        let at = path.field("type");
        if has_status && !root.is_empty() {
            let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                          status subresource is enabled";
            report.invalid(&at, &schema["type"], detail);
        }
        if root.is_empty() {
            report.required(&at, "must not be empty at the root");
        } else {
            report.invalid(&at, &schema["type"], "must be object at the root");
        }
    }
    let before = report.causes.len();
    node(schema, Place::Root, 0, path, report);
    // The nodes are fine one by one; whatever else the compiler finds is told as it says it.
    if report.causes.len() == before
        && root == "object"
        && let Err(error) = Schema::compile(schema)
    {
        report.invalid(path, &Value::Null, &error.to_string());
    }
}

/// Where a node of a schema sits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Property,
    Item,
    Branch,
}

fn node(schema: &Value, place: Place, depth: usize, path: &Path<'_>, report: &mut Report) {
    if depth > DEPTH_MAX {
        return report.forbidden(path, "schema is nested too deeply");
    }
    let kind = schema["type"].as_str().unwrap_or("");
    if !schema["$ref"].is_null() {
        return report.forbidden(&path.field("$ref"), "$ref is not supported");
    }
    typed(schema, kind, place, path, report);
    if kind == "array" && schema["items"].is_null() {
        report.required(&path.field("items"), "must be specified");
    }
    if schema["uniqueItems"] == true {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        report.forbidden(&path.field("uniqueItems"), detail);
    }
    extensions(schema, path, report);
    pattern(schema, path, report);
    default(schema, place, path, report);
    rules(schema, path, report);
    children(schema, place, depth, path, report);
}

fn typed(schema: &Value, kind: &str, place: Place, path: &Path<'_>, report: &mut Report) {
    let free = schema["x-kubernetes-int-or-string"] == true
        || schema["x-kubernetes-preserve-unknown-fields"] == true;
    let at = path.field("type");
    match (kind, place) {
        ("", Place::Property) if !free => {
            report.required(&at, "must not be empty for specified object fields");
        }
        ("", Place::Item) if !free => {
            report.required(&at, "must not be empty for specified array items");
        }
        ("", _) => {}
        (_, Place::Branch) => {
            let detail = "must be empty to be structural";
            report.forbidden(&at, detail);
        }
        (kind, _) if !TYPES.contains(&kind) => report.unsupported(&at, kind, TYPES),
        _ => {}
    }
}

fn extensions(schema: &Value, path: &Path<'_>, report: &mut Report) {
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema[preserve] == false {
        report.invalid(
            &path.field(preserve),
            &schema[preserve],
            "must be true or undefined",
        );
    }
    let list_type = schema["x-kubernetes-list-type"].as_str().unwrap_or("");
    let keys = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .map_or(0, Vec::len);
    match list_type {
        "map" if keys == 0 => report.required(
            &path.field("x-kubernetes-list-map-keys"),
            "must not be empty if x-kubernetes-list-type is map",
        ),
        "" | "map" | "set" | "atomic" => {}
        other => report.unsupported(
            &path.field("x-kubernetes-list-type"),
            other,
            &["atomic", "map", "set"],
        ),
    }
    if schema["properties"].is_object() && schema["additionalProperties"].is_object() {
        let detail = "additionalProperties and properties are mutual exclusive";
        report.forbidden(&path.field("additionalProperties"), detail);
    }
}

fn pattern(schema: &Value, path: &Path<'_>, report: &mut Report) {
    if schema["pattern"].is_string()
        && let Err(error) =
            Schema::compile(&json!({"type": "string", "pattern": schema["pattern"]}))
    {
        let detail = format!(
            "must be a valid regular expression, but isn't: {}",
            error.why
        );
        report.invalid(&path.field("pattern"), &schema["pattern"], &detail);
    }
}

/// A default must be a value that its own schema accepts.
fn default(schema: &Value, place: Place, path: &Path<'_>, report: &mut Report) {
    let value = &schema["default"];
    if value.is_null() {
        return;
    }
    if place == Place::Branch {
        return report.forbidden(&path.field("default"), "must be undefined to be structural");
    }
    let mut own = Report::default();
    super::judge::structure(schema, value, None, &mut own);
    let at = path.field("default").to_string();
    for mut cause in own.causes {
        // Paths start at the default, not at the object.
        cause.field = match cause.field.as_str() {
            "" => at.clone(),
            below => format!("{at}.{below}"),
        };
        report.causes.push(cause);
    }
}

fn rules(schema: &Value, path: &Path<'_>, report: &mut Report) {
    let list = schema["x-kubernetes-validations"].as_array();
    let rules = path.field("x-kubernetes-validations");
    for (index, rule) in list.into_iter().flatten().enumerate() {
        let at = rules.index(index);
        if rule["rule"].as_str().unwrap_or("").trim().is_empty() {
            report.required(&at.field("rule"), "rule is not specified");
            continue;
        }
        let alone = json!({"type": "object", "x-kubernetes-validations": [rule]});
        if let Err(error) = Schema::compile(&alone) {
            report.invalid(&at.field("rule"), &Value::Null, "");
            if let Some(cause) = report.causes.last_mut() {
                cause.message = format!(
                    "Invalid value: {}: compilation failed: {}",
                    shown(rule),
                    syntax(&error.why)
                );
            }
        }
    }
}

/// What the reader of CEL says, from where it starts to speak, with its quotes set in.
fn syntax(why: &str) -> String {
    let start = why.find("ERROR: ").unwrap_or(0);
    why[start..].replace("\n|", "\n |")
}

/// A rule as upstream prints it.
fn shown(rule: &Value) -> String {
    let text = |key: &str| Value::from(rule[key].as_str().unwrap_or("")).to_string();
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
         \"OptionalOldSelf\":{}}}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        rule["reason"],
        text("fieldPath"),
        rule["optionalOldSelf"],
    )
}

fn children(schema: &Value, place: Place, depth: usize, path: &Path<'_>, report: &mut Report) {
    let inner = |own: Place| {
        if place == Place::Branch {
            Place::Branch
        } else {
            own
        }
    };
    let properties = path.field("properties");
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let at = properties.key(name);
        if place == Place::Root && name == "metadata" {
            let plain = child["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .all(|(key, _)| matches!(key.as_str(), "name" | "generateName"));
            if !plain {
                let detail = "must not specify anything other than name and generateName, but \
                              metadata is implicitly specified";
                report.forbidden(&at, detail);
            }
            continue;
        }
        node(child, inner(Place::Property), depth + 1, &at, report);
    }
    if schema["additionalProperties"].is_object() {
        let at = path.field("additionalProperties");
        node(
            &schema["additionalProperties"],
            inner(Place::Property),
            depth + 1,
            &at,
            report,
        );
    }
    if schema["items"].is_object() {
        node(
            &schema["items"],
            inner(Place::Item),
            depth + 1,
            &path.field("items"),
            report,
        );
    }
    let int_or_string = schema["x-kubernetes-int-or-string"] == true;
    for key in ["allOf", "anyOf", "oneOf"] {
        // The branches that people write beside int-or-string repeat the type, which is allowed.
        if int_or_string {
            break;
        }
        let at = path.field(key);
        for (index, branch) in schema[key].as_array().into_iter().flatten().enumerate() {
            node(branch, Place::Branch, depth + 1, &at.index(index), report);
        }
    }
    if schema["not"].is_object() {
        node(
            &schema["not"],
            Place::Branch,
            depth + 1,
            &path.field("not"),
            report,
        );
    }
}
