//! Between the first and the second version: what the first cannot say travels in annotations.

use serde_json::{Map, Value, json};

const PREFIX: &str = "autoscaling.alpha.kubernetes.io/";
const METRICS: &str = "metrics";
const CURRENT_METRICS: &str = "current-metrics";
const CONDITIONS: &str = "conditions";
const BEHAVIOR: &str = "behavior";
/// Directions with the annotations of their tolerances.
const TOLERANCES: [(&str, &str); 2] = [
    ("scaleDown", "scale-down-tolerance"),
    ("scaleUp", "scale-up-tolerance"),
];
/// Fields of a status that have an annotation each.
const STATUS: [(&str, &str); 2] = [
    ("currentMetrics", CURRENT_METRICS),
    ("conditions", CONDITIONS),
];
const PERCENT: &str = "targetCPUUtilizationPercentage";
const CURRENT_PERCENT: &str = "currentCPUUtilizationPercentage";

/// Turns an HPA of the first version into one of the second; others stay as they are.
pub fn to_v2(hpa: &mut Value) {
    if hpa["apiVersion"] != "autoscaling/v1" {
        return;
    }
    hpa["apiVersion"] = json!("autoscaling/v2");
    let mut metrics = Vec::new();
    let percent = take(hpa, "spec", PERCENT);
    if !percent.is_null() {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        let resource = json!({"name": "cpu", "target": target});
        metrics.push(json!({"type": "Resource", "resource": resource}));
    }
    if let Value::Array(others) = annotated(hpa, METRICS) {
        metrics.extend(others.into_iter().map(second_metric));
    }
    if !metrics.is_empty() {
        put(hpa, "spec", "metrics", json!(metrics));
    }
    let behavior = lowered(annotated(hpa, BEHAVIOR));
    if behavior.is_object() {
        put(hpa, "spec", "behavior", behavior);
    }
    for (direction, annotation) in TOLERANCES {
        let tolerance = annotation_of(hpa, annotation);
        let rules = hpa.pointer_mut(&format!("/spec/behavior/{direction}"));
        if let (Some(tolerance), Some(Value::Object(rules))) = (tolerance, rules) {
            rules.insert("tolerance".to_owned(), json!(tolerance));
        }
    }
    let percent = take(hpa, "status", CURRENT_PERCENT);
    let mut current = Vec::new();
    if !percent.is_null() {
        let value = json!({"averageUtilization": percent});
        current.push(json!({"type": "Resource", "resource": {"name": "cpu", "current": value}}));
    }
    if let Value::Array(others) = annotated(hpa, CURRENT_METRICS) {
        current.extend(others.into_iter().map(second_status));
    }
    if !current.is_empty() {
        put(hpa, "status", "currentMetrics", json!(current));
    }
    let conditions = annotated(hpa, CONDITIONS);
    if conditions.is_array() {
        put(hpa, "status", CONDITIONS, conditions);
    }
}

/// Turns an HPA of the second version into one of the first; others stay as they are.
pub fn to_v1(hpa: &mut Value) {
    if hpa["apiVersion"] != "autoscaling/v2" {
        return;
    }
    hpa["apiVersion"] = json!("autoscaling/v1");
    let metrics = take(hpa, "spec", "metrics");
    let mut others = Vec::new();
    for metric in metrics.as_array().into_iter().flatten() {
        let resource = &metric["resource"];
        let percent = &resource["target"]["averageUtilization"];
        let is_free = hpa["spec"][PERCENT].is_null();
        if is_free && resource["name"] == "cpu" && !percent.is_null() {
            put(hpa, "spec", PERCENT, percent.clone());
        } else {
            others.push(metric.clone());
        }
    }
    if !others.is_empty() {
        annotate(hpa, METRICS, &json!(others));
    }
    let behavior = take(hpa, "spec", "behavior");
    for (direction, annotation) in TOLERANCES {
        if let Some(tolerance) = behavior[direction]["tolerance"].as_str() {
            put_annotation(hpa, annotation, tolerance);
        }
    }
    if !behavior.is_null() {
        annotate(hpa, BEHAVIOR, &behavior);
    }
    let current = &hpa["status"]["currentMetrics"];
    let first = current.as_array().into_iter().flatten().find_map(|metric| {
        let percent = &metric["resource"]["current"]["averageUtilization"];
        (metric["resource"]["name"] == "cpu" && !percent.is_null()).then(|| percent.clone())
    });
    for (field, annotation) in STATUS {
        let value = take(hpa, "status", field);
        if value.as_array().is_some_and(|list| !list.is_empty()) {
            annotate(hpa, annotation, &value);
        }
    }
    if let Some(percent) = first {
        put(hpa, "status", CURRENT_PERCENT, percent);
    }
}

/// Metrics in annotations have the fields of the first version, or already those of the second.
fn second_metric(mut metric: Value) -> Value {
    const SOURCES: [(&str, &str); 5] = [
        ("object", "metricName"),
        ("pods", "metricName"),
        ("external", "metricName"),
        ("resource", "name"),
        ("containerResource", "name"),
    ];
    for (source, name) in SOURCES {
        let Some(map) = metric.get_mut(source).and_then(Value::as_object_mut) else {
            continue;
        };
        let old_target = [
            "targetValue",
            "targetAverageValue",
            "targetAverageUtilization",
        ];
        let is_first = map.contains_key("metricName")
            || old_target.iter().any(|field| map.contains_key(*field));
        if is_first {
            rewrite(map, name == "metricName");
        }
    }
    metric
}

fn rewrite(map: &mut Map<String, Value>, has_identifier: bool) {
    let mut target = Map::new();
    let mut kind = "Value";
    let fields = [
        ("targetValue", "value", "Value"),
        ("averageValue", "averageValue", "AverageValue"),
        ("targetAverageValue", "averageValue", "AverageValue"),
        (
            "targetAverageUtilization",
            "averageUtilization",
            "Utilization",
        ),
    ];
    let described = map.remove("target");
    for (old, new, named) in fields {
        if let Some(value) = map.remove(old) {
            if value == "0" {
                continue;
            }
            target.insert(new.to_owned(), value);
            kind = named;
        }
    }
    target.insert("type".to_owned(), json!(kind));
    map.insert("target".to_owned(), Value::Object(target));
    if let Some(described) = described {
        map.insert("describedObject".to_owned(), described);
    }
    if has_identifier {
        identify(map);
    }
}

/// Name and selector of a metric as one object.
fn identify(map: &mut Map<String, Value>) {
    let mut metric = Map::new();
    for (old, new) in [
        ("metricName", "name"),
        ("metricSelector", "selector"),
        ("selector", "selector"),
    ] {
        if let Some(value) = map.remove(old) {
            metric.insert(new.to_owned(), value);
        }
    }
    map.insert("metric".to_owned(), Value::Object(metric));
}

fn second_status(mut metric: Value) -> Value {
    for source in [
        "object",
        "pods",
        "external",
        "resource",
        "containerResource",
    ] {
        let Some(map) = metric.get_mut(source).and_then(Value::as_object_mut) else {
            continue;
        };
        let mut current = Map::new();
        for (old, new) in [
            ("currentValue", "value"),
            ("averageValue", "averageValue"),
            ("currentAverageValue", "averageValue"),
            ("currentAverageUtilization", "averageUtilization"),
        ] {
            if let Some(value) = map.remove(old) {
                current.insert(new.to_owned(), value);
            }
        }
        if current.is_empty() {
            continue;
        }
        map.insert("current".to_owned(), Value::Object(current));
        if let Some(target) = map.remove("target") {
            map.insert("describedObject".to_owned(), target);
        }
        if map.contains_key("metricName") {
            identify(map);
        }
    }
    metric
}

/// With names of fields that begin with a small letter: annotations of upstream have capitals.
fn lowered(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let lower = |(name, value): (String, Value)| {
                let mut chars = name.chars();
                let first = chars.next().map(|c| c.to_ascii_lowercase());
                (first.into_iter().chain(chars).collect(), lowered(value))
            };
            let fields = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(lower).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(lowered).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Takes an annotation off the object and reads it as JSON.
fn annotated(hpa: &mut Value, name: &str) -> Value {
    let text = annotation_of(hpa, name).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn annotation_of(hpa: &mut Value, name: &str) -> Option<String> {
    let meta = hpa.get_mut("metadata")?.as_object_mut()?;
    let annotations = meta.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(&format!("{PREFIX}{name}"))?;
    if annotations.is_empty() {
        meta.remove("annotations");
    }
    text.as_str().map(str::to_owned)
}

fn annotate(hpa: &mut Value, name: &str, value: &Value) {
    put_annotation(hpa, name, &value.to_string());
}

fn put_annotation(hpa: &mut Value, name: &str, text: &str) {
    let meta = hpa.as_object_mut().and_then(|hpa| below(hpa, "metadata"));
    if let Some(annotations) = meta.and_then(|meta| below(meta, "annotations")) {
        annotations.insert(format!("{PREFIX}{name}"), json!(text));
    }
}

/// The object in a field, made where there is none.
fn below<'m>(map: &'m mut Map<String, Value>, field: &str) -> Option<&'m mut Map<String, Value>> {
    let entry = map.entry(field).or_insert_with(|| json!({}));
    entry.as_object_mut()
}

fn take(hpa: &mut Value, above: &str, field: &str) -> Value {
    let map = hpa.get_mut(above).and_then(Value::as_object_mut);
    map.and_then(|map| map.remove(field)).unwrap_or(Value::Null)
}

fn put(hpa: &mut Value, above: &str, field: &str, value: Value) {
    if let Some(map) = hpa.as_object_mut().and_then(|hpa| below(hpa, above)) {
        map.insert(field.to_owned(), value);
    }
}
