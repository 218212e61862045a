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
use joiner_model::Name;
use joiner_runtime::metric_names::{PODS_DRAINED, PODS_EVICTION_REQUESTS};
use joiner_runtime::{ApiFailure, Delete};
use joiner_state::live::{Change, Conditions as _, DoNotDisrupt, Kind, LivePod, Snapshot, rfc3339};
use tokio::sync::Notify;

use super::book::{Action, Book, Entry, Key, Outcome, action};
use super::drain::Evictee;
use super::surge::{Hold, SURGE_ON_MOVE, holds};
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;
use crate::observe;

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

    /// Works until its future is dropped.
    pub async fn run(&self, ctx: &Ctx) {
        let mut acts = FuturesUnordered::new();
        loop {
            let now = ctx.clock.now();
            while acts.len() < AT_ONCE_MAX {
                let Some((key, entry)) = self.book().take(now) else {
                    break;
                };
                acts.push(act(ctx.clone(), key, entry));
            }
            let full = acts.len() >= AT_ONCE_MAX;
            let until = self.book().next_time();
            tokio::select! {
                biased;
                Some((key, outcome)) = acts.next(), if !acts.is_empty() => {
                    let snapshot = ctx.world.snapshot();
                    let pod = snapshot.pod(&key.0).map(AsRef::as_ref);
                    self.book().done(&key, outcome, pod, ctx.clock.now());
                }
                () = self.news.notified() => {}
                () = ctx.clock.sleep_until(until.unwrap_or(Timestamp::MAX)),
                    if !full && until.is_some() => {}
            }
        }
    }
}

/// Its one key stands for all of its pods: it is looked at once, and the look lasts as long as we
/// lead. Pods come in by [`EvictionQueue::add`], not by changes.
impl Controller for EvictionQueue {
    fn name(&self) -> &'static str {
        "eviction-queue"
    }

    fn concerned(&self, _: &Change, _: &Snapshot) -> Vec<Name> {
        Vec::new()
    }

    fn all(&self, _: &Snapshot) -> Vec<Name> {
        vec!["pods".into()]
    }

    fn reconcile<'a>(&'a self, ctx: &'a Ctx, _: &'a Name) -> BoxFuture<'a, Result<Next, Failure>> {
        self.run(ctx).map(|()| Ok(Next::Done)).boxed()
    }
}

/// Works on one pod.
async fn act(ctx: Ctx, key: Key, entry: Entry) -> (Key, Outcome) {
    let snapshot = ctx.world.snapshot();
    let now = ctx.clock.now();
    let pod = snapshot.pod(&key.0).map(AsRef::as_ref);
    let todo = action(pod, &key.1, entry.deadline, now);
    let outcome = match (todo, pod) {
        (Action::Drop, _) | (_, None) => Outcome::Done,
        (Action::Hold(until), Some(pod)) => {
            tell_protected(&ctx, pod, until);
            Outcome::Until(until)
        }
        (Action::Evict, Some(pod)) if ctx.turns.holds(&pod.uid) => {
            Outcome::Until(now.checked_add(TURN_POLL).unwrap_or(now))
        }
        (Action::Evict, Some(pod)) => match holds(&snapshot, pod, entry.turn, now) {
            Hold::Yes => Outcome::Until(now.checked_add(SURGE_POLL).unwrap_or(now)),
            Hold::No => evict(&ctx, &snapshot, pod).await,
            Hold::Cannot => {
                let message = format!(
                    "{SURGE_ON_MOVE} asks for another replica first, which only a Deployment can \
                     be given"
                );
                observe::note(&ctx, observe::pod(pod), "CannotSurge", message);
                evict(&ctx, &snapshot, pod).await
            }
        },
        (Action::Delete(secs), Some(pod)) => force(&ctx, pod, secs).await,
    };
    (key, outcome)
}

async fn force(ctx: &Ctx, pod: &LivePod, secs: u32) -> Outcome {
    let how = Delete {
        uid: Some(pod.uid.clone()),
        grace_secs: Some(secs),
    };
    match ctx.api.delete(Kind::Pod, &pod.name, how).await {
        Ok(()) => {
            let message = format!("Deleted with {secs} s to go: its node goes, drained or not");
            observe::note(ctx, observe::pod(pod), "Disrupted", message);
            Outcome::Forced
        }
        // Gone, or another pod of that name.
        Err(ApiFailure::NotFound | ApiFailure::Conflict(_)) => Outcome::Done,
        Err(failure) => {
            tracing::debug!(pod = &*pod.name, error = %failure, "pod could not be deleted");
            Outcome::Failed
        }
    }
}

async fn evict(ctx: &Ctx, snapshot: &Snapshot, pod: &LivePod) -> Outcome {
    tell_unprotected(ctx, pod);
    let answer = ctx.api.evict(&pod.name, &pod.uid).await;
    let labels = [("code", code(&answer))];
    ctx.metrics.count(PODS_EVICTION_REQUESTS, &labels, 1.0);
    let Err(failure) = answer else {
        let reason = reason(snapshot, pod);
        let message = format!("Evicted pod: {reason}");
        observe::note(ctx, observe::pod(pod), "Evicted", message);
        ctx.metrics.count(PODS_DRAINED, &[("reason", &reason)], 1.0);
        return Outcome::Told;
    };
    match verdict(&failure) {
        Verdict::Gone => return Outcome::Done,
        Verdict::Budget => {
            let message = format!("evicting pod violates a PDB (Pod={})", pod.name);
            tell_failed(ctx, snapshot, pod, &message);
        }
        Verdict::Budgets => {
            let message = format!("eviction does not support multiple PDBs (Pod={})", pod.name);
            tell_failed(ctx, snapshot, pod, &message);
        }
        Verdict::Trouble => {
            tracing::debug!(pod = &*pod.name, error = %failure, "pod could not be evicted");
        }
    }
    Outcome::Failed
}

/// What a refused eviction means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
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
pub(super) fn verdict(failure: &ApiFailure) -> Verdict {
    match failure {
        ApiFailure::NotFound | ApiFailure::Conflict(_) => Verdict::Gone,
        ApiFailure::TooManyRequests(_) => Verdict::Budget,
        ApiFailure::Away(message) | ApiFailure::Other { message, .. }
            if message.contains("more than one PodDisruptionBudget") =>
        {
            Verdict::Budgets
        }
        ApiFailure::AlreadyExists
        | ApiFailure::Forbidden(_)
        | ApiFailure::Invalid(_)
        | ApiFailure::Away(_)
        | ApiFailure::Other { .. } => Verdict::Trouble,
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
    let disrupted = claim.condition("DisruptionReason");
    let reason = disrupted.and_then(|own| own.reason.clone());
    reason.unwrap_or_else(|| "Forceful Termination".to_owned())
}

fn tell_failed(ctx: &Ctx, snapshot: &Snapshot, pod: &LivePod, why: &str) {
    let node = pod.node.as_ref().and_then(|node| snapshot.node(node));
    if let Some(node) = node {
        let message = format!("Failed to drain node, {why}");
        let about = observe::node(node);
        observe::warn_of(ctx, about, "FailedDraining", message, &pod.name);
    }
}

/// The pod's annotation keeps it where it is.
fn tell_protected(ctx: &Ctx, pod: &LivePod, until: Timestamp) {
    if until < Timestamp::MAX {
        let message = format!(
            "karpenter.sh/do-not-disrupt keeps the pod; its grace period will elapse at {}",
            rfc3339(until)
        );
        observe::note(ctx, observe::pod(pod), "DoNotDisruptUntil", message);
    }
}

/// The pod's annotation does not keep it any more, or never did.
fn tell_unprotected(ctx: &Ctx, pod: &LivePod) {
    match &pod.do_not_disrupt {
        None | Some(DoNotDisrupt::Forever) => {}
        Some(DoNotDisrupt::For(_)) => {
            let message = "the grace period of karpenter.sh/do-not-disrupt has elapsed".to_owned();
            let reason = "DoNotDisruptGracePeriodElapsed";
            observe::note(ctx, observe::pod(pod), reason, message);
        }
        Some(DoNotDisrupt::Invalid(_)) => tell_invalid(ctx, pod),
    }
}

/// Says that the pod's annotation does not count, if it cannot be understood.
pub(crate) fn tell_invalid(ctx: &Ctx, pod: &LivePod) {
    if let Some(DoNotDisrupt::Invalid(text)) = &pod.do_not_disrupt {
        let message = format!(
            "Invalid karpenter.sh/do-not-disrupt annotation: {text:?} is neither \"true\" nor \
             a duration above zero, ignoring annotation"
        );
        let reason = "InvalidDoNotDisruptAnnotation";
        observe::warn(ctx, observe::pod(pod), reason, message);
    }
}
