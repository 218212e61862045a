//! What an API server fills into an HPA of the second version.

use serde_json::{Map, Value, json};

/// Fills in what the user left open.
pub fn fill_in(hpa: &mut Value) {
    let Some(spec) = hpa.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    put(spec, "minReplicas", json!(1));
    let metrics = spec.get("metrics").and_then(Value::as_array);
    if metrics.is_none_or(Vec::is_empty) {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".to_owned(), json!([metric]));
    }
    let behavior = spec.get_mut("behavior").and_then(Value::as_object_mut);
    if let Some(behavior) = behavior {
        let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
        let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
        rules(behavior, "scaleUp", |up| {
            put(up, "stabilizationWindowSeconds", json!(0));
            put(up, "selectPolicy", json!("Max"));
            put(up, "policies", json!([pods, percent]));
        });
        // The window towards fewer stays open: the controller's flag says it.
        rules(behavior, "scaleDown", |down| {
            put(down, "selectPolicy", json!("Max"));
            put(down, "policies", json!([percent]));
        });
    }
}

fn put(map: &mut Map<String, Value>, field: &str, value: Value) {
    let entry = map.entry(field).or_insert(Value::Null);
    if entry.is_null() {
        *entry = value;
    }
}

/// Fills in the rules of one direction, which are made where there are none.
fn rules(
    behavior: &mut Map<String, Value>,
    direction: &str,
    fill_in: impl FnOnce(&mut Map<String, Value>),
) {
    put(behavior, direction, json!({}));
    let rules = behavior.get_mut(direction).and_then(Value::as_object_mut);
    if let Some(rules) = rules {
        fill_in(rules);
    }
}
