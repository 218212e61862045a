//! Old objects that no API server ever took, and such that v1 has no room for.

use super::examples;
use crate::support::with;
use joiner_api::legacy::{Error, convert_all};
use serde_json::{Value, json};

#[track_caller]
fn refused(object: Value, pointer: &str, value: Value, words: &[&str]) {
    let object = with(object, pointer, value);
    let failure = convert_all(&[object]).expect_err("it never was valid");
    let text = failure.to_string();
    assert!(matches!(failure.error, Error::NeverValid { .. }), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn provisioners() {
    let provisioner = examples::provisioner;
    refused(
        provisioner(),
        "/spec/consolidation",
        json!({"enabled": true}),
        &[
            "Provisioner general: spec:",
            "ttlSecondsAfterEmpty cannot be combined",
            "remove one",
        ],
    );
    refused(
        provisioner(),
        "/spec/ttlSecondsUntilExpired",
        json!(-1),
        &["spec.ttlSecondsUntilExpired: must be at least 0 (got -1)"],
    );
    refused(
        provisioner(),
        "/spec/ttlSecondsAfterEmpty",
        json!("30s"),
        &["must be a whole number"],
    );
    refused(
        provisioner(),
        "/spec/weight",
        json!(101),
        &["spec.weight", "at most 100"],
    );
    refused(
        provisioner(),
        "/spec/provider",
        json!({"subnetSelector": {"a": "b"}, "securityGroupSelector": {"a": "b"}}),
        &["set only one of provider and providerRef"],
    );
    let inline = with(provisioner(), "/spec/providerRef", Value::Null);
    refused(
        inline,
        "/spec/provider",
        json!({"subnetSelector": {"a": "b"}, "amiFamily": "Debian"}),
        &["spec.provider.amiFamily", "Bottlerocket"],
    );
    refused(
        provisioner(),
        "/spec/requirements/0/operator",
        json!("Gte"),
        &["spec.requirements[0].operator"],
    );
    refused(
        provisioner(),
        "/spec/labels",
        json!({"kubernetes.io/role": "x"}),
        &["spec.labels", "kubernetes.io was reserved"],
    );
    refused(
        provisioner(),
        "/spec/labels",
        json!({"karpenter.sh/provisioner-name": "x"}),
        &["karpenter.sh/provisioner-name is set by the pool itself"],
    );
    refused(
        provisioner(),
        "/spec/limits",
        json!({"resources": {"cpu": "many"}}),
        &["limits"],
    );
    refused(
        provisioner(),
        "/metadata/name",
        json!("No Name"),
        &["metadata.name"],
    );
}

#[test]
fn keys_of_kubernetes_that_could_be_set_still_can() {
    let labels = json!({
        "node.kubernetes.io/role": "a", "kops.k8s.io/instancegroup": "b",
        "sub.node-restriction.kubernetes.io/x": "c", "kubernetes.io/arch": "arm64",
    });
    let provisioner = with(examples::provisioner(), "/spec/labels", labels);
    assert!(convert_all(&[provisioner]).is_ok());
}

#[test]
fn node_templates() {
    let template = examples::node_template;
    refused(
        template(),
        "/spec/subnetSelector",
        Value::Null,
        &["spec.subnetSelector: is required"],
    );
    refused(
        template(),
        "/spec/securityGroupSelector",
        Value::Null,
        &["securityGroupSelector is needed"],
    );
    refused(
        template(),
        "/spec/launchTemplate",
        json!("mine"),
        &["launchTemplate cannot be combined with securityGroupSelector"],
    );
    refused(
        template(),
        "/spec/subnetSelector",
        json!({"aws-ids": "subnet-1", "a": "b"}),
        &["aws-ids must be the only key of subnetSelector"],
    );
    refused(
        template(),
        "/spec/blockDeviceMappings",
        json!([{"deviceName": "/dev/xvda"}]),
        &["needs a deviceName and ebs"],
    );
    refused(
        template(),
        "/spec/tags",
        json!({"kubernetes.io/cluster/x": "owned"}),
        &["spec.tags"],
    );
}

#[test]
fn v1beta1() {
    let pool = examples::node_pool;
    refused(
        pool(),
        "/spec/disruption",
        json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}),
        &["spec.disruption.consolidationPolicy", "WhenUnderutilized"],
    );
    refused(
        pool(),
        "/spec/disruption",
        json!({"consolidateAfter": "30s"}),
        &["consolidateAfter cannot be combined with the consolidationPolicy WhenUnderutilized"],
    );
    refused(
        pool(),
        "/spec/disruption",
        json!({"consolidationPolicy": "WhenEmpty"}),
        &["WhenEmpty needs a consolidateAfter"],
    );
    refused(
        pool(),
        "/spec/template/spec/nodeClassRef",
        json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}),
        &["spec.template.spec.nodeClassRef.name: is required"],
    );
    refused(
        pool(),
        "/spec/template/spec/requirements",
        Value::Null,
        &["requirements: is required"],
    );
    let class = examples::node_class;
    refused(
        class(),
        "/spec/amiFamily",
        Value::Null,
        &["spec.amiFamily: is required"],
    );
    refused(
        class(),
        "/spec/instanceProfile",
        json!("x"),
        &["exactly one of role and instanceProfile"],
    );
    refused(
        class(),
        "/spec/amiSelectorTerms",
        json!([{"alias": "al2023@latest"}]),
        &["every term needs at least one of tags, id, name"],
    );
    let custom = with(class(), "/spec/amiFamily", json!("Custom"));
    refused(
        custom,
        "/spec/amiSelectorTerms",
        json!([]),
        &["Custom needs amiSelectorTerms"],
    );
    refused(
        class(),
        "/spec/subnetSelectorTerms",
        json!([{"id": "${SUBNET}"}]),
        &["must be a subnet id", "fill in its variables first"],
    );
}

#[test]
fn fields_without_effect_are_told() {
    let pool = with(
        examples::node_pool(),
        "/spec/template/spec/expireAfter",
        json!("1h"),
    );
    let pool = with(pool, "/spec/consolidation", json!({"enabled": true}));
    let new = super::one(&pool);
    let lines = super::said(&new);
    assert!(
        lines.iter().any(|l| l
            == "spec.template.spec.expireAfter: unknown field, it had no \
        effect and is left out; did you mean spec.disruption.expireAfter?"),
        "{lines:#?}"
    );
    assert!(
        lines
            .iter()
            .any(|l| l.starts_with("spec.consolidation: unknown field")),
        "{lines:#?}"
    );
    assert_eq!(
        new.objects[0]["spec"]["template"]["spec"]["expireAfter"],
        "336h"
    );
}

#[test]
fn what_v1_has_no_room_for() {
    let many = (0..40)
        .map(|n| format!("subnet-{n}"))
        .collect::<Vec<_>>()
        .join(",");
    let template = with(
        examples::node_template(),
        "/spec/subnetSelector",
        json!({"aws-ids": many}),
    );
    let failure = convert_all(&[template]).unwrap_err();
    assert!(matches!(failure.error, Error::NotAsV1 { .. }));
    assert_eq!(
        failure.to_string(),
        "AWSNodeTemplate general: as EC2NodeClass v1, spec.subnetSelectorTerms: must have at most \
         30 items, has 40"
    );
}
