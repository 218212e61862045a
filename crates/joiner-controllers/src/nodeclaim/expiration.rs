//! Claims that are too old go, whatever runs on them: controller `nodeclaim.expiration`.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_cloud::Cloud;
use joiner_engine::{Failure, Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_state::live::{Change, LiveClaim, Snapshot};

use super::{all_claims, changed_claim, is_managed, lifecycle};

/// When a claim is too old, if ever.
pub(crate) fn expires(claim: &LiveClaim) -> Option<Timestamp> {
    let after = claim.claim.spec.expire_after.as_ref()?.parse().ok()??;
    Some(
        claim
            .meta
            .created
            .checked_add(after)
            .unwrap_or(Timestamp::MAX),
    )
}

/// Deletes claims that are too old.
pub(super) struct Expiration {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl Expiration {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    async fn check(&self, snapshot: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(claim) = snapshot.claim(key) else {
            return Ok(Next::Done);
        };
        if claim.meta.deleting.is_some() || !is_managed(&*self.cloud, claim) {
            return Ok(Next::Done);
        }
        let Some(at) = expires(claim) else {
            return Ok(Next::Done);
        };
        let now = self.shared.clock.now();
        if now >= at {
            lifecycle::delete(&self.shared, claim, "expired").await?;
            return Ok(Next::Done);
        }
        let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
        Ok(Next::Again(wait))
    }
}

impl Keyed for Expiration {
    fn name(&self) -> &'static str {
        "nodeclaim.expiration"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
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
