//! The contract of `plan -o json`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cli::support::{any_pool, documents, plan_with, pod, small_pod, small_types};

fn keys(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|text| text.as_str().expect("text"))
        .collect()
}

/// Asserts that an object has these fields, and no others.
#[track_caller]
fn has_fields(object: &Value, fields: &[&str]) {
    assert_eq!(keys(object), fields.iter().copied().collect());
}

fn node(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, disk: old}}}}
status:
  capacity: {{cpu: 2, memory: 4Gi, pods: 10}}
  allocatable: {{cpu: 2, memory: 4Gi, pods: 10}}
  conditions: [{{type: Ready, status: \"True\"}}]
"
    )
}

fn cluster() -> Vec<String> {
    vec![
        any_pool(),
        node("old-1"),
        pod("web-0", "{cpu: 1500m, memory: 2Gi}", ""),
        pod("web-1", "{cpu: 3, memory: 1Gi}", ""),
        pod(
            "stays",
            "{cpu: 1, memory: 1Gi}",
            "nodeSelector: {disk: old}",
        ),
        pod("huge", "{cpu: 500}", ""),
    ]
}

fn joined(parts: &[String]) -> String {
    documents(&parts.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn every_field_is_there_with_its_type() {
    let run = plan_with(joined(&cluster()), &["-o", "json"]).exits(2);
    let plan = run.json();
    has_fields(
        &plan,
        &[
            "newNodes",
            "existingNodes",
            "unschedulable",
            "cost",
            "timings",
        ],
    );
    let nodes = plan["newNodes"].as_array().unwrap();
    assert!(!nodes.is_empty());
    for node in nodes {
        has_fields(
            node,
            &[
                "name",
                "nodePool",
                "requirements",
                "instanceTypes",
                "launch",
                "pods",
                "requests",
            ],
        );
        assert_eq!(node["nodePool"], "general");
        assert!(node["name"].as_str().unwrap().starts_with("general-"));
        for requirement in node["requirements"].as_array().unwrap() {
            has_fields(requirement, &["key", "operator", "values"]);
            assert!(requirement["key"].is_string() && requirement["operator"].is_string());
            texts(&requirement["values"]);
        }
        let launch = &node["launch"];
        has_fields(
            launch,
            &["instanceType", "zone", "capacityType", "pricePerHour"],
        );
        assert_eq!(launch["zone"], "zone-a");
        assert_eq!(launch["capacityType"], "on-demand");
        assert!(launch["pricePerHour"].is_f64());
        assert_eq!(launch["instanceType"], node["instanceTypes"][0]);
        assert!(!texts(&node["pods"]).is_empty());
        for amount in node["requests"].as_object().unwrap().values() {
            assert!(amount.is_string());
        }
        assert_eq!(
            node["requests"]["pods"],
            texts(&node["pods"]).len().to_string()
        );
    }
    for node in plan["existingNodes"].as_array().unwrap() {
        has_fields(node, &["node", "pods"]);
    }
    assert_eq!(plan["existingNodes"][0]["node"], "old-1");
    assert!(texts(&plan["existingNodes"][0]["pods"]).contains(&"default/stays"));
    let left = plan["unschedulable"].as_array().unwrap();
    assert_eq!(left.len(), 1);
    has_fields(&left[0], &["pod", "reasons"]);
    assert_eq!(left[0]["pod"], "default/huge");
    assert!(!texts(&left[0]["reasons"]).is_empty());
    has_fields(&plan["timings"], &["parseMs", "solveMs", "verifyMs"]);
    for time in plan["timings"].as_object().unwrap().values() {
        assert!(time.as_f64().unwrap() >= 0.0);
    }
}

#[test]
fn the_cost_adds_up() {
    let plan = plan_with(joined(&cluster()), &["-o", "json"]).json();
    has_fields(
        &plan["cost"],
        &[
            "newNodesPerHour",
            "lowerBoundPerHour",
            "gap",
            "savingsAtMost",
            "preferencesCostPerHour",
            "pricesOf",
            "pricesAreForeign",
        ],
    );
    let price = plan["cost"]["newNodesPerHour"].as_f64().unwrap();
    let bound = plan["cost"]["lowerBoundPerHour"].as_f64().unwrap();
    let gap = plan["cost"]["gap"].as_f64().unwrap();
    let nodes = plan["newNodes"].as_array().unwrap();
    let sum: f64 = nodes
        .iter()
        .filter_map(|node| node["launch"]["pricePerHour"].as_f64())
        .sum();
    assert!((price - sum).abs() < 1e-9, "{price} is not {sum}");
    assert!(
        bound > 0.0 && bound <= price + 1e-9,
        "{bound} is above {price}"
    );
    assert!((gap - (price / bound - 1.0)).abs() < 1e-6, "{gap}");
    let savings = plan["cost"]["savingsAtMost"].as_f64().unwrap();
    assert!((savings - (1.0 - bound / price)).abs() < 1e-6, "{savings}");
    assert!(plan["cost"]["pricesOf"].is_null(), "a catalog of one's own");
}

#[test]
fn types_are_cheapest_first() {
    let text = documents(&[&any_pool(), &small_pod("web")]);
    let plan = plan_with(text, &["-o", "json"]).exits(0).json();
    assert_eq!(
        texts(&plan["newNodes"][0]["instanceTypes"]),
        ["small", "medium", "large"]
    );
    let names: Vec<_> = small_types()
        .iter()
        .map(|kind| kind["name"].clone())
        .collect();
    assert_eq!(
        names,
        ["large", "small", "medium"],
        "the file has another order"
    );
}

#[test]
fn every_pod_is_somewhere_once() {
    let plan = plan_with(joined(&cluster()), &["-o", "json"]).json();
    let mut pods = Vec::new();
    for list in ["newNodes", "existingNodes"] {
        for node in plan[list].as_array().unwrap() {
            pods.extend(texts(&node["pods"]));
        }
    }
    pods.extend(
        plan["unschedulable"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|p| p["pod"].as_str()),
    );
    pods.sort_unstable();
    assert_eq!(
        pods,
        [
            "default/huge",
            "default/stays",
            "default/web-0",
            "default/web-1"
        ]
    );
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let mut parts = cluster();
    parts.extend((0..6).map(|number| small_pod(&format!("small-{number}"))));
    let mut plans = Vec::new();
    for _ in 0..2 {
        let mut plan = plan_with(joined(&parts), &["-o", "json"]).exits(2).json();
        plan["timings"] = Value::Null;
        plans.push(plan);
        parts.reverse();
    }
    assert_eq!(plans[0], plans[1]);
}

#[test]
fn nothing_to_do_is_an_empty_plan() {
    let plan = plan_with(any_pool(), &["-o", "json"]).exits(0).json();
    for list in ["newNodes", "existingNodes", "unschedulable"] {
        assert_eq!(plan[list], Value::Array(Vec::new()));
    }
    for number in [
        "newNodesPerHour",
        "lowerBoundPerHour",
        "gap",
        "savingsAtMost",
    ] {
        assert_eq!(plan["cost"][number], 0.0);
    }
}

#[test]
fn a_list_and_workloads_become_pods() {
    let text = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "general"},
         "spec": {"template": {"spec": {"requirements": [], "nodeClassRef":
            {"group": "example.com", "kind": "RackNodeClass", "name": "default"}}}}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
         "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}}}]}}}}]});
    let plan = plan_with(text.to_string(), &["-o", "json"]).exits(0).json();
    assert_eq!(
        texts(&plan["newNodes"][0]["pods"]),
        ["default/web-0", "default/web-1"]
    );
    assert_eq!(plan["newNodes"][0]["requests"]["cpu"], "2");
}

#[test]
fn yaml_and_tables_tell_the_same() {
    let text = joined(&cluster());
    let run = plan_with(&text, &["-o", "yaml"]).exits(2);
    run.prints(&["newNodes:", "unschedulable:", "default/huge"]);
    plan_with(&text, &[])
        .exits(2)
        .prints(&["NEW NODE", "No place for huge", "1 left over"]);
}

#[test]
fn lists_of_types_belong_to_their_nodes() {
    let mut parts = vec![any_pool()];
    parts.extend((0..3).map(|n| pod(&format!("wide-{n}"), "{cpu: 15}", "")));
    parts.extend((0..3).map(|n| {
        let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
                     [{topologyKey: kubernetes.io/hostname, labelSelector: {}}]}}";
        pod(&format!("lone-{n}"), "{cpu: 3}", apart)
    }));
    let plan = plan_with(joined(&parts), &["-o", "json"]).exits(0).json();
    let nodes = plan["newNodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 6);
    for node in nodes {
        let expected = match texts(&node["pods"])[0].starts_with("default/wide") {
            true => vec!["large"],
            false => vec!["medium", "large"],
        };
        assert_eq!(texts(&node["instanceTypes"]), expected, "{node}");
    }
}
