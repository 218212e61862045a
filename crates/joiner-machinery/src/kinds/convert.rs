//! Kinds that are served in more than one form and stored in one.
//!
//! Events are stored in the core form, autoscalers in their second version. Custom kinds differ in
//! their version's name only: definitions that convert through webhooks are served without.

use serde_json::{Map, Value, json};

use super::Kind;

/// Turns an object of a served kind into the form that it is stored in.
pub fn to_stored(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.version.as_str()) {
        ("events.k8s.io", _) => {
            rename(object, EVENT);
            object["apiVersion"] = json!("v1");
        }
        ("autoscaling", "v1") if kind.custom.is_none() => to_second(object),
        _ => {}
    }
}

/// Turns a stored object into the form that a kind is served in.
pub fn from_stored(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.version.as_str()) {
        ("events.k8s.io", _) => {
            let back: Vec<(&str, &str)> = EVENT.iter().map(|(new, old)| (*old, *new)).collect();
            rename(object, &back);
            for field in ["reportingController", "reportingInstance"] {
                if object[field] == "" {
                    take(object, field);
                }
            }
        }
        ("autoscaling", "v1") if kind.custom.is_none() => to_first(object),
        _ => {}
    }
    object["apiVersion"] = json!(kind.api_version());
}

/// Fields of an event by their names in the new and in the core API.
const EVENT: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

fn rename(object: &mut Value, fields: &[(&str, &str)]) {
    let Some(map) = object.as_object_mut() else {
        return;
    };
    for (from, to) in fields {
        if let Some(value) = map.remove(*from) {
            map.insert((*to).to_owned(), value);
        }
    }
}

/// The one metric that the first version knows.
fn is_cpu_percent(metric: &Value) -> bool {
    metric["type"] == "Resource"
        && metric["resource"]["name"] == "cpu"
        && metric["resource"]["target"]["averageUtilization"].is_i64()
}

/// Metrics, conditions and behavior travel through the first version in annotations.
const CARRIED: [(&str, &str); 2] = [
    ("autoscaling.alpha.kubernetes.io/metrics", "metrics"),
    ("autoscaling.alpha.kubernetes.io/behavior", "behavior"),
];

fn to_second(object: &mut Value) {
    object["apiVersion"] = json!("autoscaling/v2");
    let percent = take(&mut object["spec"], "targetCPUUtilizationPercentage");
    let mut metrics = Vec::new();
    if percent.is_i64() {
        metrics.push(json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent},
        }}));
    }
    for (annotation, field) in CARRIED {
        let text = take(&mut object["metadata"]["annotations"], annotation);
        let Some(value) = text
            .as_str()
            .and_then(|t| serde_json::from_str::<Value>(t).ok())
        else {
            continue;
        };
        match (field, value) {
            ("metrics", Value::Array(more)) => metrics.extend(more),
            (_, value) => object["spec"][field] = value,
        }
    }
    if object["metadata"]["annotations"]
        .as_object()
        .is_some_and(Map::is_empty)
    {
        take(&mut object["metadata"], "annotations");
    }
    if !metrics.is_empty() {
        object["spec"]["metrics"] = json!(metrics);
    }
    let current = take(&mut object["status"], "currentCPUUtilizationPercentage");
    if current.is_i64() {
        object["status"]["currentMetrics"] = json!([{"type": "Resource", "resource": {
            "name": "cpu", "current": {"averageUtilization": current},
        }}]);
    }
    if let Some(status) = object["status"].as_object_mut() {
        status.entry("currentMetrics").or_insert(Value::Null);
        // The second version says nothing where the first says zero.
        status.retain(|key, value| key != "currentReplicas" || *value != 0);
    }
    drop_null(object);
}

fn to_first(object: &mut Value) {
    let metrics = take(&mut object["spec"], "metrics");
    let mut others = Vec::new();
    for metric in metrics.as_array().into_iter().flatten() {
        let first = object["spec"]["targetCPUUtilizationPercentage"].is_null();
        if first && is_cpu_percent(metric) {
            object["spec"]["targetCPUUtilizationPercentage"] =
                metric["resource"]["target"]["averageUtilization"].clone();
        } else {
            others.push(metric.clone());
        }
    }
    if !others.is_empty() {
        object["metadata"]["annotations"][CARRIED[0].0] = json!(json!(others).to_string());
    }
    let behavior = take(&mut object["spec"], "behavior");
    if !behavior.is_null() {
        object["metadata"]["annotations"][CARRIED[1].0] = json!(behavior.to_string());
    }
    let status = &mut object["status"];
    let current = take(status, "currentMetrics");
    let percent = &current[0]["resource"]["current"]["averageUtilization"];
    if percent.is_i64() {
        status["currentCPUUtilizationPercentage"] = percent.clone();
    }
    take(status, "conditions");
    for field in ["currentReplicas", "desiredReplicas"] {
        if status.is_object() && status[field].is_null() {
            status[field] = json!(0);
        }
    }
    drop_null(object);
}

fn take(object: &mut Value, field: &str) -> Value {
    object
        .as_object_mut()
        .and_then(|map| map.remove(field))
        .unwrap_or(Value::Null)
}

/// Reaching for a field that is not there has left a null behind.
fn drop_null(object: &mut Value) {
    for (above, field) in [("metadata", "annotations"), ("spec", "metrics")] {
        if object[above][field].is_null() {
            take(&mut object[above], field);
        }
    }
    if object["status"].is_null() {
        take(object, "status");
    }
}

#[cfg(test)]
mod tests {
    use super::super::builtin;
    use super::*;

    fn kind(group: &str, version: &str, name: &str) -> Kind {
        let mut all = builtin().into_iter();
        all.find(|k| k.group == group && k.version == version && k.kind == name)
            .unwrap()
    }

    #[test]
    fn autoscalers_keep_what_the_first_version_cannot_say() {
        let first = kind("autoscaling", "v1", "HorizontalPodAutoscaler");
        let original = json!({
            "apiVersion": "autoscaling/v2",
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "behavior": {"scaleUp": {"selectPolicy": "Max"}}, "metrics": [
                {"type": "Resource", "resource": {
                    "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Resource", "resource": {
                    "name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}},
            ]},
            "status": {"currentMetrics": null, "desiredReplicas": 0},
        });
        let mut object = original.clone();
        from_stored(&first, &mut object);
        assert_eq!(object["apiVersion"], "autoscaling/v1");
        assert_eq!(
            object["spec"],
            json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50})
        );
        to_stored(&first, &mut object);
        assert_eq!(object, original);
    }

    #[test]
    fn events_have_two_forms() {
        let new = kind("events.k8s.io", "v1", "Event");
        let original = json!({
            "apiVersion": "events.k8s.io/v1", "regarding": {"name": "p"}, "note": "n",
            "reportingController": "c", "deprecatedCount": 2,
        });
        let mut object = original.clone();
        to_stored(&new, &mut object);
        assert_eq!(object["involvedObject"]["name"], "p");
        assert_eq!(
            (&object["message"], &object["apiVersion"]),
            (&json!("n"), &json!("v1"))
        );
        from_stored(&new, &mut object);
        assert_eq!(object, original);
    }
}
