//! The conditions Consolidatable and Drifted: controller `nodeclaim.disruption`.

mod drift;

#[cfg(test)]
mod drift_tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_cloud::Cloud;
use joiner_engine::conditions::ConditionSet;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, LivePool, Snapshot};

use self::drift::Question;
use super::{all_claims, changed_claim, is_managed, lifecycle, write_conditions};
use crate::catalogs::{cloud_failed, for_cloud};

/// Drift is checked this often even if nothing changes.
const DRIFT_EVERY: Duration = Duration::from_secs(300);

/// What Consolidatable is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consolidatable {
    /// It is.
    Yes,
    /// Not now, and nothing but a change makes it so.
    No,
    /// Not before this time.
    NotBefore(Timestamp),
}

/// Whether a claim's node may be consolidated: nothing has happened on it for long enough.
pub(crate) fn consolidatable(claim: &LiveClaim, pool: &LivePool, now: Timestamp) -> Consolidatable {
    let Some(disruption) = &pool.pool.spec.disruption else {
        return Consolidatable::No;
    };
    let Ok(Some(after)) = disruption.consolidate_after.parse() else {
        return Consolidatable::No;
    };
    if !pool.is_dynamic() || !claim.is_true(&condition::INITIALIZED) {
        return Consolidatable::No;
    }
    if after.is_zero() {
        return Consolidatable::Yes;
    }
    let status = claim.claim.status.as_ref();
    let last = status.and_then(|status| status.last_pod_event_time.as_deref());
    let last = last.and_then(|text| text.parse().ok());
    let Some(since) = last.or_else(|| claim.since(&condition::INITIALIZED)) else {
        return Consolidatable::No;
    };
    let at = since.checked_add(after).unwrap_or(Timestamp::MAX);
    if now >= at {
        Consolidatable::Yes
    } else {
        Consolidatable::NotBefore(at)
    }
}

/// Puts both conditions into a set. `drifted` is the reason, if any; none at all when it could not
/// be found out, and then the condition stays as it is.
pub(crate) fn put(
    set: &mut ConditionSet,
    consolidatable: Consolidatable,
    drifted: Option<Option<&str>>,
) {
    match consolidatable {
        Consolidatable::Yes => set.set_true(condition::CONSOLIDATABLE),
        Consolidatable::No | Consolidatable::NotBefore(_) => set.clear(condition::CONSOLIDATABLE),
    }
    match drifted {
        Some(Some(reason)) => set.set_true_for(condition::DRIFTED, reason, reason),
        Some(None) => set.clear(condition::DRIFTED),
        None => {}
    }
}

/// Keeps Consolidatable and Drifted up to date.
pub(super) struct Disruption {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    /// When the type of a claim was last found.
    found: Mutex<BTreeMap<Name, Timestamp>>,
}

impl Disruption {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
            found: Mutex::default(),
        }
    }

    async fn check(&self, snapshot: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(claim) = snapshot.claim(key) else {
            self.lock().remove(key);
            return Ok(Next::Done);
        };
        let pool = claim.pool().and_then(|pool| snapshot.pool(pool));
        let (Some(pool), None) = (pool, claim.meta.deleting) else {
            return Ok(Next::Done);
        };
        if !is_managed(&*self.cloud, claim) {
            return Ok(Next::Done);
        }
        let now = self.shared.clock.now();
        let consolidatable = consolidatable(claim, pool, now);
        let drifted = self.drifted(snapshot, claim, pool).await;
        let mut set = lifecycle::conditions(claim, now);
        put(
            &mut set,
            consolidatable,
            drifted.as_ref().ok().map(Option::as_deref),
        );
        write_conditions(&self.shared, claim, set.finished()).await?;
        drifted?;
        let wait = match consolidatable {
            Consolidatable::Yes | Consolidatable::No => DRIFT_EVERY,
            Consolidatable::NotBefore(at) => {
                let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                wait.min(DRIFT_EVERY)
            }
        };
        Ok(Next::Again(wait))
    }

    /// Why the claim has drifted, if so.
    async fn drifted(
        &self,
        snapshot: &Snapshot,
        claim: &LiveClaim,
        pool: &LivePool,
    ) -> Result<Option<Name>, Failure> {
        let now = self.shared.clock.now();
        let found = self.lock().get(claim.name()).copied();
        let question = drift::question(claim, pool, found, now);
        if let Question::Settled(reason) = question {
            return Ok(reason.map(Name::from));
        }
        let Some(class) = snapshot.class(&pool.class).map(|class| for_cloud(class)) else {
            return Ok(None);
        };
        if question == Question::TypesAndCloud {
            let types = self.cloud.instance_types(&class).await;
            let types = types.map_err(|error| Failure::Other(error.to_string()))?;
            if drift::is_type_lost(claim, &types) {
                return Ok(Some(drift::TYPE_NOT_FOUND.into()));
            }
            self.lock().insert(claim.name().clone(), now);
        }
        let drifted = self.cloud.drift(&claim.object(), &class).await;
        drifted.map_err(cloud_failed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Timestamp>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keyed for Disruption {
    fn name(&self) -> &'static str {
        "nodeclaim.disruption"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind == Kind::NodePool {
            let claims = now.claims_of_pool(&change.name);
            return claims.map(|claim| claim.name().clone()).collect();
        }
        if change.kind == Kind::NodeClass {
            return all_claims(now);
        }
        changed_claim(change)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        all_claims(now)
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.check(now, key).boxed()
    }
}
