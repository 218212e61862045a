//! Controller `nodepool.registrationhealth`: tells on a pool whether its nodes come up of late.
//!
//! The outcomes are remembered elsewhere; here they become a condition. It is a hint for people and
//! stops nothing.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use joiner_api::types::ConditionStatus;
use joiner_model::Name;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LiveClass, LivePool, Snapshot};
use serde_json::json;

use super::{conditions, managed, names, of_pool_or_class, write};
use crate::conditions::{ConditionSet, Finished, POOL_DEPENDENTS};
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;
use crate::health::Health;

const NODE_REGISTRATION_HEALTHY: &str = "NodeRegistrationHealthy";

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
pub struct Verdict {
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
) -> Verdict {
    let mut set = ConditionSet::new(&pool.meta, conditions(pool), POOL_DEPENDENTS, now);
    let status = pool.pool.status.as_ref();
    let seen = status.and_then(|status| status.node_class_observed_generation);
    let same_class = seen == Some(class.meta.generation);
    let known = pool.condition(NODE_REGISTRATION_HEALTHY);
    let known = known.filter(|own| own.observed_generation == Some(pool.meta.generation));
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
            let since = pool.since(NODE_REGISTRATION_HEALTHY);
            let is_new = known.status != ConditionStatus::True;
            if is_new && registered_since(claims, since) {
                set.set_true(NODE_REGISTRATION_HEALTHY);
            }
            Memory::Keep
        }
    };
    let finished = set.finished();
    Verdict {
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
    claims.any(|claim| claim.is_true("Registered") && claim.since("Registered") >= since)
}

/// Tells how registrations go.
#[derive(Clone, Copy, Debug)]
pub struct Registration;

impl Registration {
    async fn look(ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let now = ctx.world.snapshot();
        let Some(pool) = managed(ctx, &now, key) else {
            return Ok(Next::Done);
        };
        // A pool without its class cannot have made a node.
        let Some(class) = now.class(&pool.class) else {
            return Ok(Next::Done);
        };
        let uid = &pool.meta.uid;
        let claims = now.claims_of_pool(key).map(AsRef::as_ref);
        let health = ctx.health.health(uid);
        let verdict = registration(pool, class, claims, &health, ctx.clock.now());
        match verdict.memory {
            Memory::Keep => {}
            Memory::Reset => ctx.health.reset(uid),
            Memory::Seed(status) => ctx.health.seed(uid, status),
        }
        if !verdict.changed {
            return Ok(Next::Done);
        }
        let more = json!({"nodeClassObservedGeneration": verdict.class_generation});
        write(ctx, pool, &verdict.finished, more).await
    }
}

impl Controller for Registration {
    fn name(&self) -> &'static str {
        "nodepool.registrationhealth"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
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

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        Self::look(ctx, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{Outcome, RegistrationHealth, never_registered};
    use crate::pool::made::{at, claim, class, made, pool};
    use serde_json::Value;

    /// A pool whose condition is as given, since 100 s, at generation 1, with class generation 1.
    fn with_condition(status: &str) -> Value {
        json!({"status": {"nodeClassObservedGeneration": 1, "conditions": [
            {"type": NODE_REGISTRATION_HEALTHY, "status": status, "reason": "R", "message": "",
             "observedGeneration": 1, "lastTransitionTime": "1970-01-01T00:01:40Z"}]}})
    }

    fn registered(secs: i64) -> Value {
        json!({"status": {"conditions": [{"type": "Registered", "status": "True", "reason": "R",
            "lastTransitionTime": at(secs).to_string()}]}})
    }

    fn shown(verdict: &Verdict) -> String {
        let own = verdict
            .finished
            .conditions
            .condition(NODE_REGISTRATION_HEALTHY);
        let own = own.unwrap();
        format!("{} {}", own.status, own.reason.clone().unwrap_or_default())
    }

    fn judged(pool_is: Value, class_is: Value, claims: Value, health: &Health) -> Verdict {
        let mut objects = vec![pool("p", pool_is), class(class_is)];
        objects.extend((!claims.is_null()).then(|| claim("c1", claims)));
        let now = made(objects);
        let own = now.pool("p").unwrap();
        let class = now.class(&own.class).unwrap();
        let claims = now.claims_of_pool("p").map(AsRef::as_ref);
        registration(own, class, claims, health, at(300))
    }

    /// Outcomes as `+` and `-`.
    fn after(outcomes: &str) -> Health {
        let health = RegistrationHealth::default();
        for (n, sign) in outcomes.chars().enumerate() {
            let outcome = match sign {
                '+' => Outcome::Registered,
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
            let verdict = judged(with_condition(before), json!({}), claims, &after(outcomes));
            assert_eq!(shown(&verdict), expected, "{before} {outcomes}");
            let seeded = outcomes.is_empty() && before != "Unknown";
            assert_eq!(
                verdict.memory == Memory::Keep,
                !seeded,
                "{before} {outcomes}"
            );
        }
    }

    #[test]
    fn core_227_a_new_generation_of_pool_or_class_starts_over() {
        let newer = json!({"metadata": {"generation": 2}});
        let seen = with_condition("False");
        let changed_pool = crate::pool::made::merged(seen.clone(), newer.clone());
        for (pool_is, class_is) in [
            (changed_pool, json!({})),
            (seen, newer),
            (json!({}), json!({})),
        ] {
            let verdict = judged(pool_is, class_is, Value::Null, &after("--"));
            assert_eq!(shown(&verdict), "Unknown AwaitingReconciliation");
            assert_eq!(verdict.memory, Memory::Reset);
            assert!(verdict.changed);
        }
    }

    #[test]
    fn after_a_restart_the_condition_is_the_first_guess() {
        for (before, memory) in [
            ("True", Memory::Seed(ConditionStatus::True)),
            ("False", Memory::Seed(ConditionStatus::False)),
            ("Unknown", Memory::Keep),
        ] {
            let verdict = judged(
                with_condition(before),
                json!({}),
                Value::Null,
                &Health::Unknown,
            );
            assert_eq!(verdict.memory, memory, "{before}");
            assert_eq!(shown(&verdict), format!("{before} R"));
        }
    }
}
