//! Controller `nodeoverlay.controller`: says on each overlay whether it is in force.
//!
//! What overlays do to prices and capacity is part of every plan; the rules are those of the planner,
//! so that what is said here is what happens there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions::VALIDATION_SUCCEEDED;
use joiner_cloud::Cloud;
use joiner_engine::conditions::{ConditionSet, ConditionType, Finished};
use joiner_engine::write::{self, Object};
use joiner_engine::{Controller, Failure, Keyed, Next, Reconcile, Shared, events};
use joiner_model::Name;
use joiner_state::live::{Change, Kind, LiveOverlay, OverlayVerdict, Snapshot};

use crate::catalogs::{Catalogs, Lists, for_cloud};

/// Overlays are judged all together.
const KEY: &str = "overlays";
/// Between two judgments when nothing happens: prices and types change by themselves.
const EVERY: Duration = Duration::from_secs(6 * 3600);
/// What feeds `Ready` on an overlay.
const DEPENDENTS: &[ConditionType] = &[VALIDATION_SUCCEEDED];

/// The controller of overlays.
#[must_use]
pub fn controllers(
    shared: &Shared,
    cloud: &Arc<dyn Cloud>,
    catalogs: &Catalogs,
) -> Vec<Controller> {
    vec![Controller::keyed(Overlays {
        shared: shared.clone(),
        cloud: Arc::clone(cloud),
        catalogs: catalogs.clone(),
    })]
}

/// The conditions of overlays that have something new to say.
#[must_use]
pub fn news<'s>(
    snapshot: &'s Snapshot,
    verdicts: &BTreeMap<Name, OverlayVerdict>,
    now: Timestamp,
) -> Vec<(&'s LiveOverlay, Finished)> {
    let live = snapshot.overlays().map(AsRef::as_ref);
    let live = live.filter(|overlay: &&LiveOverlay| overlay.meta.deleting.is_none());
    live.filter_map(|overlay| {
        let finished = judged(overlay, verdicts.get(&overlay.meta.name)?, now);
        finished.changed.then_some((overlay, finished))
    })
    .collect()
}

fn judged(overlay: &LiveOverlay, verdict: &OverlayVerdict, now: Timestamp) -> Finished {
    let status = overlay.overlay.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let conditions = conditions.unwrap_or_default();
    let mut set = ConditionSet::new(&overlay.meta, conditions, DEPENDENTS, now);
    match verdict {
        OverlayVerdict::Good => set.set_true(VALIDATION_SUCCEEDED),
        OverlayVerdict::Invalid(why) => {
            set.set_false(VALIDATION_SUCCEEDED, "RuntimeValidation", why);
        }
        OverlayVerdict::Conflict => set.set_false(
            VALIDATION_SUCCEEDED,
            "Conflict",
            "conflict with another overlay",
        ),
    }
    set.finished()
}

/// Judges overlays.
struct Overlays {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    catalogs: Catalogs,
}

impl Overlays {
    async fn judge(&self, now: &Snapshot) -> Result<Next, Failure> {
        if now.overlays().next().is_none() {
            return Ok(Next::Done);
        }
        let known = self.catalogs.lists();
        let (lists, missing) = catalogs(&*self.cloud, &known, now).await;
        let verdicts = now.overlay_verdicts(&lists);
        let verdicts = verdicts.map_err(|error| Failure::Other(error.to_string()))?;
        let mut conflict = None;
        for (overlay, finished) in news(now, &verdicts, self.shared.clock.now()) {
            match self.write(overlay, finished).await {
                Ok(()) => {}
                // The other overlays do not wait for this one.
                Err(failure) if failure.is_conflict() => conflict = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        // The pools of a class without types were left out; the others have been judged.
        let failure = conflict.or(missing.map(Failure::Other));
        failure.map_or(Ok(Next::Again(EVERY)), Err)
    }

    async fn write(&self, overlay: &LiveOverlay, mut finished: Finished) -> Result<(), Failure> {
        // Changes are on the overlay alone; there are no events about them.
        finished.transitions.clear();
        let about = events::about("NodeOverlay", "karpenter.sh/v1alpha1", &overlay.meta);
        let object = Object::new(Kind::NodeOverlay, about);
        let written = write::conditions(&self.shared, &object, &overlay.meta, finished).await;
        write::unless_gone(written).map(|_| ())
    }
}

/// What is on sale, with what is known already, and what could not be found out.
async fn catalogs(cloud: &dyn Cloud, known: &Lists, now: &Snapshot) -> (Lists, Option<String>) {
    let mut lists = known.clone();
    let mut missing = None;
    for pool in now.pools() {
        if lists.contains_key(&pool.class) {
            continue;
        }
        let Some(class) = now.class(&pool.class) else {
            continue;
        };
        match cloud.instance_types(&for_cloud(class)).await {
            Ok(types) => {
                lists.insert(pool.class.clone(), types);
            }
            Err(error) => {
                missing = Some(format!("instance types of pool {}: {error}", pool.name()));
            }
        }
    }
    (lists, missing)
}

impl Keyed for Overlays {
    fn name(&self) -> &'static str {
        "nodeoverlay.controller"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        let about = [Kind::NodeOverlay, Kind::NodePool, Kind::NodeClass].contains(&change.kind);
        if about { self.all(now) } else { Vec::new() }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let some = now.overlays().next();
        some.map(|_| Name::from(KEY)).into_iter().collect()
    }

    fn concurrency(&self) -> usize {
        1
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, _key: &'a Name) -> Reconcile<'a> {
        self.judge(now).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogs::made::Moody;
    use crate::nodepool::made::{any, at, class, made, merged, pool};
    use joiner_model::{InstanceType, NanoDollars, Offering, ResourceName, Resources, keys};
    use joiner_state::live::Conditions as _;
    use serde_json::{Value, json};

    /// Types `small` and `large`, on demand in zones a and b.
    fn types() -> Arc<Vec<InstanceType>> {
        let offering = |zone: &str| Offering {
            labels: [
                (keys::ZONE.into(), zone.into()),
                (keys::CAPACITY_TYPE.into(), "on-demand".into()),
            ]
            .into_iter()
            .collect(),
            price: NanoDollars::new(100),
            available: true,
            reservation: None,
            extra_capacity: Resources::new(),
        };
        let one = |name: &str| InstanceType {
            name: name.into(),
            labels: [(keys::INSTANCE_TYPE.into(), vec![name.into()])]
                .into_iter()
                .collect(),
            capacity: Resources::new().with(ResourceName::Cpu, 4000),
            offerings: vec![offering("a"), offering("b")],
            overhead: Resources::new(),
        };
        Arc::new(vec![one("small"), one("large")])
    }

    fn requires(key: &str, value: &str) -> Value {
        json!([{"key": key, "operator": "In", "values": [value]}])
    }

    fn price(weight: i64, requirements: Value) -> Value {
        json!({"weight": weight, "requirements": requirements, "price": "1"})
    }

    fn capacity(key: &str) -> Value {
        json!({"requirements": [], "capacity": {key: "1"}})
    }

    /// `name: status reason` of each overlay, with pools p and q of one class.
    fn shown(overlays: &[(&str, Value)]) -> Vec<String> {
        let mut objects = vec![pool("p", json!({})), pool("q", json!({})), class(json!({}))];
        for (name, spec) in overlays {
            objects.push(any(Kind::NodeOverlay, name, json!({"spec": spec})));
        }
        let now = made(objects);
        let class = now.pool("p").unwrap().class.clone();
        let verdicts = now
            .overlay_verdicts(&[(class, types())].into_iter().collect())
            .unwrap();
        let news = news(&now, &verdicts, at(2_000_000_000));
        let one = |(overlay, finished): &(&LiveOverlay, Finished)| {
            let condition = finished.conditions.condition(&VALIDATION_SUCCEEDED);
            let ready = finished.conditions.is_true("Ready");
            let reason = condition.unwrap().reason.clone().unwrap();
            format!("{}: {ready} {reason}", overlay.meta.name)
        };
        news.iter().map(one).collect()
    }

    #[test]
    fn core_343_344_an_overlay_is_in_force_unless_it_makes_no_sense() {
        let zone = || requires(keys::ZONE, "a");
        for (spec, expected) in [
            (price(0, zone()), "o: true ValidationSucceeded"),
            (
                json!({"requirements": zone(), "price": "x"}),
                "o: false RuntimeValidation",
            ),
            (capacity("cpu"), "o: false RuntimeValidation"),
            (
                json!({"requirements": [{"key": keys::ZONE, "operator": "In", "values": []}]}),
                "o: false RuntimeValidation",
            ),
        ] {
            assert_eq!(shown(&[("o", spec.clone())]), [expected], "{spec}");
        }
    }

    #[test]
    fn core_345_to_349_equal_weights_that_meet_conflict() {
        let (good, bad) = ("true ValidationSucceeded", "false Conflict");
        let everywhere = || json!([]);
        for (a, b, of_a) in [
            // The same offerings, even at the same price: the later name stays.
            (price(5, everywhere()), price(5, everywhere()), bad),
            (
                price(5, requires(keys::ZONE, "a")),
                price(5, everywhere()),
                bad,
            ),
            // One pool, one type is enough.
            (
                price(5, requires(keys::NODE_POOL, "q")),
                price(5, everywhere()),
                bad,
            ),
            (
                price(5, requires(keys::INSTANCE_TYPE, "large")),
                price(5, everywhere()),
                bad,
            ),
            (price(5, everywhere()), price(6, everywhere()), good),
            (
                price(5, requires(keys::ZONE, "a")),
                price(5, requires(keys::ZONE, "b")),
                good,
            ),
            (capacity("example.com/a"), capacity("example.com/a"), bad),
            (capacity("example.com/a"), capacity("example.com/b"), good),
            (capacity("example.com/a"), price(0, everywhere()), good),
        ] {
            let shown = shown(&[("a", a.clone()), ("b", b.clone())]);
            assert_eq!(
                shown,
                [format!("a: {of_a}"), format!("b: {good}")],
                "{a} {b}"
            );
        }
    }

    #[test]
    fn core_350_a_pool_without_types_does_not_keep_others_from_being_judged() {
        let of_class =
            |name: &str| json!({"spec": {"template": {"spec": {"nodeClassRef": {"name": name}}}}});
        let only = |pool: &str| json!({"spec": price(5, requires(keys::NODE_POOL, pool))});
        let now = made(vec![
            pool("p", json!({})),
            pool("q", of_class("d")),
            class(json!({})),
            class(json!({"metadata": {"name": "d", "uid": "uid-d"}})),
            any(Kind::NodeOverlay, "a", only("p")),
            any(Kind::NodeOverlay, "b", only("q")),
            any(Kind::NodeOverlay, "c", json!({"spec": price(5, json!([]))})),
        ]);
        let cloud = Moody::new(types());
        let judged = || {
            let asked = catalogs(&cloud, &Lists::new(), &now).now_or_never();
            let (lists, missing) = asked.unwrap();
            let verdicts = now.overlay_verdicts(&lists).unwrap();
            let verdicts = verdicts.into_iter();
            let good = verdicts.filter(|(_, verdict)| *verdict == OverlayVerdict::Good);
            let names: Vec<String> = good.map(|(name, _)| name.to_string()).collect();
            (names, missing)
        };
        cloud.refuse(Some("d"));
        let (good, missing) = judged();
        assert_eq!(
            good,
            ["b", "c"],
            "a meets c in pool p, and b meets none yet"
        );
        assert_eq!(
            missing.as_deref(),
            Some("instance types of pool q: not today"),
            "so it is tried again"
        );
        // The planner does without that class, too, until it is sold again.
        let all = Catalogs::default();
        let classes = |all: &Catalogs| -> Vec<String> {
            let lists = all.lists();
            lists.keys().map(|class| class.name.to_string()).collect()
        };
        let troubles = all.refresh(&cloud, &now).now_or_never().unwrap();
        assert_eq!((troubles.len(), classes(&all)), (1, vec!["c".to_owned()]));
        cloud.refuse(None);
        let (good, missing) = judged();
        assert_eq!((good, missing), (vec!["c".to_owned()], None));
        let troubles = all.refresh(&cloud, &now).now_or_never().unwrap();
        assert!(troubles.is_empty());
        assert_eq!(classes(&all), ["c", "d"]);
    }

    #[test]
    fn what_is_known_already_is_not_written_again() {
        let spec = json!({"spec": price(0, json!([]))});
        let first = made(vec![any(Kind::NodeOverlay, "o", spec.clone())]);
        let verdicts = first.overlay_verdicts(&BTreeMap::new()).unwrap();
        let written = news(&first, &verdicts, at(100)).pop().unwrap().1;
        let status = json!({"status": {"conditions": written.to_value()}});
        let second = made(vec![any(Kind::NodeOverlay, "o", merged(spec, status))]);
        assert!(news(&second, &verdicts, at(200)).is_empty());
    }
}
