//! Controller `nodepool.readiness`: whether the class of a pool can be used.

use std::sync::Arc;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions::{NODE_CLASS_READY, READY};
use joiner_api::types::{Condition, ConditionStatus};
use joiner_cloud::Cloud;
use joiner_engine::conditions::{ConditionSet, Finished, POOL_DEPENDENTS};
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, Conditions as _, LiveClass, LivePool, Snapshot};
use serde_json::json;

use super::{conditions, managed, names, of_pool_or_class, write_status};
use crate::nodeclass::kind_of;

/// Whether a class that says nothing of being ready is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It is: such classes get no status.
    IsReady,
    /// It is not known yet: the cloud has not looked at the class.
    IsUnknown,
}

/// The conditions of a pool whose class is as given.
#[must_use]
pub fn readiness(
    pool: &LivePool,
    class: Option<&LiveClass>,
    silence: Silence,
    now: Timestamp,
) -> Finished {
    let mut set = ConditionSet::new(&pool.meta, conditions(pool), POOL_DEPENDENTS, now);
    match usable(pool, class, silence) {
        Ok(()) => set.set_true(NODE_CLASS_READY),
        Err((reason, message)) => set.set_false(NODE_CLASS_READY, &reason, &message),
    }
    set.finished()
}

/// Reason and message when the class cannot be used.
fn usable(
    pool: &LivePool,
    class: Option<&LiveClass>,
    silence: Silence,
) -> Result<(), (String, String)> {
    let named = format!("{} {}", pool.class.kind, pool.class.name);
    let no = |reason: &str, what: &str| Err((reason.to_owned(), format!("{named} {what}")));
    let Some(class) = class else {
        return no("NodeClassNotFound", "is not there: create it");
    };
    if class.meta.deleting.is_some() {
        return no("NodeClassTerminating", "is being deleted");
    }
    let ready = class.condition(&READY);
    let status = match (ready, silence) {
        (Some(ready), _) => ready.status,
        (None, Silence::IsReady) => ConditionStatus::True,
        (None, Silence::IsUnknown) => ConditionStatus::Unknown,
    };
    match status {
        ConditionStatus::True => Ok(()),
        ConditionStatus::Unknown => no(
            "NodeClassReadinessUnknown",
            "does not know yet whether it is ready",
        ),
        ConditionStatus::False => {
            let reason = ready.and_then(|ready| ready.reason.as_deref());
            let reason = reason.filter(|reason| !reason.is_empty());
            let message = format!("{named} is not ready: {}", why_not(class));
            Err((reason.unwrap_or("NodeClassNotReady").to_owned(), message))
        }
    }
}

/// What is wrong with a class that is not ready: the root only names the conditions that fail, and
/// those say why. Conditions that fail because others do add nothing.
fn why_not(class: &LiveClass) -> String {
    let text = |condition: &Condition| {
        let given = [&condition.message, &condition.reason];
        let mut given = given
            .map(|text| text.clone().unwrap_or_default())
            .into_iter();
        given.find(|text| !text.is_empty())
    };
    let is_cause = |condition: &&Condition| {
        condition.status == ConditionStatus::False
            && condition.type_ != *READY
            && condition.reason.as_deref() != Some("DependenciesNotReady")
    };
    let causes = class.conditions.iter().filter(is_cause);
    let causes: Vec<String> = causes
        .filter_map(|condition| Some(format!("{}: {}", condition.type_, text(condition)?)))
        .collect();
    let root = || class.condition(&READY).and_then(text);
    match causes.is_empty() {
        true => root().unwrap_or_else(|| "it does not say why".to_owned()),
        false => causes.join("; "),
    }
}

/// Follows the classes of pools.
pub(super) struct Readiness {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl Readiness {
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
        let class = now.class(&pool.class).map(AsRef::as_ref);
        let silence = match kind_of(&*self.cloud, &pool.class) {
            Some(_) => Silence::IsUnknown,
            None => Silence::IsReady,
        };
        let finished = readiness(pool, class, silence, self.shared.clock.now());
        if finished.changed {
            write_status(&self.shared, pool, finished, json!({})).await?;
        }
        Ok(Next::Done)
    }
}

impl Keyed for Readiness {
    fn name(&self) -> &'static str {
        "nodepool.readiness"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        of_pool_or_class(change, now)
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
    use crate::nodepool::made::{at, class, made, pool};
    use joiner_state::live::{Kind, What};
    use serde_json::Value;

    fn ready(status: &str, reason: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": reason,
            "message": "says the class", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    #[test]
    fn a_pool_follows_its_class() {
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        for (class_is, expected) in [
            (
                None,
                "False NodeClassNotFound: KWOKNodeClass c is not there: create it",
            ),
            (Some(json!({})), "True NodeClassReady: "),
            (Some(ready("True", "Ready")), "True NodeClassReady: "),
            (
                Some(deleting),
                "False NodeClassTerminating: KWOKNodeClass c is being deleted",
            ),
            (
                Some(ready("Unknown", "Waiting")),
                "False NodeClassReadinessUnknown: KWOKNodeClass c does not know yet whether it is ready",
            ),
            (
                Some(ready("False", "NoSubnets")),
                "False NoSubnets: KWOKNodeClass c is not ready: says the class",
            ),
        ] {
            let mut objects = vec![pool("p", json!({}))];
            objects.extend(class_is.map(class));
            let now = made(objects);
            let pool = now.pool("p").unwrap();
            let class = now.class(&pool.class).map(AsRef::as_ref);
            let finished = readiness(pool, class, Silence::IsReady, at(2_000_000_000));
            let condition = finished.conditions.condition(&NODE_CLASS_READY).unwrap();
            let shown = format!(
                "{} {}: {}",
                condition.status,
                condition.reason.clone().unwrap(),
                condition.message.clone().unwrap()
            );
            assert_eq!(shown, expected);
            let root = finished.conditions.condition(&READY).unwrap().status;
            let wanted = match condition.status {
                // Validation has not spoken yet.
                ConditionStatus::True => ConditionStatus::Unknown,
                ConditionStatus::False | ConditionStatus::Unknown => ConditionStatus::False,
            };
            assert_eq!(root, wanted, "{expected}");
        }
    }

    #[test]
    fn a_class_that_appears_concerns_the_pools_that_name_it() {
        let other = json!({"spec": {"template": {"spec": {"nodeClassRef": {"name": "d"}}}}});
        let now = made(vec![
            pool("p", json!({})),
            pool("q", other),
            class(json!({})),
        ]);
        let change = Change {
            kind: Kind::NodeClass,
            name: "karpenter.kwok.sh/KWOKNodeClass/c".into(),
            what: What::Appeared,
            about: None,
        };
        assert_eq!(of_pool_or_class(&change, &now), ["p".into()]);
    }
}
