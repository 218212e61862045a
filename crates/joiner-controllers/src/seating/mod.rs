//! What makes the scheduler follow the plan.
//!
//! A plan fills nodes to the brim, and it is the scheduler who places pods: it spreads them as it likes,
//! puts small ones where only a large one fits, and the rest needs another node. Three things keep it to
//! the plan, all of them hints and taints that Kubernetes has:
//! - [`openings`]: a node that comes up stays closed until its pods know of it: `status.nominatedNodeName`
//!   has the scheduler try that node first, and keep room on it;
//! - [`turns`]: where a consolidation is tight, pods leave in turns, and only the nodes whose turn it is are
//!   open meanwhile;
//! - [`successors`]: the pod that comes in the place of one that was moved is proposed the node that the
//!   plan has it on.
//!
//! *Flow*: controllers note what they plan and ask what they may do ([`Seating`]); one controller, `seating`,
//! decides what follows from it, [`State::decide`], and writes it. Nothing calls back: the claims whose
//! nodes may be opened are there for the taking ([`Seating::released`]).
//!
//! *Guarantees*: the decision is a function of the state, a snapshot and the time. It is memory on purpose:
//! after a restart nothing waits, and closed nodes are opened. [`Seating::off`] is the switch: without it
//! nodes open at once, pods leave at once, and nothing is proposed.

mod controller;
mod openings;
mod state;
mod successors;
mod turns;

#[cfg(test)]
mod openings_tests;
#[cfg(test)]
mod successors_tests;
#[cfg(test)]
mod turns_tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use joiner_model::Name;
use joiner_state::live::Snapshot;
use tokio::sync::Notify;

pub(crate) use controller::controllers;
pub(crate) use openings::planned;
pub use openings::{PlannedPod, Standing};
pub use state::{Decision, State, Write};
pub use successors::Successor;
pub(crate) use successors::{expected, turns};
pub(crate) use turns::replicas;
pub use turns::{Leaver, Move, Target, Turn};

/// What controllers tell of their plans, and ask; clones share it.
#[derive(Clone, Debug)]
pub struct Seating {
    is_on: bool,
    state: Arc<Mutex<State>>,
    /// Rings when there is something to decide.
    news: Arc<Notify>,
    released: Arc<Released>,
}

/// Claims whose nodes may be opened now, until their controller has taken them.
#[derive(Debug, Default)]
struct Released {
    claims: Mutex<BTreeSet<Name>>,
    news: Notify,
}

impl Default for Seating {
    fn default() -> Self {
        Self::new(true)
    }
}

impl Seating {
    /// The scheduler is made to follow the plan, or left alone.
    #[must_use]
    pub fn new(is_on: bool) -> Self {
        Self {
            is_on,
            state: Arc::default(),
            news: Arc::default(),
            released: Arc::default(),
        }
    }

    /// The scheduler is left alone.
    #[must_use]
    pub fn off() -> Self {
        Self::new(false)
    }

    /// True when the scheduler is made to follow the plan.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All plans are forgotten: another process may have led meanwhile.
    pub fn forget_all(&self) {
        *self.state() = State::default();
        lock(&self.released.claims).clear();
    }

    /// Where the last plan has all pods whose node is still to come.
    pub fn plan(&self, pods: Vec<PlannedPod>) {
        if self.is_on {
            let released = self.state().openings.plan(pods);
            self.release(released);
        }
    }

    /// Whether the node of a claim may be opened for pods now. When not, the claim is released as soon as
    /// it may.
    #[must_use]
    pub fn may_open(&self, claim: &Name, node: &Name) -> bool {
        if !self.is_on {
            return true;
        }
        let may_open = self.state().openings.ask(claim, node);
        if !may_open {
            self.news.notify_one();
        }
        may_open
    }

    /// The claims whose nodes may be opened since this was called last; waits for the first.
    pub async fn released(&self) -> Vec<Name> {
        loop {
            let claims = std::mem::take(&mut *lock(&self.released.claims));
            if !claims.is_empty() {
                return claims.into_iter().collect();
            }
            self.released.news.notified().await;
        }
    }

    fn release(&self, claims: Vec<Name>) {
        if !claims.is_empty() {
            lock(&self.released.claims).extend(claims);
            self.released.news.notify_one();
        }
    }

    /// Pods will be evicted; these are to come in their place.
    pub fn expect(&self, successors: Vec<Successor>, now: Timestamp) {
        if self.is_on {
            self.state().successors.expect(successors, now);
        }
    }

    /// A pod has appeared. True when it may come in the place of one that was moved.
    fn arrived(&self, pod: &Name) -> bool {
        let mut state = self.state();
        let is_expected = state.expects();
        if is_expected {
            state.arrived.push(pod.clone());
        }
        is_expected
    }

    /// A command is about to begin: from now on its new nodes stay closed.
    pub fn plan_move(&self, planned: Move) {
        if self.is_on {
            self.state().turns.plan(planned);
        }
    }

    /// A command is written on its members.
    pub fn begin_move(&self, id: &str) {
        self.state().begin_move(id);
        self.news.notify_one();
    }

    /// A command came to nothing.
    pub fn forget_move(&self, id: &str) {
        self.state().turns.forget(id);
    }

    /// True while it is not the turn of a pod to leave.
    #[must_use]
    pub fn holds(&self, uid: &str) -> bool {
        self.state().turns.holds(uid)
    }

    /// True when no pods leave in turns.
    #[must_use]
    pub fn has_no_moves(&self) -> bool {
        self.state().turns.is_empty()
    }

    /// Nodes whose pods leave in turns: they have a plan.
    #[must_use]
    pub fn moving_nodes(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        self.state().turns.nodes(snapshot)
    }

    /// Workloads whose pods leave in turns, by uid: pods that come in their stead may have to wait for a
    /// node to be opened, and nothing is to be bought for them.
    #[must_use]
    pub fn moving_owners(&self) -> BTreeSet<Name> {
        self.state().turns.owners()
    }

    /// What is to be written now.
    fn decide(&self, snapshot: &Snapshot, now: Timestamp) -> Decision {
        let decision = self.state().decide(snapshot, now);
        self.release(decision.released.clone());
        decision
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
