//! Recognizing kinds, metadata, unknown fields, and what rejections say.

use crate::support::{accepted, ec2_node_class, node_pool, refused, with};
use joiner_api::admission::{Rejection, schema_of};
use joiner_api::{admit, admit_update};
use serde_json::{Value, json};

#[test]
fn older_kinds_are_named_and_explained() {
    for (api_version, kind, new_kind, word) in [
        (
            "karpenter.sh/v1alpha5",
            "Provisioner",
            "karpenter.sh/v1 NodePool",
            "ttlSecondsAfterEmpty",
        ),
        (
            "karpenter.sh/v1alpha5",
            "Machine",
            "karpenter.sh/v1 NodeClaim",
            "machineTemplateRef",
        ),
        (
            "karpenter.sh/v1beta1",
            "NodePool",
            "karpenter.sh/v1 NodePool",
            "WhenUnderutilized",
        ),
        (
            "karpenter.sh/v1beta1",
            "NodeClaim",
            "karpenter.sh/v1 NodeClaim",
            "nodeClassRef",
        ),
        (
            "karpenter.k8s.aws/v1alpha1",
            "AWSNodeTemplate",
            "karpenter.k8s.aws/v1 EC2NodeClass",
            "subnetSelectorTerms",
        ),
        (
            "karpenter.k8s.aws/v1beta1",
            "EC2NodeClass",
            "karpenter.k8s.aws/v1 EC2NodeClass",
            "alias",
        ),
    ] {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "old"}});
        let rejection = admit(&mut object).unwrap_err();
        assert!(matches!(rejection, Rejection::OlderApi { .. }));
        let text = rejection.to_string();
        assert!(text.starts_with(&format!("{kind} old: {api_version} {kind} is an older API")));
        assert!(text.contains(&format!("write it as {new_kind}")), "{text}");
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn strangers_are_named() {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
    let text = admit(&mut pod).unwrap_err().to_string();
    assert_eq!(text, "v1 Pod is not a kind that Joiner defines");
    let mut typo = json!({"apiVersion": "karpenter.sh/v2", "kind": "nodepool"});
    let text = admit(&mut typo).unwrap_err().to_string();
    assert!(
        text.ends_with("did you mean karpenter.sh/v1 NodePool?"),
        "{text}"
    );
    for mut value in [
        json!([]),
        json!({"kind": "NodePool"}),
        json!({"apiVersion": "v1"}),
    ] {
        assert!(matches!(
            admit(&mut value),
            Err(Rejection::NotAnObject { .. })
        ));
    }
    assert!(schema_of("karpenter.sh/v1", "NodePool").is_some());
    assert!(schema_of("v1", "Pod").is_none());
}

#[test]
fn names() {
    for name in ["default", "a.b-c", "0"] {
        accepted(with(node_pool(), "/metadata/name", json!(name)));
    }
    for name in ["Default", "a_b", "-a", "a..b", &"a".repeat(254)] {
        refused(
            with(node_pool(), "/metadata/name", json!(name)),
            "metadata.name",
            "must",
        );
    }
    for name in [json!(""), Value::Null] {
        refused(
            with(node_pool(), "/metadata/name", name),
            "metadata.name",
            "is required",
        );
    }
    accepted(with(
        node_pool(),
        "/metadata",
        json!({"generateName": "default-"}),
    ));
    for metadata in [
        json!({"generateName": "Default-"}),
        json!({"generateName": "default."}),
        json!({"generateName": "a/b", "name": "default"}),
    ] {
        let bad = with(node_pool(), "/metadata", metadata);
        refused(bad, "metadata.generateName", "must be");
    }
    refused(
        with(node_pool(), "/metadata", Value::Null),
        "metadata",
        "is required",
    );
    refused(
        with(node_pool(), "/metadata/name", json!(7)),
        "metadata.name",
        "quote it",
    );
    let mut renamed = with(node_pool(), "/metadata/name", json!("other"));
    let rejection = admit_update(&node_pool(), &mut renamed).unwrap_err();
    assert_eq!(rejection.errors()[0].path, "metadata.name");
}

#[test]
fn labels_and_annotations_of_the_object() {
    let at = |field: &str, map: Value| with(node_pool(), &format!("/metadata/{field}"), map);
    accepted(at("labels", json!({"example.com/a": "b", "empty": ""})));
    accepted(at(
        "annotations",
        json!({"Example.com/A": "anything / at all"}),
    ));
    refused(
        at("labels", json!({"a b": "c"})),
        "metadata.labels[a b]",
        "the key must be",
    );
    refused(
        at("labels", json!({"a": "b c"})),
        "metadata.labels[a]",
        "must be letters",
    );
    refused(
        at("labels", json!({"a": true})),
        "metadata.labels[a]",
        "quote it: \"true\"",
    );
    refused(
        at("annotations", json!({"a b": "c"})),
        "metadata.annotations[a b]",
        "the key",
    );
    let huge = "x".repeat(256 * 1024);
    refused(
        at("annotations", json!({"a": huge})),
        "metadata.annotations",
        "256 KiB",
    );
}

#[test]
fn unknown_fields_warn_and_go() {
    let mut pool = node_pool();
    pool["spec"]["template"]["spec"]["requirments"] = json!([]);
    pool["spec"]["disruption"] = json!({"consolidateAfter": "0s", "expireAfter": "1h"});
    pool["metadata"]["label"] = json!({});
    pool["spec"]["provider"] = json!({"deep": {"er": 1}});
    pool["extra"] = json!(1);
    let warnings: Vec<String> = admit(&mut pool)
        .unwrap()
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        warnings,
        [
            "metadata.label: unknown field, it has no effect; did you mean labels?",
            "extra: unknown field, it has no effect",
            "spec.disruption.expireAfter: unknown field, it has no effect; did you mean \
             spec.template.spec.expireAfter?",
            "spec.provider: unknown field, it has no effect",
            "spec.template.spec.requirments: unknown field, it has no effect; did you mean \
             requirements?",
        ]
    );
    assert!(pool.get("extra").is_none());
    assert!(pool["spec"].get("provider").is_none());
    assert!(pool["metadata"].get("label").is_none());
}

#[test]
fn a_rejection_tells_every_mistake() {
    let mut pool = node_pool();
    pool["spec"]["weight"] = json!(0);
    pool["spec"]["disruption"] = json!({"consolidateAfter": "soon"});
    let rejection = admit(&mut pool).unwrap_err();
    assert_eq!(
        rejection.to_string(),
        "NodePool default: spec.disruption.consolidateAfter: must be a duration in h, m and s such \
         as 30s, 5m or 1h30m, or Never (got \"soon\"); spec.weight: must be at least 1 (got 0)"
    );
    let bad = json!({"key": "a", "operator": "In"});
    let many = with(
        node_pool(),
        "/spec/template/spec/requirements",
        json!(vec![bad; 60]),
    );
    assert_eq!(admit(&mut many.clone()).unwrap_err().errors().len(), 20);
}

#[test]
fn rules_wait_until_the_value_is_well_formed() {
    let mut class = ec2_node_class();
    class["spec"]["amiSelectorTerms"] = json!("al2023@latest");
    let rejection = admit(&mut class).unwrap_err();
    assert_eq!(rejection.errors().len(), 1, "{rejection}");
    assert_eq!(
        rejection.errors()[0].message,
        "must be a list, not a string"
    );
}

#[test]
fn unchanged_parts_are_not_judged_again() {
    let mut old = node_pool();
    old["spec"]["weight"] = json!(500);
    let mut new = with(old.clone(), "/metadata/labels", json!({"a": "b"}));
    assert!(admit_update(&old, &mut new).is_ok());
    let mut new = with(old.clone(), "/spec/weight", json!(501));
    assert!(admit_update(&old, &mut new).is_err());
}
