//! Core behaviors 28 to 31: NodeOverlays and CapacityBuffers; and the simulated node class.

use crate::support::{
    accepted, capacity_buffer, kwok_node_class, node_overlay, probe, refused, set, with,
};
use joiner_api::admit;
use serde_json::{Value, json};

fn texts(values: &[&str]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

#[test]
fn core_11_1_28_overlay_price() {
    probe(node_overlay(), "/spec/price", "spec.price")
        .accepts(texts(&["5", "5.25", "0", "0.0001"]))
        .refuses(
            "must be a price",
            texts(&[
                "+5", "-5", ".5", "5.", "5%", "1,000", "1e3", "0x1", "free", "", "5 ",
            ]),
        )
        .refuses("quote it", [json!(5)]);
}

#[test]
fn core_11_1_29_overlay_price_adjustment() {
    probe(
        node_overlay(),
        "/spec/priceAdjustment",
        "spec.priceAdjustment",
    )
    .accepts(texts(&[
        "+10%", "-10%", "-100%", "+250%", "+5", "-5", "-2.5", "-2.5%", "+0.01", "-1000",
    ]))
    .refuses(
        "signed",
        texts(&[
            "10", "10%", "-101%", "-100.5%", "-250%", "+", "%", "+%", "++5", "+5%%", "",
        ]),
    );
}

#[test]
fn core_11_1_30_overlay_capacity() {
    for resource in ["cpu", "memory", "ephemeral-storage", "pods"] {
        let overlay = with(node_overlay(), "/spec/capacity", json!({resource: "1"}));
        refused(overlay, "spec.capacity", "cannot be corrected");
        let both = json!({resource: "1", "example.com/gpu": "1"});
        refused(
            with(node_overlay(), "/spec/capacity", both),
            "spec.capacity",
            "corrected",
        );
    }
    accepted(with(
        node_overlay(),
        "/spec/capacity",
        json!({"example.com/gpu": 4, "hugepages-2Mi": "1Gi"}),
    ));
    let bad = with(
        node_overlay(),
        "/spec/capacity",
        json!({"example.com/gpu": "many"}),
    );
    refused(bad, "spec.capacity[example.com/gpu]", "quantity");
    let mut both = with(node_overlay(), "/spec/price", json!("5"));
    accepted(both.clone());
    set(&mut both, "/spec/priceAdjustment", json!("+5%"));
    refused(both, "spec", "exclude each other");
}

#[test]
fn core_1_7_overlay_weight_and_requirements() {
    probe(node_overlay(), "/spec/weight", "spec.weight")
        .accepts([json!(1), json!(10_000)])
        .refuses("at least 1", [json!(0)])
        .refuses("at most 10000", [json!(10_001)]);
    let at = |requirement: Value| with(node_overlay(), "/spec/requirements", json!([requirement]));
    for operator in ["In", "NotIn"] {
        accepted(at(
            json!({"key": "a", "operator": operator, "values": ["b"]}),
        ));
        for values in [json!([]), Value::Null] {
            let bad = json!({"key": "a", "operator": operator, "values": values});
            refused(at(bad), "spec.requirements[0]", "In and NotIn need");
        }
    }
    accepted(at(json!({"key": "a", "operator": "Exists"})));
    let none = with(node_overlay(), "/spec/requirements", Value::Null);
    refused(none, "spec.requirements", "is required");
    let none = with(node_overlay(), "/spec", Value::Null);
    refused(none, "spec", "is required");
    let mut extra = at(json!({"key": "a", "operator": "Exists", "minValues": 2}));
    let warnings = admit(&mut extra).unwrap().warnings;
    assert_eq!(warnings[0].path, "spec.requirements[0].minValues");
}

#[test]
fn core_11_1_31_capacity_buffer() {
    let mut buffer = capacity_buffer();
    assert!(admit(&mut buffer).is_ok());
    assert_eq!(
        buffer["spec"]["provisioningStrategy"],
        "buffer.x-k8s.io/active-capacity"
    );

    let template = json!({"podTemplateRef": {"name": "web"}});
    let by_template = with(capacity_buffer(), "/spec", template);
    refused(by_template.clone(), "spec", "how much room");
    accepted(with(by_template.clone(), "/spec/replicas", json!(0)));
    accepted(with(
        by_template.clone(),
        "/spec/limits",
        json!({"cpu": "10"}),
    ));
    let percentage = with(by_template.clone(), "/spec/percentage", json!(10));
    refused(percentage, "spec", "how much room");

    let mut both = with(by_template.clone(), "/spec/replicas", json!(1));
    set(
        &mut both,
        "/spec/scalableRef",
        json!({"kind": "Deployment", "name": "web"}),
    );
    refused(both, "spec", "exclude each other");
    accepted(with(capacity_buffer(), "/spec", json!({})));

    for field in ["replicas", "percentage"] {
        let pointer = format!("/spec/{field}");
        let path = format!("spec.{field}");
        for value in [0, 1, 200] {
            accepted(with(capacity_buffer(), &pointer, json!(value)));
        }
        refused(
            with(capacity_buffer(), &pointer, json!(-1)),
            &path,
            "at least 0",
        );
        let wide = with(capacity_buffer(), &pointer, json!(3_000_000_000_u64));
        refused(wide, &path, "32 bits");
    }
    let unnamed = with(
        by_template,
        "/spec",
        json!({"podTemplateRef": {"name": ""}, "replicas": 1}),
    );
    refused(unnamed, "spec.podTemplateRef.name", "not be empty");
    for field in ["kind", "name"] {
        let pointer = format!("/spec/scalableRef/{field}");
        let path = format!("spec.scalableRef.{field}");
        refused(
            with(capacity_buffer(), &pointer, json!("")),
            &path,
            "not be empty",
        );
        refused(
            with(capacity_buffer(), &pointer, Value::Null),
            &path,
            "is required",
        );
    }
}

#[test]
fn core_12_2_kwok_node_class() {
    let mut class = kwok_node_class();
    assert!(admit(&mut class).is_ok());
    assert_eq!(
        class["status"]["conditions"][0],
        json!({
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2024-01-01T01:01:01Z",
        })
    );
    let path = "spec.nodeRegistrationDelay";
    probe(kwok_node_class(), "/spec/nodeRegistrationDelay", path)
        .accepts(texts(&["30s", "500ms", "1m30s", "0s", "1h0m0.5s"]))
        .refuses("duration", texts(&["-1s", "soon", "", "30"]));
}
