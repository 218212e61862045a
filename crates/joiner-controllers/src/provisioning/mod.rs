//! Pending pods become NodeClaims: controller `provisioner`.
//!
//! *Flow*: collect pods that fit nowhere ([`batch`], [`controller`]); turn the snapshot into a problem; solve;
//! verify; create one claim per node of the plan ([`claims`]); report it ([`report`]).
//!
//! *Guarantees*: one plan at a time, on a snapshot that has everything the last plan created; a
//! plan that the verifier rejects changes nothing; a crash anywhere in between creates nothing
//! twice, since claims that are not launched yet are nodes to the next plan.

mod batch;
pub(crate) mod claims;
#[cfg(test)]
mod claims_tests;
mod controller;
mod left_over;
mod nominations;
mod plan;
mod report;

use std::sync::Arc;

use joiner_cloud::Cloud;
use joiner_engine::{Controller, Shared};
use joiner_model::Policy;

pub use self::nominations::Nominations;
pub(crate) use self::plan::cannot_be_read;
use crate::background::Background;
use crate::capacity_buffer::Headroom;
use crate::catalogs::Catalogs;
use crate::seating::Seating;
use crate::settings::Batching;
use crate::state_metrics::PodDecisions;

/// Upstream's name of this controller.
pub const NAME: &str = "provisioner";

/// What planning works with.
#[derive(Clone)]
pub struct Planner {
    /// What all controllers share.
    pub shared: Shared,
    /// Who sells machines.
    pub cloud: Arc<dyn Cloud>,
    /// What is on sale.
    pub catalogs: Catalogs,
    /// Nodes that pods were told to expect a place on.
    pub nominations: Nominations,
    /// Nodes that headroom counts on.
    pub headroom: Headroom,
    /// What makes the scheduler follow the plan.
    pub seating: Seating,
    /// When pods were first decided about.
    pub pod_decisions: PodDecisions,
    /// How pods are collected.
    pub batching: Batching,
    /// What to do with wishes.
    pub policy: Policy,
    /// Capacity buffers count.
    pub has_buffers: bool,
    /// Where long work is done.
    pub background: Background,
}

/// The controllers of this module.
#[must_use]
pub fn controllers(planner: Planner) -> Vec<Controller> {
    vec![Controller::looping(controller::Provisioner::new(planner))]
}
