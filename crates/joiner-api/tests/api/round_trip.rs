//! Schema, types and examples agree: every field that one of them knows, the others know too.

use crate::support::full;
use joiner_api::types::{
    CapacityBuffer, Ec2NodeClass, KwokNodeClass, NodeClaim, NodeOverlay, NodePool, Resource,
};
use joiner_api::{admit, crds};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Examples pass without warnings, unchanged, and survive their type.
#[track_caller]
fn survives<T: Resource + Serialize + DeserializeOwned>(examples: &[Value]) {
    for example in examples {
        let mut object = example.clone();
        let admitted = admit(&mut object).expect("the example is fine");
        assert_eq!(admitted.warnings, []);
        assert_eq!(&object, example, "admission changed a complete object");
        let typed: T = serde_json::from_value(object.clone()).expect("the type can hold it");
        assert_eq!(
            serde_json::to_value(&typed).expect("it can be written"),
            object
        );
        assert_eq!(object["apiVersion"], T::api_version());
        assert_eq!(object["kind"], T::KIND);
    }
}

#[test]
fn every_kind_survives() {
    survives::<NodePool>(&full::node_pools());
    survives::<NodeClaim>(&full::node_claims());
    survives::<NodeOverlay>(&full::node_overlays());
    survives::<Ec2NodeClass>(&full::ec2_node_classes());
    survives::<KwokNodeClass>(&full::kwok_node_classes());
    survives::<CapacityBuffer>(&full::capacity_buffers());
}

#[test]
fn smallest_objects_survive_too() {
    fn minimal<T: Resource + Serialize + DeserializeOwned>(mut object: Value) {
        assert!(admit(&mut object).is_ok());
        let typed: T = serde_json::from_value(object.clone()).expect("the type can hold it");
        assert_eq!(
            serde_json::to_value(&typed).expect("it can be written"),
            object
        );
    }
    minimal::<NodePool>(crate::support::node_pool());
    minimal::<NodeClaim>(crate::support::node_claim());
    minimal::<NodeOverlay>(crate::support::node_overlay());
    minimal::<Ec2NodeClass>(crate::support::ec2_node_class());
    minimal::<CapacityBuffer>(crate::support::capacity_buffer());
}

#[test]
fn absent_and_empty_stay_apart() {
    let mut pool = crate::support::node_pool();
    pool["spec"]["template"]["spec"]["taints"] = json!([]);
    pool["spec"]["template"]["metadata"] = json!({"labels": {}});
    pool["spec"]["disruption"] =
        json!({"consolidateAfter": "0s", "budgets": [{"nodes": "0", "reasons": []}]});
    assert!(admit(&mut pool).is_ok());
    let typed: NodePool = serde_json::from_value(pool.clone()).expect("the type can hold it");
    assert_eq!(typed.spec.template.spec.taints.as_deref(), Some(&[][..]));
    assert_eq!(typed.spec.template.spec.startup_taints, None);
    assert_eq!(
        serde_json::to_value(&typed).expect("it can be written"),
        pool
    );
}

/// Paths of all declared fields of a schema.
fn declared(schema: &Value, path: &str, out: &mut BTreeSet<String>) {
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        declared(child, &path, out);
        out.insert(path);
    }
    if schema["items"].is_object() {
        declared(&schema["items"], &format!("{path}[]"), out);
    }
}

/// Paths of all fields in use.
fn used(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                let path = format!("{path}.{name}");
                used(child, &path, out);
                out.insert(path);
            }
        }
        Value::Array(list) => {
            for item in list {
                used(item, &format!("{path}[]"), out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn examples_use_every_field() {
    let examples: Vec<Value> = [
        full::node_pools(),
        full::node_claims(),
        full::node_overlays(),
        full::ec2_node_classes(),
        full::kwok_node_classes(),
        full::capacity_buffers(),
    ]
    .concat();
    for crd in crds() {
        let mut wanted = BTreeSet::new();
        declared(
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            "",
            &mut wanted,
        );
        let mut found = BTreeSet::new();
        for example in examples
            .iter()
            .filter(|e| e["kind"] == crd["spec"]["names"]["kind"])
        {
            used(example, "", &mut found);
        }
        let missing: Vec<_> = wanted.difference(&found).collect();
        assert!(
            missing.is_empty(),
            "{}: {missing:#?}",
            crd["metadata"]["name"]
        );
    }
}
