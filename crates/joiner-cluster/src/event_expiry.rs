//! How long do Events live?
//!
//! Upstream's API server gives each Event an hour from its last write. Here a controller looks once
//! a minute and deletes what is older.

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::Value;

use crate::events::EVENTS;
use crate::fields::{after, delete};
use crate::view::{Controller, Resource, Step, View};

/// Seconds that an Event is kept after its last write.
const KEPT_SECS: i64 = 3600;
/// Seconds between two looks.
const LOOK_SECS: i64 = 60;
/// Events that one look deletes; the rest follows a second later.
const DELETIONS_MAX: usize = 2000;

/// Deletes Events that nobody has written for an hour.
#[derive(Default)]
pub struct EventExpiry {
    next: Option<Timestamp>,
}

impl Controller for EventExpiry {
    fn name(&self) -> &'static str {
        "event-expiry"
    }

    // It goes by the clock. Namespaces hardly ever change, and to read nothing means to read all.
    fn reads(&self) -> &'static [Resource] {
        &[("", "namespaces")]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        if let Some(next) = self.next.filter(|next| view.now < *next) {
            return Step {
                wake: Some(next),
                ..Step::default()
            };
        }
        // Times in one form compare as they are, without being read.
        let until = meta::time(after(view.now, -KEPT_SECS));
        let old = view.all(EVENTS).filter(|event| is_older(event, &until));
        let actions: Vec<_> = old
            .take(DELETIONS_MAX)
            .map(|event| delete(EVENTS, event, None))
            .collect();
        let is_all = actions.len() < DELETIONS_MAX;
        self.next = Some(after(view.now, if is_all { LOOK_SECS } else { 1 }));
        Step {
            actions,
            wake: self.next,
        }
    }
}

/// True when nobody has written an Event since. What it says about itself is up to who wrote it.
fn is_older(event: &Value, until: &str) -> bool {
    let metadata = &event["metadata"];
    let is_old = |time: &Value| time.as_str().is_none_or(|time| time <= until);
    let mut writers = metadata["managedFields"].as_array().into_iter().flatten();
    is_old(&metadata["creationTimestamp"]) && writers.all(|writer| is_old(&writer["time"]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::view::{Action, Objects};

    fn event(name: &str, created: i64, written: i64) -> Arc<Value> {
        let time = |second| meta::time(Timestamp::from_second(second).expect("a time"));
        Arc::new(
            json!({"metadata": {"name": name, "namespace": "n", "uid": name,
            "creationTimestamp": time(created), "managedFields": [{"time": time(written)}]}}),
        )
    }

    #[test]
    fn events_go_an_hour_after_their_last_write() {
        let events = [
            event("old", 0, 0),
            event("counted", 0, 60),
            event("new", 90, 90),
        ];
        let events = events.map(|event| (crate::fields::key(&event), event));
        let kinds = BTreeMap::from([((String::new(), "events".to_owned()), Objects::from(events))]);
        let mut expiry = EventExpiry::default();
        let mut look = |second: i64| {
            let view = View {
                kinds: &kinds,
                now: Timestamp::from_second(second).expect("a time"),
                seed: 0,
            };
            let step = expiry.step(&view);
            let names = step.actions.iter().map(|action| {
                let Action::Delete { uid, .. } = action else {
                    panic!("{action:?}")
                };
                uid.clone()
            });
            let names: Vec<String> = names.collect();
            (names.join(" "), step.wake.map(Timestamp::as_second))
        };
        assert_eq!(look(3599), (String::new(), Some(3659)));
        assert_eq!(look(3640), (String::new(), Some(3659)), "not yet");
        assert_eq!(look(3659), ("old".to_owned(), Some(3719)));
        assert_eq!(look(3719).0, "counted new old");
    }
}
