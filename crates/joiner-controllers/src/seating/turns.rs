//! Pods that a command moves leave in turns, so that others take their place where the plan has them.
//!
//! A plan may fill nodes to the brim, but it is the scheduler who places the pods that come in the
//! stead of those that leave, and it spreads them as it likes: the last ones find no room, and a node
//! is bought for them. Where a plan is that tight, its command leaves the scheduler no choice. All nodes
//! that the plan has pods for are closed by a taint, but for one after the other; whenever one is opened,
//! the pods that are planned for it leave. Then it is the turn of pods whose place depends on others of
//! their kind: one spread after the other leaves, and all nodes that are planned for it are open. In the
//! end nothing is closed. A turn ends when there are as many pods as before, or
//! when nothing happens any more: a budget may hold pods back for long, and nothing is to wait for that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::labels::IN_TURN_TAINT;
use joiner_model::Name;
use joiner_state::live::{CommandIntent, LiveNode, Snapshot};

use super::state::Write;

/// A turn in which nothing happens for this long is over.
const STILL_MAX: Duration = Duration::from_millis(1_500);
/// And all turns of a command together.
const MOVE_MAX: Duration = Duration::from_secs(60);

/// A pod that has to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaver {
    /// `namespace/name`.
    pub pod: Name,
    /// Uid.
    pub uid: Name,
    /// Uid of the owner, if another pod of it is waited for.
    pub owner: Option<Name>,
}

/// Where pods are planned to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A node that was there before.
    Node(Name),
    /// The node of a claim.
    Claim(Name),
}

impl Target {
    fn node<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s Arc<LiveNode>> {
        match self {
            Self::Node(name) => snapshot.node(name),
            Self::Claim(name) => snapshot.node_of(snapshot.claim(name)?),
        }
    }
}

/// Pods that leave together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Where they are planned to go.
    pub opens: Vec<Target>,
    /// The pods.
    pub leavers: Vec<Leaver>,
}

/// A command whose pods leave in turns.
#[derive(Clone, Debug, Default)]
pub struct Move {
    /// Id of the command.
    pub id: String,
    /// Claims that go.
    pub members: Vec<Name>,
    /// The turns, in order.
    pub turns: Vec<Turn>,
    /// Pods that run of each owner that is waited for, before any pod leaves.
    pub replicas: BTreeMap<Name, usize>,
}

/// A move and how far it has come.
#[derive(Debug, Default)]
struct Progress {
    planned: Move,
    /// The turn of every pod, by uid.
    turn_of: BTreeMap<Name, usize>,
    /// The command is written on its members.
    is_begun: bool,
    /// The turn that it is.
    at: usize,
    /// The node of that turn is open.
    is_open: bool,
    /// Since when nothing has happened in that turn, and how many pods were awaited then.
    still: Option<(Timestamp, usize)>,
    /// Since when pods leave.
    leaving: Option<Timestamp>,
}

/// What to do about a move.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Turned {
    Wait,
    /// It is the next turn now.
    Next,
    /// Nothing is left to do.
    Over,
}

/// Commands whose pods leave in turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    moves: Vec<Progress>,
}

impl Turns {
    /// Before a command begins: from now on its new nodes stay closed.
    pub(super) fn plan(&mut self, planned: Move) {
        if planned.turns.is_empty() {
            return;
        }
        let turns = planned.turns.iter().enumerate();
        let turn_of = turns.flat_map(|(n, turn)| turn.leavers.iter().map(move |one| (n, one)));
        self.moves.push(Progress {
            turn_of: turn_of.map(|(n, one)| (one.uid.clone(), n)).collect(),
            planned,
            ..Progress::default()
        });
    }

    /// The command is written on its members.
    pub(super) fn begin(&mut self, id: &str) {
        let moves = self.moves.iter_mut();
        for progress in moves.filter(|progress| progress.planned.id == id) {
            progress.is_begun = true;
        }
    }

    /// It came to nothing.
    pub(super) fn forget(&mut self, id: &str) {
        self.moves.retain(|progress| progress.planned.id != id);
    }

    /// True while it is not the turn of a pod.
    pub(super) fn holds(&self, uid: &str) -> bool {
        self.moves.iter().any(|progress| {
            let (at, is_open) = (progress.at, progress.is_open);
            let turn = progress.turn_of.get(uid);
            turn.is_some_and(|turn| *turn > at || (*turn == at && !is_open))
        })
    }

    /// Nodes whose pods leave in turns: they have a plan.
    pub(super) fn nodes(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let moves = self.moves.iter();
        let claims = moves.flat_map(|progress| &progress.planned.members);
        let claims = claims.filter_map(|name| snapshot.claim(name));
        let nodes = claims.filter_map(|claim| snapshot.node_of(claim));
        nodes.map(|node| node.name().clone()).collect()
    }

    /// Workloads whose pods leave in turns, by uid.
    pub(super) fn owners(&self) -> BTreeSet<Name> {
        let leaving = self
            .moves
            .iter()
            .filter(|progress| progress.leaving.is_some());
        leaving
            .flat_map(|progress| progress.planned.replicas.keys().cloned())
            .collect()
    }

    /// Goes on with all moves; returns which nodes are to be closed and opened.
    pub(super) fn decide(&mut self, snapshot: &Snapshot, now: Timestamp) -> Vec<Write> {
        self.go_on(snapshot, now);
        let mut writes: Vec<Write> = self
            .to_close(snapshot)
            .into_iter()
            .map(Write::Close)
            .collect();
        let stay_closed = self.closed(snapshot);
        let to_open = snapshot
            .nodes()
            .filter(|node| node.has_taint(&IN_TURN_TAINT) && !stay_closed.contains(node.name()));
        writes.extend(to_open.map(|node| Write::Open(node.name().clone())));
        writes
    }

    fn go_on(&mut self, snapshot: &Snapshot, now: Timestamp) {
        if self.moves.is_empty() {
            return;
        }
        let moves = self.moves.iter();
        let owners = moves.flat_map(|progress| progress.planned.replicas.keys());
        let running = replicas(snapshot, owners);
        self.moves.retain_mut(|progress| {
            loop {
                match progress.turn(snapshot, &running, now) {
                    Turned::Wait => return true,
                    Turned::Next => {
                        progress.at += 1;
                        progress.is_open = false;
                        progress.still = None;
                    }
                    Turned::Over => return false,
                }
            }
        });
    }

    /// Nodes that are closed for now. Those that were there before stay open until pods leave.
    fn closed(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let moves = self.moves.iter();
        let closed = moves.flat_map(|progress| progress.closed(snapshot));
        closed.map(|node| node.name().clone()).collect()
    }

    /// Nodes that are to be closed now.
    fn to_close(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let leaving = self
            .moves
            .iter()
            .filter(|progress| progress.leaving.is_some());
        let closed = leaving.flat_map(|progress| progress.closed(snapshot));
        let open = closed.filter(|node| !node.has_taint(&IN_TURN_TAINT));
        open.map(|node| node.name().clone()).collect()
    }

    /// True when no pods leave in turns.
    pub(super) fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }
}

/// True while some node is closed.
pub(super) fn any_closed(snapshot: &Snapshot) -> bool {
    snapshot.nodes().any(|node| node.has_taint(&IN_TURN_TAINT))
}

impl Progress {
    /// What to do next; `running` is how many pods of each owner have a place now.
    fn turn(
        &mut self,
        snapshot: &Snapshot,
        running: &BTreeMap<Name, usize>,
        now: Timestamp,
    ) -> Turned {
        if !self.is_begun {
            return Turned::Wait;
        }
        let members = self.planned.members.iter();
        let mut members = members.filter_map(|name| snapshot.claim(name)).peekable();
        if members.peek().is_none() {
            return Turned::Over;
        }
        let mut is_leaving = false;
        for claim in members {
            if CommandIntent::of(claim).is_none_or(|intent| intent.id != self.planned.id) {
                return Turned::Over;
            }
            is_leaving |= claim.meta.deleting.is_some();
        }
        if !is_leaving {
            return Turned::Wait;
        }
        let Some(turn) = self.planned.turns.get(self.at) else {
            return Turned::Over;
        };
        let leaving = *self.leaving.get_or_insert(now);
        let age = |at: Timestamp| now.duration_since(at).unsigned_abs();
        let n_awaited = awaited(&self.planned, turn, snapshot, running);
        let still = match self.still {
            Some((since, n)) if n == n_awaited => since,
            _ => now,
        };
        self.still = Some((still, n_awaited));
        let late = age(still) >= STILL_MAX || age(leaving) > MOVE_MAX;
        let is_closed = |node: &Arc<LiveNode>| node.has_taint(&IN_TURN_TAINT);
        let mut to_open = turn.opens.iter().filter_map(|place| place.node(snapshot));
        let is_set = !to_open.any(is_closed) && self.closed(snapshot).all(is_closed);
        if !is_set && !late {
            return Turned::Wait;
        }
        self.is_open = true;
        if late || n_awaited == 0 {
            return Turned::Next;
        }
        Turned::Wait
    }

    /// Nodes that are closed in this turn: all but its own.
    fn closed<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<LiveNode>> {
        let now = self.leaving.and_then(|_| self.planned.turns.get(self.at));
        let is_open = move |place: &&Target| now.is_some_and(|turn| turn.opens.contains(place));
        let places = self.planned.turns.iter().flat_map(|turn| &turn.opens);
        let closed = places.filter(move |place| !is_open(place));
        closed.filter_map(|place| place.node(snapshot))
    }
}

/// How many pods are still to leave, or to come in the stead of those that left.
fn awaited(
    planned: &Move,
    turn: &Turn,
    snapshot: &Snapshot,
    running: &BTreeMap<Name, usize>,
) -> usize {
    let is_there = |one: &&Leaver| {
        let pod = snapshot.pod(&one.pod).filter(|pod| pod.uid == one.uid);
        pod.is_some_and(|pod| pod.is_active())
    };
    let n_there = turn.leavers.iter().filter(is_there).count();
    let owners = turn.leavers.iter().filter_map(|one| one.owner.as_ref());
    let owners: BTreeSet<&Name> = owners.collect();
    let n = |counts: &BTreeMap<Name, usize>, owner| counts.get(owner).copied().unwrap_or(0);
    let missing = owners
        .into_iter()
        .map(|owner| n(&planned.replicas, owner).saturating_sub(n(running, owner)));
    n_there + missing.sum::<usize>()
}

/// Pods that have a place, by owner, of these owners.
pub(crate) fn replicas<'o>(
    snapshot: &Snapshot,
    owners: impl Iterator<Item = &'o Name>,
) -> BTreeMap<Name, usize> {
    let mut all: BTreeMap<Name, usize> = owners.map(|owner| (owner.clone(), 0)).collect();
    let running = snapshot
        .pods()
        .filter(|pod| pod.node.is_some() && pod.is_active());
    for owner in running.filter_map(|pod| pod.owner.as_ref()) {
        if let Some(n) = all.get_mut(&owner.uid) {
            *n += 1;
        }
    }
    all
}
