//! What a ScaledObject says of the health of its HPA.

use crate::condition::{Conditions, Said, Truth};

/// The condition that repeats what the HPA says of itself; `None` leaves it as it is.
#[must_use]
pub fn hpa_active(hpa: Option<&Conditions>) -> Option<Said> {
    const KIND: &str = "HPAActive";
    let condition = hpa?.get("ScalingActive")?;
    let message = condition.message.clone();
    Some(match (condition.status, condition.reason.as_str()) {
        (Truth::True, _) => Said::new(KIND, Truth::True, KIND, message),
        (Truth::False | Truth::Unknown, "ScalingDisabled") => {
            let message = "the target has no replicas, so that its autoscaler rests";
            Said::new(KIND, Truth::True, "ScalingDisabled", message)
        }
        (Truth::False | Truth::Unknown, reason) => Said {
            kind: KIND,
            status: Truth::False,
            reason: known(reason),
            message,
        },
    })
}

/// The HPA's own word, where it is one of those that HPAs have.
fn known(reason: &str) -> &'static str {
    const REASONS: [&str; 8] = [
        "FailedGetResourceMetric",
        "FailedGetContainerResourceMetric",
        "FailedGetPodsMetric",
        "FailedGetObjectMetric",
        "FailedGetExternalMetric",
        "InvalidMetricSourceType",
        "InvalidSelector",
        "AmbiguousSelector",
    ];
    let found = REASONS.iter().find(|known| **known == reason);
    found.copied().unwrap_or("HPAMetricsUnavailable")
}
