//! Controller `annotations`: says which annotations of ours cannot be read.
//!
//! Whoever reads an annotation goes on without it; here it is told, once for each value: a warning
//! about the object, and a line of the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_api::labels::ours::{
    COMMAND, IN_TURN, MOVES, PLANNED, SURGE, SURGE_ON_MOVE, UNREADABLE, unreadable,
};
use joiner_model::Name;
use joiner_runtime::{About, Event};
use joiner_state::live::{Change, CommandIntent, Kind, Meta, MoveTally, Planned, Snapshot, Surge};

use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// Objects with values that were told; more are told again and again.
const TOLD_MAX: usize = 10_000;

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
fn wrong(kind: Kind, meta: &Meta) -> Vec<(&'static str, String)> {
    let rules = RULES.iter().filter(|(_, kinds, _)| kinds.contains(&kind));
    let wrong = rules.filter_map(|(key, _, can_be_read)| {
        let value = meta.annotation(key)?;
        (!can_be_read(value)).then(|| (*key, value.to_owned()))
    });
    wrong.collect()
}

/// Follows objects with annotations that are read. Keys are `Kind/name`.
#[derive(Debug, Default)]
pub struct Annotations {
    /// What was told of objects, by key.
    told: Mutex<BTreeMap<Name, Vec<(&'static str, String)>>>,
}

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
    let kind = KINDS.into_iter().find(|own| own.api().3 == kind)?;
    let meta = if kind == Kind::NodePool {
        now.pool(name).map(|own| &own.meta)
    } else if kind == Kind::NodeClaim {
        now.claim(name).map(|own| &own.meta)
    } else {
        now.scalable(kind, name).map(|own| &own.meta)
    };
    Some((kind, meta?))
}

impl Annotations {
    /// What is to be told of an object: what was not told before.
    fn news(&self, key: &Name, wrong: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.remove(key).unwrap_or_default();
        if !wrong.is_empty() && told.len() < TOLD_MAX {
            told.insert(key.clone(), wrong.clone());
        }
        let mut news = wrong;
        news.retain(|own| !before.contains(own));
        news
    }

    fn look(&self, ctx: &Ctx, key: &Name) {
        let now = ctx.world.snapshot();
        let found = find(&now, key);
        let all = found.map_or_else(Vec::new, |(kind, meta)| wrong(kind, meta));
        for (annotation, value) in self.news(key, all) {
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
            ctx.events.tell(event);
        }
    }
}

impl Controller for Annotations {
    fn name(&self) -> &'static str {
        "annotations"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if !KINDS.contains(&change.kind) {
            return Vec::new();
        }
        let key = key(change.kind, &change.name);
        // Most objects never have one that is wrong: they are not looked at one by one.
        let is_wrong = || find(now, &key).is_some_and(|(kind, meta)| !wrong(kind, meta).is_empty());
        let was_wrong = || {
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.contains_key(&key)
        };
        match is_wrong() || was_wrong() {
            true => vec![key],
            false => Vec::new(),
        }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let pools = now.pools().map(|own| key(Kind::NodePool, own.name()));
        let claims = now.claims().map(|own| key(Kind::NodeClaim, own.name()));
        let others = now.scalables().map(|(kind, own)| key(kind, &own.meta.name));
        let all = pools.chain(claims).chain(others);
        let is_wrong =
            |key: &Name| find(now, key).is_some_and(|(kind, meta)| !wrong(kind, meta).is_empty());
        all.filter(is_wrong).collect()
    }

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key);
        futures::future::ready(Ok(Next::Done)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use joiner_state::live::ClusterState;
    use serde_json::{Value, json};

    use super::*;
    use crate::pool::made::{any, claim, pool};

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
        let own = Annotations::default();
        let key: Name = "Deployment/default/web".into();
        let news = |value: Option<&str>| {
            let wrong = value.map(|value| (SURGE_ON_MOVE, value.to_owned()));
            own.news(&key, wrong.into_iter().collect()).len()
        };
        assert_eq!(
            [Some("yes"), Some("yes"), Some("no"), None, Some("no")].map(news),
            [1, 0, 1, 0, 1]
        );
    }
}
