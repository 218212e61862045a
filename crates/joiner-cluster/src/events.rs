//! How a controller writes Events.
//!
//! The same thing happening again is counted up by a patch. Two Events are the same when object,
//! reason, message and source are. An Event's name ends in the time at which it was first seen, so
//! that a list of Events tells the story of an object in its order. An object about which one
//! controller says much the same with ever new words gets one Event for all of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields;
use crate::names::Digest;
use crate::view::{Action, ObjectKey, Resource, View};

/// The kind that Events are written as.
pub(crate) const EVENTS: Resource = ("", "events");

/// Events about an object that differ in nothing but their message, within so many seconds: from this
/// one on they share one, as upstream's do.
const SIMILAR_MAX: usize = 10;
const SIMILAR_SECS: i64 = 600;
/// What the message of a shared one starts with.
const COMBINED: &str = "(combined from similar events): ";

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Somebody may want to look.
    Warning,
}

impl Severity {
    const fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Turns what happened in a step into Events.
pub struct Recorder<'a> {
    view: View<'a>,
    component: &'static str,
    /// Events that this step wrote already, with their counts, by what makes them the same.
    written: BTreeMap<u64, (ObjectKey, i64)>,
    /// Where these are.
    taken: BTreeSet<ObjectKey>,
    /// Events that differ in their message alone, by all the rest.
    similar: BTreeMap<u64, Similar>,
}

/// Recent Events that differ in their message alone.
#[derive(Default)]
struct Similar {
    n_messages: usize,
    /// The one for all of them, with its count.
    combined: Option<(ObjectKey, i64)>,
}

/// What a controller says.
#[derive(Clone, Copy)]
struct Told<'t> {
    about: &'t Value,
    how: Severity,
    reason: &'t str,
    message: &'t str,
}

impl<'a> Recorder<'a> {
    /// A recorder for one step of the controller with this name.
    #[must_use]
    pub fn new(view: &View<'a>, component: &'static str) -> Self {
        Self {
            view: *view,
            component,
            written: BTreeMap::new(),
            taken: BTreeSet::new(),
            similar: BTreeMap::new(),
        }
    }

    /// The action that records a normal event about an object.
    pub fn normal(&mut self, about: &Value, reason: &str, message: &str) -> Action {
        self.record(about, Severity::Normal, reason, message)
    }

    /// The action that records a warning about an object.
    pub fn warning(&mut self, about: &Value, reason: &str, message: &str) -> Action {
        self.record(about, Severity::Warning, reason, message)
    }

    /// A warning or a normal event, unless it was recorded at or after a time.
    pub fn once_since(
        &mut self,
        since: Timestamp,
        about: &Value,
        how: Severity,
        reason: &str,
        message: &str,
    ) -> Option<Action> {
        let told = Told {
            about,
            how,
            reason,
            message,
        };
        let last = self.stored(&told);
        let last = last.and_then(|event| fields::instant(&event["lastTimestamp"]));
        let is_known = last.is_some_and(|last| last >= since)
            || self.written.contains_key(&self.sameness(&told));
        (!is_known).then(|| self.record(about, how, reason, message))
    }

    /// Equal for Events that are the same.
    fn sameness(&self, told: &Told<'_>) -> u64 {
        let digest = Digest::default().text(meta::uid(told.about));
        let digest = digest.text(told.how.word()).text(told.reason);
        digest.text(told.message).text(self.component).finish()
    }

    /// The Event that says the same, if there is one.
    fn stored(&self, told: &Told<'_>) -> Option<&'a Value> {
        let mut near = self.near(told);
        near.find(|event| event["message"] == told.message)
    }

    /// Events that say the same but for the message.
    fn near(&self, told: &Told<'_>) -> impl Iterator<Item = &'a Value> {
        let prefix = format!("{}.", meta::name(told.about));
        let first = (namespace_of(told.about).to_owned(), prefix);
        let (namespace, prefix) = first.clone();
        let events = self.view.objects(EVENTS).into_iter();
        let events = events.flat_map(move |events| events.range(first.clone()..));
        let own =
            events.take_while(move |(key, _)| key.0 == namespace && key.1.starts_with(&prefix));
        let (reason, uid) = (told.reason, meta::uid(told.about));
        let (component, how) = (self.component, told.how.word());
        own.map(|(_, event)| &**event).filter(move |event| {
            event["reason"] == reason
                && event["involvedObject"]["uid"] == uid
                && event["source"]["component"] == component
                && event["type"] == how
        })
    }

    /// Recent Events that say the same but for the message, those of this step included.
    fn similar(&mut self, told: &Told<'_>) -> &mut Similar {
        let unworded = Told {
            message: "",
            ..*told
        };
        let sameness = self.sameness(&unworded);
        if !self.similar.contains_key(&sameness) {
            let mut similar = Similar::default();
            let from = fields::after(self.view.now, -SIMILAR_SECS);
            for event in self.near(told) {
                if fields::instant(&event["lastTimestamp"]).is_none_or(|last| last < from) {
                    continue;
                }
                similar.n_messages += 1;
                let message = event["message"].as_str().unwrap_or_default();
                if message.starts_with(COMBINED) {
                    let count = event["count"].as_i64().unwrap_or(1);
                    similar.combined = Some((fields::key(event), count));
                }
            }
            self.similar.insert(sameness, similar);
        }
        self.similar.entry(sameness).or_default()
    }

    /// Namespace and name of a new Event.
    fn new_key(&self, about: &Value) -> ObjectKey {
        let namespace = namespace_of(about);
        let mut nanos = self.view.now.as_nanosecond();
        loop {
            let name = format!("{}.{nanos:016x}", meta::name(about));
            let key = (namespace.to_owned(), name);
            let is_taken =
                self.taken.contains(&key) || self.view.get(EVENTS, &key.0, &key.1).is_some();
            if !is_taken {
                return key;
            }
            nanos += 1;
        }
    }

    fn record(&mut self, about: &Value, how: Severity, reason: &str, message: &str) -> Action {
        let told = Told {
            about,
            how,
            reason,
            message,
        };
        let sameness = self.sameness(&told);
        let now = meta::time(self.view.now);
        if let Some((key, before)) = self.count(&told, sameness) {
            self.written.insert(sameness, (key.clone(), before + 1));
            return count_up(&key, json!({"count": before + 1, "lastTimestamp": now}));
        }
        let key = self.new_key(about);
        let similar = self.similar(&told);
        similar.n_messages += 1;
        let shares = similar.n_messages >= SIMILAR_MAX;
        let combined = format!("{COMBINED}{message}");
        let message = if shares { combined.as_str() } else { message };
        if shares {
            if let Some((key, count)) = &mut similar.combined {
                *count += 1;
                let patch = json!({"count": count, "message": message, "lastTimestamp": now});
                return count_up(key, patch);
            }
            similar.combined = Some((key.clone(), 1));
        } else {
            self.written.insert(sameness, (key.clone(), 1));
        }
        self.taken.insert(key.clone());
        Action::Create(EVENTS, self.event(key, &Told { message, ..told }))
    }

    fn event(&self, key: ObjectKey, told: &Told<'_>) -> Value {
        let (about, now) = (told.about, meta::time(self.view.now));
        let mut involved = json!({
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": meta::name(about),
            "uid": meta::uid(about),
            "resourceVersion": meta::text(about, "resourceVersion"),
        });
        if !meta::namespace(about).is_empty() {
            involved["namespace"] = json!(meta::namespace(about));
        }
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": key.1, "namespace": key.0},
            "involvedObject": involved,
            "reason": told.reason,
            "message": told.message,
            "source": {"component": self.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": told.how.word(),
            "eventTime": null,
            "reportingComponent": self.component,
            "reportingInstance": "",
        })
    }

    /// Where the Event is and how often it was seen, if it is there.
    fn count(&self, told: &Told<'_>, sameness: u64) -> Option<(ObjectKey, i64)> {
        if let Some(written) = self.written.get(&sameness) {
            return Some(written.clone());
        }
        let stored = self.stored(told)?;
        Some((fields::key(stored), stored["count"].as_i64().unwrap_or(1)))
    }
}

fn count_up(key: &ObjectKey, patch: Value) -> Action {
    Action::Patch {
        resource: EVENTS,
        key: key.clone(),
        subresource: None,
        patch,
    }
}

/// Where Events about an object are.
fn namespace_of(about: &Value) -> &str {
    match meta::namespace(about) {
        "" => "default",
        namespace => namespace,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::view::Objects;

    fn view(kinds: &BTreeMap<(String, String), Objects>) -> View<'_> {
        let now = Timestamp::UNIX_EPOCH;
        View {
            kinds,
            now,
            seed: 0,
        }
    }

    #[test]
    fn the_same_event_is_counted_up() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "uid": "u"}});
        let mut kinds = BTreeMap::new();
        let first = Recorder::new(&view(&kinds), "test").normal(&pod, "Done", "it is done");
        let Action::Create(_, event) = first else {
            panic!("{first:?}")
        };
        assert_eq!(
            event["metadata"]["name"].as_str().unwrap().len(),
            "a.".len() + 16
        );

        let key = ("n".to_owned(), meta::name(&event).to_owned());
        let events = Objects::from([(key, Arc::new(event))]);
        kinds.insert((String::new(), "events".to_owned()), events);
        let mut recorder = Recorder::new(&view(&kinds), "test");
        for expected in [2, 3] {
            let Action::Patch { patch, .. } = recorder.normal(&pod, "Done", "it is done") else {
                panic!("the event is there");
            };
            assert_eq!(patch["count"], expected);
        }
        let other = recorder.warning(&pod, "Done", "it is done");
        assert!(matches!(other, Action::Create(..)), "{other:?}");
    }

    #[test]
    fn many_similar_events_share_one() {
        let set = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u"}});
        let mut kinds = BTreeMap::new();
        let mut events = Objects::new();
        let mut messages = Vec::new();
        for round in 0..2 {
            let view = view(&kinds);
            let mut recorder = Recorder::new(&view, "test");
            for n in 0..20 {
                let message = format!("created {round}.{n}");
                let action = recorder.normal(&set, "Created", &message);
                if let Action::Create(_, event) = action {
                    events.insert(fields::key(&event), Arc::new(event));
                } else if let Action::Patch { patch, .. } = action {
                    messages.push(patch);
                }
            }
            let other = recorder.normal(&set, "Deleted", "it is gone");
            assert!(matches!(other, Action::Create(..)), "{other:?}");
            kinds.insert((String::new(), "events".to_owned()), events.clone());
        }
        assert_eq!(events.len(), SIMILAR_MAX);
        assert_eq!(messages.len(), 30);
        let last = messages.last().expect("the last one");
        assert_eq!(
            last["message"],
            "(combined from similar events): created 1.19"
        );
        assert_eq!(last["count"], 1 + 20, "stored once, and twenty more");
    }
}
