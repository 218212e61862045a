//! A cron trigger at many times: whether its window is open.

use std::collections::BTreeMap;

use jiff::tz::TimeZoneDatabase;
use serde_json::{Value, json};

use crate::cron::CronTrigger;
use crate::keda::metric_name;
use crate::part::{FieldError, Part};

pub(super) fn answer(problem: &Part<'_>, zones: &TimeZoneDatabase) -> Result<Value, FieldError> {
    let id = problem.field("id").some_text()?;
    let metadata: BTreeMap<String, String> = problem.field("metadata").labels()?;
    let kind = problem
        .field("metricType")
        .text()?
        .unwrap_or("AverageValue");
    let target = match kind {
        "" | "AverageValue" => Some(json!({"type": "AverageValue", "averageValue": "1"})),
        "Value" => Some(json!({"type": "Value", "value": "1"})),
        _ => None,
    };
    let trigger = CronTrigger::read(&metadata, zones).ok();
    let (Some(trigger), Some(target)) = (trigger, target) else {
        return Ok(json!({
            "id": id, "valid": false, "metricName": null, "target": null, "times": [],
        }));
    };
    let mut times = Vec::new();
    for time in problem.field("times").items()? {
        let window = trigger.window(time.some_time()?, zones).ok();
        times.push(json!({
            "time": time.value(),
            "active": window.map(|window| window.is_open),
            "value": window.map(|window| trigger.value(&window).to_string()),
            "error": window.is_none(),
        }));
    }
    let index = problem.field("triggerIndex").int64()?.unwrap_or(0);
    Ok(json!({
        "id": id,
        "valid": true,
        "metricName": metric_name(index.try_into().unwrap_or(0), &trigger.scaler_name()),
        "target": target,
        "times": times,
    }))
}
