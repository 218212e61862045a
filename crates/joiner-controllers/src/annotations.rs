//! Controller `annotations`: says which annotations of ours cannot be read.
//!
//! The code that reads an annotation goes on without it; here it is reported, once for each value: a
//! warning about the object, and a line of the log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use joiner_api::labels::ours::{
    COMMAND, IN_TURN, MOVES, PLANNED, SURGE, SURGE_ON_MOVE, UNREADABLE, unreadable,
};
use joiner_engine::{Controller, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_runtime::{About, Event};
use joiner_state::live::{Change, CommandIntent, Kind, Meta, MoveTally, Planned, Snapshot, Surge};

/// Objects with values that were reported; more are reported again and again.
const REPORTED_MAX: usize = 10_000;

/// An annotation that is read, on which kinds, and whether a value can be read.
type Rule = (&'static str, &'static [Kind], fn(&str) -> bool);

const RULES: [Rule; 6] = [
    (
        SURGE_ON_MOVE,
        &[
            Kind::NodePool,
            Kind::Deployment,
            Kind::ReplicaSet,
            Kind::StatefulSet,
        ],
        |text| matches!(text, "true" | "false"),
    ),
    (
        MOVES,
        &[Kind::Deployment, Kind::ReplicaSet, Kind::StatefulSet],
        MoveTally::is_clear,
    ),
    (SURGE, &[Kind::Deployment], |text| {
        Surge::parse(text).is_some()
    }),
    (COMMAND, &[Kind::NodeClaim], |text| {
        CommandIntent::parse(text).is_some()
    }),
    (PLANNED, &[Kind::NodeClaim], |text| {
        Planned::parse(text).is_some()
    }),
    (IN_TURN, &[Kind::NodeClaim], |text| text == "true"),
];

/// Annotations of an object that cannot be read, with their values.
fn wrong(kind: Kind, meta: &Meta) -> Vec<Unreadable> {
    let rules = RULES.iter().filter(|(_, kinds, _)| kinds.contains(&kind));
    let wrong = rules.filter_map(|(key, _, can_be_read)| {
        let value = meta.annotation(key)?;
        (!can_be_read(value)).then(|| (*key, value.to_owned()))
    });
    wrong.collect()
}

/// The controller of annotations.
#[must_use]
pub fn controllers(shared: &Shared) -> Vec<Controller> {
    vec![Controller::keyed(Annotations {
        shared: shared.clone(),
        reported: Reported::default(),
    })]
}

/// Follows objects with annotations that are read. Keys are `Kind/name`.
struct Annotations {
    shared: Shared,
    reported: Reported,
}

/// What was reported of objects, by key.
#[derive(Debug, Default)]
struct Reported(Mutex<BTreeMap<Name, Vec<Unreadable>>>);

/// An annotation that cannot be read, with its value.
type Unreadable = (&'static str, String);

/// The kinds that rules are about.
const KINDS: [Kind; 5] = [
    Kind::NodePool,
    Kind::NodeClaim,
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::StatefulSet,
];

fn key(kind: Kind, name: &str) -> Name {
    format!("{}/{name}", kind.api().3).into()
}

/// The kind and metadata of the object that a key stands for.
fn find<'s>(now: &'s Snapshot, key: &str) -> Option<(Kind, &'s Meta)> {
    let (kind, name) = key.split_once('/')?;
    let kind = KINDS.into_iter().find(|known| known.api().3 == kind)?;
    let meta = if kind == Kind::NodePool {
        now.pool(name).map(|pool| &pool.meta)
    } else if kind == Kind::NodeClaim {
        now.claim(name).map(|claim| &claim.meta)
    } else {
        now.scalable(kind, name).map(|scalable| &scalable.meta)
    };
    Some((kind, meta?))
}

fn is_wrong(now: &Snapshot, key: &str) -> bool {
    find(now, key).is_some_and(|(kind, meta)| !wrong(kind, meta).is_empty())
}

impl Reported {
    /// What is to be reported of an object: what was not reported before.
    fn news(&self, key: &Name, wrong: Vec<Unreadable>) -> Vec<Unreadable> {
        let mut reported = self.lock();
        let before = reported.remove(key).unwrap_or_default();
        if !wrong.is_empty() && reported.len() < REPORTED_MAX {
            reported.insert(key.clone(), wrong.clone());
        }
        let mut news = wrong;
        news.retain(|unreadable| !before.contains(unreadable));
        news
    }

    fn has(&self, key: &Name) -> bool {
        self.lock().contains_key(key)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Vec<Unreadable>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Annotations {
    fn check(&self, now: &Snapshot, key: &Name) {
        let found = find(now, key);
        let all = found.map_or_else(Vec::new, |(kind, meta)| wrong(kind, meta));
        for (annotation, value) in self.reported.news(key, all) {
            let Some((kind, meta)) = found else { continue };
            let message = unreadable(annotation, &value);
            let (group, version, _, word) = kind.api();
            tracing::warn!(kind = word, name = &*meta.name, annotation, "{message}");
            let about = About {
                kind: word,
                api_version: format!("{group}/{version}").into(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
            };
            let mut event = Event::warning(about, UNREADABLE, message);
            event.same = format!("{annotation}={value}");
            self.shared.events.tell(event);
        }
    }
}

impl Keyed for Annotations {
    fn name(&self) -> &'static str {
        "annotations"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if !KINDS.contains(&change.kind) {
            return Vec::new();
        }
        let key = key(change.kind, &change.name);
        // Most objects never have one that is wrong: they are not looked at one by one.
        match is_wrong(now, &key) || self.reported.has(&key) {
            true => vec![key],
            false => Vec::new(),
        }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let pools = now.pools().map(|pool| key(Kind::NodePool, pool.name()));
        let claims = now.claims().map(|claim| key(Kind::NodeClaim, claim.name()));
        let others = now.scalables();
        let others = others.map(|(kind, scalable)| key(kind, &scalable.meta.name));
        let all = pools.chain(claims).chain(others);
        all.filter(|key| is_wrong(now, key)).collect()
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        async move {
            self.check(now, key);
            Ok(Next::Done)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use joiner_state::live::ClusterState;
    use serde_json::{Value, json};

    use super::*;
    use crate::nodepool::made::{any, claim, pool};

    fn wrongs(kind: Kind, object: Value) -> Vec<String> {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let mut state = ClusterState::default();
        state.apply(kind, &object);
        let now = state.snapshot();
        let name = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        let (kind, meta) = find(&now, &key(kind, &name)).unwrap();
        let wrong = wrong(kind, meta).into_iter();
        wrong.map(|(key, value)| format!("{key}={value}")).collect()
    }

    fn with(annotations: Value) -> Value {
        json!({"metadata": {"annotations": annotations}})
    }

    #[test]
    fn values_that_can_be_read_are_not_told() {
        let good = json!({SURGE_ON_MOVE: "true", MOVES: "2026-11-16T04=3/10,2026-11-16T07=1"});
        let (kind, object) = any(Kind::Deployment, "default/web", with(good));
        assert_eq!(wrongs(kind, object), [""; 0]);
        let good = json!({PLANNED: "m5.large/us-east-1a/spot", IN_TURN: "true"});
        let (kind, object) = claim("c", with(good));
        assert_eq!(wrongs(kind, object), [""; 0]);
    }

    #[test]
    fn each_key_that_is_read_is_told_of() {
        let bad = json!({SURGE_ON_MOVE: "yes", MOVES: "3", SURGE: "{", COMMAND: "?"});
        let (kind, object) = any(Kind::Deployment, "default/web", with(bad));
        let expected = [
            "joiner.dev/surge-on-move=yes",
            "joiner.dev/moves=3",
            "joiner.dev/surge={",
        ];
        assert_eq!(
            wrongs(kind, object),
            expected,
            "commands are no matter of Deployments"
        );
        let bad = json!({PLANNED: "m5.large", IN_TURN: "1", COMMAND: "?"});
        let (kind, object) = claim("c", with(bad));
        let expected = [
            "joiner.dev/command=?",
            "joiner.dev/planned=m5.large",
            "joiner.dev/in-turn=1",
        ];
        assert_eq!(wrongs(kind, object), expected);
        let (kind, object) = pool("p", with(json!({SURGE_ON_MOVE: ""})));
        assert_eq!(wrongs(kind, object), ["joiner.dev/surge-on-move="]);
    }

    #[test]
    fn a_value_is_told_once_and_another_again() {
        let reported = Reported::default();
        let key: Name = "Deployment/default/web".into();
        let news = |value: Option<&str>| {
            let wrong = value.map(|value| (SURGE_ON_MOVE, value.to_owned()));
            reported.news(&key, wrong.into_iter().collect()).len()
        };
        assert_eq!(
            [Some("yes"), Some("yes"), Some("no"), None, Some("no")].map(news),
            [1, 0, 1, 0, 1]
        );
    }
}
