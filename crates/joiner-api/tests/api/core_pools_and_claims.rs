//! Core behaviors 22 to 25: references, replicas and limits of NodePools; NodeClaims.

use crate::support::{accepted, node_claim, node_overlay, node_pool, probe, refused, set, with};
use joiner_api::admit_update;
use serde_json::{Value, json};

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
        .accepts([json!(0), json!(1), json!(i32::MAX)])
        .refuses("at least 0", [json!(-1)])
        .refuses("at most 2147483647", [json!(1_000_000_000_000_i64)])
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
    let mut full = crate::support::full_node_pool();
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
