//! How many pods and how large: what HPA, KEDA and VPA decide, as pure functions.
//!
//! - [`hpa`]: replicas from metrics.
//! - [`vpa`]: requests from usage.
//! - [`cron`]: windows of time in which replicas are wanted.
//! - [`keda`]: what ScaledObjects and ScaledJobs make of their triggers.
//!
//! - [`problems`]: recorded situations and our answers to them.
//!
//! Objects come in as JSON, as users wrote them, and are read here: errors name the field. Nothing reads
//! a clock, asks an API or remembers: `now`, readings and memory are arguments, and what is to be
//! remembered is part of the result. Figures are computed in upstream's order and with upstream's floats,
//! so that they are equal to the last replica.

pub mod condition;
pub mod cron;
pub mod durations;
mod floats;
pub mod hpa;
pub mod keda;
mod part;
pub mod problems;
pub mod quantity;
pub mod selector;
pub mod vpa;

pub use part::FieldError;
