//! Which of several processes acts: the holder of a Lease.
//!
//! *Flow*: every process tries to take the Lease; the one that holds it renews it every two
//! seconds. One that ends in an orderly way gives it back, and the next takes over with its next
//! try. One that dies is followed when its Lease has run out.
//!
//! *Guarantees*: at most one process leads at a time, whatever clocks show. Nobody compares the
//! times in a Lease with its own clock: a Lease has run out when it has not *changed* for its
//! duration, as seen by whoever wants it, and a leader steps down when its last successful renewal
//! *began* longer ago than the renewal deadline, which is shorter. Writes carry the version that
//! they replace.
//!
//! *Assumes* clocks that run about equally fast: those of two machines may drift by a third.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::Clock;

/// Which Lease, who wants it, and how patient everybody is.
#[derive(Clone, Debug)]
pub struct ElectionSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; see [`identity`].
    pub identity: String,
    /// How long a Lease lasts without being renewed.
    pub lease: Duration,
    /// How long a leader goes on without having renewed.
    pub renew_deadline: Duration,
    /// Time between tries.
    pub retry: Duration,
}

impl ElectionSettings {
    /// Upstream's Lease and times.
    #[must_use]
    pub fn new(namespace: &str, identity: String) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: "karpenter-leader-election".to_owned(),
            identity,
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }

    /// The same with a Lease apart: a dry run must not keep the real one from acting.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.name.push_str("-dry-run");
        self
    }
}

/// A name for this process: that of its pod, and chance, since a pod may start anew.
#[must_use]
pub fn identity(pod: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    // The standard library keys its hashers from the operating system's source of chance.
    let [high, low] = [
        RandomState::new().hash_one(0_u8),
        RandomState::new().hash_one(1_u8),
    ];
    let (high, low) = (high & !0xf000 | 0x4000, low & !(3 << 62) | 1 << 63);
    format!(
        "{pod}_{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// A running candidacy. Dropping it is like a crash: the Lease stays until it has run out.
#[derive(Debug)]
pub struct Election {
    leading: watch::Receiver<bool>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Election {
    /// Starts to try for the Lease.
    #[must_use]
    pub fn start(client: Client, clock: Clock, settings: ElectionSettings) -> Self {
        let (tell, leading) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let candidate = Candidate {
            client,
            clock,
            settings,
            tell,
            observed: None,
            renewed: None,
            n_tries: 0,
            is_failing: false,
        };
        let task = tokio::spawn(candidate.run(stopped));
        Self {
            leading,
            stop: Some(stop),
            task,
        }
    }

    /// Whether this process leads, now and whenever it changes. After `false` it may become `true`
    /// again: what was in memory is old by then, and it is best to end the process.
    #[must_use]
    pub fn leading(&self) -> watch::Receiver<bool> {
        self.leading.clone()
    }

    /// Gives the Lease back, so that the next can take over at once. Call it when all work has
    /// stopped.
    pub async fn release(mut self) {
        if let Some(stop) = self.stop.take() {
            // A receiver that is gone has stopped already.
            let _ = stop.send(());
        }
        if let Err(error) = (&mut self.task).await {
            tracing::warn!(%error, "the leader election ended early");
        }
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The Lease as last seen, and since when it has been as it is.
#[derive(Clone, Debug)]
struct Observed {
    object: Value,
    since: Timestamp,
}

/// What to do about the Lease.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// There is none: create one.
    Create(Value),
    /// Ours, run out, or given back: write this.
    Write(Value),
    /// Somebody else's.
    Wait,
}

/// What to do about the Lease, as last seen.
fn decide(observed: Option<&Observed>, settings: &ElectionSettings, now: Timestamp) -> Step {
    let Some(observed) = observed else {
        let meta = json!({"name": settings.name, "namespace": settings.namespace});
        let lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta});
        return Step::Create(claimed(lease, settings, 0, now));
    };
    let spec = &observed.object["spec"];
    let holder = spec["holderIdentity"].as_str().unwrap_or_default();
    let n_before = spec["leaseTransitions"].as_i64().unwrap_or(0);
    if holder == settings.identity {
        let mut lease = observed.object.clone();
        lease["spec"]["renewTime"] = micro(now);
        lease["spec"]["leaseDurationSeconds"] = json!(settings.lease.as_secs());
        return Step::Write(lease);
    }
    let secs = spec["leaseDurationSeconds"].as_i64().unwrap_or(0);
    let ends = observed.since.checked_add(SignedDuration::from_secs(secs));
    if !holder.is_empty() && ends.unwrap_or(Timestamp::MAX) > now {
        return Step::Wait;
    }
    Step::Write(claimed(
        observed.object.clone(),
        settings,
        n_before + 1,
        now,
    ))
}

/// The Lease with us as its new holder.
fn claimed(mut lease: Value, settings: &ElectionSettings, n: i64, now: Timestamp) -> Value {
    let spec = &mut lease["spec"];
    spec["holderIdentity"] = json!(settings.identity);
    spec["leaseDurationSeconds"] = json!(settings.lease.as_secs());
    spec["acquireTime"] = micro(now);
    spec["renewTime"] = micro(now);
    spec["leaseTransitions"] = json!(n);
    lease
}

/// The Lease with no holder.
fn released(mut lease: Value, now: Timestamp) -> Value {
    let spec = &mut lease["spec"];
    spec["holderIdentity"] = json!("");
    spec["leaseDurationSeconds"] = json!(1);
    spec["acquireTime"] = micro(now);
    spec["renewTime"] = micro(now);
    lease
}

fn micro(time: Timestamp) -> Value {
    json!(format!("{time:.6}"))
}

/// Takes note of the Lease as it is; a Lease that has not changed keeps its age.
fn observe(known: Option<Observed>, object: Value, now: Timestamp) -> Observed {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    match known {
        Some(known) if version(&known.object) == version(&object) => known,
        Some(_) | None => Observed { object, since: now },
    }
}

/// The task behind an [`Election`].
struct Candidate {
    client: Client,
    clock: Clock,
    settings: ElectionSettings,
    tell: watch::Sender<bool>,
    observed: Option<Observed>,
    /// When the last try that made or kept us the holder began; nothing while we do not lead.
    renewed: Option<Timestamp>,
    n_tries: u64,
    is_failing: bool,
}

/// A request that did not work out.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the API server did not answer in time")]
    Late,
    #[error("the lease was changed by somebody else")]
    Conflict,
    #[error("the request could not be made")]
    Request(#[source] http::Error),
    #[error("the API server did not do it")]
    Refused(#[source] Box<kube::Error>),
}

impl Candidate {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = self.turn() => {}
            }
        }
        self.release().await;
    }

    /// One try and the wait after it; a leader that could not renew steps down in between.
    async fn turn(&mut self) {
        let began = self.clock.now();
        let deadline = self.deadline(began);
        let clock = self.clock.clone();
        let result = tokio::select! {
            biased;
            result = self.attempt(began) => result,
            () = clock.sleep_until(deadline) => Err(Trouble::Late),
        };
        match result {
            Ok(holds) => {
                self.is_failing = false;
                self.renewed = holds.then_some(began);
            }
            Err(error) => self.note(&error),
        }
        // The answer may have come too late to count.
        self.step_down_if_late();
        self.tell_if_changed();
        let wait = self.pause();
        let next = began.checked_add(wait).unwrap_or(Timestamp::MAX);
        let until = self
            .renewed
            .map(|at| plus(at, self.settings.renew_deadline));
        if let Some(until) = until
            && until < next
        {
            self.clock.sleep_until(until).await;
            self.step_down_if_late();
            self.tell_if_changed();
        }
        self.clock.sleep_until(next).await;
    }

    /// When to give up on a try: soon enough for another before a leader has to step down.
    fn deadline(&self, began: Timestamp) -> Timestamp {
        let latest = plus(self.renewed.unwrap_or(began), self.settings.renew_deadline);
        latest.min(plus(began, self.settings.renew_deadline / 2))
    }

    fn step_down_if_late(&mut self) {
        let now = self.clock.now();
        if let Some(renewed) = self.renewed
            && plus(renewed, self.settings.renew_deadline) <= now
        {
            self.renewed = None;
        }
    }

    fn tell_if_changed(&self) {
        let leads = self.renewed.is_some();
        let changed = self
            .tell
            .send_if_modified(|told| std::mem::replace(told, leads) != leads);
        let lease = format!("{}/{}", self.settings.namespace, self.settings.name);
        match (changed, leads) {
            (true, true) => tracing::info!(%lease, identity = %self.settings.identity, "leading"),
            (true, false) => tracing::warn!(%lease, "no longer leading"),
            (false, _) => {}
        }
    }

    /// Says what is wrong once, not with every try.
    fn note(&mut self, error: &Trouble) {
        let lease = format!("{}/{}", self.settings.namespace, self.settings.name);
        let lost = matches!(error, Trouble::Conflict);
        if !lost && !std::mem::replace(&mut self.is_failing, true) {
            let error: &dyn std::error::Error = error;
            tracing::warn!(%lease, error, "could not get or renew the leader lease; trying on");
        }
    }

    /// Time to the next try: up to a fifth more than the setting, so that candidates do not go in
    /// step.
    fn pause(&mut self) -> Duration {
        use std::hash::{DefaultHasher, Hash, Hasher};
        self.n_tries += 1;
        let mut hasher = DefaultHasher::new();
        (&self.settings.identity, self.n_tries).hash(&mut hasher);
        let share = u32::try_from(hasher.finish() % 200).unwrap_or(0);
        match self.renewed {
            Some(_) => self.settings.retry,
            None => self.settings.retry + self.settings.retry * share / 1000,
        }
    }

    /// Takes or renews the Lease if that is allowed; true if it is ours now.
    async fn attempt(&mut self, now: Timestamp) -> Result<bool, Trouble> {
        // A leader knows the Lease from its last write, and reads it only after losing track.
        if self.renewed.is_none() || self.observed.is_none() {
            let found = self.get().await?;
            let seen = self.clock.now();
            let known = self.observed.take();
            self.observed = found.map(|object| observe(known, object, seen));
        }
        let written = match decide(self.observed.as_ref(), &self.settings, now) {
            Step::Wait => return Ok(false),
            Step::Create(lease) => self.send("POST", "", &lease).await,
            Step::Write(lease) => self.send("PUT", &self.settings.name, &lease).await,
        };
        match written {
            Ok(object) => {
                let seen = self.clock.now();
                self.observed = Some(observe(self.observed.take(), object, seen));
                Ok(true)
            }
            Err(error) => {
                // Who holds it now is to be seen with the next try, which comes soon enough: a
                // write of ours may also have been made without our having heard of it.
                let found = self.get().await?;
                let seen = self.clock.now();
                let known = self.observed.take();
                self.observed = found.map(|object| observe(known, object, seen));
                let lease = self.observed.as_ref();
                if !lease.is_some_and(|lease| self.is_ours(&lease.object)) {
                    self.renewed = None;
                }
                Err(error)
            }
        }
    }

    /// Gives the Lease back if it is ours.
    async fn release(mut self) {
        let leads = self.renewed.take().is_some();
        // Stepping down on purpose is no trouble, and not told as such.
        if self.tell.send_replace(false) {
            let lease = format!("{}/{}", self.settings.namespace, self.settings.name);
            tracing::info!(%lease, "giving the leader lease back");
        }
        let known = self.observed.take().filter(|_| leads);
        let clock = self.clock.clone();
        let give_up = plus(clock.now(), self.settings.retry);
        let result = tokio::select! {
            biased;
            result = self.give_back(known) => result,
            () = clock.sleep_until(give_up) => Err(Trouble::Late),
        };
        if let Err(error) = result {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                error,
                "the leader lease was not given back; it runs out by itself"
            );
        }
    }

    async fn give_back(&self, known: Option<Observed>) -> Result<(), Trouble> {
        let name = &self.settings.name;
        if let Some(known) = known {
            let lease = released(known.object, self.clock.now());
            if self.send("PUT", name, &lease).await.is_ok() {
                return Ok(());
            }
        }
        // A write may have been under way when we were told to stop.
        match self.get().await? {
            Some(lease) if self.is_ours(&lease) => {
                let lease = released(lease, self.clock.now());
                self.send("PUT", name, &lease).await.map(|_| ())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_ours(&self, lease: &Value) -> bool {
        lease["spec"]["holderIdentity"].as_str() == Some(&self.settings.identity)
    }

    async fn get(&self) -> Result<Option<Value>, Trouble> {
        match self.send("GET", &self.settings.name, &Value::Null).await {
            Ok(lease) => Ok(Some(lease)),
            Err(Trouble::Refused(error)) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn send(&self, method: &str, name: &str, lease: &Value) -> Result<Value, Trouble> {
        let namespace = &self.settings.namespace;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let body = match lease.is_null() {
            true => Vec::new(),
            false => lease.to_string().into_bytes(),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path.trim_end_matches('/'))
            .header("content-type", "application/json")
            .body(body)
            .map_err(Trouble::Request)?;
        let answer = self.client.request::<Value>(request).await;
        answer.map_err(|error| match status(&error) {
            Some(409) => Trouble::Conflict,
            Some(_) | None => Trouble::Refused(Box::new(error)),
        })
    }
}

fn status(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error {
        return Some(status.code);
    }
    None
}

fn plus(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
