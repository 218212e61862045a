//! What objects say.

use jiff::Timestamp;
use serde_json::Value;

/// How many pods run.
pub(crate) fn n_running(pods: &[Value]) -> usize {
    let running = pods.iter().filter(|own| {
        own["status"]["phase"] == "Running" && own["metadata"]["deletionTimestamp"].is_null()
    });
    running.count()
}

/// `status reason` of a condition.
pub(crate) fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array();
    let own = conditions
        .into_iter()
        .flatten()
        .find(|own| own["type"] == kind);
    own.map_or_else(String::new, |own| {
        let text = |field: &str| own[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    })
}

/// When a condition came to be as it is.
pub(crate) fn since(object: &Value, kind: &str) -> Timestamp {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let own = conditions.iter().find(|own| own["type"] == kind).unwrap();
    own["lastTransitionTime"].as_str().unwrap().parse().unwrap()
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}
