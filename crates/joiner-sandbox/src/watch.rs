//! Watches: changes as they come, bookmarks, and an end in time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use joiner_machinery::{ApiError, Reason};
use joiner_runtime::Clock;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::store::{Change, Resource, Store, What, packed};

/// How often a watch that wants bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts that does not say.
pub const WATCH_SECS: u64 = 3_600;
/// Events that wait for a slow reader.
const BACKLOG: usize = 256;
/// How long a full backlog is waited for before the watch ends.
const SLOW: Duration = Duration::from_secs(30);
/// Changes that are fetched at once, so that a slow reader does not hold on to the whole log.
const CHANGES_MAX: usize = 256;

/// Decides whether an object is wanted.
pub type Wanted = Arc<dyn Fn(&Value) -> bool + Send + Sync>;

/// Writes an object as the client wants it: version, table or whole.
pub type Rendered = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// Where a watch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With everything there is, then changes.
    All,
    /// With everything there is and a bookmark that says so, then changes.
    AllMarked,
    /// With changes after this revision.
    After(u64),
}

/// What a client wants to see.
#[derive(Clone)]
pub struct Ask {
    /// Group and plural of what is stored.
    pub resource: Resource,
    /// Which objects.
    pub wanted: Wanted,
    /// How they are written.
    pub rendered: Rendered,
    /// Objects that are stored under the version asked for are written as they are.
    pub is_whole: bool,
    /// Kind and version for bookmarks.
    pub api_version: String,
    /// Kind for bookmarks.
    pub kind: String,
    /// From where.
    pub start: Start,
    /// With bookmarks.
    pub bookmarks: bool,
    /// For how long.
    pub secs: u64,
}

/// Starts a watch; it ends when its time is up, when it falls behind, or when nobody reads it.
#[must_use]
pub fn start(store: Arc<Store>, clock: Clock, ask: Ask) -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let (first, seen) = match ask.start {
        Start::All | Start::AllMarked => store.with(|s| {
            let objects = s
                .objects(&ask.resource)
                .into_iter()
                .flat_map(|o| o.values());
            let wanted = objects.filter(|object| (ask.wanted)(object)).cloned();
            (wanted.collect::<Vec<_>>(), s.revision())
        }),
        Start::After(revision) => (Vec::new(), revision),
    };
    let watcher = Watcher {
        store,
        clock,
        ask,
        sender,
        seen,
    };
    tokio::spawn(watcher.run(first));
    receiver
}

struct Watcher {
    store: Arc<Store>,
    clock: Clock,
    ask: Ask,
    sender: mpsc::Sender<Bytes>,
    /// Revision up to which everything has been sent.
    seen: u64,
}

impl Watcher {
    async fn run(mut self, first: Vec<Arc<Value>>) {
        let start = self.clock.now();
        let end = later(start, Duration::from_secs(self.ask.secs));
        let mut next_mark = later(start, BOOKMARK_EVERY);
        for object in first {
            if !self.send(self.line("ADDED", &object), end).await {
                return;
            }
        }
        if self.ask.start == Start::AllMarked && !self.mark(true, end).await {
            return;
        }
        let mut changed = self.store.subscribe();
        loop {
            changed.mark_unchanged();
            let Some(is_all) = self.pass_on(end).await else {
                return;
            };
            if !is_all {
                continue;
            }
            let wake = if self.ask.bookmarks {
                end.min(next_mark)
            } else {
                end
            };
            tokio::select! {
                biased;
                () = self.sender.closed() => return,
                news = changed.changed() => if news.is_err() { return },
                () = self.clock.sleep_until(wake) => {}
            }
            let now = self.clock.now();
            if now >= end {
                return;
            }
            if self.ask.bookmarks && now >= next_mark {
                next_mark = later(now, BOOKMARK_EVERY);
                if !self.mark(false, end).await {
                    return;
                }
            }
        }
    }

    /// Sends the next changes; true when there are no more for now, `None` when the watch is over.
    async fn pass_on(&mut self, end: Timestamp) -> Option<bool> {
        let (resource, seen) = (&self.ask.resource, self.seen);
        let news = self
            .store
            .with(|s| s.next_changes(resource, seen, CHANGES_MAX));
        let Some((changes, revision)) = news else {
            let oldest = self.store.with(|s| s.compacted());
            let message = format!("too old resource version: {seen} ({oldest})");
            let too_old = ApiError::new(Reason::Expired, message).to_status();
            self.send(line("ERROR", too_old.to_string().as_bytes()), end)
                .await;
            return None;
        };
        for change in &changes {
            if let Some(line) = self.event(change)
                && !self.send(line, end).await
            {
                return None;
            }
        }
        self.seen = revision;
        Some(changes.len() < CHANGES_MAX)
    }

    /// What a change means to somebody who sees only some objects.
    fn event(&self, change: &Change) -> Option<Bytes> {
        let object = change.object();
        let before = change.before();
        let is = change.what != What::Deleted && (self.ask.wanted)(&object);
        let was = before.as_ref();
        let was = was.is_some_and(|before| (self.ask.wanted)(before));
        let word = match (was, is) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) if change.what == What::Deleted => "DELETED",
            (true, false) => {
                // It left the selection: the client gets it as it last knew it.
                let mut last = Value::clone(before.as_ref()?);
                last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                return Some(self.line("DELETED", &last));
            }
            (false, false) => return None,
        };
        Some(if self.is_as_stored(&object) {
            line(word, &change.text())
        } else {
            self.line(word, &object)
        })
    }

    fn is_as_stored(&self, object: &Value) -> bool {
        self.ask.is_whole
            && object["apiVersion"] == *self.ask.api_version
            && object["kind"] == *self.ask.kind
    }

    fn line(&self, word: &str, object: &Value) -> Bytes {
        let text = if self.is_as_stored(object) {
            packed::to_text(object)
        } else {
            (self.ask.rendered)(object).to_string()
        };
        line(word, text.as_bytes())
    }

    async fn mark(&self, is_end_of_all: bool, end: Timestamp) -> bool {
        let mut metadata = json!({"resourceVersion": self.seen.to_string()});
        if is_end_of_all {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mark = json!({"kind": self.ask.kind, "apiVersion": self.ask.api_version,
            "metadata": metadata});
        self.send(line("BOOKMARK", mark.to_string().as_bytes()), end)
            .await
    }

    /// False when nobody listens any more, or so slowly that others would have to wait.
    async fn send(&self, line: Bytes, end: Timestamp) -> bool {
        let line = match self.sender.try_send(line) {
            Ok(()) => return true,
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
            Err(mpsc::error::TrySendError::Full(line)) => line,
        };
        let until = end.min(later(self.clock.now(), SLOW));
        tokio::select! {
            biased;
            sent = self.sender.send(line) => sent.is_ok(),
            () = self.clock.sleep_until(until) => false,
        }
    }
}

/// One event, as it goes over the wire.
fn line(word: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + word.len() + 24);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(word.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Resource {
        (String::new(), "pods".to_owned())
    }

    fn put(store: &Store, name: &str, app: &str) {
        let key = ("default".to_owned(), name.to_owned());
        let object = json!({"metadata": {"name": name, "labels": {"app": app}}});
        store.with(|s| s.put(&pods(), &key, object));
    }

    fn ask(start: Start) -> Ask {
        Ask {
            resource: pods(),
            wanted: Arc::new(|object| object["metadata"]["labels"]["app"] == "web"),
            rendered: Arc::new(Value::clone),
            is_whole: true,
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            start,
            bookmarks: true,
            secs: 150,
        }
    }

    async fn next(events: &mut mpsc::Receiver<Bytes>) -> String {
        let Some(line) = events.recv().await else {
            return "end".to_owned();
        };
        let event: Value = serde_json::from_slice(&line).expect("an event");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("");
        let marked = event["object"]["metadata"]["annotations"].is_object();
        let word = event["type"].as_str().expect("a type");
        format!("{word} {name}{}", if marked { "!" } else { "" })
    }

    #[tokio::test(start_paused = true)]
    async fn changes_come_in_order_and_the_watch_ends() {
        let store = Arc::new(Store::default());
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        put(&store, "one", "web");
        put(&store, "other", "db");
        let mut events = start(Arc::clone(&store), clock, ask(Start::AllMarked));
        assert_eq!(next(&mut events).await, "ADDED one");
        assert_eq!(next(&mut events).await, "BOOKMARK !");
        put(&store, "other", "web");
        put(&store, "one", "db");
        assert_eq!(next(&mut events).await, "ADDED other");
        assert_eq!(next(&mut events).await, "DELETED one");
        assert_eq!(next(&mut events).await, "BOOKMARK ");
        assert_eq!(next(&mut events).await, "BOOKMARK ");
        assert_eq!(next(&mut events).await, "end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_behind_the_log_is_told() {
        let store = Arc::new(Store::default());
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        put(&store, "one", "web");
        store.with(crate::store::Inner::compact);
        let mut events = start(store, clock, ask(Start::After(1)));
        assert_eq!(next(&mut events).await, "ERROR ");
        assert_eq!(next(&mut events).await, "end");
    }
}
