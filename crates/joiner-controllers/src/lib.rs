//! Observe, decide, check, apply: one module per controller, in folders named as upstream's.
//!
//! Each controller is constructed with the handles that it uses, decides purely, and acts thinly;
//! `joiner-engine` runs it. Nothing here keeps truth in memory: what was decided is on the objects.

pub mod annotations;
pub mod assembly;
pub mod background;
pub mod capacity_buffer;
pub mod catalogs;
pub mod disruption;
pub mod interruption;
pub mod metered_cloud;
pub mod node;
pub mod node_overlay;
pub mod nodeclaim;
pub mod nodeclass;
pub mod nodepool;
pub mod provisioning;
mod requirements;
mod reservations;
pub mod seating;
pub mod settings;
pub mod state_metrics;
pub mod static_capacity;
mod taints;

pub use settings::Settings;
