//! Numbered behaviors of KEDA, as far as they need no cluster.

mod executor;
mod fallback;
mod generated;
mod jobs;
mod modifiers;
mod rules;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::condition::{Said, Truth};

pub(super) fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub(super) fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

/// A ScaledObject with these triggers, after a change of its spec.
pub(super) fn object(triggers: &Value, change: impl FnOnce(&mut Value)) -> ScaledObject {
    let mut object = json!({
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "creationTimestamp": ago(3600).to_string(),
        },
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": triggers},
    });
    change(&mut object);
    ScaledObject::read(&object).unwrap()
}

/// A trigger that asks something else.
pub(super) fn redis(name: &str) -> Value {
    json!({"type": "redis", "name": name, "metadata": {"listName": "jobs"}})
}

pub(super) fn cpu() -> Value {
    json!({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}})
}

/// The metrics of triggers: one each, with a target of ten, or the usage of pods.
pub(super) fn specs(object: &ScaledObject) -> Vec<Vec<MetricSpec>> {
    let triggers = object.triggers.iter().enumerate();
    let spec = |trigger: (usize, &Trigger)| {
        let spec = if trigger.1.is_resource() {
            MetricSpec::resource(trigger)
        } else {
            MetricSpec::external(trigger, &trigger.1.kind, 10.0)
        };
        vec![spec.unwrap()]
    };
    triggers.map(spec).collect()
}

/// What was found at triggers: figures above zero make them active, none is a failure.
pub(super) fn findings(object: &ScaledObject, figures: &[Option<f64>]) -> Findings {
    let specs = specs(object);
    let mut figures = figures.iter();
    let reading = |specs: &Vec<MetricSpec>| match &specs[0] {
        MetricSpec::Resource(_) => None,
        MetricSpec::External { name, .. } => Some(match figures.next().copied().flatten() {
            Some(figure) => Ok(TriggerReading {
                is_active: figure > 0.0,
                values: vec![(name.clone(), figure)],
            }),
            None => Err("it is away".to_owned()),
        }),
    };
    Findings {
        readings: specs.iter().map(reading).collect(),
        specs,
    }
}

pub(super) const THREE: Replicas = Replicas {
    current: 3,
    ready: 3,
};

/// A look at triggers of which nothing is remembered.
pub(super) fn look(object: &ScaledObject, figures: &[Option<f64>]) -> Poll {
    let findings = findings(object, figures);
    poll(object, &findings, &HealthByMetric::new(), THREE)
}

/// Status and reason of what is said about a kind.
pub(super) fn said<'a>(conditions: &'a [Said], kind: &str) -> Option<(Truth, &'a str)> {
    let found = conditions.iter().find(|said| said.kind == kind);
    found.map(|said| (said.status, said.reason))
}

pub(super) fn annotations(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    let entry =
        |(name, text): &(&str, &str)| (format!("autoscaling.keda.sh/{name}"), (*text).to_owned());
    entries.iter().map(entry).collect()
}
