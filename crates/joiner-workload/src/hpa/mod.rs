//! How many replicas an HPA asks for: [`decide`].
//!
//! One module per question, in the order in which a decision meets them:
//!
//! 1. [`wire`]: what does the object ask for, with defaults, and is it allowed to?
//! 2. `decide`: which of limits and metrics has the say, and what are status and events?
//! 3. `pods`: which pods count for a metric?
//! 4. `evaluate`, `replicas`: how many replicas does one metric ask for?
//! 5. `normalize`: what do older recommendations, limits and rates leave of it?
//! 6. `memory`: what has to be remembered for that?
//!
//! The caller reads the scale, asks the metrics APIs where [`wants_readings`] says so, calls [`decide`],
//! writes the new size, and tells [`Decision::conclude`] how that went.

mod decide;
mod evaluate;
mod memory;
mod normalize;
mod pods;
mod replicas;
mod spec;
#[cfg(test)]
mod tests;
pub mod wire;
mod world;

pub use decide::{Conclusion, Decision, SCALED_TO_ZERO, Written, decide, wants_readings};
pub use evaluate::{Failure, Proposal};
pub use memory::{Memory, Recommendation, ScaleEvent};
pub use pods::{Amounts, Container, Phase, Pod, Readiness};
pub use spec::{
    Amount, Behavior, Hpa, Metric, MetricId, Policy, ResourceTarget, Rules, Select, Spec, Status,
    TargetRef, ValueTarget,
};
pub use world::{Gates, PodUsage, PodValue, Reading, Scale, Settings, World};
