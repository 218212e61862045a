//! What triggers were found to say, and the words for their metrics.

use serde_json::{Value, json};

use super::names::metric_name;
use super::spec::{MetricType, ScaledObject, Trigger};
use crate::part::FieldError;
use crate::quantity::{Quantity, Suffixes};

/// The name of the metric that a formula makes.
pub const COMPOSITE: &str = "composite-metric";

/// A metric that a trigger gives to the HPA.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricSpec {
    /// A figure that is asked for by name.
    External {
        /// Its name.
        name: String,
        /// How it is compared with its target.
        metric_type: MetricType,
        /// Its target, in thousandths.
        target_millis: i64,
    },
    /// Usage of pods, in the form of an HPA's metric.
    Resource(Value),
}

impl MetricSpec {
    /// The figure of a trigger: `scaler` is its name without the index.
    ///
    /// # Errors
    /// When the trigger is of a type that percents are for.
    pub fn external(
        (index, trigger): (usize, &Trigger),
        scaler: &str,
        target: f64,
    ) -> Result<Self, FieldError> {
        let metric_type = trigger.metric_type.unwrap_or(MetricType::AverageValue);
        if metric_type == MetricType::Utilization {
            let path = format!("spec.triggers[{index}].metricType");
            let problem = format!(
                "must not be Utilization for a trigger of type {}",
                trigger.kind
            );
            return Err(FieldError::new(&path, problem));
        }
        Ok(Self::External {
            name: metric_name(index, scaler),
            metric_type,
            target_millis: millis(target),
        })
    }

    /// The metric of a trigger of type `cpu` or `memory`.
    ///
    /// # Errors
    /// What its metadata must be.
    pub fn resource((index, trigger): (usize, &Trigger)) -> Result<Self, FieldError> {
        let path = |field: &str| format!("spec.triggers[{index}].{field}");
        if trigger.metadata.contains_key("type") {
            let problem = "is no longer read; set metricType of the trigger";
            return Err(FieldError::new(&path("metadata.type"), problem));
        }
        let value = trigger
            .metadata
            .get("value")
            .filter(|text| !text.is_empty());
        let path_of_value = path("metadata.value");
        let value = value.ok_or_else(|| FieldError::new(&path_of_value, "is missing; set it"))?;
        let target = match trigger.metric_type {
            Some(MetricType::Utilization) => {
                let percent = value.trim().parse::<i32>().map_err(|_| {
                    let problem = format!("must be a whole number of percent, not {value:?}");
                    FieldError::new(&path_of_value, problem)
                })?;
                json!({"type": "Utilization", "averageUtilization": percent})
            }
            Some(MetricType::AverageValue) => {
                let amount = Quantity::parse(value.trim())
                    .map_err(|error| FieldError::new(&path_of_value, error.to_string()))?;
                json!({"type": "AverageValue", "averageValue": amount.to_string()})
            }
            Some(MetricType::Value) | None => {
                let problem = "must be Utilization or AverageValue";
                return Err(FieldError::new(&path("metricType"), problem));
            }
        };
        let container = trigger
            .metadata
            .get("containerName")
            .filter(|name| !name.is_empty());
        Ok(Self::Resource(match container {
            Some(container) => json!({"type": "ContainerResource", "containerResource": {
                "name": trigger.kind, "container": container, "target": target,
            }}),
            None => json!({"type": "Resource", "resource": {
                "name": trigger.kind, "target": target,
            }}),
        }))
    }
}

/// What a trigger was found to say.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerReading {
    /// Whether it is above its activation threshold.
    pub is_active: bool,
    /// Its metrics by name.
    pub values: Vec<(String, f64)>,
}

/// A figure in thousandths, as the metrics API gives it: what is no number, or less than nothing, is
/// nothing.
#[must_use]
pub fn millis(value: f64) -> i64 {
    const LIMIT: f64 = 9.2e18;
    let millis = (value * 1000.0).round();
    if !value.is_finite() || value < 0.0 {
        0
    } else if millis >= LIMIT {
        i64::MAX
    } else {
        millis as i64
    }
}

/// A figure as a quantity.
#[must_use]
pub fn quantity(value: f64) -> Quantity {
    Quantity::of_millis(millis(value), Suffixes::Decimal)
}

/// The mean target of metrics per pod, for what must share work among Jobs; nothing of none.
#[must_use]
pub fn mean_target(specs: &[MetricSpec]) -> f64 {
    let targets = specs.iter().filter_map(|spec| match spec {
        MetricSpec::External { target_millis, .. } => Some(*target_millis as f64 / 1000.0),
        MetricSpec::Resource(_) => None,
    });
    let targets: Vec<f64> = targets.collect();
    if targets.is_empty() {
        return 0.0;
    }
    targets.iter().sum::<f64>() / targets.len() as f64
}

/// Which trigger a metric is of: names are compared without regard to small and capital letters.
#[must_use]
pub fn trigger_of<'a>(
    object: &'a ScaledObject,
    specs: &[Vec<MetricSpec>],
    metric: &str,
) -> Option<&'a Trigger> {
    let named = |spec: &MetricSpec| match spec {
        MetricSpec::External { name, .. } => name.eq_ignore_ascii_case(metric),
        MetricSpec::Resource(_) => false,
    };
    let index = specs.iter().position(|specs| specs.iter().any(named))?;
    object.triggers.get(index)
}
