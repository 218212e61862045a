//! What kubectl looks for in the documents.

use std::sync::Arc;

use super::*;
use crate::kinds::{Subresource, builtin};

fn gadget() -> Kind {
    Kind {
        group: "zoo.example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Gadget".to_owned(),
        plural: "gadgets".to_owned(),
        singular: "gadget".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        subresources: vec![Subresource::Status, Subresource::Scale],
        custom: Some(Arc::new(json!({"schema": {"openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
        }}}))),
    }
}

fn document_of(group: &str, version: &str) -> Value {
    let mut kinds = builtin();
    kinds.push(gadget());
    let kinds: Vec<&Kind> = kinds.iter().collect();
    document(&kinds, group, version).unwrap()
}

#[test]
fn index_names_every_version_and_changes_with_schemas() {
    let mut kinds = builtin();
    kinds.push(gadget());
    let first = index(&kinds.iter().collect::<Vec<_>>());
    let address = |index: &Value, path: &str| {
        let address = index["paths"][path]["serverRelativeURL"].as_str();
        address.unwrap().to_owned()
    };
    assert!(address(&first, "api/v1").starts_with("/openapi/v3/api/v1?hash="));
    for path in ["apis/apps/v1", "apis/autoscaling/v1", "apis/autoscaling/v2"] {
        assert!(address(&first, path).contains(path), "{path}");
    }
    if let Some(kind) = kinds.last_mut() {
        kind.custom = Some(Arc::new(json!({"schema": {}})));
    }
    let second = index(&kinds.iter().collect::<Vec<_>>());
    let custom = "apis/zoo.example.com/v1";
    assert_ne!(address(&first, custom), address(&second, custom));
    assert_eq!(address(&first, "api/v1"), address(&second, "api/v1"));
}

#[test]
fn apply_finds_that_fields_are_checked() {
    let apps = document_of("apps", "v1");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &apps["paths"][path]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let names: Vec<&Value> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| &parameter["name"])
        .collect();
    assert_eq!(
        names,
        ["dryRun", "fieldManager", "fieldValidation", "force"]
    );
    let strategic = "application/strategic-merge-patch+json";
    assert!(patch["requestBody"]["content"][strategic].is_object());
    assert!(apps["paths"]["/apis/apps/v1/deployments"]["get"].is_object());

    let zoo = document_of("zoo.example.com", "v1");
    let patch = &zoo["paths"]["/apis/zoo.example.com/v1/gadgets/{name}"]["patch"];
    assert!(patch["requestBody"]["content"][strategic].is_null());
    let scale = &zoo["paths"]["/apis/zoo.example.com/v1/gadgets/{name}/scale"]["get"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Scale");
}

#[test]
fn schemas_say_how_lists_merge() {
    let core = document_of("", "v1");
    let schemas = &core["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(
        pod["volumes"],
        json!({
            "description": "Volumes that containers can mount.",
            "type": "array",
            "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Volume"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-merge-key": "name",
            "x-kubernetes-patch-strategy": "merge,retainKeys",
        })
    );
    assert_eq!(pod["tolerations"]["x-kubernetes-list-type"], "atomic");
    assert_eq!(
        pod["affinity"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.Affinity"
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
        json!([{"group": "", "version": "v1", "kind": "Pod"}])
    );
}

#[test]
fn custom_kinds_keep_their_schema() {
    let zoo = document_of("zoo.example.com", "v1");
    let schema = &zoo["components"]["schemas"]["com.example.zoo.v1.Gadget"];
    assert_eq!(
        schema["properties"]["spec"]["properties"]["size"]["type"],
        "integer"
    );
    assert_eq!(schema["properties"]["kind"]["type"], "string");
    let meta = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(schema["properties"]["metadata"]["allOf"][0]["$ref"], meta);
    assert_eq!(
        schema["x-kubernetes-group-version-kind"][0]["kind"],
        "Gadget"
    );
}

/// Every reference in every document leads somewhere.
#[test]
fn references_resolve() {
    fn check(value: &Value, schemas: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(to)) = map.get("$ref") {
                    let name = to.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas[name].is_object(), "{to}");
                }
                map.values().for_each(|inner| check(inner, schemas));
            }
            Value::Array(list) => list.iter().for_each(|inner| check(inner, schemas)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let kinds = builtin();
    let kinds: Vec<&Kind> = kinds.iter().collect();
    for kind in &kinds {
        let document = document(&kinds, &kind.group, &kind.version).unwrap();
        check(&document, &document["components"]["schemas"]);
    }
    assert_eq!(document(&kinds, "nope", "v1"), None);
}
