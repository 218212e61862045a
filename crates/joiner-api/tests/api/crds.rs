//! The definitions as an API server sees them: names, columns, and a sound structure.

use crate::support::{node_pool, with};
use joiner_api::{Schema, crds};
use serde_json::{Value, json};

fn crd(name: &str) -> Value {
    crds()
        .into_iter()
        .find(|crd| crd["metadata"]["name"] == name)
        .expect("it is defined")
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn names_and_scopes() {
    let all: Vec<_> = crds()
        .iter()
        .map(|crd| {
            let (spec, names) = (&crd["spec"], &crd["spec"]["names"]);
            assert_eq!(crd["apiVersion"], "apiextensions.k8s.io/v1");
            assert_eq!(crd["kind"], "CustomResourceDefinition");
            let kind = names["kind"].as_str().unwrap();
            assert_eq!(names["listKind"], format!("{kind}List"));
            assert_eq!(names["singular"], kind.to_lowercase());
            assert_eq!(spec["versions"].as_array().unwrap().len(), 1);
            assert_eq!(spec["versions"][0]["storage"], true);
            assert_eq!(spec["versions"][0]["served"], true);
            format!(
                "{} {} {} {} {} {}",
                crd["metadata"]["name"].as_str().unwrap(),
                spec["versions"][0]["name"].as_str().unwrap(),
                kind,
                spec["scope"].as_str().unwrap(),
                names["shortNames"],
                names["categories"],
            )
        })
        .collect();
    assert_eq!(
        all,
        [
            r#"nodepools.karpenter.sh v1 NodePool Cluster null ["karpenter"]"#,
            r#"nodeclaims.karpenter.sh v1 NodeClaim Cluster null ["karpenter"]"#,
            r#"nodeoverlays.karpenter.sh v1alpha1 NodeOverlay Cluster ["overlays"] ["karpenter"]"#,
            r#"ec2nodeclasses.karpenter.k8s.aws v1 EC2NodeClass Cluster ["ec2nc","ec2ncs"] ["karpenter"]"#,
            r#"kwoknodeclasses.karpenter.kwok.sh v1alpha1 KWOKNodeClass Cluster ["kwoknc","kwokncs"] ["karpenter"]"#,
            r#"capacitybuffers.autoscaling.x-k8s.io v1beta1 CapacityBuffer Namespaced ["cb"] ["autoscaling"]"#,
        ]
    );
}

#[test]
fn columns_and_subresources() {
    let columns = |name: &str| -> Vec<String> {
        let crd = crd(name);
        let list = crd["spec"]["versions"][0]["additionalPrinterColumns"]
            .as_array()
            .unwrap();
        let text = |column: &Value| {
            let mark = if column["priority"] == 1 { "+" } else { "" };
            format!("{}{mark}", column["name"].as_str().unwrap())
        };
        list.iter().map(text).collect()
    };
    assert_eq!(
        columns("nodepools.karpenter.sh"),
        [
            "NodeClass",
            "Nodes",
            "Ready",
            "Age",
            "Weight+",
            "CPU+",
            "Memory+"
        ]
    );
    assert_eq!(
        columns("nodeclaims.karpenter.sh"),
        [
            "Type",
            "Capacity",
            "Zone",
            "Node",
            "Ready",
            "Age",
            "ImageID+",
            "ID+",
            "NodePool+",
            "NodeClass+",
            "Drifted+",
        ]
    );
    assert_eq!(
        columns("nodeoverlays.karpenter.sh"),
        ["Ready", "Age", "Weight+"]
    );
    assert_eq!(
        columns("ec2nodeclasses.karpenter.k8s.aws"),
        ["Ready", "Age", "Role+"]
    );
    assert_eq!(
        columns("capacitybuffers.autoscaling.x-k8s.io"),
        [
            "Strategy",
            "PodTemplate",
            "Replicas",
            "ConditionsType",
            "ConditionsStatus",
            "ConditionsReason",
            "Age",
        ]
    );
    for crd in crds() {
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["subresources"]["status"], json!({}));
        let scale = version["subresources"].get("scale");
        let wanted =
            json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"});
        let is_pool = crd["spec"]["names"]["kind"] == "NodePool";
        assert_eq!(scale, is_pool.then_some(&wanted));
    }
}

/// What an API server demands of a schema before it takes it.
fn lint(node: &Value, path: &str, is_root: bool) {
    let has = |key: &str| node.get(key).is_some();
    let int_or_string = node["x-kubernetes-int-or-string"] == true;
    assert!(
        has("type") != int_or_string,
        "{path}: exactly one of type and int-or-string"
    );
    assert!(
        !(has("properties") && has("additionalProperties")),
        "{path}: fields and map"
    );
    let bare = path.ends_with("metadata") || path.ends_with("{}");
    assert!(has("description") || bare, "{path}: no description");
    for name in node["required"].as_array().into_iter().flatten() {
        assert!(
            node["properties"]
                .get(name.as_str().expect("it is written so"))
                .is_some(),
            "{path}: {name}"
        );
    }
    for rule in node["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = rule["message"].as_str().expect("it is written so");
        assert!(!message.is_empty() && !message.contains('\n') && message.len() <= 2048);
        assert!(
            !rule["rule"]
                .as_str()
                .expect("it is written so")
                .contains("  "),
            "{path}: stray blanks in a rule"
        );
    }
    match node["x-kubernetes-list-type"].as_str() {
        Some("set") => assert_eq!(node["items"]["type"], "string"),
        Some("map") => {
            for key in node["x-kubernetes-list-map-keys"]
                .as_array()
                .expect("it is written so")
            {
                assert!(
                    node["items"]["required"]
                        .as_array()
                        .expect("it is written so")
                        .contains(key)
                );
            }
        }
        _ => {}
    }
    if let Some(default) = node.get("default") {
        let schema = Schema::compile(node).expect("it is written so");
        let mut object = default.clone();
        assert!(
            is_root || schema.prune(&mut object).is_empty(),
            "{path}: default has strangers"
        );
        schema.apply_defaults(&mut object);
        assert_eq!(
            schema.validate(&object, None),
            [],
            "{path}: default is not valid"
        );
    }
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        lint(child, &format!("{path}.{name}"), false);
    }
    if has("items") {
        lint(&node["items"], &format!("{path}[]"), false);
    }
    if has("additionalProperties") {
        lint(&node["additionalProperties"], &format!("{path}{{}}"), false);
    }
}

#[test]
fn schemas_are_structural() {
    for crd in crds() {
        lint(
            schema(&crd),
            crd["metadata"]["name"].as_str().unwrap(),
            true,
        );
    }
}

#[test]
fn printed_and_enforced_are_one() {
    let crd = crd("nodepools.karpenter.sh");
    let schema = Schema::compile(schema(&crd)).unwrap();
    let mut pool = with(node_pool(), "/spec/weight", json!(0));
    assert_eq!(schema.prune(&mut pool), Vec::<String>::new());
    schema.apply_defaults(&mut pool);
    let errors = schema.validate(&pool, None);
    assert_eq!(joiner_api::admit(&mut pool).unwrap_err().errors(), errors);
}
