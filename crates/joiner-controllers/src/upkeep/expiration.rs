//! Claims that are too old go, whatever runs on them: controller `nodeclaim.expiration`.

use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_model::Name;
use joiner_state::live::{Kind, LiveClaim};

use crate::claim;
use crate::context::{Ctx, Failure, Next};
use crate::engine::Stateless;

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

/// Looks at one claim.
async fn look(ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
    let snapshot = ctx.world.snapshot();
    let Some(claim) = snapshot.claim(key) else {
        return Ok(Next::Done);
    };
    if claim.meta.deleting.is_some() || !super::is_managed(&*ctx.cloud, claim) {
        return Ok(Next::Done);
    }
    let Some(at) = expires(claim) else {
        return Ok(Next::Done);
    };
    let now = ctx.clock.now();
    if now >= at {
        claim::delete(ctx, claim, "expired").await?;
        return Ok(Next::Done);
    }
    let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    Ok(Next::Again(wait))
}

/// Deletes claims that are too old.
pub(super) const EXPIRATION: Stateless = Stateless {
    name: "nodeclaim.expiration",
    concerned: |change, _| super::own(change, Kind::NodeClaim),
    all: super::all_claims,
    look: |ctx, key| look(ctx, key).boxed(),
};
