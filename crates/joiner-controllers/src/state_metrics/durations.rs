//! How long pods wait: to be planned for, to be bound, to be ready.
//!
//! A pod counts once, when its wait ends, and only if that was seen to happen: pods that run
//! already at the start have been counted by the process that was here before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use joiner_model::Name;
use joiner_runtime::metric_names::{
    PODS_BOUND_DURATION, PODS_PROVISIONING_BOUND_DURATION, PODS_PROVISIONING_STARTUP_DURATION,
    PODS_PROVISIONING_UNBOUND_TIME, PODS_PROVISIONING_UNDECIDED_TIME,
    PODS_PROVISIONING_UNSTARTED_TIME, PODS_SCHEDULING_DECISION_DURATION, PODS_STARTUP_DURATION,
    PODS_UNBOUND_TIME, PODS_UNSTARTED_TIME,
};
use joiner_state::live::{LivePod, Phase, Snapshot};

use super::{Emit, seconds};

/// Decisions that wait to be fetched; more are not remembered.
const DECISIONS_MAX: usize = 200_000;

/// What was decided about a pod.
#[derive(Clone, Copy, Debug)]
struct Decided {
    /// When it was first planned for.
    first: Timestamp,
    /// When it first got a place.
    placed: Option<Timestamp>,
}

/// Where planning says what it decided about pods.
#[derive(Clone, Debug, Default)]
pub struct PodDecisions {
    decided: Arc<Mutex<BTreeMap<Name, Decided>>>,
}

impl PodDecisions {
    /// The pod of this uid got a place.
    pub fn placed(&self, uid: &Name, at: Timestamp) {
        self.tell(uid, at, Some(at));
    }

    /// There is no place for the pod of this uid.
    pub fn refused(&self, uid: &Name, at: Timestamp) {
        self.tell(uid, at, None);
    }

    fn tell(&self, uid: &Name, at: Timestamp, placed: Option<Timestamp>) {
        let mut all = self.lock();
        if all.len() >= DECISIONS_MAX && !all.contains_key(uid) {
            return;
        }
        let decided = all.entry(uid.clone());
        let decided = decided.or_insert(Decided { first: at, placed });
        decided.placed = decided.placed.or(placed);
    }

    fn take(&self) -> BTreeMap<Name, Decided> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Decided>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a wait, for a histogram or a summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The family.
    pub family: &'static str,
    /// How long it took.
    pub secs: f64,
}

/// A pod that waits.
#[derive(Clone, Debug)]
struct Wait {
    /// `namespace/name`.
    pod: Name,
    created: Timestamp,
    /// When it was first seen.
    seen: Timestamp,
    unbound: bool,
    unready: bool,
    /// A node would be bought for it.
    provisionable: bool,
    decided: Option<Decided>,
}

impl Wait {
    fn new(pod: &LivePod, seen: Timestamp) -> Self {
        Self {
            pod: pod.name.clone(),
            created: pod.created,
            seen,
            unbound: true,
            unready: true,
            provisionable: pod.is_provisionable(),
            decided: None,
        }
    }

    /// When it first got a place.
    fn placed(&self) -> Option<Timestamp> {
        self.decided.and_then(|decided| decided.placed)
    }

    /// Takes note of a decision. Returns how long the first one took.
    fn hear(&mut self, heard: Decided) -> Option<Observed> {
        if let Some(decided) = &mut self.decided {
            decided.placed = decided.placed.or(heard.placed);
            return None;
        }
        self.decided = Some(heard);
        Some(Observed {
            family: PODS_SCHEDULING_DECISION_DURATION,
            secs: seconds(self.seen, heard.first),
        })
    }

    /// Takes note of how the pod is now. Returns the waits that have ended.
    fn follow(&mut self, pod: &LivePod, at: Timestamp) -> Vec<Observed> {
        let mut ended = Vec::new();
        let mut end = |family, from: Option<Timestamp>, to| {
            let secs = from.map(|from| seconds(from, to));
            ended.extend(secs.map(|secs| Observed { family, secs }));
        };
        self.provisionable = pod.is_provisionable();
        if self.unbound && pod.node.is_some() {
            self.unbound = false;
            let to = pod.scheduled.unwrap_or(at);
            end(PODS_BOUND_DURATION, Some(self.created), to);
            end(PODS_PROVISIONING_BOUND_DURATION, self.placed(), to);
        }
        if let Some(to) = pod.ready.filter(|_| self.unready) {
            self.unready = false;
            end(PODS_STARTUP_DURATION, Some(self.created), to);
            end(PODS_PROVISIONING_STARTUP_DURATION, self.placed(), to);
        }
        ended
    }

    /// True when there is nothing left to wait for.
    fn is_over(&self, pod: &LivePod) -> bool {
        pod.is_terminal() || !(self.unbound || self.unready)
    }

    /// Since when it waits for what a family is about, if it does.
    fn since(&self, family: &str) -> Option<Timestamp> {
        match family {
            PODS_UNSTARTED_TIME => self.unready.then_some(self.created),
            PODS_UNBOUND_TIME => self.unbound.then_some(self.created),
            PODS_PROVISIONING_UNSTARTED_TIME => self.placed().filter(|_| self.unready),
            PODS_PROVISIONING_UNBOUND_TIME => self.placed().filter(|_| self.unbound),
            PODS_PROVISIONING_UNDECIDED_TIME => {
                let undecided = self.unbound && self.provisionable && self.decided.is_none();
                undecided.then_some(self.seen)
            }
            _ => None,
        }
    }
}

/// The pods that wait, from look to look.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// The last look.
    before: Option<Arc<Snapshot>>,
    /// By uid.
    waiting: BTreeMap<Name, Wait>,
    /// Decisions are heard of.
    hears: bool,
}

impl Waits {
    /// Compares with the last look, and returns the waits that have ended since.
    ///
    /// Pods that did not change are passed over without a look: both snapshots share them.
    pub fn follow(
        &mut self,
        now: &Arc<Snapshot>,
        decisions: Option<&PodDecisions>,
        at: Timestamp,
    ) -> Vec<Observed> {
        self.hears = decisions.is_some();
        let changed = match self.before.take() {
            Some(before) => self.changed(&before, now),
            None => {
                self.begin(now, at);
                Vec::new()
            }
        };
        let mut ended = Vec::new();
        for (uid, heard) in decisions.map(PodDecisions::take).unwrap_or_default() {
            let wait = self.waiting.get_mut(&uid);
            ended.extend(wait.and_then(|wait| wait.hear(heard)));
        }
        for pod in changed {
            let Some(wait) = self.waiting.get_mut(&pod.uid) else {
                continue;
            };
            ended.extend(wait.follow(pod, at));
            if wait.is_over(pod) {
                self.waiting.remove(&pod.uid);
            }
        }
        self.before = Some(Arc::clone(now));
        ended
    }

    /// The first look: what runs is not waited for.
    fn begin(&mut self, now: &Snapshot, at: Timestamp) {
        for pod in now.pods() {
            let mut wait = Wait::new(pod, at);
            wait.unbound = pod.node.is_none();
            wait.unready = pod.phase == Phase::Pending && pod.ready.is_none();
            if !wait.is_over(pod) {
                self.waiting.insert(pod.uid.clone(), wait);
            }
        }
    }

    /// Starts to wait for new pods, forgets those that are gone, and returns all that changed.
    /// Both snapshots have their pods in order of name.
    fn changed<'n>(&mut self, before: &Snapshot, now: &'n Snapshot) -> Vec<&'n Arc<LivePod>> {
        let mut changed = Vec::new();
        let mut old = before.pods().peekable();
        for pod in now.pods() {
            while let Some(gone) = old.next_if(|other| other.name < pod.name) {
                self.waiting.remove(&gone.uid);
            }
            let known = old.next_if(|other| other.name == pod.name);
            if known.is_some_and(|known| Arc::ptr_eq(known, pod)) {
                continue;
            }
            if known.is_none_or(|known| known.uid != pod.uid) {
                if let Some(gone) = known {
                    self.waiting.remove(&gone.uid);
                }
                let wait = Wait::new(pod, pod.created);
                self.waiting.insert(pod.uid.clone(), wait);
            }
            changed.push(pod);
        }
        for gone in old {
            self.waiting.remove(&gone.uid);
        }
        changed
    }

    /// The series of a family: how long each pod has waited so far.
    pub(super) fn each(&self, family: &str, at: Timestamp, emit: Emit<'_>) {
        if family == PODS_PROVISIONING_UNDECIDED_TIME && !self.hears {
            return;
        }
        for wait in self.waiting.values() {
            let Some(since) = wait.since(family) else {
                continue;
            };
            let (namespace, name) = wait.pod.split_once('/').unwrap_or(("", &wait.pod));
            emit(
                &[("name", name), ("namespace", namespace)],
                seconds(since, at),
            );
        }
    }
}
