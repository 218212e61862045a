//! How a controller writes Events.
//!
//! The same thing happening again is counted up by a patch. Two Events are the same when object,
//! reason, message and source are. An Event's name ends in the time at which it was first seen, so
//! that a list of Events tells the story of an object in its order.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields;
use crate::names::Digest;
use crate::view::{Action, ObjectKey, Resource, View};

/// The kind that Events are written as.
const EVENTS: Resource = ("", "events");

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
        let prefix = format!("{}.", meta::name(told.about));
        let first = (namespace_of(told.about).to_owned(), prefix);
        let (namespace, prefix) = (first.0.clone(), first.1.clone());
        let events = self.view.objects(EVENTS)?.range(first..);
        let mut near = events
            .take_while(|(key, _)| key.0 == namespace && key.1.starts_with(&prefix))
            .map(|(_, event)| &**event);
        near.find(|event| {
            event["reason"] == told.reason
                && event["message"] == told.message
                && event["involvedObject"]["uid"] == meta::uid(told.about)
                && event["source"]["component"] == self.component
                && event["type"] == told.how.word()
        })
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
            return Action::Patch {
                resource: EVENTS,
                key,
                subresource: None,
                patch: json!({"count": before + 1, "lastTimestamp": now}),
            };
        }
        let key = self.new_key(about);
        self.taken.insert(key.clone());
        self.written.insert(sameness, (key.clone(), 1));
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
        let event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": key.1, "namespace": key.0},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": how.word(),
            "eventTime": null,
            "reportingComponent": self.component,
            "reportingInstance": "",
        });
        Action::Create(EVENTS, event)
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
}
