//! Controller `nodeoverlay.controller`: tells on each overlay whether it is in force.
//!
//! What overlays do to prices and capacity is part of every plan; the rules are the planner's own,
//! so that what is told here is what happens there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use joiner_cloud::Cloud;
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Change, Kind, LiveOverlay, OverlayVerdict, Snapshot};
use serde_json::json;

use crate::catalogs::{Lists, for_cloud};
use crate::conditions::{ConditionSet, Finished};
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;

/// Overlays are judged all together.
const KEY: &str = "overlays";
/// Between two looks when nothing happens: prices and types change by themselves.
const EVERY: Duration = Duration::from_secs(6 * 3600);
/// When to look again after somebody else wrote the same status first.
const AFTER_CONFLICT: Duration = Duration::from_millis(500);
/// What feeds `Ready` on an overlay.
const DEPENDENTS: &[&str] = &[VALIDATION_SUCCEEDED];
const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";

/// The controller of overlays.
#[must_use]
pub fn controllers() -> Vec<Arc<dyn Controller>> {
    vec![Arc::new(Overlays)]
}

/// The conditions of overlays that have something new to say.
#[must_use]
pub fn news<'s>(
    snapshot: &'s Snapshot,
    verdicts: &BTreeMap<Name, OverlayVerdict>,
    now: Timestamp,
) -> Vec<(&'s LiveOverlay, Finished)> {
    let live = snapshot.overlays().map(AsRef::as_ref);
    let live = live.filter(|own: &&LiveOverlay| own.meta.deleting.is_none());
    live.filter_map(|own| {
        let finished = judged(own, verdicts.get(&own.meta.name)?, now);
        finished.changed.then_some((own, finished))
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
#[derive(Clone, Copy, Debug)]
pub struct Overlays;

impl Overlays {
    async fn look(ctx: &Ctx) -> Result<Next, Failure> {
        let now = ctx.world.snapshot();
        if !ctx.settings.gates.node_overlay || now.overlays().next().is_none() {
            return Ok(Next::Done);
        }
        let known = ctx.catalogs.lists();
        let (lists, missing) = catalogs(&*ctx.cloud, &known, &now).await;
        let verdicts = now.overlay_verdicts(&lists);
        let verdicts = verdicts.map_err(|error| Failure::Other(error.to_string()))?;
        let mut next = Next::Again(EVERY);
        for (overlay, finished) in news(&now, &verdicts, ctx.clock.now()) {
            if !write(ctx, overlay, &finished).await? {
                next = Next::Again(AFTER_CONFLICT);
            }
        }
        match missing {
            // The pools of that class were left out; the others have been judged.
            Some(why) => Err(Failure::Other(why)),
            None => Ok(next),
        }
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

/// False when somebody else wrote first.
async fn write(ctx: &Ctx, overlay: &LiveOverlay, finished: &Finished) -> Result<bool, Failure> {
    let patch = json!({
        "metadata": {"resourceVersion": overlay.meta.version.to_string()},
        "status": {"conditions": finished.to_value()},
    });
    let name = &overlay.meta.name;
    match ctx.api.patch_status(Kind::NodeOverlay, name, &patch).await {
        Ok(_) | Err(ApiFailure::NotFound) => Ok(true),
        Err(ApiFailure::Conflict(_)) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

impl Controller for Overlays {
    fn name(&self) -> &'static str {
        "nodeoverlay.controller"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
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

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        _key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        Self::look(ctx).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogs::Catalogs;
    use crate::catalogs::made::Moody;
    use crate::pool::made::{any, at, class, made, merged, pool};
    use joiner_model::{InstanceType, NanoDollars, Offering, ResourceName, Resources, keys};
    use joiner_state::live::Conditions as _;
    use serde_json::Value;

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
            let own = finished.conditions.condition(VALIDATION_SUCCEEDED).unwrap();
            let ready = finished.conditions.is_true("Ready");
            let reason = own.reason.clone().unwrap();
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
            let good = |own: &(Name, OverlayVerdict)| own.1 == OverlayVerdict::Good;
            let good = verdicts.into_iter().filter(good);
            (
                good.map(|own| own.0.to_string()).collect::<Vec<_>>(),
                missing,
            )
        };
        cloud.refuse(Some("d"));
        let (good, missing) = judged();
        assert_eq!(
            good,
            ["b", "c"],
            "a meets c in pool p, and b meets nobody yet"
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
            lists.keys().map(|own| own.name.to_string()).collect()
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
