//! Rows of pod autoscalers: what is measured, against what target.

use serde_json::{Value, json};

use super::cell::{NONE, Shown, UNSET, count, items, plain, text};
use super::{AGE, BuiltIn, Column, NAME};
use crate::kinds::Kind;

/// How many metrics are printed before the rest is only counted.
const METRICS_MAX: usize = 2;

/// The printer of a kind that is shown here.
pub(super) fn printer(kind: &Kind) -> Option<&'static BuiltIn> {
    let ours = kind.group == "autoscaling" && kind.kind == "HorizontalPodAutoscaler";
    ours.then_some(&AUTOSCALERS)
}

static AUTOSCALERS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Reference", "What is scaled."),
        Column::text("Targets", "What is measured, and what it should be."),
        Column::text("MinPods", "The fewest pods."),
        Column::text("MaxPods", "The most pods."),
        Column::text("Replicas", "Pods there are."),
        AGE,
    ],
    |shown| {
        let spec = shown.spec();
        let target = &spec["scaleTargetRef"];
        let target = format!("{}/{}", text(&target["kind"]), text(&target["name"]));
        vec![
            shown.name(),
            json!(target),
            json!(targets(shown)),
            json!(plain(&spec["minReplicas"]).unwrap_or_else(|| UNSET.to_owned())),
            json!(count(&spec["maxReplicas"])),
            json!(count(&shown.status()["currentReplicas"])),
            shown.age(),
        ]
    },
);

fn targets(shown: &Shown<'_>) -> String {
    let (spec, status) = (shown.spec(), shown.status());
    // Version 1 knows nothing but CPU.
    if let Some(target) = spec["targetCPUUtilizationPercentage"].as_i64() {
        let current = percent(&status["currentCPUUtilizationPercentage"]);
        return format!("cpu: {}/{target}%", current.unwrap_or_else(unknown));
    }
    let metrics = items(&spec["metrics"]);
    if metrics.is_empty() {
        return NONE.to_owned();
    }
    let current = items(&status["currentMetrics"]);
    let list: Vec<String> = metrics
        .iter()
        .take(METRICS_MAX)
        .enumerate()
        .map(|(ix, metric)| metric_text(metric, current.get(ix).unwrap_or(&Value::Null)))
        .collect();
    let list = list.join(", ");
    match metrics.len().saturating_sub(METRICS_MAX) {
        0 => list,
        more => format!("{list} + {more} more..."),
    }
}

fn unknown() -> String {
    "<unknown>".to_owned()
}

fn percent(value: &Value) -> Option<String> {
    value.as_i64().map(|percent| format!("{percent}%"))
}

fn metric_text(metric: &Value, current: &Value) -> String {
    let (source, by_name) = match text(&metric["type"]) {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return "<unknown type>".to_owned(),
    };
    let target = &metric[source]["target"];
    let current = &current[source]["current"];
    let now = |field: &str| plain(&current[field]).unwrap_or_else(unknown);
    let average = plain(&target["averageValue"]);
    if by_name {
        let (now, wanted) = match average {
            Some(average) => (now("averageValue"), average),
            None => (
                percent(&current["averageUtilization"]).unwrap_or_else(unknown),
                percent(&target["averageUtilization"]).unwrap_or_else(|| "<auto>".to_owned()),
            ),
        };
        return format!("{}: {now}/{wanted}", text(&metric[source]["name"]));
    }
    match average {
        Some(average) if source == "pods" => format!("{}/{average}", now("averageValue")),
        Some(average) => format!("{}/{average} (avg)", now("averageValue")),
        None => format!(
            "{}/{}",
            now("value"),
            plain(&target["value"]).unwrap_or_default()
        ),
    }
}
