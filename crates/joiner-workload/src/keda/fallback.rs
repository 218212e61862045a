//! What a metric is said to be when its trigger cannot be asked.

use std::collections::BTreeMap;

use super::spec::{Fallback, FallbackBehavior, MetricType, ScaledObject};

/// How a metric did of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Failures in a row.
    pub n_failures: i32,
    /// Whether the last one was a failure.
    pub is_failing: bool,
}

impl Health {
    /// The word of the status.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        if self.is_failing { "Failing" } else { "Happy" }
    }
}

/// Health of metrics by their names.
pub type HealthByMetric = BTreeMap<String, Health>;

/// The pods of the target as a fallback sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// How many are asked for.
    pub current: i32,
    /// How many run and are ready.
    pub ready: i32,
}

/// The fallback of an object, if it is one that holds.
#[must_use]
pub fn valid(object: &ScaledObject) -> Option<&Fallback> {
    let fallback = object.fallback.as_ref()?;
    let is_whole = |target: &str| target.parse::<i64>().is_ok_and(|target| target > 0);
    let target_holds = object
        .modifiers
        .as_ref()
        .is_none_or(|m| is_whole(&m.target));
    let holds = fallback.failure_threshold >= 0 && fallback.replicas >= 0 && target_holds;
    holds.then_some(fallback)
}

/// Counts how asking for a metric went.
pub fn count(health: &mut HealthByMetric, metric: &str, failed: bool) -> Health {
    let entry = health.entry(metric.to_owned()).or_default();
    entry.is_failing = failed;
    entry.n_failures = if failed {
        entry.n_failures.saturating_add(1)
    } else {
        0
    };
    *entry
}

/// Forgets metrics that are no more.
pub fn forget(health: &mut HealthByMetric, names: &[String]) {
    health.retain(|name, _| names.contains(name));
}

impl Fallback {
    /// Whether a metric has failed too often.
    #[must_use]
    pub const fn is_due(&self, health: Health) -> bool {
        health.is_failing && health.n_failures > self.failure_threshold
    }

    /// How many replicas it means.
    #[must_use]
    pub fn replicas(&self, current: i32) -> i32 {
        match self.behavior {
            FallbackBehavior::Static | FallbackBehavior::ScalingModifiers => self.replicas,
            FallbackBehavior::CurrentReplicas => current,
            FallbackBehavior::CurrentReplicasIfHigher => self.replicas.max(current),
            FallbackBehavior::CurrentReplicasIfLower => self.replicas.min(current),
        }
    }

    /// The figure that makes the HPA come to that number.
    ///
    /// # Errors
    /// When no figure does, since no pod is ready.
    pub fn value(
        &self,
        target: f64,
        metric_type: MetricType,
        replicas: Replicas,
    ) -> Result<f64, String> {
        let wanted = target * f64::from(self.replicas(replicas.current));
        match metric_type {
            MetricType::AverageValue | MetricType::Utilization => Ok(wanted),
            MetricType::Value if replicas.ready == 0 => Err(
                "no pod of the target is ready, so that no value stands for replicas".to_owned(),
            ),
            MetricType::Value => Ok(wanted / f64::from(replicas.ready)),
        }
    }
}
