//! Has pods leave: controller `eviction-queue`.
//!
//! *Flow*: the drain of a node puts pods in; each is evicted as soon as its budget lets it go, with
//! growing pauses in between, or deleted when its node goes before it would have ended by itself.
//!
//! *Guarantees*: a pod that replaced one of the same name is not touched; at most a hundred pods
//! are worked on at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_engine::{Controller, Looping, Next, Reconcile, Shared, events};
use joiner_runtime::metric_names::{PODS_DRAINED, PODS_EVICTION_REQUESTS};
use joiner_runtime::{ApiFailure, Delete, Events};
use joiner_state::live::{Change, Conditions as _, DoNotDisrupt, Kind, LivePod, Snapshot, rfc3339};
use tokio::sync::Notify;

use super::book::{Action, Book, Entry, Eviction, Key, action};
use super::drain::Evictee;
use super::surge::{Hold, SURGE_ON_MOVE, holds};
use crate::seating::Seating;

/// How often a pod that another one is to follow is looked at.
const SURGE_POLL: Duration = Duration::from_secs(1);
/// How often a pod that waits for its turn is looked at.
const TURN_POLL: Duration = Duration::from_millis(200);
/// Pods that are worked on at the same time.
const AT_ONCE_MAX: usize = 100;

/// Pods that have to leave; clones share them.
#[derive(Clone, Debug, Default)]
pub struct EvictionQueue {
    book: Arc<Mutex<Book>>,
    news: Arc<Notify>,
}

impl EvictionQueue {
    /// Puts pods in. Those that are in keep the earlier deadline.
    pub fn add(&self, pods: &[Evictee], now: Timestamp) {
        let mut book = self.book();
        for pod in pods {
            book.add(pod, now);
        }
        drop(book);
        self.news.notify_one();
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The controller of pods that have to leave. They come in by [`EvictionQueue::add`], not by changes.
pub(super) fn controller(shared: &Shared, queue: EvictionQueue, seating: &Seating) -> Controller {
    Controller::looping(Evictions {
        evictor: Evictor {
            shared: shared.clone(),
            seating: seating.clone(),
        },
        queue,
        running: FuturesUnordered::new(),
    })
}

/// Has pods leave.
struct Evictions {
    evictor: Evictor,
    queue: EvictionQueue,
    running: FuturesUnordered<BoxFuture<'static, (Key, Eviction)>>,
}

impl Looping for Evictions {
    fn name(&self) -> &'static str {
        "eviction-queue"
    }

    fn wakes(&mut self, _: &Change, _: &Snapshot) -> bool {
        false
    }

    fn runs_dry(&self) -> bool {
        false
    }

    /// A pod was worked on, or new ones have come in.
    fn called(&mut self) -> BoxFuture<'_, ()> {
        async move {
            let shared = &self.evictor.shared;
            tokio::select! {
                biased;
                Some((key, eviction)) = self.running.next(), if !self.running.is_empty() => {
                    let snapshot = shared.world.snapshot();
                    let pod = snapshot.pod(&key.0).map(AsRef::as_ref);
                    self.queue.book().done(&key, eviction, pod, shared.clock.now());
                }
                () = self.queue.news.notified() => {}
            }
        }
        .boxed()
    }

    fn pass<'a>(&'a mut self, _: &'a Arc<Snapshot>, at: Timestamp) -> Reconcile<'a> {
        while self.running.len() < AT_ONCE_MAX {
            let Some((key, entry)) = self.queue.book().take(at) else {
                break;
            };
            let evictor = self.evictor.clone();
            let evicting = async move { act(&evictor, key, entry).await };
            self.running.push(evicting.boxed());
        }
        let is_full = self.running.len() >= AT_ONCE_MAX;
        let next = self.queue.book().next_time().filter(|_| !is_full);
        let left = next.map(|next| Duration::try_from(next.duration_since(at)));
        let next = left.map_or(Next::Done, |left| Next::Again(left.unwrap_or_default()));
        std::future::ready(Ok(next)).boxed()
    }
}

/// Works on single pods.
#[derive(Clone)]
struct Evictor {
    shared: Shared,
    seating: Seating,
}

/// Works on one pod.
async fn act(evictor: &Evictor, key: Key, entry: Entry) -> (Key, Eviction) {
    let snapshot = evictor.shared.world.snapshot();
    let now = evictor.shared.clock.now();
    let pod = snapshot.pod(&key.0).map(AsRef::as_ref);
    let todo = action(pod, &key.1, entry.deadline, now);
    let outcome = match (todo, pod) {
        (Action::Drop, _) | (_, None) => Eviction::Done,
        (Action::Hold(until), Some(pod)) => {
            report_protected(evictor, pod, until);
            Eviction::Until(until)
        }
        (Action::Evict, Some(pod)) if evictor.seating.holds(&pod.uid) => {
            Eviction::Until(now.checked_add(TURN_POLL).unwrap_or(now))
        }
        (Action::Evict, Some(pod)) => match holds(&snapshot, pod, entry.turn, now) {
            Hold::Yes => Eviction::Until(now.checked_add(SURGE_POLL).unwrap_or(now)),
            Hold::No => evict(evictor, &snapshot, pod).await,
            Hold::Cannot => {
                let message = format!(
                    "{SURGE_ON_MOVE} asks for another replica first, which only a Deployment can \
                     be given"
                );
                let about = events::pod(pod);
                events::note(&evictor.shared.events, about, "CannotSurge", message);
                evict(evictor, &snapshot, pod).await
            }
        },
        (Action::Delete(secs), Some(pod)) => force(evictor, pod, secs).await,
    };
    (key, outcome)
}

async fn force(evictor: &Evictor, pod: &LivePod, secs: u32) -> Eviction {
    let how = Delete {
        uid: Some(pod.uid.clone()),
        grace_secs: Some(secs),
    };
    match evictor.shared.api.delete(Kind::Pod, &pod.name, how).await {
        Ok(()) => {
            let message = format!("Deleted with {secs} s to go: its node goes, drained or not");
            events::note(
                &evictor.shared.events,
                events::pod(pod),
                "Disrupted",
                message,
            );
            Eviction::Forced
        }
        // Gone, or another pod of that name.
        Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => Eviction::Done,
        Err(failure) => {
            tracing::debug!(pod = &*pod.name, error = %failure, "pod could not be deleted");
            Eviction::Failed
        }
    }
}

async fn evict(evictor: &Evictor, snapshot: &Snapshot, pod: &LivePod) -> Eviction {
    report_unprotected(evictor, pod);
    let answer = evictor.shared.api.evict(&pod.name, &pod.uid).await;
    let labels = [("code", code(&answer))];
    evictor
        .shared
        .metrics
        .count(PODS_EVICTION_REQUESTS, &labels, 1.0);
    let Err(failure) = answer else {
        let reason = reason(snapshot, pod);
        let message = format!("Evicted pod: {reason}");
        events::note(&evictor.shared.events, events::pod(pod), "Evicted", message);
        evictor
            .shared
            .metrics
            .count(PODS_DRAINED, &[("reason", &reason)], 1.0);
        return Eviction::Told;
    };
    match verdict(&failure) {
        Refused::Gone => return Eviction::Done,
        Refused::Budget => {
            let message = format!("evicting pod violates a PDB (Pod={})", pod.name);
            report_failed(evictor, snapshot, pod, &message);
        }
        Refused::Budgets => {
            let message = format!("eviction does not support multiple PDBs (Pod={})", pod.name);
            report_failed(evictor, snapshot, pod, &message);
        }
        Refused::Trouble => {
            tracing::debug!(pod = &*pod.name, error = %failure, "pod could not be evicted");
        }
    }
    Eviction::Failed
}

/// What a refused eviction means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The pod is gone, or another one has its name.
    Gone,
    /// A disruption budget says no.
    Budget,
    /// More than one budget is about the pod: the API never evicts it.
    Budgets,
    /// Anything else.
    Trouble,
}

/// What a refused eviction means.
pub(super) fn verdict(failure: &ApiFailure) -> Refused {
    match failure {
        ApiFailure::NotFound | ApiFailure::Conflict(_) => Refused::Gone,
        ApiFailure::TooManyRequests(_) => Refused::Budget,
        ApiFailure::Away(message) | ApiFailure::Other { message, .. }
            if message.contains("more than one PodDisruptionBudget") =>
        {
            Refused::Budgets
        }
        ApiFailure::AlreadyExists
        | ApiFailure::Forbidden(_)
        | ApiFailure::Invalid(_)
        | ApiFailure::Away(_)
        | ApiFailure::Other { .. } => Refused::Trouble,
    }
}

/// The status code of an answer, for the metric.
fn code(answer: &Result<(), ApiFailure>) -> &'static str {
    match answer {
        Ok(()) => "200",
        Err(ApiFailure::NotFound) => "404",
        Err(ApiFailure::Conflict(_) | ApiFailure::AlreadyExists) => "409",
        Err(ApiFailure::TooManyRequests(_)) => "429",
        Err(ApiFailure::Forbidden(_)) => "403",
        Err(ApiFailure::Invalid(_)) => "422",
        Err(ApiFailure::Away(_)) => "500",
        Err(ApiFailure::Other { .. }) => "",
    }
}

/// Why the pod has to leave: what the claim of its node says. Empty when they are gone.
pub(super) fn reason(snapshot: &Snapshot, pod: &LivePod) -> String {
    let node = pod.node.as_ref().and_then(|node| snapshot.node(node));
    let Some(claim) = node.and_then(|node| snapshot.claim_of(node)) else {
        return String::new();
    };
    let disrupted = claim.condition(&condition::DISRUPTION_REASON);
    let reason = disrupted.and_then(|own| own.reason.clone());
    reason.unwrap_or_else(|| "Forceful Termination".to_owned())
}

fn report_failed(evictor: &Evictor, snapshot: &Snapshot, pod: &LivePod, why: &str) {
    let node = pod.node.as_ref().and_then(|node| snapshot.node(node));
    if let Some(node) = node {
        let message = format!("Failed to drain node, {why}");
        let about = events::node(node);
        events::warn_of(
            &evictor.shared.events,
            about,
            "FailedDraining",
            message,
            &pod.name,
        );
    }
}

/// The pod's annotation keeps it where it is.
fn report_protected(evictor: &Evictor, pod: &LivePod, until: Timestamp) {
    if until < Timestamp::MAX {
        let message = format!(
            "karpenter.sh/do-not-disrupt keeps the pod; its grace period will elapse at {}",
            rfc3339(until)
        );
        events::note(
            &evictor.shared.events,
            events::pod(pod),
            "DoNotDisruptUntil",
            message,
        );
    }
}

/// The pod's annotation does not keep it any more, or never did.
fn report_unprotected(evictor: &Evictor, pod: &LivePod) {
    match &pod.do_not_disrupt {
        None | Some(DoNotDisrupt::Forever) => {}
        Some(DoNotDisrupt::For(_)) => {
            let message = "the grace period of karpenter.sh/do-not-disrupt has elapsed".to_owned();
            let reason = "DoNotDisruptGracePeriodElapsed";
            events::note(&evictor.shared.events, events::pod(pod), reason, message);
        }
        Some(DoNotDisrupt::Invalid(_)) => report_invalid(&evictor.shared.events, pod),
    }
}

/// Says that the pod's annotation does not count, if it cannot be understood.
pub(crate) fn report_invalid(events: &Events, pod: &LivePod) {
    if let Some(DoNotDisrupt::Invalid(text)) = &pod.do_not_disrupt {
        let message = format!(
            "Invalid karpenter.sh/do-not-disrupt annotation: {text:?} is neither \"true\" nor \
             a duration above zero, ignoring annotation"
        );
        let reason = "InvalidDoNotDisruptAnnotation";
        events::warn(events, events::pod(pod), reason, message);
    }
}
