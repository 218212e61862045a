//! Names of metrics that triggers make.

/// The name of the metric of the trigger at `index`: what a name of a metric cannot have becomes a dash.
#[must_use]
pub fn metric_name(index: usize, scaler: &str) -> String {
    let plain = scaler.replace(['/', '.', ':', '%', '(', ')'], "-");
    format!("s{index}-{plain}")
}
