//! Nodes: their end, and what is done about sick ones.

mod health;
pub mod termination;

#[cfg(test)]
mod health_tests;

use std::sync::Arc;

use joiner_cloud::Cloud;
use joiner_engine::{Controller, Shared};

use crate::settings::FeatureGates;

/// The controllers of Nodes that are up.
#[must_use]
pub fn controllers(
    shared: &Shared,
    cloud: &Arc<dyn Cloud>,
    gates: FeatureGates,
) -> Vec<Controller> {
    let health = || Controller::keyed(health::NodeHealth::new(shared, cloud));
    let health = gates.node_repair.then(health);
    health.into_iter().collect()
}
