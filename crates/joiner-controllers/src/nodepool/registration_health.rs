//! Controller `nodepool.registrationhealth`: reports on a pool whether its nodes come up of late.
//!
//! The outcomes are remembered elsewhere; here they become a condition. It is a hint for people and
//! stops nothing.

use std::sync::Arc;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions::{NODE_REGISTRATION_HEALTHY, REGISTERED};
use joiner_api::types::ConditionStatus;
use joiner_cloud::Cloud;
use joiner_engine::conditions::{ConditionSet, Finished, POOL_DEPENDENTS};
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LiveClass, LivePool, Snapshot};
use serde_json::json;

use super::registrations::{Health, RegistrationHealth};
use super::{conditions, managed, names, of_pool_or_class, write_status};

/// What to do with the outcomes that are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
    Keep,
    /// Forget them: the pool or its class changed.
    Reset,
    /// Guess them from the condition: this process has seen none.
    Seed(ConditionStatus),
}

/// What became of a pool's registrations.
#[derive(Clone, Debug)]
pub struct RegistrationReport {
    /// What to do with the outcomes that are remembered.
    pub memory: Memory,
    /// The conditions.
    pub finished: Finished,
    /// The generation of the class that was looked at.
    pub class_generation: i64,
    /// True when something is to be written.
    pub changed: bool,
}

/// What the outcomes of a pool say about it.
#[must_use]
pub fn registration<'s>(
    pool: &LivePool,
    class: &LiveClass,
    claims: impl Iterator<Item = &'s LiveClaim>,
    health: &Health,
    now: Timestamp,
) -> RegistrationReport {
    let mut set = ConditionSet::new(&pool.meta, conditions(pool), POOL_DEPENDENTS, now);
    let status = pool.pool.status.as_ref();
    let seen = status.and_then(|status| status.node_class_observed_generation);
    let same_class = seen == Some(class.meta.generation);
    let known = pool.condition(&NODE_REGISTRATION_HEALTHY);
    let known = known.filter(|known| known.observed_generation == Some(pool.meta.generation));
    let memory = match (known.filter(|_| same_class), health) {
        (None, _) => {
            set.set_unknown(
                NODE_REGISTRATION_HEALTHY,
                "AwaitingReconciliation",
                "object is awaiting reconciliation",
            );
            Memory::Reset
        }
        (Some(known), Health::Unknown) => match known.status {
            ConditionStatus::Unknown => Memory::Keep,
            status @ (ConditionStatus::True | ConditionStatus::False) => Memory::Seed(status),
        },
        (Some(_), Health::Unhealthy { reason, message }) => {
            set.set_false(NODE_REGISTRATION_HEALTHY, reason, message);
            Memory::Keep
        }
        (Some(known), Health::Healthy) => {
            // One failure is no success: only a node that came up since makes it healthy.
            let since = pool.since(&NODE_REGISTRATION_HEALTHY);
            let is_new = known.status != ConditionStatus::True;
            if is_new && registered_since(claims, since) {
                set.set_true(NODE_REGISTRATION_HEALTHY);
            }
            Memory::Keep
        }
    };
    let finished = set.finished();
    RegistrationReport {
        memory,
        changed: finished.changed || !same_class,
        finished,
        class_generation: class.meta.generation,
    }
}

fn registered_since<'s>(
    mut claims: impl Iterator<Item = &'s LiveClaim>,
    since: Option<Timestamp>,
) -> bool {
    claims.any(|claim| claim.is_true(&REGISTERED) && claim.since(&REGISTERED) >= since)
}

/// Reports how registrations go.
pub(super) struct Registration {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    registrations: RegistrationHealth,
}

impl Registration {
    pub(super) fn new(
        shared: &Shared,
        cloud: &Arc<dyn Cloud>,
        registrations: &RegistrationHealth,
    ) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
            registrations: registrations.clone(),
        }
    }

    async fn report(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(pool) = managed(&*self.cloud, now, key) else {
            return Ok(Next::Done);
        };
        // A pool without its class cannot have made a node.
        let Some(class) = now.class(&pool.class) else {
            return Ok(Next::Done);
        };
        let uid = &pool.meta.uid;
        let claims = now.claims_of_pool(key).map(AsRef::as_ref);
        let health = self.registrations.health(uid);
        let report = registration(pool, class, claims, &health, self.shared.clock.now());
        match report.memory {
            Memory::Keep => {}
            Memory::Reset => self.registrations.reset(uid),
            Memory::Seed(status) => self.registrations.seed(uid, status),
        }
        if report.changed {
            let fields = json!({"nodeClassObservedGeneration": report.class_generation});
            write_status(&self.shared, pool, report.finished, fields).await?;
        }
        Ok(Next::Done)
    }
}

impl Keyed for Registration {
    fn name(&self) -> &'static str {
        "nodepool.registrationhealth"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind == Kind::NodeClaim {
            // The outcome is remembered before the claim is changed.
            let pool = now.claim(&change.name).and_then(|claim| claim.pool());
            return pool.map(Name::from).into_iter().collect();
        }
        of_pool_or_class(change, now)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        names(now)
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.report(now, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodepool::made::{at, claim, class, made, pool};
    use crate::nodepool::registrations::{RegistrationOutcome, never_registered};
    use serde_json::Value;

    /// A pool whose condition is as given, since 100 s, at generation 1, with class generation 1.
    fn with_condition(status: &str) -> Value {
        json!({"status": {"nodeClassObservedGeneration": 1, "conditions": [
            {"type": NODE_REGISTRATION_HEALTHY.as_str(), "status": status, "reason": "R", "message": "",
             "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:01:40Z"}]}})
    }

    fn registered(secs: i64) -> Value {
        json!({"status": {"conditions": [{"type": "Registered", "status": "True", "reason": "R",
            "lastTransitionTime": at(secs).to_string()}]}})
    }

    fn shown(report: &RegistrationReport) -> String {
        let conditions = &report.finished.conditions;
        let condition = conditions.condition(&NODE_REGISTRATION_HEALTHY).unwrap();
        let reason = condition.reason.clone().unwrap_or_default();
        format!("{} {reason}", condition.status)
    }

    fn judged(
        pool_is: Value,
        class_is: Value,
        claims: Value,
        health: &Health,
    ) -> RegistrationReport {
        let mut objects = vec![pool("p", pool_is), class(class_is)];
        objects.extend((!claims.is_null()).then(|| claim("c1", claims)));
        let now = made(objects);
        let pool = now.pool("p").unwrap();
        let class = now.class(&pool.class).unwrap();
        let claims = now.claims_of_pool("p").map(AsRef::as_ref);
        registration(pool, class, claims, health, at(300))
    }

    /// Outcomes as `+` and `-`.
    fn after(outcomes: &str) -> Health {
        let health = RegistrationHealth::default();
        for (n, sign) in outcomes.chars().enumerate() {
            let outcome = match sign {
                '+' => RegistrationOutcome::Registered,
                _ => never_registered(),
            };
            health.record(&"u".into(), &n.to_string().into(), outcome);
        }
        health.health(&"u".into())
    }

    #[test]
    fn core_226_outcomes_become_a_condition() {
        for (before, outcomes, registered_at, expected) in [
            ("Unknown", "", None, "Unknown R"),
            ("Unknown", "+", Some(200), "True NodeRegistrationHealthy"),
            ("Unknown", "-", None, "Unknown R"),
            // A node from before says nothing about the pool as it is.
            ("Unknown", "-", Some(50), "Unknown R"),
            ("Unknown", "--", None, "False RegistrationFailed"),
            ("True", "+-", Some(50), "True R"),
            ("True", "+--", Some(50), "False RegistrationFailed"),
            ("False", "--+", Some(200), "False RegistrationFailed"),
            ("False", "--+++", Some(200), "True NodeRegistrationHealthy"),
        ] {
            let claims = registered_at.map_or(Value::Null, registered);
            let report = judged(with_condition(before), json!({}), claims, &after(outcomes));
            assert_eq!(shown(&report), expected, "{before} {outcomes}");
            let seeded = outcomes.is_empty() && before != "Unknown";
            assert_eq!(
                report.memory == Memory::Keep,
                !seeded,
                "{before} {outcomes}"
            );
        }
    }

    #[test]
    fn core_227_a_new_generation_of_pool_or_class_starts_over() {
        let newer = json!({"metadata": {"generation": 2}});
        let seen = with_condition("False");
        let changed_pool = crate::nodepool::made::merged(seen.clone(), newer.clone());
        for (pool_is, class_is) in [
            (changed_pool, json!({})),
            (seen, newer),
            (json!({}), json!({})),
        ] {
            let report = judged(pool_is, class_is, Value::Null, &after("--"));
            assert_eq!(shown(&report), "Unknown AwaitingReconciliation");
            assert_eq!(report.memory, Memory::Reset);
            assert!(report.changed);
        }
    }

    #[test]
    fn after_a_restart_the_condition_is_the_first_guess() {
        for (before, memory) in [
            ("True", Memory::Seed(ConditionStatus::True)),
            ("False", Memory::Seed(ConditionStatus::False)),
            ("Unknown", Memory::Keep),
        ] {
            let report = judged(
                with_condition(before),
                json!({}),
                Value::Null,
                &Health::Unknown,
            );
            assert_eq!(report.memory, memory, "{before}");
            assert_eq!(shown(&report), format!("{before} R"));
        }
    }
}
