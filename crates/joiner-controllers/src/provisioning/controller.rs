//! When to plan for pods that wait.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_engine::{Looping, Next, Reconcile};
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LivePod, Snapshot};

use super::batch::Batch;
use super::left_over::Fates;
use super::plan::{self, Planned, spoken_for};
use super::{NAME, Planner};
use crate::seating::Seating;

/// How long a plan waits for claims of others to be launched before it is asked again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// And after a plan that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Plans for pods that wait.
pub(super) struct Provisioner {
    planner: Planner,
    batch: Batch,
    /// What was said last of the pools that are missing.
    lacks_pools: Option<String>,
    fates: Fates,
    /// A claim has gone that never got a machine: its pods need another node now, and not only when they are
    /// next heard.
    has_lost: bool,
    /// A node is up, and no other one is still to come.
    is_up: bool,
    /// The last plan failed; nothing is asked before this time.
    failed: Option<Timestamp>,
}

impl Provisioner {
    /// Plans with these handles.
    pub(super) fn new(planner: Planner) -> Self {
        Self {
            planner,
            batch: Batch::default(),
            lacks_pools: None,
            fates: Fates::default(),
            has_lost: false,
            is_up: false,
            failed: None,
        }
    }

    /// Plans if it is time; returns when to look again.
    async fn look(&mut self, now: &Arc<Snapshot>, at: Timestamp) -> Next {
        if let Some(until) = self.failed.take() {
            if at < until {
                self.failed = Some(until);
                return Next::Again(until.duration_since(at).unsigned_abs());
            }
            self.batch.forget();
        }
        if std::mem::take(&mut self.has_lost) {
            self.batch.forgive();
        }
        if std::mem::take(&mut self.is_up) {
            self.batch.settle(at);
        }
        if self.lacks_pools.is_some() {
            let why = now.why_no_pool();
            if why.is_none() {
                self.batch.forget();
            }
            say_missing(&mut self.lacks_pools, why);
        }
        // Asked before pods are left out for it: turns may be over when the look is.
        let in_turns = !self.planner.seating.has_no_moves();
        ask(&mut self.batch, now, &self.planner.seating, at);
        // Buffers ask again and again, but nothing asks when the last one is gone.
        if now.buffers().next().is_none() {
            self.planner.headroom.set(std::collections::BTreeSet::new());
        }
        let closes = self.batch.closes(self.planner.batching);
        if closes.is_some_and(|closes| closes <= at) {
            return self.plan().await;
        }
        // When pods leave in turns, others in their stead are looked after as soon as that is over.
        let turn = in_turns.then(|| at.checked_add(LOOK_AGAIN).unwrap_or(at));
        let times = [closes, self.batch.next(), turn];
        let wake = times.into_iter().flatten().min();
        let left = wake.map(|wake| Duration::try_from(wake.duration_since(at)));
        left.map_or(Next::Done, |left| Next::Again(left.unwrap_or_default()))
    }

    async fn plan(&mut self) -> Next {
        let planned = plan::plan(&self.planner, &mut self.fates).await;
        let now = self.planner.shared.clock.now();
        match planned {
            Planned::Done => self.batch.close(now),
            Planned::NoPools(why) => {
                self.batch.close(now);
                say_missing(&mut self.lacks_pools, Some(why));
            }
            Planned::NotYet => return Next::Again(LOOK_AGAIN),
            Planned::Failed => {
                self.batch.close(now);
                self.failed = now.checked_add(AFTER_FAILURE).ok();
                return Next::Again(AFTER_FAILURE);
            }
        }
        Next::Again(Duration::ZERO)
    }
}

impl Looping for Provisioner {
    fn name(&self) -> &'static str {
        NAME
    }

    fn wakes(&mut self, change: &Change, now: &Snapshot) -> bool {
        let claim = now.claim(&change.name);
        let claim = claim.filter(|_| change.kind == Kind::NodeClaim);
        if let Some(claim) = claim {
            self.has_lost |= claim.meta.deleting.is_some() && claim.provider_id.is_none();
            self.is_up |= claim.is_true(&condition::INITIALIZED) && !is_any_coming(now);
        }
        true
    }

    fn pass<'a>(&'a mut self, now: &'a Arc<Snapshot>, at: Timestamp) -> Reconcile<'a> {
        async move { Ok(self.look(now, at).await) }.boxed()
    }
}

/// True while some node is still to come.
fn is_any_coming(now: &Snapshot) -> bool {
    let is_coming = |claim: &Arc<LiveClaim>| {
        !claim.is_true(&condition::INITIALIZED) && claim.meta.deleting.is_none()
    };
    now.claims().any(is_coming)
}

/// Everything that waits for a plan now.
fn ask(batch: &mut Batch, now: &Snapshot, seating: &Seating, at: Timestamp) {
    let doomed = now.doomed();
    batch.look(now.provisionable().count() + doomed.len(), at);
    let moving = seating.moving_owners();
    let is_moving = |pod: &LivePod| {
        let owner = pod.owner.as_ref();
        owner.is_some_and(|owner| moving.contains(&owner.uid))
    };
    for pod in now.provisionable().filter(|pod| !is_moving(pod)) {
        batch.ask(&pod.uid);
    }
    for pod in doomed.iter().filter(|pod| !is_moving(pod)) {
        batch.ask(&pod.uid);
    }
    batch.expect(now.fresh().count(), doomed.len());
    let planned = spoken_for(seating, now);
    let unplanned = now
        .leaving_nodes()
        .filter(|node| !planned.contains(node.name()));
    for node in unplanned {
        if now.movable_pods(node.name(), at).next().is_some() {
            batch.ask(&node.meta.uid);
        }
    }
    for buffer in now.buffers() {
        let meta = &buffer.meta;
        batch.ask(&format!("{}@{}", meta.uid, meta.version).into());
    }
}

/// Logs which pools are missing, once for each change: pods may come by the thousand meanwhile.
fn say_missing(said: &mut Option<String>, why: Option<String>) {
    if let Some(why) = why.as_ref().filter(|why| said.as_ref() != Some(*why)) {
        tracing::info!("no dynamic nodepools found: {why}");
    }
    *said = why;
}
