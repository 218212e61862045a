//! The schemas of kinds, from the table of fields and from CRDs.

use serde_json::{Map, Value, json};

use super::words;
use crate::kinds::Kind;
use crate::kinds::fields::{self, FieldType, Struct};
use crate::merge_keys::{ListRule, PatchRule, Place};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const AMOUNT: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_TEXT: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// The schemas of one document, by name.
#[derive(Default)]
pub(super) struct Schemas(Map<String, Value>);

/// A reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

impl Schemas {
    /// Adds the schema of a kind and all that it refers to; returns its name.
    pub(super) fn add_kind(&mut self, kind: &Kind) -> String {
        let place = Place::root(kind);
        let name = match (fields::root(kind), &kind.custom) {
            (Some(of), _) => self.add(of, place),
            (None, custom) => {
                let name = custom_name(kind);
                let schema = custom.as_ref().map(|v| &v["schema"]["openAPIV3Schema"]);
                let schema = self.custom(schema.unwrap_or(&Value::Null), place);
                self.0.insert(name.clone(), schema);
                name
            }
        };
        if let Some(schema) = self.0.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([
                {"group": kind.group, "version": kind.version, "kind": kind.kind}
            ]);
        }
        name
    }

    /// The map of all schemas.
    pub(super) fn into_json(self) -> Value {
        Value::Object(self.0)
    }

    /// Adds the schema of a struct, once; returns its name.
    fn add(&mut self, of: &'static Struct, place: Place<'_>) -> String {
        let name = struct_name(of);
        if self.0.contains_key(&name) {
            return name;
        }
        // Takes the name, lest a struct that holds itself goes on forever.
        self.0.insert(name.clone(), Value::Null);
        let mut properties = Map::new();
        for field in &of.fields {
            let inner = place.field(field.name);
            let mut schema = self.of_type(&field.kind, inner);
            if let Value::Object(schema) = &mut schema {
                // Next to a reference nothing else counts, so it goes one level down.
                if let Some(reference) = schema.remove("$ref") {
                    schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
                }
                let description = words::field(of.name, field.name);
                schema.insert("description".to_owned(), Value::from(description));
                add_rules(schema, &field.kind, inner);
                add_retained(schema, of.name, field.name);
            }
            properties.insert(field.name.to_owned(), schema);
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if let Some(description) = words::of_struct(of.name) {
            schema["description"] = json!(description);
        }
        self.0.insert(name.clone(), schema);
        name
    }

    fn of_type(&mut self, of: &FieldType, place: Place<'_>) -> Value {
        match of {
            FieldType::Text => json!({"type": "string"}),
            FieldType::Bool => json!({"type": "boolean"}),
            FieldType::Int32 => json!({"type": "integer", "format": "int32"}),
            FieldType::Int64 => json!({"type": "integer", "format": "int64"}),
            FieldType::Float => json!({"type": "number", "format": "double"}),
            FieldType::Bytes => json!({"type": "string", "format": "byte"}),
            FieldType::Time | FieldType::MicroTime => {
                json!({"type": "string", "format": "date-time"})
            }
            FieldType::Amount => self.shared(
                AMOUNT,
                json!({
                    "description": "An amount: a number, with a suffix such as m, Ki or G.",
                    "oneOf": [{"type": "string"}, {"type": "number"}],
                }),
            ),
            FieldType::IntOrText => self.shared(
                INT_OR_TEXT,
                json!({
                    "description": "A number, or a text such as a percentage or a port's name.",
                    "format": "int-or-string",
                    "oneOf": [{"type": "integer"}, {"type": "string"}],
                }),
            ),
            FieldType::Any => json!({
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            }),
            FieldType::Struct(index) => match fields::structs().get(*index) {
                Some(of) => reference(&self.add(of, place)),
                None => json!({"type": "object"}),
            },
            FieldType::Pointer(inner) => self.of_type(inner, place),
            FieldType::List(inner) => {
                json!({"type": "array", "items": self.of_type(inner, place.items())})
            }
            FieldType::Map(inner) => {
                json!({"type": "object", "additionalProperties": self.of_type(inner, place)})
            }
        }
    }

    fn shared(&mut self, name: &str, schema: Value) -> Value {
        self.0.entry(name).or_insert(schema);
        reference(name)
    }

    /// A CRD's schema with the fields that every object has.
    fn custom(&mut self, schema: &Value, place: Place<'_>) -> Value {
        let mut schema = match schema {
            Value::Object(_) => schema.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => json!({"x-kubernetes-preserve-unknown-fields": true}),
        };
        schema["type"] = json!("object");
        if let Some(meta) = fields::named("meta", "ObjectMeta") {
            self.add(meta, place.field("metadata"));
        }
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        let properties = &mut schema["properties"];
        for name in ["apiVersion", "kind"] {
            let description = words::field("custom", name);
            properties[name] = json!({"type": "string", "description": description});
        }
        properties["metadata"] = json!({
            "description": words::field("custom", "metadata"),
            "allOf": [reference(META)],
        });
        schema
    }
}

/// How patches and apply treat the field.
fn add_rules(schema: &mut Map<String, Value>, of: &FieldType, place: Place<'_>) {
    let mut add = |key: &str, value: Value| {
        schema.insert(format!("x-kubernetes-{key}"), value);
    };
    match place.patch() {
        PatchRule::Usual => {}
        PatchRule::Replace => add("patch-strategy", json!("replace")),
        PatchRule::Add => add("patch-strategy", json!("merge")),
        PatchRule::MergeBy(key) => {
            add("patch-strategy", json!("merge"));
            add("patch-merge-key", json!(key));
        }
    }
    match of {
        FieldType::List(_) => match place.list() {
            ListRule::Atomic => add("list-type", json!("atomic")),
            ListRule::Set => add("list-type", json!("set")),
            ListRule::Keyed(keys) => {
                add("list-type", json!("map"));
                add("list-map-keys", keys.names().collect());
            }
        },
        FieldType::Map(_) if place.is_atomic_map() => add("map-type", json!("atomic")),
        FieldType::Map(_)
        | FieldType::Text
        | FieldType::Bool
        | FieldType::Int32
        | FieldType::Int64
        | FieldType::Float
        | FieldType::Bytes
        | FieldType::Time
        | FieldType::MicroTime
        | FieldType::Amount
        | FieldType::IntOrText
        | FieldType::Any
        | FieldType::Struct(_)
        | FieldType::Pointer(_) => {}
    }
}

/// Where one choice excludes the others, kubectl must name the fields that stay: a server's defaults
/// for the old choice would be left over otherwise.
fn add_retained(schema: &mut Map<String, Value>, of: &str, field: &str) {
    let strategy = match (of, field) {
        ("core.PodSpec", "volumes" | "resourceClaims") => "merge,retainKeys",
        ("apps.DeploymentSpec", "strategy") => "retainKeys",
        _ => return,
    };
    schema.insert("x-kubernetes-patch-strategy".to_owned(), json!(strategy));
}

fn struct_name(of: &Struct) -> String {
    let (package, name) = of.name.split_once('.').unwrap_or(("core", of.name));
    match package {
        "meta" => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"),
        "apiext" => format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{name}"),
        "autoscaling1" => format!("io.k8s.api.autoscaling.v1.{name}"),
        "autoscaling2" => format!("io.k8s.api.autoscaling.v2.{name}"),
        package => format!("io.k8s.api.{package}.v1.{name}"),
    }
}

/// `com.example.zoo.v1.Gadget` for the kind Gadget in the group zoo.example.com.
fn custom_name(kind: &Kind) -> String {
    let group: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
}
