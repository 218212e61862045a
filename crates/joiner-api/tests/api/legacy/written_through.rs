//! A v1 object that is read as v1beta1, edited, and written back.

use crate::support::{full, with};
use joiner_api::legacy::{to_v1, to_v1beta1};
use serde_json::{Value, json};

/// The v1 object after edits of its image in v1beta1.
fn edited(object: &Value, edits: &[(&str, Value)]) -> Value {
    let mut image = to_v1beta1(object).expect("it is v1");
    for (pointer, value) in edits {
        image = with(image, pointer, value.clone());
    }
    to_v1(&image).expect("it is v1beta1").objects.remove(0)
}

/// The object with further fields changed.
fn expected(object: &Value, changes: &[(&str, Value)]) -> Value {
    let change = |object, (pointer, value): &(&str, Value)| with(object, pointer, value.clone());
    changes.iter().fold(object.clone(), change)
}

#[test]
fn fields_that_v1beta1_lacks_survive() {
    let pool = with(
        full::node_pools().remove(0),
        "/spec/disruption/consolidationPolicy",
        json!("Balanced"),
    );
    let change = [("/spec/weight", json!(7))];
    assert_eq!(edited(&pool, &change), expected(&pool, &change));
    for class in full::ec2_node_classes() {
        let change = [("/spec/tags", json!({"team": "b"}))];
        assert_eq!(edited(&class, &change), expected(&class, &change));
    }
    let claim = full::node_claims().remove(0);
    let change = [("/metadata/labels", json!({"x": "y"}))];
    assert_eq!(edited(&claim, &change), expected(&claim, &change));
}

#[test]
fn what_was_overwritten_is_not_put_back() {
    let pool = full::node_pools().remove(0);
    let after = edited(
        &pool,
        &[
            ("/spec/disruption/consolidationPolicy", json!("WhenEmpty")),
            ("/spec/disruption/consolidateAfter", json!("10s")),
            ("/spec/disruption/expireAfter", json!("1h")),
        ],
    );
    assert_eq!(
        after["spec"]["disruption"]["consolidationPolicy"],
        "WhenEmpty"
    );
    assert_eq!(after["spec"]["disruption"]["consolidateAfter"], "10s");
    assert_eq!(after["spec"]["template"]["spec"]["expireAfter"], "1h");
    // What v1beta1 cannot say stays.
    let grace = "/spec/template/spec/terminationGracePeriod";
    assert_eq!(after.pointer(grace), pool.pointer(grace));
}

#[test]
fn items_keep_what_their_neighbors_lose() {
    let budgets = json!([
        {"nodes": "0", "reasons": ["Drifted"]},
        {"nodes": "10%"},
        {"nodes": "5", "reasons": ["Empty"]},
    ]);
    let pool = with(
        full::node_pools().remove(0),
        "/spec/disruption/budgets",
        budgets,
    );
    let after = edited(
        &pool,
        &[(
            "/spec/disruption/budgets",
            json!([{"nodes": "5"}, {"nodes": "20%"}, {"nodes": "0"}]),
        )],
    );
    assert_eq!(
        after["spec"]["disruption"]["budgets"],
        json!([
            {"nodes": "5", "reasons": ["Empty"]},
            {"nodes": "20%"},
            {"nodes": "0", "reasons": ["Drifted"]},
        ])
    );
}

#[test]
fn another_image_replaces_the_alias() {
    let class = full::ec2_node_classes().remove(1);
    assert_eq!(
        class["spec"]["amiSelectorTerms"],
        json!([{"alias": "al2023@v20240807"}])
    );
    let after = edited(
        &class,
        &[
            ("/spec/amiFamily", json!("Bottlerocket")),
            ("/metadata/annotations", json!({})),
        ],
    );
    assert_eq!(
        after["spec"]["amiSelectorTerms"],
        json!([{"alias": "bottlerocket@latest"}])
    );
    assert_eq!(after["spec"].get("amiFamily"), None);
}

#[test]
fn another_class_is_not_confused_with_the_one_before() {
    let old = json!({
        "apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {"name": "x"}}}},
    });
    let mut new = to_v1(&old).unwrap().objects.remove(0);
    assert_eq!(
        new["spec"]["template"]["spec"]["nodeClassRef"],
        json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "x"})
    );
    new["spec"]["template"]["spec"]["nodeClassRef"]["name"] = json!("y");
    let image = to_v1beta1(&new).unwrap();
    assert_eq!(
        image["spec"]["template"]["spec"]["nodeClassRef"],
        json!({"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "y"})
    );
}
