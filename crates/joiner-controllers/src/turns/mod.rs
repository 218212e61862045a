//! Pods that a command moves leave in turns, so that others take their place where the plan has them.
//!
//! A plan may fill nodes to the brim, but it is the scheduler who places the pods that come in the
//! stead of those that leave, and it spreads them as it likes: the last ones find no room, and a node
//! is bought for them. Where a plan is that tight, its command leaves the scheduler no choice. All nodes
//! that the plan has pods for are closed by a taint, but for one after the other; whenever one is opened,
//! the pods that are planned for it leave. Then it is the turn of pods whose place depends on others of
//! their kind: one spread after the other leaves, and all nodes that are planned for it are open. In the
//! end nothing is closed. A turn ends when there are as many pods as before, or
//! when nothing happens any more: a budget may hold pods back for long, and nobody is to wait for that.
//!
//! It is memory on purpose: after a restart nobody waits for anybody, and closed nodes are opened.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::labels::IN_TURN_TAINT;
use joiner_model::Name;
use joiner_state::live::{Kind, LiveNode, Snapshot};
use tokio::sync::Notify;

use crate::context::Ctx;
use crate::disruption::Intent;
use crate::taints;

/// How often moves under way are looked at.
const EVERY: Duration = Duration::from_millis(200);
/// How often it is made sure that no node is closed for nothing.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
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
pub enum Place {
    /// A node that was there before.
    Node(Name),
    /// The node of a claim.
    Claim(Name),
}

impl Place {
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
    pub opens: Vec<Place>,
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
    /// Pods that run of each owner that is waited for, before anybody leaves.
    pub replicas: BTreeMap<Name, usize>,
}

/// A move and how far it has come.
#[derive(Debug, Default)]
struct Progress {
    own: Move,
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
enum Step {
    Wait,
    /// It is the next turn now.
    Next,
    /// Nothing is left to do.
    Over,
}

/// Commands whose pods leave in turns; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    moves: Arc<Mutex<Vec<Progress>>>,
    news: Arc<Notify>,
}

impl Turns {
    /// Before a command begins: from now on its new nodes stay closed.
    pub(crate) fn plan(&self, own: Move) {
        if own.turns.is_empty() {
            return;
        }
        let turns = own.turns.iter().enumerate();
        let turn_of = turns.flat_map(|(n, turn)| turn.leavers.iter().map(move |one| (n, one)));
        self.moves().push(Progress {
            turn_of: turn_of.map(|(n, one)| (one.uid.clone(), n)).collect(),
            own,
            ..Progress::default()
        });
    }

    /// The command is written on its members.
    pub(crate) fn begin(&self, id: &str) {
        for own in self.moves().iter_mut().filter(|own| own.own.id == id) {
            own.is_begun = true;
        }
        self.news.notify_one();
    }

    /// It came to nothing.
    pub(crate) fn forget(&self, id: &str) {
        self.moves().retain(|own| own.own.id != id);
    }

    /// So did all of them.
    pub(crate) fn forget_all(&self) {
        self.moves().clear();
    }

    /// True while it is not the turn of a pod.
    #[must_use]
    pub(crate) fn holds(&self, uid: &str) -> bool {
        self.moves().iter().any(|own| {
            let turn = own.turn_of.get(uid);
            turn.is_some_and(|turn| *turn > own.at || (*turn == own.at && !own.is_open))
        })
    }

    /// Nodes whose pods leave in turns: they have a plan.
    #[must_use]
    pub(crate) fn nodes(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let moves = self.moves();
        let claims = moves.iter().flat_map(|own| &own.own.members);
        let claims = claims.filter_map(|name| snapshot.claim(name));
        let nodes = claims.filter_map(|claim| snapshot.node_of(claim));
        nodes.map(|node| node.name().clone()).collect()
    }

    /// Workloads whose pods leave in turns, by uid: others in their stead may have to wait for a node to
    /// be opened, and nothing is to be bought for them.
    #[must_use]
    pub(crate) fn owners(&self) -> BTreeSet<Name> {
        let moves = self.moves();
        let leaving = moves.iter().filter(|own| own.leaving.is_some());
        leaving
            .flat_map(|own| own.own.replicas.keys().cloned())
            .collect()
    }

    fn moves(&self) -> MutexGuard<'_, Vec<Progress>> {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with all moves.
    fn go_on(&self, snapshot: &Snapshot, now: Timestamp) {
        let mut moves = self.moves();
        if moves.is_empty() {
            return;
        }
        let owners = moves.iter().flat_map(|own| own.own.replicas.keys());
        let running = replicas(snapshot, owners);
        moves.retain_mut(|own| {
            loop {
                match own.step(snapshot, &running, now) {
                    Step::Wait => return true,
                    Step::Next => {
                        own.at += 1;
                        own.is_open = false;
                        own.still = None;
                    }
                    Step::Over => return false,
                }
            }
        });
    }

    /// Nodes that are closed for now. Those that were there before stay open until pods leave.
    fn closed(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let moves = self.moves();
        let closed = moves.iter().flat_map(|own| own.closed(snapshot));
        closed.map(|node| node.name().clone()).collect()
    }

    /// Nodes that are to be closed now.
    fn to_close(&self, snapshot: &Snapshot) -> BTreeSet<Name> {
        let moves = self.moves();
        let leaving = moves.iter().filter(|own| own.leaving.is_some());
        let closed = leaving.flat_map(|own| own.closed(snapshot));
        let open = closed.filter(|node| !node.has_taint(&IN_TURN_TAINT));
        open.map(|node| node.name().clone()).collect()
    }

    /// True when no pods leave in turns.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.moves().is_empty()
    }
}

impl Progress {
    /// What to do next; `running` is how many pods of each owner have a place now.
    fn step(
        &mut self,
        snapshot: &Snapshot,
        running: &BTreeMap<Name, usize>,
        now: Timestamp,
    ) -> Step {
        if !self.is_begun {
            return Step::Wait;
        }
        let members = self.own.members.iter();
        let mut members = members.filter_map(|name| snapshot.claim(name)).peekable();
        if members.peek().is_none() {
            return Step::Over;
        }
        let mut is_leaving = false;
        for claim in members {
            if Intent::of(claim).is_none_or(|intent| intent.id != self.own.id) {
                return Step::Over;
            }
            is_leaving |= claim.meta.deleting.is_some();
        }
        if !is_leaving {
            return Step::Wait;
        }
        let Some(turn) = self.own.turns.get(self.at) else {
            return Step::Over;
        };
        let leaving = *self.leaving.get_or_insert(now);
        let age = |at: Timestamp| now.duration_since(at).unsigned_abs();
        let n_awaited = awaited(&self.own, turn, snapshot, running);
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
            return Step::Wait;
        }
        self.is_open = true;
        if late || n_awaited == 0 {
            return Step::Next;
        }
        Step::Wait
    }

    /// Nodes that are closed in this turn: all but its own.
    fn closed<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<LiveNode>> {
        let now = self.leaving.and_then(|_| self.own.turns.get(self.at));
        let is_open = move |place: &&Place| now.is_some_and(|turn| turn.opens.contains(place));
        let places = self.own.turns.iter().flat_map(|turn| &turn.opens);
        let closed = places.filter(move |place| !is_open(place));
        closed.filter_map(|place| place.node(snapshot))
    }
}

/// How many pods are still to leave, or to come in the stead of those that left.
fn awaited(own: &Move, turn: &Turn, snapshot: &Snapshot, running: &BTreeMap<Name, usize>) -> usize {
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
        .map(|owner| n(&own.replicas, owner).saturating_sub(n(running, owner)));
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

/// Runs until its future is dropped.
pub(crate) async fn run(ctx: Ctx) {
    let mut is_busy = false;
    loop {
        is_busy |= !ctx.turns.is_empty();
        let pause = if is_busy { EVERY } else { SWEEP_EVERY };
        tokio::select! {
            biased;
            () = ctx.turns.news.notified() => {}
            () = ctx.clock.sleep(pause) => {}
        }
        if !ctx.world.is_listed() {
            continue;
        }
        let snapshot = ctx.world.snapshot();
        ctx.turns.go_on(&snapshot, ctx.clock.now());
        let to_close = ctx.turns.to_close(&snapshot);
        for node in to_close.iter().filter_map(|name| snapshot.node(name)) {
            write(&ctx, node, true).await;
        }
        let stay_closed = ctx.turns.closed(&snapshot);
        let closed = snapshot
            .nodes()
            .filter(|node| node.has_taint(&IN_TURN_TAINT));
        // Until the last of them is seen to be open.
        is_busy = false;
        for node in closed {
            is_busy = true;
            if !stay_closed.contains(node.name()) {
                write(&ctx, node, false).await;
            }
        }
    }
}

/// Closes or opens a node. What fails is tried again.
async fn write(ctx: &Ctx, node: &LiveNode, close: bool) {
    let taints = match close {
        true => taints::with(node, &IN_TURN_TAINT),
        false => taints::without(node, &IN_TURN_TAINT),
    };
    let patch = taints::patch(node, &taints);
    if let Err(error) = ctx.api.patch(Kind::Node, node.name(), &patch).await {
        tracing::debug!(Node = &**node.name(), %error, "cannot close or open a node yet");
    }
}
