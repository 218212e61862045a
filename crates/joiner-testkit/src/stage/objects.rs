//! What objects say.

use jiff::Timestamp;
use serde_json::Value;

/// How many pods run.
#[must_use]
pub fn n_running(pods: &[Value]) -> usize {
    let running = pods.iter().filter(|own| {
        own["status"]["phase"] == "Running" && own["metadata"]["deletionTimestamp"].is_null()
    });
    running.count()
}

/// `status reason` of a condition.
#[must_use]
pub fn condition(object: &Value, kind: &str) -> String {
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
#[must_use]
pub fn since(object: &Value, kind: &str) -> Timestamp {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let own = conditions.iter().find(|own| own["type"] == kind).unwrap();
    own["lastTransitionTime"].as_str().unwrap().parse().unwrap()
}

/// Merges objects; anything else is replaced.
pub fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// What the ConfigMap of a simulated machine says of it.
#[must_use]
pub fn record(map: &Value) -> Value {
    let texts = map["data"].as_object().unwrap().values();
    let read = texts.filter_map(|text| serde_json::from_str::<Value>(text.as_str()?).ok());
    let mut records = read.filter(|record| record["claimUid"].is_string());
    records
        .next()
        .expect("the ConfigMap of a machine says which")
}
