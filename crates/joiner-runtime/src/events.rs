//! Kubernetes Events about what was decided and done.
//!
//! *Flow*: [`Events::tell`] decides at once whether an event is news, and puts it into a queue; one
//! task writes what is in the queue. The same news again, after a while, counts up the Event that
//! is there, so that `kubectl describe` shows one line with how often and since when.
//!
//! *Guarantees*: telling never blocks and never fails. The queue, what is remembered, and the tries
//! for each event are bounded; what does not fit is dropped and counted. In a dry run nothing is
//! written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use joiner_model::Name;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::metric_names::{EVENTS_DROPPED, EVENTS_WRITTEN};
use crate::metrics::{Metrics, lock};

/// Who speaks: upstream's name, which tools filter by.
const COMPONENT: &str = "karpenter";
/// How long the same news is no news, unless an event says otherwise.
pub const EVERY: Duration = Duration::from_secs(120);
const QUEUE_MAX: usize = 10_000;
const REMEMBERED_MAX: usize = 10_000;
const WRITES_AT_A_TIME: usize = 8;
const TRIES_MAX: u32 = 3;
/// How long an answer is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// An Event is counted up for so long; API servers keep them for an hour.
const COUNTED_UP: SignedDuration = SignedDuration::from_mins(50);
/// Longer messages are refused by API servers.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The reason that comes in thousands when a cluster scales out, and how many of it are let
/// through.
const LIMITED: &str = "Nominated";
const LIMITED_PER_SEC: f64 = 5.0;
const LIMITED_BURST: f64 = 10.0;

/// What an event is about.
#[derive(Clone, Debug)]
pub struct About {
    /// Kind, as in manifests.
    pub kind: &'static str,
    /// Group and version.
    pub api_version: Cow<'static, str>,
    /// `namespace/name`, or the name alone where there are no namespaces.
    pub name: Name,
    /// Uid.
    pub uid: Name,
}

/// Something to tell.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is about.
    pub about: About,
    /// Somebody may want to look.
    pub warning: bool,
    /// One word, upstream's.
    pub reason: Cow<'static, str>,
    /// A sentence.
    pub message: String,
    /// Two events about one object with the same reason and the same of this are the same news.
    pub same: String,
    /// How long the same news is no news.
    pub every: Duration,
}

impl Event {
    /// A normal event that is news every two minutes.
    #[must_use]
    pub fn normal(about: About, reason: &'static str, message: String) -> Self {
        Self {
            about,
            warning: false,
            reason: reason.into(),
            message,
            same: String::new(),
            every: EVERY,
        }
    }

    /// A warning that is news every two minutes.
    #[must_use]
    pub fn warning(about: About, reason: &'static str, message: String) -> Self {
        let mut event = Self::normal(about, reason, message);
        event.warning = true;
        event
    }
}

/// What makes two events the same news.
type Key = (Cow<'static, str>, Name, String);

/// Where events are told.
#[derive(Clone)]
pub struct Events {
    shared: Arc<Shared>,
    queue: mpsc::Sender<(Key, Timestamp, Event)>,
    leaves_out_conditions: bool,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

struct Shared {
    clock: Clock,
    metrics: Arc<Metrics>,
    dry_run: bool,
    news: Mutex<News>,
}

/// What was told of late.
#[derive(Debug)]
struct News {
    /// Until when each is no news.
    until: BTreeMap<Key, Timestamp>,
    /// How many of the limited reason may pass now, as of a time.
    tokens: (f64, Timestamp),
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Write,
    Known,
    TooMany,
}

impl News {
    fn new(now: Timestamp) -> Self {
        Self {
            until: BTreeMap::new(),
            tokens: (LIMITED_BURST, now),
        }
    }

    /// Whether an event is to be written; if so, it is no news for a while.
    fn judge(&mut self, key: &Key, every: Duration, now: Timestamp) -> Verdict {
        if self.until.get(key).is_some_and(|until| now < *until) {
            return Verdict::Known;
        }
        if key.0 == LIMITED && !self.take_token(now) {
            return Verdict::TooMany;
        }
        if self.until.len() >= REMEMBERED_MAX {
            self.until.retain(|_, until| now < *until);
        }
        if self.until.len() >= REMEMBERED_MAX {
            // All of it is recent. What ends first is the least loss.
            let first = self.until.iter().min_by_key(|(_, until)| **until);
            let first = first.map(|(key, _)| key.clone());
            first.and_then(|key| self.until.remove(&key));
        }
        let until = now.checked_add(every).unwrap_or(Timestamp::MAX);
        self.until.insert(key.clone(), until);
        Verdict::Write
    }

    fn take_token(&mut self, now: Timestamp) -> bool {
        let (left, since) = self.tokens;
        let earned = now.duration_since(since).as_secs_f64().max(0.0) * LIMITED_PER_SEC;
        let left = (left + earned).min(LIMITED_BURST);
        let passes = left >= 1.0;
        self.tokens = (if passes { left - 1.0 } else { left }, now);
        passes
    }
}

impl Events {
    /// Where to tell events, and what writes them: run it as a task. It ends when nobody can tell
    /// anything any more and all is written.
    #[must_use]
    pub fn new(
        client: Client,
        clock: Clock,
        metrics: Arc<Metrics>,
        dry_run: bool,
    ) -> (Self, EventWriter) {
        let (queue, told) = mpsc::channel(QUEUE_MAX);
        let shared = Arc::new(Shared {
            news: Mutex::new(News::new(clock.now())),
            clock,
            metrics,
            dry_run,
        });
        let writer = EventWriter {
            shared: Arc::clone(&shared),
            client,
            told,
            written: Arc::default(),
        };
        let events = Self {
            shared,
            queue,
            leaves_out_conditions: false,
        };
        (events, writer)
    }

    /// The same, without events about conditions that changed.
    #[must_use]
    pub fn without_conditions(mut self) -> Self {
        self.leaves_out_conditions = true;
        self
    }

    /// True when events about conditions that changed are left out.
    #[must_use]
    pub fn leaves_out_conditions(&self) -> bool {
        self.leaves_out_conditions
    }

    /// Tells something, unless it is no news.
    pub fn tell(&self, event: Event) {
        let shared = &self.shared;
        let now = shared.clock.now();
        let key = (
            event.reason.clone(),
            event.about.uid.clone(),
            event.same.clone(),
        );
        let dropped = |why| shared.metrics.count(EVENTS_DROPPED, &[("why", why)], 1.0);
        match lock(&shared.news).judge(&key, event.every, now) {
            Verdict::Write => {}
            Verdict::Known => return,
            Verdict::TooMany => return dropped("rate"),
        }
        if shared.dry_run {
            return dropped("dry_run");
        }
        if self.queue.try_send((key, now, event)).is_err() {
            dropped("queue");
        }
    }
}

/// An Event that is there.
#[derive(Clone, Debug)]
struct Written {
    namespace: String,
    name: String,
    message: String,
    first: Timestamp,
    count: u32,
}

/// Writes what was told; see [`Events::new`].
pub struct EventWriter {
    shared: Arc<Shared>,
    client: Client,
    told: mpsc::Receiver<(Key, Timestamp, Event)>,
    written: Arc<Mutex<BTreeMap<Key, Written>>>,
}

impl std::fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventWriter").finish_non_exhaustive()
    }
}

impl EventWriter {
    /// Writes until nobody can tell anything any more.
    pub async fn run(self) {
        let Self {
            shared,
            client,
            told,
            written,
        } = self;
        let pen = &Pen {
            shared,
            client,
            written,
        };
        let told = futures::stream::unfold((told, 0_i64), |(mut told, n)| async move {
            let next = told.recv().await?;
            Some(((n, next), (told, n + 1)))
        });
        told.for_each_concurrent(WRITES_AT_A_TIME, |(n, (key, at, event))| async move {
            pen.write(n, key, at, &event).await;
        })
        .await;
    }
}

/// What writing takes.
struct Pen {
    shared: Arc<Shared>,
    client: Client,
    written: Arc<Mutex<BTreeMap<Key, Written>>>,
}

impl Pen {
    /// Counts up the Event that is there, or creates one.
    async fn write(&self, n: i64, key: Key, at: Timestamp, event: &Event) {
        let known = lock(&self.written).remove(&key);
        let known = known.filter(|known| {
            known.message == event.message && at.duration_since(known.first) < COUNTED_UP
        });
        let result = match known {
            Some(known) => match self.count_up(known, at).await {
                // It was deleted, or its time was up.
                Err(error) if code(&error) == Some(404) => self.create(n, at, event).await,
                other => other,
            },
            None => self.create(n, at, event).await,
        };
        match result {
            Ok(now) => {
                let mut written = lock(&self.written);
                if written.len() >= REMEMBERED_MAX {
                    written.retain(|_, old| at.duration_since(old.first) < COUNTED_UP);
                }
                if written.len() >= REMEMBERED_MAX {
                    written.pop_first();
                }
                written.insert(key, now);
                drop(written);
                let labels = [("reason", &*event.reason)];
                self.shared.metrics.count(EVENTS_WRITTEN, &labels, 1.0);
            }
            Err(error) => {
                let dropped = [("why", "refused")];
                self.shared.metrics.count(EVENTS_DROPPED, &dropped, 1.0);
                tracing::debug!(%error, reason = &*event.reason, about = %event.about.name,
                    "could not write an event");
            }
        }
    }

    async fn create(&self, n: i64, at: Timestamp, event: &Event) -> Result<Written, kube::Error> {
        let object = object(n, at, event);
        let text = |field: &str| {
            object["metadata"][field]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        let path = format!("/api/v1/namespaces/{namespace}/events");
        self.send("POST", "application/json", &path, &object)
            .await?;
        Ok(Written {
            namespace,
            name,
            message: event.message.clone(),
            first: at,
            count: 1,
        })
    }

    async fn count_up(&self, mut known: Written, at: Timestamp) -> Result<Written, kube::Error> {
        known.count += 1;
        let path = format!(
            "/api/v1/namespaces/{}/events/{}",
            known.namespace, known.name
        );
        let patch = json!({"count": known.count, "lastTimestamp": seconds(at)});
        let content = "application/merge-patch+json";
        self.send("PATCH", content, &path, &patch).await?;
        Ok(known)
    }

    /// Sends a request, a few times if the server is away.
    async fn send(
        &self,
        method: &str,
        content: &str,
        path: &str,
        body: &Value,
    ) -> Result<(), kube::Error> {
        let mut n_tries = 1;
        loop {
            let request = http::Request::builder()
                .method(method)
                .uri(path)
                .header("content-type", content)
                .body(body.to_string().into_bytes())
                .map_err(kube::Error::HttpError)?;
            let answer = tokio::select! {
                biased;
                answer = self.client.request::<Value>(request) => answer,
                () = self.shared.clock.sleep(ANSWER_MAX) => {
                    Err(kube::Error::Service("no answer in time".into()))
                }
            };
            let Err(error) = answer else {
                return Ok(());
            };
            // A proxy's answer may carry no code that is one.
            let is_away =
                code(&error).is_none_or(|code| !(400..500).contains(&code) || code == 429);
            if code(&error) == Some(409) && n_tries > 1 {
                // An earlier try got through after all.
                return Ok(());
            }
            if !is_away || n_tries >= TRIES_MAX {
                return Err(error);
            }
            self.shared
                .clock
                .sleep(Duration::from_secs(1 << n_tries))
                .await;
            n_tries += 1;
        }
    }
}

fn code(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error {
        return Some(status.code);
    }
    None
}

/// The Event for `kubectl describe`.
fn object(n: i64, at: Timestamp, event: &Event) -> Value {
    let about = &event.about;
    let (namespace, name) = about.name.split_once('/').unwrap_or(("", &about.name));
    // Events need a namespace; those about objects without one live here.
    let home = if namespace.is_empty() {
        "default"
    } else {
        namespace
    };
    let mut involved = json!({"kind": about.kind, "apiVersion": about.api_version, "name": name,
        "uid": &*about.uid});
    if !namespace.is_empty() {
        involved["namespace"] = json!(namespace);
    }
    // As client-go names them: the object and a time. The number keeps two of a moment apart.
    let stamp = at.as_nanosecond().wrapping_add(i128::from(n));
    let short = cut(name, 230).trim_end_matches(['.', '-']);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": format!("{short}.{stamp:x}"), "namespace": home},
        "involvedObject": involved,
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "message": cut(&event.message, MESSAGE_BYTES_MAX),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "firstTimestamp": seconds(at),
        "lastTimestamp": seconds(at),
        "count": 1,
    })
}

/// At most so many bytes of a text.
fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

fn seconds(time: Timestamp) -> Value {
    json!(format!("{time:.0}"))
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
