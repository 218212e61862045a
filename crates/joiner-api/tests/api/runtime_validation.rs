//! What the controller finds in a NodePool beyond the schema.

use crate::support::{node_pool, pool_with, with};
use joiner_api::admit;
use joiner_api::types::NodePool;
use joiner_api::validation::validate_node_pool;
use serde_json::{Value, json};

/// Problems of a pool that need not have passed admission.
fn problems(pool: &Value) -> Vec<String> {
    let typed: NodePool = serde_json::from_value(pool.clone()).expect("the type can hold it");
    validate_node_pool(&typed)
}

#[track_caller]
fn fine(pool: &Value) {
    assert_eq!(problems(pool), Vec::<String>::new());
}

#[track_caller]
fn wrong(pool: &Value, words: &str) {
    let found = problems(pool);
    assert!(
        found.iter().any(|problem| problem.contains(words)),
        "want {words}, got {found:#?}"
    );
}

fn label(key: &str, value: &str) -> Value {
    with(
        node_pool(),
        "/spec/template/metadata",
        json!({"labels": {key: value}}),
    )
}

#[test]
fn core_11_1_14_long_keys_fail_at_runtime() {
    let long = "a".repeat(100);
    let taint = json!([{"key": long, "effect": "NoSchedule"}]);
    for pool in [
        label(&long, "x"),
        pool_with(json!({"key": long, "operator": "Exists"})),
        with(node_pool(), "/spec/template/spec/taints", taint),
    ] {
        assert!(admit(&mut pool.clone()).is_ok());
        wrong(&pool, "at most 63 characters");
    }
}

#[test]
fn core_1_2_labels() {
    fine(&label("example.com/team", "a"));
    fine(&label("kubernetes.io/custom", "a"));
    wrong(
        &label("karpenter.sh/nodepool", "a"),
        "set by the pool itself",
    );
    wrong(&label("karpenter.sh/other", "a"), "cannot be set");
    wrong(&label("sub.karpenter.k8s.aws/other", "a"), "cannot be set");
    wrong(&label("kubernetes.io/hostname", "a"), "cannot be set");
    wrong(&label("a b", "a"), "template label key");
    wrong(&label("a", "a b"), "value \"a b\"");
}

#[test]
fn core_1_2_taints() {
    let at = |taints: Value, startup: Value| {
        let pool = with(node_pool(), "/spec/template/spec/taints", taints);
        with(pool, "/spec/template/spec/startupTaints", startup)
    };
    let a = |effect: &str| json!({"key": "a", "effect": effect});
    fine(&at(
        json!([a("NoSchedule"), a("NoExecute")]),
        json!([a("PreferNoSchedule")]),
    ));
    wrong(
        &at(json!([a("NoSchedule"), a("NoSchedule")]), json!([])),
        "a:NoSchedule is there twice",
    );
    wrong(
        &at(json!([a("NoSchedule")]), json!([a("NoSchedule")])),
        "a:NoSchedule is there twice",
    );
    wrong(
        &at(json!([{"key": "", "effect": "NoSchedule"}]), json!([])),
        "must not be empty",
    );
    wrong(
        &at(json!([{"key": "a b", "effect": "NoSchedule"}]), json!([])),
        "taint key",
    );
    let bad = json!([{"key": "a", "value": "b c", "effect": "NoSchedule"}]);
    wrong(&at(bad, json!([])), "value \"b c\" of taint a");
}

#[test]
fn core_1_2_requirements() {
    let at = |key: &str, operator: &str, values: &[&str]| {
        pool_with(json!({"key": key, "operator": operator, "values": values}))
    };
    fine(&at("example.com/a", "In", &["b"]));
    fine(&at("beta.kubernetes.io/arch", "In", &["amd64"]));
    fine(&at("a", "NotIn", &[]));
    fine(&at("a", "Gt", &["5"]));
    wrong(
        &at("karpenter.sh/nodepool", "Exists", &[]),
        "set by the pool itself",
    );
    wrong(&at("karpenter.sh/other", "Exists", &[]), "cannot be set");
    wrong(
        &at("kubernetes.io/hostname", "Exists", &[]),
        "cannot be set",
    );
    wrong(&at("a b", "Exists", &[]), "requirement key");
    wrong(&at("a", "In", &["b c"]), "value \"b c\"");
    wrong(&at("a", "In", &[]), "no values");
    let few = json!({"key": "a", "operator": "In", "values": ["b", "b"], "minValues": 3});
    wrong(&pool_with(few), "fewer than its minValues of 3");
    let doubled = json!({"key": "a", "operator": "In", "values": ["b", "b"], "minValues": 2});
    fine(&pool_with(doubled));
    for operator in ["Gt", "Lt", "Gte", "Lte"] {
        for values in [&[][..], &["1", "2"], &["-1"], &["x"]] {
            wrong(&at("a", operator, values), "exactly one whole number");
        }
    }
}

#[test]
fn core_11_1_26_capacity_types() {
    let at = |values: &[&str], count: Option<u32>| {
        let requirement = json!({
            "key": "karpenter.sh/capacity-type", "operator": "In", "values": values,
        });
        pool_with(match count {
            Some(count) => with(requirement, "/minValues", json!(count)),
            None => requirement,
        })
    };
    fine(&at(&["spot"], None));
    fine(&at(&["spot", "on-demand", "reserved"], Some(3)));
    fine(&at(&["spot", "moon"], None));
    wrong(&at(&["moon"], None), "there are on-demand, reserved, spot");
    wrong(&at(&["spot", "moon"], Some(2)), "1 values that exist");
}

#[test]
fn aws_28_20_tenancies() {
    let at = |values: &[&str]| {
        let key = "karpenter.k8s.aws/instance-tenancy";
        pool_with(json!({"key": key, "operator": "In", "values": values}))
    };
    fine(&at(&["default"]));
    fine(&at(&["dedicated", "host"]));
    wrong(&at(&["host"]), "there are default, dedicated");
    let capacity = json!({
        "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["capacity-block"],
    });
    wrong(&pool_with(capacity), "none of the values");
}
