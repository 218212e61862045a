//! Observe, decide, check, apply: one module per controller.
//!
//! [`engine`] turns changes of the world into looks at single objects; each controller decides
//! purely and acts thinly. Nothing here keeps truth in memory: what was decided is on the objects.

pub mod annotations;
pub mod assembly;
pub mod buffer;
pub mod catalogs;
pub mod claim;
pub mod claim_template;
pub mod class;
pub mod conditions;
pub mod context;
pub mod disruption;
pub mod engine;
pub mod health;
pub mod metered_cloud;
pub mod metrics_state;
pub mod nominations;
pub mod observe;
pub mod overlay;
mod pauses;
pub mod pool;
pub mod provisioning;
mod requirements;
mod reservations;
pub mod settings;
pub mod static_pools;
mod taints;
pub mod termination;
pub mod turns;
pub mod upkeep;

pub use context::{Ctx, Failure, Next};
pub use engine::{Controller, run};
pub use settings::Settings;
