//! From an HPA that holds to what a decision takes.

use serde_json::Value;

use super::{complaints, fill_in, to_v2};
use crate::condition::Conditions;
use crate::hpa::spec::{
    Amount, Behavior, Hpa, Metric, MetricId, Policy, ResourceTarget, Rules, Select, Spec, Status,
    TargetRef, ValueTarget,
};
use crate::hpa::world::Gates;
use crate::part::{FieldError, Part};
use crate::selector::Selector;

impl Hpa {
    /// Reads an HPA of either version as a user wrote it: fills in defaults and checks all rules.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(object: &Value, gates: &Gates) -> Result<Self, Vec<FieldError>> {
        Self::admit(object, None, gates)
    }

    /// Reads an HPA that is stored already. What was wrong before stays so.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read_stored(object: &Value, gates: &Gates) -> Result<Self, Vec<FieldError>> {
        Self::admit(object, Some(object), gates)
    }

    fn admit(object: &Value, old: Option<&Value>, gates: &Gates) -> Result<Self, Vec<FieldError>> {
        let mut hpa = object.clone();
        to_v2(&mut hpa);
        fill_in(&mut hpa);
        let errors = complaints(&hpa, old, gates);
        if !errors.is_empty() {
            return Err(errors);
        }
        read(&Part::top(&hpa)).map_err(|error| vec![error])
    }
}

fn read(top: &Part<'_>) -> Result<Hpa, FieldError> {
    let meta = top.field("metadata");
    let status = top.field("status");
    Ok(Hpa {
        namespace: owned(&meta.field("namespace"))?,
        name: owned(&meta.field("name"))?,
        spec: spec(&top.field("spec"))?,
        status: Status {
            current_replicas: status.field("currentReplicas").int32()?.unwrap_or(0),
            desired_replicas: status.field("desiredReplicas").int32()?.unwrap_or(0),
            last_scale_time: status.field("lastScaleTime").time()?,
            current_metrics: status
                .field("currentMetrics")
                .value()
                .as_array()
                .cloned()
                .unwrap_or_default(),
            conditions: Conditions::read(&status.field("conditions"))?,
        },
    })
}

fn owned(field: &Part<'_>) -> Result<String, FieldError> {
    Ok(field.text()?.unwrap_or_default().to_owned())
}

fn spec(spec: &Part<'_>) -> Result<Spec, FieldError> {
    let mut metrics = Vec::new();
    for item in spec.field("metrics").items()? {
        metrics.push(metric(&item)?);
    }
    let behavior = spec.field("behavior");
    let behavior = if behavior.is_set() {
        Some(Behavior {
            up: rules(&behavior.field("scaleUp"))?,
            down: rules(&behavior.field("scaleDown"))?,
        })
    } else {
        None
    };
    Ok(Spec {
        target: reference(&spec.field("scaleTargetRef"))?,
        min_replicas: spec.field("minReplicas").int32()?.unwrap_or(1),
        max_replicas: spec.field("maxReplicas").int32()?.unwrap_or(1),
        metrics,
        behavior,
    })
}

fn reference(part: &Part<'_>) -> Result<TargetRef, FieldError> {
    Ok(TargetRef {
        api_version: owned(&part.field("apiVersion"))?,
        kind: owned(&part.field("kind"))?,
        name: owned(&part.field("name"))?,
    })
}

fn metric(part: &Part<'_>) -> Result<Metric, FieldError> {
    let source = |name| part.field(name);
    Ok(match part.field("type").text()?.unwrap_or_default() {
        "Resource" => Metric::Resource {
            name: owned(&source("resource").field("name"))?,
            target: resource_target(&source("resource").field("target"))?,
        },
        "ContainerResource" => Metric::ContainerResource {
            name: owned(&source("containerResource").field("name"))?,
            container: owned(&source("containerResource").field("container"))?,
            target: resource_target(&source("containerResource").field("target"))?,
        },
        "Pods" => Metric::Pods {
            metric: identifier(&source("pods").field("metric"))?,
            average: millis(&source("pods").field("target").field("averageValue"))?.unwrap_or(0),
        },
        "Object" => {
            let target = source("object");
            let target = target.field("target");
            let kind = target.field("type").text()?;
            Metric::Object {
                described: reference(&source("object").field("describedObject"))?,
                metric: identifier(&source("object").field("metric"))?,
                target: match (
                    kind,
                    millis(&target.field("value"))?,
                    millis(&target.field("averageValue"))?,
                ) {
                    (Some("Value"), Some(value), _) => ValueTarget::Value(value),
                    (Some("AverageValue"), _, Some(average)) => ValueTarget::Average(average),
                    _ => ValueTarget::Unset,
                },
            }
        }
        "External" => {
            let target = source("external");
            let target = target.field("target");
            Metric::External {
                metric: identifier(&source("external").field("metric"))?,
                target: match (
                    millis(&target.field("averageValue"))?,
                    millis(&target.field("value"))?,
                ) {
                    (Some(average), _) => ValueTarget::Average(average),
                    (None, Some(value)) => ValueTarget::Value(value),
                    (None, None) => ValueTarget::Unset,
                },
            }
        }
        other => Metric::Unknown {
            kind: other.to_owned(),
        },
    })
}

fn resource_target(target: &Part<'_>) -> Result<ResourceTarget, FieldError> {
    let average = millis(&target.field("averageValue"))?;
    let percent = target.field("averageUtilization").int32()?;
    Ok(match (average, percent) {
        (Some(average), _) => ResourceTarget::Average(average),
        (None, Some(percent)) => ResourceTarget::Utilization(percent),
        (None, None) => ResourceTarget::Unset,
    })
}

fn millis(field: &Part<'_>) -> Result<Option<i64>, FieldError> {
    Ok(field.quantity()?.map(|quantity| quantity.millis()))
}

fn identifier(part: &Part<'_>) -> Result<MetricId, FieldError> {
    let selector = part.field("selector");
    Ok(MetricId {
        name: owned(&part.field("name"))?,
        selector: match selector.is_set() {
            true => Some(Selector::read(&selector)?),
            false => None,
        },
        selector_text: selector.is_set().then(|| selector.value().clone()),
    })
}

fn rules(part: &Part<'_>) -> Result<Rules, FieldError> {
    let mut policies = Vec::new();
    for policy in part.field("policies").items()? {
        let value = policy.field("value").int32()?.unwrap_or(0);
        policies.push(Policy {
            amount: match policy.field("type").text()? {
                Some("Percent") => Amount::Percent(value),
                _ => Amount::Pods(value),
            },
            period_secs: policy.field("periodSeconds").int32()?.unwrap_or(0),
        });
    }
    Ok(Rules {
        window_secs: part.field("stabilizationWindowSeconds").int32()?,
        select: match part.field("selectPolicy").text()? {
            Some("Min") => Select::Min,
            Some("Disabled") => Select::Disabled,
            _ => Select::Max,
        },
        policies,
        tolerance: part.field("tolerance").quantity()?,
    })
}
