//! The HPA that a ScaledObject makes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::pause::Pause;
use super::readings::{COMPOSITE, MetricSpec, millis};
use super::spec::{MAX_REPLICAS, MetricType, ScaledObject};
use crate::quantity::{Quantity, Suffixes};

/// The label by which metrics are asked for.
pub const NAME_LABEL: &str = "scaledobject.keda.sh/name";
const EXCLUDED_LABELS: &str = "scaledobject.keda.sh/hpa-excluded-labels";
const LABEL_MAX: usize = 63;

/// The HPA of a ScaledObject whose triggers make these metrics; `version` is that of the program.
///
/// # Errors
/// When there is no metric, or two have one name.
pub fn hpa(
    object: &ScaledObject,
    specs: &[Vec<MetricSpec>],
    pause: &Pause,
    version: &str,
) -> Result<Value, String> {
    let mut spec = Map::new();
    let target = &object.target;
    spec.insert(
        "scaleTargetRef".to_owned(),
        json!({"apiVersion": target.api_version, "kind": target.kind, "name": target.name}),
    );
    spec.insert("minReplicas".to_owned(), json!(object.min().max(1)));
    let max = object.max_replicas.filter(|max| *max > 0);
    spec.insert("maxReplicas".to_owned(), json!(max.unwrap_or(MAX_REPLICAS)));
    spec.insert("metrics".to_owned(), json!(metrics(object, specs)?));
    if let Some(behavior) = behavior(object, pause) {
        spec.insert("behavior".to_owned(), behavior);
    }
    Ok(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": object.hpa_name(),
            "namespace": object.namespace,
            "labels": labels(object, version),
            "annotations": object.annotations,
        },
        "spec": spec,
    }))
}

fn labels(object: &ScaledObject, version: &str) -> Map<String, Value> {
    let name = object.hpa_name();
    let short: String = name.chars().take(LABEL_MAX).collect();
    let short = short.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let mut labels = Map::new();
    for (label, value) in [
        ("app.kubernetes.io/name", short),
        ("app.kubernetes.io/version", version),
        ("app.kubernetes.io/part-of", &object.name),
        ("app.kubernetes.io/managed-by", "keda-operator"),
    ] {
        labels.insert(label.to_owned(), json!(value));
    }
    let excluded = object.annotations.get(EXCLUDED_LABELS);
    let excluded: BTreeSet<&str> = excluded
        .map(|list| list.split(',').map(str::trim).collect())
        .unwrap_or_default();
    for (label, value) in &object.labels {
        if !excluded.contains(label.as_str()) {
            labels.insert(label.clone(), json!(value));
        }
    }
    labels
}

fn metrics(object: &ScaledObject, specs: &[Vec<MetricSpec>]) -> Result<Vec<Value>, String> {
    let mut metrics = Vec::new();
    let mut seen = BTreeSet::new();
    for spec in specs.iter().flatten() {
        match spec {
            MetricSpec::External {
                name,
                metric_type,
                target_millis,
            } => {
                if !seen.insert(name) {
                    return Err(format!(
                        "two triggers make a metric {name}; change one of them"
                    ));
                }
                let target = Quantity::of_millis(*target_millis, Suffixes::Decimal);
                metrics.push(external(object, name, (*metric_type, target)));
            }
            MetricSpec::Resource(metric) => metrics.push(metric.clone()),
        }
    }
    if metrics.is_empty() {
        return Err("no trigger makes a metric".to_owned());
    }
    if let Some(modifiers) = &object.modifiers {
        metrics.retain(|metric| metric["type"] == "Resource");
        let target = modifiers.target.parse().unwrap_or(0.0);
        let target = Quantity::of_millis(millis(target), Suffixes::Decimal);
        metrics.push(external(object, COMPOSITE, (modifiers.metric_type, target)));
    }
    metrics.sort_by_key(|metric| metric["type"].as_str().unwrap_or_default().to_owned());
    Ok(metrics)
}

fn external(
    object: &ScaledObject,
    name: &str,
    (metric_type, target): (MetricType, Quantity),
) -> Value {
    let field = match metric_type {
        MetricType::Value => "value",
        MetricType::AverageValue | MetricType::Utilization => "averageValue",
    };
    json!({"type": "External", "external": {
        "metric": {"name": name, "selector": {"matchLabels": {NAME_LABEL: object.name}}},
        "target": {"type": metric_type.as_str(), field: target.to_string()},
    }})
}

/// What the object says, with the ways closed that are paused.
fn behavior(object: &ScaledObject, pause: &Pause) -> Option<Value> {
    let mut behavior = object.behavior.clone();
    for (direction, paused) in [("scaleDown", pause.scale_in), ("scaleUp", pause.scale_out)] {
        if !paused {
            continue;
        }
        let all = behavior.get_or_insert_with(|| json!({})).as_object_mut();
        let rules = all.map(|all| all.entry(direction).or_insert_with(|| json!({})));
        if let Some(rules) = rules.and_then(Value::as_object_mut) {
            rules.insert("selectPolicy".to_owned(), json!("Disabled"));
        }
    }
    behavior
}

/// Whether an HPA that is there must be written again: what the wanted one says is compared, what an API
/// server has filled in is not.
#[must_use]
pub fn must_be_written(wanted: &Value, found: &Value) -> bool {
    let (spec, other) = (&wanted["spec"], &found["spec"]);
    let n_metrics = |spec: &Value| spec["metrics"].as_array().map_or(0, Vec::len);
    let meta = |hpa: &Value, field: &str| hpa["metadata"][field].clone();
    n_metrics(spec) != n_metrics(other)
        || !is_same_behavior(&spec["behavior"], &other["behavior"])
        || !is_part(spec, other)
        || !is_part(&meta(wanted, "labels"), &meta(found, "labels"))
        || !is_same_or_empty(&meta(wanted, "annotations"), &meta(found, "annotations"))
}

fn is_same_behavior(wanted: &Value, found: &Value) -> bool {
    wanted.is_null() == found.is_null() && is_part(wanted, found)
}

fn is_same_or_empty(wanted: &Value, found: &Value) -> bool {
    let is_empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
    wanted == found || (is_empty(wanted) && is_empty(found))
}

/// Whether all that `part` says is said by `whole`. Texts that are quantities are compared as such.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Null, _) => true,
        (Value::Object(part), Value::Object(_)) => part
            .iter()
            .all(|(name, value)| is_part(value, &whole[name])),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(a, b)| is_part(a, b))
        }
        (Value::String(a), Value::String(b)) if a != b => {
            match (Quantity::parse(a), Quantity::parse(b)) {
                (Ok(a), Ok(b)) => a == b,
                _ => false,
            }
        }
        (
            Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => part == whole,
    }
}
