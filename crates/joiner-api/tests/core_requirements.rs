//! Core behaviors 13 to 25: taints, labels, requirements, references and replicas.

mod support;

use joiner_api::admit_update;
use serde_json::{Value, json};
use support::{
    accepted, node_claim, node_overlay, node_pool, pool_with, probe, refused, set, with,
};

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

#[test]
fn core_11_1_22_node_class_ref() {
    for field in ["group", "kind", "name"] {
        let pointer = format!("/spec/template/spec/nodeClassRef/{field}");
        let path = format!("spec.template.spec.nodeClassRef.{field}");
        refused(
            with(node_pool(), &pointer, json!("")),
            &path,
            "must not be empty",
        );
        refused(
            with(node_pool(), &pointer, Value::Null),
            &path,
            "is required",
        );
        let pointer = format!("/spec/nodeClassRef/{field}");
        let path = format!("spec.nodeClassRef.{field}");
        refused(
            with(node_claim(), &pointer, json!("")),
            &path,
            "must not be empty",
        );
    }
    let pool = with(
        node_pool(),
        "/spec/template/spec/nodeClassRef/group",
        json!("a.b/v1"),
    );
    refused(
        pool,
        "spec.template.spec.nodeClassRef.group",
        "without a version",
    );
    let pool = with(node_pool(), "/spec/template/spec/nodeClassRef", Value::Null);
    refused(pool, "spec.template.spec.nodeClassRef", "is required");

    let update = |field: &str| {
        let mut new = node_pool();
        set(
            &mut new,
            &format!("/spec/template/spec/nodeClassRef/{field}"),
            json!("other"),
        );
        admit_update(&node_pool(), &mut new)
    };
    assert!(update("name").is_ok());
    for field in ["group", "kind"] {
        let rejection = update(field).unwrap_err();
        assert_eq!(rejection.errors().len(), 1);
        assert_eq!(
            rejection.errors()[0].path,
            format!("spec.template.spec.nodeClassRef.{field}")
        );
        assert!(rejection.errors()[0].message.contains("cannot be changed"));
    }
}

#[test]
fn core_11_1_23_replicas() {
    probe(node_pool(), "/spec/replicas", "spec.replicas")
        .accepts([json!(0), json!(1), json!(1_000_000_000_000_i64)])
        .refuses("at least 0", [json!(-1)])
        .refuses("whole number", [json!(1.5), json!("1")]);
    probe(node_pool(), "/spec/weight", "spec.weight")
        .accepts([json!(1), json!(100)])
        .refuses("at least 1", [json!(0), json!(-5)])
        .refuses("at most 100", [json!(101)]);
}

#[test]
fn core_11_1_24_static_pools() {
    let base = with(node_pool(), "/spec/replicas", json!(3));
    for resource in ["cpu", "memory", "pods", "ephemeral-storage"] {
        let pool = with(base.clone(), "/spec/limits", json!({resource: "10"}));
        refused(pool, "spec", "only be limited by nodes");
        let pool = with(
            base.clone(),
            "/spec/limits",
            json!({resource: "10", "nodes": "5"}),
        );
        refused(pool, "spec", "only be limited by nodes");
        accepted(with(node_pool(), "/spec/limits", json!({resource: "10"})));
    }
    refused(
        with(base.clone(), "/spec/weight", json!(5)),
        "spec",
        "cannot have a weight",
    );
    accepted(with(base.clone(), "/spec/limits", json!({"nodes": "5"})));
    accepted(with(base.clone(), "/spec/limits", json!({})));
    let mut full = support::full_node_pool();
    set(&mut full, "/spec/weight", Value::Null);
    set(&mut full, "/spec/limits", json!({"nodes": 5}));
    set(&mut full, "/spec/replicas", json!(3));
    accepted(full);
}

#[test]
fn core_11_1_25_static_stays_static() {
    let dynamic = node_pool();
    let fixed = with(node_pool(), "/spec/replicas", json!(3));
    for (old, new) in [(&dynamic, &fixed), (&fixed, &dynamic)] {
        let rejection = admit_update(old, &mut new.clone()).unwrap_err();
        assert_eq!(rejection.errors()[0].path, "spec");
        assert!(rejection.errors()[0].message.contains("make a new pool"));
    }
    let more = with(fixed.clone(), "/spec/replicas", json!(5));
    assert!(admit_update(&fixed, &mut more.clone()).is_ok());
    let limited = with(fixed.clone(), "/spec/limits", json!({"nodes": "9"}));
    assert!(admit_update(&fixed, &mut limited.clone()).is_ok());
}

#[test]
fn core_1_1_limits_are_quantities() {
    probe(node_pool(), "/spec/limits", "spec.limits[cpu]")
        .accepts([
            json!({"cpu": "10"}),
            json!({"cpu": 10}),
            json!({"cpu": "1500m"}),
            json!({}),
        ])
        .refuses(
            "quantity",
            [
                json!({"cpu": "ten"}),
                json!({"cpu": "10GB"}),
                json!({"cpu": ""}),
            ],
        )
        .refuses("quote it", [json!({"cpu": 0.5}), json!({"cpu": true})]);
}

#[test]
fn core_1_5_claims_cannot_be_changed() {
    let mut claim = node_claim();
    assert!(joiner_api::admit(&mut claim).is_ok());
    assert_eq!(claim["spec"]["expireAfter"], "720h");
    let status = json!({"nodeName": "ip-10-0-0-1", "conditions": [{
        "type": "Launched", "status": "True", "lastTransitionTime": "2026-01-31T12:00:00Z",
    }]});
    assert!(admit_update(&claim, &mut with(claim.clone(), "/status", status)).is_ok());
    let mut changed = with(claim.clone(), "/spec/terminationGracePeriod", json!("30s"));
    let rejection = admit_update(&claim, &mut changed).unwrap_err();
    assert_eq!(rejection.errors()[0].path, "spec");
    assert!(rejection.errors()[0].message.contains("cannot be changed"));
}

#[test]
fn core_1_5_conditions_of_claims_may_omit_the_reason() {
    let condition = json!([{
        "type": "Launched", "status": "True", "lastTransitionTime": "2026-01-31T12:00:00Z",
    }]);
    accepted(with(
        node_claim(),
        "/status",
        json!({"conditions": condition}),
    ));
    let pool = with(node_pool(), "/status", json!({"conditions": condition}));
    refused(pool.clone(), "status.conditions[0].reason", "is required");
    refused(pool, "status.conditions[0].message", "is required");
    let overlay = with(node_overlay(), "/status", json!({"conditions": condition}));
    refused(overlay, "status.conditions[0].reason", "is required");
    for (field, value) in [
        ("status", "Yes"),
        ("lastTransitionTime", "noon"),
        ("type", "a b"),
    ] {
        let mut bad = condition.clone();
        bad[0][field] = json!(value);
        let claim = with(node_claim(), "/status", json!({"conditions": bad}));
        refused(claim, &format!("status.conditions[0].{field}"), "must be");
    }
}
