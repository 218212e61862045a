//! What is known of plans that the scheduler is to follow, and what follows from it.

use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Name;
use joiner_state::live::Snapshot;

use super::openings::Openings;
use super::successors::Successors;
use super::turns::Turns;

/// How often moves under way are looked at.
const MOVES_EVERY: Duration = Duration::from_millis(200);
/// How often it is made sure that no node is closed for nothing.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Something to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Have the scheduler try this node first for a pod.
    Propose {
        /// `namespace/name`.
        pod: Name,
        /// Uid of the pod.
        uid: Name,
        /// The node.
        node: Name,
    },
    /// Take the proposal to a pod back.
    Withdraw {
        /// `namespace/name`.
        pod: Name,
        /// Uid of the pod.
        uid: Name,
    },
    /// Close a node for all pods but those that are on it.
    Close(Name),
    /// Open a node that was closed.
    Open(Name),
}

/// What follows from the state now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// To be written, and then decided about anew.
    pub writes: Vec<Write>,
    /// Claims whose nodes may be opened from now on.
    pub released: Vec<Name>,
    /// When to decide again, unless something changes before.
    pub next: Option<Timestamp>,
}

/// Plans that the scheduler is to follow, and how far they have come.
#[derive(Debug, Default)]
pub struct State {
    pub(super) openings: Openings,
    pub(super) successors: Successors,
    pub(super) turns: Turns,
    /// Pods that have appeared since the last decision.
    pub(super) arrived: Vec<Name>,
    /// When moves are looked at next.
    moves_at: Option<Timestamp>,
}

impl State {
    /// What to write now.
    pub fn decide(&mut self, snapshot: &Snapshot, now: Timestamp) -> Decision {
        let mut decision = Decision::default();
        let mut next = vec![self.openings.decide(snapshot, now, &mut decision)];
        let arrived = std::mem::take(&mut self.arrived);
        let proposals = self.successors.proposals(snapshot, &arrived, now);
        decision.writes.extend(proposals);
        let moves_at = *self.moves_at.get_or_insert(after(now, SWEEP_EVERY));
        if moves_at <= now {
            decision.writes.extend(self.turns.decide(snapshot, now));
            let is_busy = !self.turns.is_empty() || super::turns::any_closed(snapshot);
            let pause = if is_busy { MOVES_EVERY } else { SWEEP_EVERY };
            self.moves_at = Some(after(now, pause));
        }
        next.push(self.moves_at);
        decision.next = next.into_iter().flatten().min();
        decision
    }

    /// A command is written on its members: its move is looked at now.
    pub(super) fn begin_move(&mut self, id: &str) {
        self.turns.begin(id);
        self.moves_at = Some(Timestamp::MIN);
    }

    /// True when the pod that appeared may come in the place of one that was moved.
    pub(super) fn expects(&self) -> bool {
        self.successors.expects_any()
    }
}

pub(super) fn after(at: Timestamp, pause: Duration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}
