//! Nodes that come up are opened when their pods know of them.
//!
//! `status.nominatedNodeName` is what Kubernetes has for this: that node is tried first, and room on it is
//! kept for the pod. It is a hint: when the pod fits better elsewhere, or nowhere, nothing is lost, and the
//! pod is planned for again.
//!
//! The life of an opening: the claim's controller *asks*; the pods of the claim are *told*, that is, the node is
//! proposed to them; the other nodes of the same plan are waited for, if that is soon, since pods whose own
//! node is still closed would take the room of those that nothing is proposed to; all are told *again*, since the
//! scheduler takes a proposal back from a pod that it turns down meanwhile; and when all that know of their
//! nodes are ready, all nodes are *open* at the same moment: before the first of them keeps the scheduler busy.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_model::{Name, Plan};
use joiner_state::live::{Asked, Snapshot};

use super::state::{Decision, Write, after};

/// Other nodes are waited for at most this long while their pods are being told.
const TELL_MAX: Duration = Duration::from_secs(10);
/// And this long while they are told again.
const READY_MAX: Duration = Duration::from_secs(3);
/// And this long while no further node has joined.
const JOIN_MAX: Duration = Duration::from_secs(2);
/// How often waiting openings are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Room is kept for pods of a spread at least this long after their node is opened: no other pod is to take
/// it while nodes are opened one after the other.
const SPREAD_KEPT_MIN: Duration = Duration::from_millis(1_500);
/// And this long while larger ones of other spreads look for a place.
const SPREAD_KEPT_MAX: Duration = Duration::from_secs(12);
/// How often it is looked whether a proposal must still be held.
const HOLD_EVERY: Duration = Duration::from_millis(200);

/// A pod that waits for a node to come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPod {
    /// `namespace/name`.
    pub name: Name,
    /// Uid.
    pub uid: Name,
    /// The claim of the node.
    pub claim: Name,
    /// How it is proposed to.
    pub standing: Standing,
}

/// How a pod is proposed to. Pods of a spread cannot all be: the scheduler counts those that are as if
/// they were on their node already, and turns all of them down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Until it has a place.
    Alone,
    /// Not at all: it is one of a spread, and among the largest of those, and takes what room there is.
    Foremost,
    /// Only until the foremost have places: it is one of a spread, and might take their room.
    Yielding,
}

/// How far the opening of a node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its controller has asked.
    Asked,
    /// Its pods are being told.
    Telling,
    /// They know, since then.
    Told(Timestamp),
    /// They are told again.
    TellingAgain,
    /// They were told again, since then.
    Ready(Timestamp),
    /// It may be opened.
    Open,
}

impl Stage {
    fn is_told(self) -> bool {
        !matches!(self, Self::Asked | Self::Telling)
    }
}

#[derive(Clone, Debug)]
struct Opening {
    node: Name,
    stage: Stage,
}

/// A proposal that is to be withdrawn.
#[derive(Debug)]
struct Passing {
    pod: PlannedPod,
    /// Not before.
    from: Timestamp,
    /// Nor later.
    until: Timestamp,
}

/// Nodes that come up, and the pods that wait for them.
#[derive(Debug, Default)]
pub(super) struct Openings {
    /// The claim that each pod without a node is planned for, as of the last plan.
    planned: Vec<PlannedPod>,
    /// By claim.
    openings: BTreeMap<Name, Opening>,
    /// Pods whose proposal is to be withdrawn.
    passing: Vec<Passing>,
}

impl Openings {
    /// Where the last plan has all pods whose node is still to come. Returns claims that waited, and that
    /// the plan has no pods for any more.
    pub(super) fn plan(&mut self, pods: Vec<PlannedPod>) -> Vec<Name> {
        let is_planned = |claim: &Name| pods.iter().any(|pod| pod.claim == *claim);
        let dropped = self.openings.extract_if(.., |claim, _| !is_planned(claim));
        let waited = dropped.filter(|(_, opening)| opening.stage != Stage::Open);
        let released = waited.map(|(claim, _)| claim).collect();
        self.planned = pods;
        released
    }

    /// Whether the node of a claim may be opened now; it is on its way to that otherwise.
    pub(super) fn ask(&mut self, claim: &Name, node: &Name) -> bool {
        if self.planned_for(claim).next().is_none() {
            return true;
        }
        let opening = self.openings.entry(claim.clone()).or_insert(Opening {
            node: node.clone(),
            stage: Stage::Asked,
        });
        opening.stage == Stage::Open
    }

    fn planned_for<'a>(&'a self, claim: &'a str) -> impl Iterator<Item = &'a PlannedPod> {
        self.planned.iter().filter(move |pod| &*pod.claim == claim)
    }

    /// Takes each opening as far as it can go now. Returns when to decide again.
    pub(super) fn decide(
        &mut self,
        snapshot: &Snapshot,
        now: Timestamp,
        decision: &mut Decision,
    ) -> Option<Timestamp> {
        self.written(now);
        self.tell_again(snapshot, now, decision);
        self.open(now, decision);
        self.tell(snapshot, decision);
        let withdrawal = self.withdraw(snapshot, now, decision);
        let stages = self.openings.values().map(|opening| opening.stage);
        let next = stages.filter_map(|stage| match stage {
            Stage::Asked | Stage::Telling | Stage::TellingAgain => Some(now),
            Stage::Told(_) | Stage::Ready(_) => Some(after(now, LOOK_EVERY)),
            Stage::Open => None,
        });
        next.chain(withdrawal).min()
    }

    /// What the last decision was about has been written.
    fn written(&mut self, now: Timestamp) {
        for opening in self.openings.values_mut() {
            opening.stage = match opening.stage {
                Stage::Telling => Stage::Told(now),
                Stage::TellingAgain => Stage::Ready(now),
                stage @ (Stage::Asked | Stage::Told(_) | Stage::Ready(_) | Stage::Open) => stage,
            };
        }
    }

    /// Tells pods again whose node need not wait for others any longer.
    fn tell_again(&mut self, snapshot: &Snapshot, now: Timestamp, decision: &mut Decision) {
        let patience = self.patience(snapshot);
        let is_over = |stage| match stage {
            Stage::Told(since) => now.duration_since(since).unsigned_abs() >= patience,
            Stage::Asked | Stage::Telling | Stage::TellingAgain | Stage::Ready(_) | Stage::Open => {
                false
            }
        };
        for claim in self.step(is_over, Stage::TellingAgain) {
            self.propose(snapshot, &claim, decision);
        }
    }

    /// How long nodes whose pods know of them wait for the other nodes of the plan.
    fn patience(&self, snapshot: &Snapshot) -> Duration {
        let is_told = |claim: &Name| {
            let opening = self.openings.get(claim);
            opening.is_some_and(|opening| opening.stage.is_told())
        };
        let untold = self.planned.iter().map(|pod| &pod.claim);
        let coming = untold
            .filter(|claim| !is_told(claim))
            .filter_map(|claim| snapshot.claim(claim))
            .filter(|claim| claim.meta.deleting.is_none());
        let mut patience = Duration::ZERO;
        for claim in coming {
            if snapshot.node_of(claim).is_some() {
                return TELL_MAX;
            }
            patience = JOIN_MAX;
        }
        patience
    }

    /// Opens nodes whose pods were told again, when all others are as far, or take too long.
    fn open(&mut self, now: Timestamp, decision: &mut Decision) {
        let mut stages = self.openings.values().map(|opening| opening.stage);
        let all_ready = !stages.any(|stage| matches!(stage, Stage::Told(_) | Stage::TellingAgain));
        let may_open = |stage| match stage {
            Stage::Ready(since) => {
                all_ready || now.duration_since(since).unsigned_abs() >= READY_MAX
            }
            Stage::Asked | Stage::Telling | Stage::Told(_) | Stage::TellingAgain | Stage::Open => {
                false
            }
        };
        for claim in self.step(may_open, Stage::Open) {
            let (from, until) = (after(now, SPREAD_KEPT_MIN), after(now, SPREAD_KEPT_MAX));
            let pods = self.planned_for(&claim);
            let yielding = pods.filter(|pod| pod.standing == Standing::Yielding);
            let passing: Vec<Passing> = yielding
                .map(|pod| Passing {
                    pod: pod.clone(),
                    from,
                    until,
                })
                .collect();
            self.passing.extend(passing);
            decision.released.push(claim);
        }
    }

    /// Tells the pods of nodes that are new here.
    fn tell(&mut self, snapshot: &Snapshot, decision: &mut Decision) {
        for claim in self.step(|stage| stage == Stage::Asked, Stage::Telling) {
            self.propose(snapshot, &claim, decision);
        }
    }

    /// Takes openings to another stage; returns their claims.
    fn step(&mut self, moves: impl Fn(Stage) -> bool, to: Stage) -> Vec<Name> {
        let mut claims = Vec::new();
        for (claim, opening) in &mut self.openings {
            if moves(opening.stage) {
                opening.stage = to;
                claims.push(claim.clone());
            }
        }
        claims
    }

    /// The proposals that do not stand yet, to pods that wait.
    fn propose(&self, snapshot: &Snapshot, claim: &Name, decision: &mut Decision) {
        let Some(opening) = self.openings.get(claim) else {
            return;
        };
        let node = &opening.node;
        let pods = self.planned_for(claim);
        for pod in pods.filter(|pod| pod.standing != Standing::Foremost) {
            let live = snapshot.pod(&pod.name);
            let live = live.filter(|live| live.uid == pod.uid && live.is_homeless());
            if live.is_some_and(|live| live.proposed.as_ref() != Some(node)) {
                decision.writes.push(Write::Propose {
                    pod: pod.name.clone(),
                    uid: pod.uid.clone(),
                    node: node.clone(),
                });
            }
        }
    }

    /// Takes proposals back whose time is over, from pods that still wait: as late as possible while larger
    /// ones wait. Returns when to look again.
    fn withdraw(
        &mut self,
        snapshot: &Snapshot,
        now: Timestamp,
        decision: &mut Decision,
    ) -> Option<Timestamp> {
        let waits = |pod: &PlannedPod| {
            let live = snapshot.pod(&pod.name);
            live.is_some_and(|live| live.uid == pod.uid && live.node.is_none())
        };
        let mut foremost = self.planned.iter();
        let others_wait = foremost.any(|pod| pod.standing == Standing::Foremost && waits(pod));
        let due = self.passing.extract_if(.., |passing| match others_wait {
            true => passing.until <= now,
            false => passing.from <= now,
        });
        for pod in due.map(|passing| passing.pod).filter(waits) {
            decision.writes.push(Write::Withdraw {
                pod: pod.name,
                uid: pod.uid,
            });
        }
        let next = self.passing.iter().map(|passing| passing.from).min()?;
        Some(next.max(after(now, HOLD_EVERY)))
    }
}

/// The pods of a plan whose nodes are still to come. The largest of each node come first: should there
/// be no time to propose to all, the small ones find a place most easily.
pub(crate) fn planned(
    now: &Snapshot,
    asked: &Asked,
    plan: &Plan,
    created: &BTreeMap<usize, Name>,
) -> Vec<PlannedPod> {
    let problem = &asked.problem;
    let new = created
        .iter()
        .filter_map(|(ix, claim)| Some((&plan.launches.get(*ix)?.pods, claim)));
    let coming = (plan.placements.iter())
        .filter_map(|placed| Some((&placed.pods, asked.in_flight.get(&placed.node)?)));
    let mut all = Vec::new();
    for (pods, claim) in new.chain(coming) {
        for pod in pods.iter().map(|pod| &problem.pods[pod.0 as usize]) {
            let Some(live) = now.pod(&pod.name).filter(|live| live.is_homeless()) else {
                continue;
            };
            let shape = &problem.shapes[pod.shape.0 as usize];
            let pod = PlannedPod {
                name: live.name.clone(),
                uid: live.uid.clone(),
                claim: claim.clone(),
                standing: Standing::Alone,
            };
            all.push((shape.precedence().size, !shape.spreads.is_empty(), pod));
        }
    }
    all.sort_by_key(|(size, _, _)| Reverse(*size));
    let spread = all.iter().filter(|(_, is_spread, _)| *is_spread);
    let largest = spread.map(|(size, _, _)| *size).max();
    let standing = |(size, is_spread, pod): (u64, bool, PlannedPod)| PlannedPod {
        standing: match is_spread {
            false => Standing::Alone,
            true if Some(size) == largest => Standing::Foremost,
            true => Standing::Yielding,
        },
        ..pod
    };
    all.into_iter().map(standing).collect()
}
