//! Controller `nodepool.validation`: whether a pool makes sense, beyond what its schema can say.

use std::sync::Arc;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions::VALIDATION_SUCCEEDED;
use joiner_api::validation::validate_node_pool;
use joiner_cloud::Cloud;
use joiner_engine::conditions::{ConditionSet, Finished, POOL_DEPENDENTS};
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, LivePool, Snapshot};
use serde_json::json;

use super::{conditions, managed, names, of_pool, write_status};

/// The conditions of a pool after its judgment.
#[must_use]
pub fn validation(pool: &LivePool, now: Timestamp) -> Finished {
    let mut set = ConditionSet::new(&pool.meta, conditions(pool), POOL_DEPENDENTS, now);
    let problems = validate_node_pool(&pool.pool);
    if problems.is_empty() {
        set.set_true(VALIDATION_SUCCEEDED);
    } else {
        let message = problems.join("; ");
        set.set_false(VALIDATION_SUCCEEDED, "NodePoolValidationFailed", &message);
    }
    set.finished()
}

/// Judges pools.
pub(super) struct Validation {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl Validation {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn check(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(pool) = managed(&*self.cloud, now, key) else {
            return Ok(Next::Done);
        };
        let finished = validation(pool, self.shared.clock.now());
        if finished.changed {
            write_status(&self.shared, pool, finished, json!({})).await?;
        }
        Ok(Next::Done)
    }
}

impl Keyed for Validation {
    fn name(&self) -> &'static str {
        "nodepool.validation"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        of_pool(change)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        names(now)
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.check(now, key).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodepool::made::{at, made, pool};
    use crate::nodepool::{Silence, readiness};
    use joiner_api::types::ConditionStatus;
    use joiner_state::live::Conditions as _;

    #[test]
    fn problems_are_joined_and_fail_the_pool() {
        let template = json!({"spec": {"template": {
            "metadata": {"labels": {"karpenter.sh/nodepool": "x"}},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "a", "effect": "NoSchedule"}]},
        }}});
        let now = made(vec![pool("good", json!({})), pool("bad", template)]);
        let good = validation(now.pool("good").unwrap(), at(100));
        assert!(good.conditions.is_true(&VALIDATION_SUCCEEDED));
        let bad = validation(now.pool("bad").unwrap(), at(100));
        let condition = bad.conditions.condition(&VALIDATION_SUCCEEDED).unwrap();
        assert_eq!(condition.status, ConditionStatus::False);
        assert_eq!(
            condition.reason.as_deref(),
            Some("NodePoolValidationFailed")
        );
        assert_eq!(
            condition.message.as_deref(),
            Some(
                "template label karpenter.sh/nodepool is set by the pool itself; \
                 taint a:NoSchedule is there twice"
            )
        );
        let ready = bad.conditions.condition("Ready").unwrap();
        assert_eq!(ready.status, ConditionStatus::False);
    }

    #[test]
    fn both_judgments_together_make_a_pool_ready() {
        let first = made(vec![
            pool("p", json!({})),
            crate::nodepool::made::class(json!({})),
        ]);
        let judged = validation(first.pool("p").unwrap(), at(100));
        let status = json!({"status": {"conditions": judged.to_value()}});
        let second = made(vec![
            pool("p", status),
            crate::nodepool::made::class(json!({})),
        ]);
        let pool = second.pool("p").unwrap();
        let class = second.class(&pool.class).map(AsRef::as_ref);
        let finished = readiness(pool, class, Silence::IsReady, at(200));
        assert!(finished.conditions.is_true("Ready"));
        let told: Vec<&str> = finished
            .transitions
            .iter()
            .map(|transition| transition.kind.as_str())
            .collect();
        assert_eq!(told, ["NodeClassReady", "Ready"]);
    }
}
