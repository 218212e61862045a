//! What a ScaledObject and a ScaledJob of KEDA make of their triggers.
//!
//! One module per question, in the order in which a poll meets them:
//!
//! 1. `spec`, `rules`, `pause`: what does the object ask for, is it allowed to, and is it held still?
//! 2. `readings`, `names`: which metrics do triggers make, and what are they called?
//! 3. `poll`, `fallback`, [`formula`]: what is each metric now, and is the object active?
//! 4. `execute`: is there a step to zero or from it?
//! 5. `generated`, `mirror`: what does the HPA look like that does the rest, and how is it?
//! 6. `jobs`: how many Jobs are made?

mod execute;
mod fallback;
pub mod formula;
mod generated;
mod jobs;
mod mirror;
mod names;
mod pause;
mod poll;
mod readings;
mod rules;
mod spec;

#[cfg(test)]
mod tests;

pub use execute::{Execution, Target, execute, unreadable};
pub use fallback::{Health, HealthByMetric, Replicas, count, forget, valid};
pub use generated::{NAME_LABEL, hpa, must_be_written};
pub use jobs::{
    Calculation, GENERATION, JOB_LABEL, Job, JobPod, Queue, ScaledJob, Strategy, Unfinished,
};
pub use mirror::hpa_active;
pub use names::metric_name;
pub use pause::{FORCE_ACTIVATION, Pause, is_forced};
pub use poll::{Findings, Poll, poll};
pub use readings::{
    COMPOSITE, MetricSpec, TriggerReading, mean_target, millis, quantity, trigger_of,
};
pub use rules::{complaints, warnings};
pub use spec::{
    Fallback, FallbackBehavior, MAX_REPLICAS, MetricType, Modifiers, ScaledObject, Trigger,
};
