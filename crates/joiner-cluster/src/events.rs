//! How a controller writes Events.
//!
//! An Event's name ends in a hash of all that makes two Events the same: object, reason, message
//! and source. So the same thing happening again is found by name and counted up by a patch.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields;
use crate::names::{Digest, hex};
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
    /// Counts of Events that this step wrote already, by namespace and name.
    written: BTreeMap<ObjectKey, i64>,
}

impl<'a> Recorder<'a> {
    /// A recorder for one step of the controller with this name.
    #[must_use]
    pub fn new(view: &View<'a>, component: &'static str) -> Self {
        Self {
            view: *view,
            component,
            written: BTreeMap::new(),
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
        let key = self.key(about, how, reason, message);
        let stored = self.view.get(EVENTS, &key.0, &key.1);
        let last = stored.and_then(|event| fields::instant(&event["lastTimestamp"]));
        let is_known = last.is_some_and(|last| last >= since) || self.written.contains_key(&key);
        (!is_known).then(|| self.record(about, how, reason, message))
    }

    /// Namespace and name of an event.
    fn key(&self, about: &Value, how: Severity, reason: &str, message: &str) -> ObjectKey {
        let namespace = match meta::namespace(about) {
            "" => "default",
            namespace => namespace,
        };
        let digest = Digest::default().text(meta::uid(about)).text(how.word());
        let digest = digest.text(reason).text(message).text(self.component);
        let name = format!("{}.{}", meta::name(about), hex(digest.finish()));
        (namespace.to_owned(), name)
    }

    fn record(&mut self, about: &Value, how: Severity, reason: &str, message: &str) -> Action {
        let key = self.key(about, how, reason, message);
        let now = meta::time(self.view.now);
        if let Some(before) = self.count(&key) {
            self.written.insert(key.clone(), before + 1);
            return Action::Patch {
                resource: EVENTS,
                key,
                subresource: None,
                patch: json!({"count": before + 1, "lastTimestamp": now}),
            };
        }
        self.written.insert(key.clone(), 1);
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

    /// How often the Event was seen, if it is there.
    fn count(&self, key: &ObjectKey) -> Option<i64> {
        if let Some(count) = self.written.get(key) {
            return Some(*count);
        }
        let stored = self.view.get(EVENTS, &key.0, &key.1)?;
        Some(stored["count"].as_i64().unwrap_or(1))
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
