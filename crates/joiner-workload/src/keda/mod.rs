//! What a ScaledObject and a ScaledJob of KEDA make of their triggers.

mod names;

pub use names::metric_name;
