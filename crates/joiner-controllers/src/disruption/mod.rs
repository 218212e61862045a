//! Nodes are given back: controllers `disruption` and `disruption.queue`.
//!
//! *Flow*: every ten seconds, and when something was done or has come to its end, the snapshot becomes
//! a fleet and `joiner_disruption::decide` says which nodes go and what takes their place ([`orders`]). A
//! command for money waits fifteen seconds, then the same question is asked again: if it still comes out, its
//! moves are counted ([`moves`]), its nodes are tainted, the intent is written on their claims, and
//! replacements are created ([`start`], [`apply`]). When those are up, the claims are deleted ([`queue`]);
//! what came of it is in the [`ledger`]. When to look, and when to wait, is [`controller`].
//!
//! *Guarantees*: nothing is deleted before its replacements are initialized; a crash anywhere leaves
//! either a command on the objects, which goes on, or a taint that is taken away again.

mod apply;
mod controller;
mod fleet;
mod intent;
mod ledger;
mod measure;
mod moves;
mod orders;
mod queue;
mod report;
mod start;
mod when;

#[cfg(test)]
mod compat_tests;
#[cfg(test)]
mod controller_tests;
#[cfg(test)]
mod queue_tests;

use std::sync::Arc;

use joiner_cloud::Cloud;
use joiner_disruption::Settings;
use joiner_engine::{Controller, Shared};
use joiner_model::Policy;

#[cfg(test)]
pub(crate) use self::fleet::{Facts, fleet};
pub use self::intent::{COMMAND, Intent};
#[cfg(test)]
pub(crate) use self::moves::Book;
pub use self::moves::MOVES;
use crate::background::Background;
use crate::capacity_buffer::Headroom;
use crate::catalogs::Catalogs;
use crate::nodeclaim::lifecycle::Terms;
use crate::provisioning::Nominations;
use crate::seating::Seating;
use crate::static_capacity::Reservations;

/// Upstream's name of the controller.
pub const NAME: &str = "disruption";

/// What the search for nodes to give back works with.
#[derive(Clone)]
pub struct Disruptor {
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
    /// Room under the limits of static pools that is spoken for.
    pub static_room: Reservations,
    /// Figures that decide.
    pub settings: Settings,
    /// What to do with wishes.
    pub policy: Policy,
    /// Where long work is done.
    pub background: Background,
}

impl Disruptor {
    fn terms(&self) -> Terms {
        Terms::of(&*self.cloud)
    }
}

/// The controllers of this module.
#[must_use]
pub fn controllers(disruptor: Disruptor) -> Vec<Controller> {
    let queue = queue::controller(&disruptor);
    vec![
        Controller::looping(controller::Disruption::new(disruptor)),
        queue,
    ]
}
