//! Single-replica workloads that must not drop to zero: controller `surge`.
//!
//! *Flow*: a Deployment of one replica (or the NodePool of its node) carries
//! `joiner.dev/surge-on-move: "true"`, and the node of its pod goes. The Deployment is scaled to two;
//! when the new pod is ready on a node that stays, the old one is made the cheapest to delete, and the
//! Deployment is scaled back, upon which its ReplicaSet deletes the old pod. Meanwhile the old pod is
//! not evicted ([`holds`]).
//!
//! *Guarantees*: how far it has come is on the Deployment (`joiner.dev/surge`), so that a restart goes
//! on or cleans up. It takes a bounded time; after that the old pod is evicted like any other. Whoever
//! else changes the number of replicas in the meantime is right: what they set stays.
//!
//! StatefulSets cannot be surged, since their pods have names of their own; that is told as an event.

mod apply;

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use joiner_model::Name;
use joiner_state::live::{
    Kind, LiveNode, LivePod, LiveScalable, SURGE, Snapshot, Surge, SurgeStage as Stage,
};

pub(super) use apply::controller;

pub use joiner_state::live::SURGE_ON_MOVE;
/// A new pod that is not ready by then will not be waited for.
const READY_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// A pod is not held back for longer, whatever became of its surge.
const HELD_FOR: SignedDuration = SignedDuration::from_mins(6);
/// What the old pod is said to be worth: nothing is worth less.
const CHEAPEST: i32 = i32::MIN;

fn begin(pod: &LivePod, now: Timestamp) -> Surge {
    Surge {
        pod: pod.uid.clone(),
        stage: Stage::Out,
        from: 1,
        to: 2,
        since: now,
    }
}

fn is_late(surge: &Surge, now: Timestamp) -> bool {
    now.duration_since(surge.since) > READY_WITHIN
}

/// What to do about a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SurgeStep {
    /// Nothing until something changes.
    Nothing,
    /// Nothing yet; look again soon.
    Wait,
    /// Write how far it has come.
    Write(Surge),
    /// The new pod does not become ready: say so, and write it.
    GiveUp(Surge),
    /// Change the number of replicas.
    Scale(i64),
    /// Make this pod the first to be deleted.
    Cheapen(Name),
    /// It is over: forget it.
    Clear,
}

/// All that a decision about one Deployment rests on.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    /// The Deployment.
    pub(super) workload: &'a LiveScalable,
    /// Its pods that are neither finished nor being deleted.
    pub(super) pods: Vec<&'a LivePod>,
    snapshot: &'a Snapshot,
}

impl<'a> View<'a> {
    /// The view of a Deployment by `namespace/name`.
    pub(super) fn of(snapshot: &'a Snapshot, name: &str) -> Option<Self> {
        let workload = snapshot.scalable(Kind::Deployment, name)?;
        let belongs = |pod: &&LivePod| {
            let own = snapshot.workload_of(pod);
            own.is_some_and(|(_, own)| own.meta.uid == workload.meta.uid)
        };
        let namespace = workload.meta.namespace();
        let pods = snapshot.pods().map(AsRef::as_ref);
        let pods = pods.filter(|pod| pod.namespace() == namespace && pod.is_active());
        Some(Self {
            workload,
            pods: pods.filter(belongs).collect(),
            snapshot,
        })
    }

    /// The pod that has to leave its node, and is asked to be surged before.
    fn leaving(&self, now: Timestamp) -> Option<&'a LivePod> {
        let leaves = |pod: &&LivePod| {
            let node = node_of(self.snapshot, pod).filter(|node| node.meta.deleting.is_some());
            node.is_some_and(|node| is_asked(self.snapshot, self.workload, node))
                && !pod.is_protected(now)
        };
        self.pods.iter().copied().find(leaves)
    }

    /// Another pod is ready where nothing leaves.
    fn ready_elsewhere(&self, pod: &str) -> bool {
        let others = self.pods.iter().filter(|own| &*own.uid != pod);
        others.filter(|own| own.ready.is_some()).any(|own| {
            let node = node_of(self.snapshot, own);
            node.is_some_and(|node| !self.snapshot.is_leaving(node) && node.meta.deleting.is_none())
        })
    }
}

fn node_of<'a>(snapshot: &'a Snapshot, pod: &LivePod) -> Option<&'a LiveNode> {
    let node = pod.node.as_ref().and_then(|node| snapshot.node(node))?;
    Some(node)
}

/// The workload wants it, or the pool of its node; a workload that says no is heard.
fn is_asked(snapshot: &Snapshot, workload: &LiveScalable, node: &LiveNode) -> bool {
    let pool = || snapshot.pool(node.pool()?)?.surge_on_move;
    workload.surge_on_move.or_else(pool) == Some(true)
}

/// What to do next about a Deployment.
pub(super) fn next_step(view: &View<'_>, now: Timestamp) -> SurgeStep {
    let replicas = view.workload.replicas;
    let Some(surge) = Surge::of(view.workload) else {
        // What cannot be understood is not ours to act on.
        let unreadable = view.workload.meta.annotation(SURGE).is_some();
        return if unreadable {
            SurgeStep::Clear
        } else {
            first(view, now)
        };
    };
    let old = view.pods.iter().find(|pod| pod.uid == surge.pod);
    match (surge.stage, replicas) {
        (Stage::Out, n) if n == surge.from => match old {
            Some(_) => SurgeStep::Scale(surge.to),
            None => SurgeStep::Clear,
        },
        (Stage::Out, n) if n == surge.to => SurgeStep::Write(surge.at(Stage::Wait)),
        (Stage::Wait, n) if n == surge.to => match old {
            // It left by itself; the other one is all that is wanted.
            None => SurgeStep::Write(surge.at(Stage::Back)),
            Some(old) if view.ready_elsewhere(&surge.pod) => match old.deletion_cost {
                CHEAPEST => SurgeStep::Write(surge.at(Stage::Back)),
                _ => SurgeStep::Cheapen(old.name.clone()),
            },
            Some(_) if is_late(surge, now) => SurgeStep::GiveUp(surge.at(Stage::Late)),
            Some(_) => SurgeStep::Wait,
        },
        (Stage::Late, n) if n == surge.to && old.is_some() => SurgeStep::Wait,
        (Stage::Back | Stage::Late, n) if n == surge.to => SurgeStep::Scale(surge.from),
        // Somebody else has set another number, or it is back where it was.
        (Stage::Late, _) if old.is_some() => SurgeStep::Wait,
        (Stage::Out | Stage::Wait | Stage::Back | Stage::Late, _) => SurgeStep::Clear,
    }
}

/// What to do about a Deployment that is not being surged.
fn first(view: &View<'_>, now: Timestamp) -> SurgeStep {
    let single = view.workload.replicas == 1 && view.workload.meta.deleting.is_none();
    match view.leaving(now).filter(|_| single) {
        Some(pod) if !view.ready_elsewhere(&pod.uid) => SurgeStep::Write(begin(pod, now)),
        Some(_) | None => SurgeStep::Nothing,
    }
}

/// Whether a pod that has to leave is held back for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It leaves like any other.
    No,
    /// Another one takes its place first.
    Yes,
    /// Somebody asked for it, and it cannot be had.
    Cannot,
}

/// Whether a pod whose turn to leave came at `turn` is held back until another one has its place.
pub(super) fn holds(snapshot: &Snapshot, pod: &LivePod, turn: Timestamp, now: Timestamp) -> Hold {
    let Some((kind, workload)) = snapshot.workload_of(pod) else {
        return Hold::No;
    };
    let node = node_of(snapshot, pod);
    let asked = node.is_some_and(|node| is_asked(snapshot, workload, node));
    if !asked || workload.replicas > 2 || now.duration_since(turn) > HELD_FOR {
        return Hold::No;
    }
    if kind != Kind::Deployment {
        return match workload.replicas {
            1 => Hold::Cannot,
            _ => Hold::No,
        };
    }
    let held = match (Surge::of(workload), View::of(snapshot, &workload.meta.name)) {
        (Some(surge), _) => surge.pod == pod.uid && surge.stage != Stage::Late,
        // It is about to begin.
        (None, Some(view)) => {
            matches!(first(&view, now), SurgeStep::Write(own) if own.pod == pod.uid)
        }
        (None, None) => false,
    };
    if held { Hold::Yes } else { Hold::No }
}
