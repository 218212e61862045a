//! Core behaviors 13 to 21: taints, labels and requirements.

use crate::support::{accepted, node_claim, node_overlay, node_pool, pool_with, refused, with};
use serde_json::{Value, json};

const REQUIREMENT: &str = "spec.template.spec.requirements[0]";
const KEY: &str = "spec.template.spec.requirements[0].key";
const LABELS: &str = "spec.template.metadata.labels";

fn requirement(key: &str) -> Value {
    json!({"key": key, "operator": "Exists"})
}

fn pool_with_label(key: &str, value: &str) -> Value {
    with(
        node_pool(),
        "/spec/template/metadata",
        json!({"labels": {key: value}}),
    )
}

fn claim_with(requirement: Value) -> Value {
    with(node_claim(), "/spec/requirements", json!([requirement]))
}

fn overlay_with(requirement: Value) -> Value {
    with(node_overlay(), "/spec/requirements", json!([requirement]))
}

#[test]
fn core_11_1_13_taints() {
    for field in ["taints", "startupTaints"] {
        let pointer = format!("/spec/template/spec/{field}");
        let at = |taints: Value| with(node_pool(), &pointer, taints);
        let path = |rest: &str| format!("spec.template.spec.{field}[0]{rest}");
        accepted(at(json!([
            {"key": "a", "value": "b", "effect": "NoSchedule"},
            {"key": "a", "effect": "NoExecute"},
            {"key": "example.com/a", "effect": "PreferNoSchedule"},
        ])));
        refused(
            at(json!([{"effect": "NoSchedule"}])),
            &path(".key"),
            "is required",
        );
        refused(
            at(json!([{"key": "", "effect": "NoSchedule"}])),
            &path(".key"),
            "not be empty",
        );
        refused(
            at(json!([{"key": "???", "effect": "NoSchedule"}])),
            &path(".key"),
            "name",
        );
        let bad = json!([{"key": "a", "value": "???", "effect": "NoSchedule"}]);
        refused(at(bad), &path(".value"), "name");
        let empty = json!([{"key": "a", "value": "", "effect": "NoSchedule"}]);
        refused(at(empty), &path(".value"), "not be empty");
        refused(at(json!([{"key": "a"}])), &path(".effect"), "is required");
        refused(
            at(json!([{"key": "a", "effect": "???"}])),
            &path(".effect"),
            "must be one of",
        );
    }
}

#[test]
fn core_11_1_14_long_keys_pass_the_schema() {
    let long = "a".repeat(100);
    accepted(pool_with(requirement(&long)));
    accepted(pool_with_label(&long, "x"));
    accepted(with(
        node_pool(),
        "/spec/template/spec/taints",
        json!([{"key": long, "effect": "NoSchedule"}]),
    ));
    refused(
        pool_with(requirement(&"a".repeat(317))),
        KEY,
        "at most 316 characters",
    );
    refused(pool_with(requirement("not a key")), KEY, "name");
    refused(
        pool_with_label("a", &"v".repeat(64)),
        &format!("{LABELS}[a]"),
        "at most 63",
    );
    refused(
        pool_with_label("a", "not a value"),
        &format!("{LABELS}[a]"),
        "label value",
    );
    let labels: serde_json::Map<String, Value> = (0..101)
        .map(|index| (format!("key-{index}"), json!("x")))
        .collect();
    let pool = with(
        node_pool(),
        "/spec/template/metadata",
        json!({"labels": labels}),
    );
    refused(pool, LABELS, "at most 100 entries");
}

#[test]
fn core_11_1_15_nodepool_key() {
    let key = "karpenter.sh/nodepool";
    refused(
        pool_with(requirement(key)),
        KEY,
        "set by the NodePool itself",
    );
    refused(
        pool_with_label(key, "x"),
        LABELS,
        "set by the NodePool itself",
    );
    accepted(claim_with(requirement(key)));
    accepted(overlay_with(requirement(key)));
}

#[test]
fn core_11_1_16_reserved_domains() {
    for key in [
        "karpenter.sh/x",
        "sub.karpenter.sh/x",
        "mykarpenter.sh/x",
        "karpenter.sh",
    ] {
        let words = "domain karpenter.sh is reserved";
        refused(pool_with(requirement(key)), KEY, words);
        refused(pool_with_label(key, "x"), LABELS, words);
        refused(
            claim_with(requirement(key)),
            "spec.requirements[0].key",
            words,
        );
        refused(
            overlay_with(requirement(key)),
            "spec.requirements[0].key",
            words,
        );
    }
    for key in [
        "karpenter.sh/capacity-type",
        "kubernetes.io/custom",
        "custom.k8s.io/x",
        "node.kubernetes.io/instance-type",
        "node-restriction.kubernetes.io/x",
        "kops.k8s.io/instancegroup",
        "example.com/karpenter.sh",
    ] {
        accepted(pool_with(requirement(key)));
        accepted(pool_with_label(key, "x"));
        accepted(claim_with(requirement(key)));
        accepted(overlay_with(requirement(key)));
    }
}

#[test]
fn aws_1_5_label_allow_list() {
    let words = "domain karpenter.k8s.aws is reserved";
    for key in [
        "karpenter.k8s.aws/made-up",
        "x.karpenter.k8s.aws/instance-size",
    ] {
        refused(pool_with(requirement(key)), KEY, words);
        refused(pool_with_label(key, "x"), LABELS, words);
        refused(
            claim_with(requirement(key)),
            "spec.requirements[0].key",
            words,
        );
        refused(
            overlay_with(requirement(key)),
            "spec.requirements[0].key",
            words,
        );
    }
    for key in joiner_api::labels::aws::HARDWARE_LABELS {
        accepted(pool_with(requirement(key)));
        accepted(pool_with_label(key, "x"));
        accepted(claim_with(requirement(key)));
        accepted(overlay_with(requirement(key)));
    }
    for key in joiner_api::labels::aws::PLACEMENT_LABELS {
        accepted(pool_with(requirement(key)));
        accepted(pool_with_label(key, "x"));
        accepted(claim_with(requirement(key)));
        refused(
            overlay_with(requirement(key)),
            "spec.requirements[0].key",
            words,
        );
    }
    accepted(pool_with(requirement("topology.k8s.aws/zone-id")));
}

#[test]
fn core_12_2_kwok_label_allow_list() {
    let words = "domain karpenter.kwok.sh is reserved";
    let key = "karpenter.kwok.sh/made-up";
    refused(pool_with(requirement(key)), KEY, words);
    refused(pool_with_label(key, "x"), LABELS, words);
    refused(
        claim_with(requirement(key)),
        "spec.requirements[0].key",
        words,
    );
    refused(
        overlay_with(requirement(key)),
        "spec.requirements[0].key",
        words,
    );
    for key in joiner_api::labels::kwok::LABELS {
        accepted(pool_with(requirement(key)));
        accepted(pool_with_label(key, "x"));
        accepted(claim_with(requirement(key)));
        accepted(overlay_with(requirement(key)));
    }
}

#[test]
fn core_11_1_17_hostname() {
    let key = "kubernetes.io/hostname";
    refused(pool_with(requirement(key)), KEY, "cannot be chosen");
    refused(pool_with_label(key, "x"), LABELS, "cannot be chosen");
    refused(
        claim_with(requirement(key)),
        "spec.requirements[0].key",
        "cannot be chosen",
    );
    refused(
        overlay_with(requirement(key)),
        "spec.requirements[0].key",
        "cannot be chosen",
    );
}

#[test]
fn core_11_1_18_in_needs_values() {
    accepted(node_pool());
    refused(
        with(node_pool(), "/spec/template/spec/requirements", Value::Null),
        "spec.template.spec.requirements",
        "is required",
    );
    for values in [json!([]), Value::Null] {
        let bad = json!({"key": "a", "operator": "In", "values": values});
        refused(
            pool_with(bad.clone()),
            REQUIREMENT,
            "In needs at least one value",
        );
        refused(
            claim_with(bad),
            "spec.requirements[0]",
            "In needs at least one value",
        );
    }
    accepted(pool_with(
        json!({"key": "a", "operator": "In", "values": ["b"]}),
    ));
    // NotIn without values equals Exists.
    accepted(pool_with(
        json!({"key": "a", "operator": "NotIn", "values": []}),
    ));
    accepted(claim_with(json!({"key": "a", "operator": "NotIn"})));
    for operator in ["in", "", "Equals"] {
        let bad = json!({"key": "a", "operator": operator, "values": ["b"]});
        refused(
            pool_with(bad),
            &format!("{REQUIREMENT}.operator"),
            "must be one of",
        );
    }
}

#[test]
fn core_11_1_19_comparisons_need_one_number() {
    for operator in ["Gt", "Lt", "Gte", "Lte"] {
        let at = |values: Value| json!({"key": "a", "operator": operator, "values": values});
        for values in [json!(["0"]), json!(["1"]), json!(["2147483648"])] {
            accepted(pool_with(at(values.clone())));
            accepted(claim_with(at(values.clone())));
            accepted(overlay_with(at(values)));
        }
        for values in [
            json!([]),
            json!(["1", "2"]),
            json!(["-1"]),
            json!(["a"]),
            json!(["1.5"]),
            json!([""]),
        ] {
            let words = "exactly one value";
            refused(pool_with(at(values.clone())), REQUIREMENT, words);
            refused(
                claim_with(at(values.clone())),
                "spec.requirements[0]",
                words,
            );
            refused(overlay_with(at(values)), "spec.requirements[0]", words);
        }
        refused(
            pool_with(json!({"key": "a", "operator": operator})),
            REQUIREMENT,
            "exactly one",
        );
    }
}

#[test]
fn core_11_1_20_min_values() {
    let at = |count: Value, values: usize| {
        let values: Vec<String> = (0..values).map(|v| format!("v{v}")).collect();
        pool_with(json!({"key": "a", "operator": "In", "values": values, "minValues": count}))
    };
    let path = format!("{REQUIREMENT}.minValues");
    accepted(at(json!(1), 1));
    accepted(at(json!(50), 50));
    accepted(at(Value::Null, 60));
    refused(at(json!(-1), 60), &path, "at least 1");
    refused(at(json!(0), 60), &path, "at least 1");
    refused(at(json!(51), 60), &path, "at most 50");
    refused(at(json!(5), 3), REQUIREMENT, "more values than are listed");
    // Duplicates count, and only In is looked at.
    accepted(pool_with(
        json!({"key": "a", "operator": "In", "values": ["b", "b"], "minValues": 2}),
    ));
    accepted(pool_with(
        json!({"key": "a", "operator": "Exists", "minValues": 2}),
    ));
}

#[test]
fn core_11_1_21_at_most_100_requirements() {
    let many = |count: usize| -> Value {
        (0..count)
            .map(|index| requirement(&format!("key-{index}")))
            .collect()
    };
    accepted(with(
        node_pool(),
        "/spec/template/spec/requirements",
        many(100),
    ));
    let pool = with(node_pool(), "/spec/template/spec/requirements", many(101));
    refused(pool, "spec.template.spec.requirements", "at most 100 items");
    let claim = with(node_claim(), "/spec/requirements", many(101));
    refused(claim, "spec.requirements", "at most 100 items");
    let overlay = with(node_overlay(), "/spec/requirements", many(101));
    refused(overlay, "spec.requirements", "at most 100 items");
}
