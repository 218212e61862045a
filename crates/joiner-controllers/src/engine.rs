//! From changes of the world to looks at single objects.
//!
//! Every controller has a queue of keys. A key is looked at by one worker at a time, never lost,
//! and never looked at in a hot loop: after a failure it waits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use joiner_model::Name;
use joiner_runtime::metric_names::{
    QUEUE_DEPTH, RECONCILE_ERRORS, RECONCILE_TIME, RECONCILES, RECONCILES_ACTIVE, RECONCILES_MAX,
};
use joiner_state::live::{Change, Snapshot};
use tokio::sync::broadcast::error::RecvError;
use tracing::{Instrument, Span};

use crate::context::{Ctx, Failure, Next};
use crate::pauses::pause_after_failure;

/// Looks at one object at a time.
pub trait Controller: Send + Sync + 'static {
    /// Upstream's name for it: in logs and metrics.
    fn name(&self) -> &'static str;

    /// The keys that a change concerns.
    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name>;

    /// All keys: at the start, and after changes were missed.
    fn all(&self, now: &Snapshot) -> Vec<Name>;

    /// How many keys are looked at at the same time.
    fn concurrency(&self) -> usize {
        10
    }

    /// Looks at one key and does at most a few things about it.
    fn reconcile<'a>(&'a self, ctx: &'a Ctx, key: &'a Name)
    -> BoxFuture<'a, Result<Next, Failure>>;
}

/// The future of a look at one key.
pub(crate) type Looking<'a> = BoxFuture<'a, Result<Next, Failure>>;

/// A controller that remembers nothing: what concerns it, and how it looks at a key.
#[derive(Clone, Copy)]
pub(crate) struct Stateless {
    /// Upstream's name for it.
    pub(crate) name: &'static str,
    /// The keys that a change concerns.
    pub(crate) concerned: fn(&Change, &Snapshot) -> Vec<Name>,
    /// All keys.
    pub(crate) all: fn(&Snapshot) -> Vec<Name>,
    /// Looks at one key.
    pub(crate) look: for<'a> fn(&'a Ctx, &'a Name) -> Looking<'a>,
}

impl Controller for Stateless {
    fn name(&self) -> &'static str {
        self.name
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        (self.concerned)(change, now)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        (self.all)(now)
    }

    fn reconcile<'a>(&'a self, ctx: &'a Ctx, key: &'a Name) -> Looking<'a> {
        (self.look)(ctx, key)
    }
}

/// Keys that wait, and when they are due.
#[derive(Debug, Default)]
struct Queue {
    /// Due now, in order of name: no chance in it.
    due: BTreeSet<Name>,
    /// Due later; a key is here at most once.
    later: BTreeSet<(Timestamp, Name)>,
    when: BTreeMap<Name, Timestamp>,
    /// Being looked at.
    busy: BTreeSet<Name>,
    /// Failures in a row.
    failures: HashMap<Name, u32>,
}

impl Queue {
    /// Something changed: look now, unless the key is being punished for failing.
    fn add(&mut self, key: Name) {
        if self.failures.contains_key(&key) && self.when.contains_key(&key) {
            return;
        }
        self.forget_time(&key);
        self.due.insert(key);
    }

    fn add_at(&mut self, key: Name, at: Timestamp) {
        if self.due.contains(&key) || self.when.get(&key).is_some_and(|when| *when <= at) {
            return;
        }
        self.forget_time(&key);
        self.when.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    fn forget_time(&mut self, key: &Name) {
        if let Some(at) = self.when.remove(key) {
            self.later.remove(&(at, key.clone()));
        }
    }

    /// Moves what has become due.
    fn ripen(&mut self, now: Timestamp) {
        while let Some((at, key)) = self.later.first().cloned() {
            if at > now {
                return;
            }
            self.forget_time(&key);
            self.due.insert(key);
        }
    }

    /// The next key that nobody looks at.
    fn take(&mut self) -> Option<Name> {
        let key = self.due.iter().find(|key| !self.busy.contains(*key))?;
        let key = key.clone();
        self.due.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    fn next_time(&self) -> Option<Timestamp> {
        self.later.first().map(|(at, _)| *at)
    }

    fn done(&mut self, key: Name, result: &Result<Next, Failure>, now: Timestamp) {
        self.busy.remove(&key);
        match result {
            Ok(next) => {
                self.failures.remove(&key);
                if let Next::Again(after) = next {
                    let at = now.checked_add(*after).unwrap_or(Timestamp::MAX);
                    self.add_at(key, at);
                }
            }
            Err(failure) => {
                let failures = self.failures.entry(key.clone()).or_insert(0);
                *failures += 1;
                let at = now.checked_add(pause_after_failure(failure, *failures));
                let at = at.unwrap_or(Timestamp::MAX);
                self.due.remove(&key);
                self.add_at(key, at);
            }
        }
    }
}

/// Runs one controller until its future is dropped. Nothing is looked at before everything that is
/// expected has been listed.
pub async fn run(controller: Arc<dyn Controller>, ctx: Ctx) {
    let mut changes = ctx.world.subscribe();
    while !ctx.world.is_listed() {
        ctx.clock.sleep(Duration::from_millis(20)).await;
    }
    let mut queue = Queue::default();
    for key in controller.all(&ctx.world.snapshot()) {
        queue.add(key);
    }
    let mut looks = FuturesUnordered::new();
    let labels = [("controller", controller.name())];
    #[expect(clippy::cast_precision_loss, reason = "counts of keys are small")]
    let number = |n: usize| n as f64;
    ctx.metrics
        .gauge(RECONCILES_MAX, &labels, number(controller.concurrency()));
    loop {
        queue.ripen(ctx.clock.now());
        while looks.len() < controller.concurrency()
            && let Some(key) = queue.take()
        {
            looks.push(look(Arc::clone(&controller), ctx.clone(), key));
        }
        ctx.metrics
            .gauge(RECONCILES_ACTIVE, &labels, number(looks.len()));
        let names = [
            ("name", controller.name()),
            ("controller", controller.name()),
        ];
        ctx.metrics
            .gauge(QUEUE_DEPTH, &names, number(queue.due.len()));
        let until = queue.next_time().unwrap_or(Timestamp::MAX);
        let full = looks.len() >= controller.concurrency();
        tokio::select! {
            biased;
            Some((key, result)) = looks.next(), if !looks.is_empty() => {
                queue.done(key, &result, ctx.clock.now());
            }
            change = changes.recv() => match change {
                Ok(changes) => {
                    let now = ctx.world.snapshot();
                    for change in changes.iter() {
                        for key in controller.concerned(change, &now) {
                            queue.add(key);
                        }
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    for key in controller.all(&ctx.world.snapshot()) {
                        queue.add(key);
                    }
                }
                Err(RecvError::Closed) => return,
            },
            () = ctx.clock.sleep_until(until), if !full && until < Timestamp::MAX => {}
        }
    }
}

async fn look(
    controller: Arc<dyn Controller>,
    ctx: Ctx,
    key: Name,
) -> (Name, Result<Next, Failure>) {
    let started = ctx.clock.now();
    let span = span(controller.name(), &key, started);
    let looking = controller.reconcile(&ctx, &key);
    let result = looking.instrument(span.clone()).await;
    span.in_scope(|| report(&*controller, &key, &result));
    let took = ctx.clock.now().duration_since(started).as_secs_f64();
    let name = controller.name();
    let outcome = match &result {
        Ok(Next::Done) => "success",
        Ok(Next::Again(_)) => "requeue_after",
        Err(_) => "error",
    };
    let labels = [("controller", name), ("result", outcome)];
    ctx.metrics.count(RECONCILES, &labels, 1.0);
    if result.is_err() {
        ctx.metrics
            .count(RECONCILE_ERRORS, &[("controller", name)], 1.0);
    }
    ctx.metrics
        .observe(RECONCILE_TIME, &[("controller", name)], took);
    (key, result)
}

/// Group and kind of what a controller looks at, by its name.
fn looks_at(controller: &str) -> Option<(&'static str, &'static str)> {
    const KARPENTER: &str = "karpenter.sh";
    match controller.split('.').next()? {
        "nodeclaim" => Some((KARPENTER, "NodeClaim")),
        "nodepool" | "static" => Some((KARPENTER, "NodePool")),
        "node" => Some(("", "Node")),
        "eviction-queue" => Some(("", "Pod")),
        _ => None,
    }
}

/// What all lines of one look have in common, as upstream has it.
fn span(controller: &'static str, key: &Name, now: Timestamp) -> Span {
    use tracing::field::Empty;
    // Also lines about errors alone carry it.
    let span = tracing::error_span!(
        "reconcile",
        controller,
        controller_group = Empty,
        controller_kind = Empty,
        NodeClaim = Empty,
        NodePool = Empty,
        Node = Empty,
        Pod = Empty,
        namespace = Empty,
        name = Empty,
        reconcile_id = Empty,
    );
    if span.is_disabled() {
        return span;
    }
    span.record("reconcile_id", reconcile_id(controller, key, now));
    if let Some((group, kind)) = looks_at(controller) {
        let (namespace, name) = key.split_once('/').unwrap_or(("", &**key));
        span.record("controller_group", group);
        span.record("controller_kind", kind);
        span.record(kind, &**key);
        span.record("namespace", namespace);
        span.record("name", name);
    }
    span
}

/// A name for one look, in the form that upstream's have.
fn reconcile_id(controller: &str, key: &Name, now: Timestamp) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let part = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, n, now.as_nanosecond(), controller, &**key).hash(&mut hasher);
        hasher.finish()
    };
    let (high, low) = (part(0), part(1));
    let digits = format!("{high:016x}{low:016x}");
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

fn report(controller: &dyn Controller, key: &Name, result: &Result<Next, Failure>) {
    if let Err(failure) = result {
        let controller = controller.name();
        if failure.is_ordinary() {
            tracing::debug!(controller, key = &**key, "looking again: {failure}");
        } else {
            tracing::error!(controller, key = &**key, error = %failure, "reconciler error");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_second(secs).unwrap()
    }

    #[test]
    fn a_key_is_looked_at_by_one_at_a_time_and_again_if_it_changed_meanwhile() {
        let mut queue = Queue::default();
        queue.add("a".into());
        assert_eq!(queue.take().as_deref(), Some("a"));
        queue.add("a".into());
        assert_eq!(queue.take(), None);
        queue.done("a".into(), &Ok(Next::Done), at(0));
        assert_eq!(queue.take().as_deref(), Some("a"));
        queue.done("a".into(), &Ok(Next::Done), at(0));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn failures_wait_longer_and_longer_and_changes_do_not_shorten_it() {
        let mut queue = Queue::default();
        let mut now = at(0);
        queue.add("a".into());
        for pause in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            assert!(queue.take().is_some(), "after {now}");
            let failed = Err(Failure::Other("no".to_owned()));
            queue.done("a".into(), &failed, now);
            queue.add("a".into());
            queue.ripen(now + Duration::from_millis(pause - 1));
            assert_eq!(queue.take(), None, "too early after {now}");
            now += Duration::from_millis(pause);
            queue.ripen(now);
        }
        assert!(queue.take().is_some());
        let later = Duration::from_secs(5);
        queue.done("a".into(), &Ok(Next::Again(later)), now);
        assert_eq!(queue.next_time(), Some(now + later));
    }

    #[test]
    fn the_earlier_of_two_times_counts() {
        let mut queue = Queue::default();
        queue.add_at("a".into(), at(9));
        queue.add_at("a".into(), at(5));
        queue.add_at("a".into(), at(7));
        queue.ripen(at(5));
        assert_eq!(queue.take().as_deref(), Some("a"));
        assert_eq!(queue.next_time(), None);
    }
}
