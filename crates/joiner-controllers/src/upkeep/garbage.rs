//! Claims whose machine is gone, and machines whose claim is gone: controller
//! `nodeclaim.garbagecollection`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use joiner_cloud::Instance;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Conditions as _, Kind, LiveClaim, Snapshot};

use crate::claim;
use crate::context::{Ctx, Failure};
use crate::pauses::insist;

/// Upstream's name of it.
const NAME: &str = "nodeclaim.garbagecollection";
/// How often it looks.
const EVERY: Duration = Duration::from_secs(120);
/// What fails is tried this often, for about a minute.
const TRIES: u32 = 12;
/// A machine this young may have a claim that is not known of yet.
const YOUNG: SignedDuration = SignedDuration::from_secs(60);
/// Deletions at a time.
const AT_ONCE: usize = 20;

/// Claims whose machine the cloud does not know any more, and whose node does not answer.
pub(crate) fn lost(snapshot: &Snapshot, instances: &[Instance]) -> Vec<Arc<LiveClaim>> {
    let there: BTreeSet<&str> = instances
        .iter()
        .filter(|own| !own.terminating)
        .map(|own| &*own.id.0)
        .collect();
    let is_lost = |claim: &&Arc<LiveClaim>| {
        let id = claim.provider_id.as_deref();
        let ready = snapshot.node_of(claim).is_some_and(|node| node.is_ready());
        claim.is_true("Registered")
            && claim.meta.deleting.is_none()
            && id.is_some_and(|id| !there.contains(id))
            && !ready
    };
    snapshot.claims().filter(is_lost).cloned().collect()
}

/// Machines that no claim stands for, old enough that none will.
pub(crate) fn orphans(
    snapshot: &Snapshot,
    instances: &[Instance],
    now: Timestamp,
) -> Vec<Instance> {
    let is_orphan = |own: &&Instance| {
        let by_id = snapshot.claims_with_id(&own.id.0).next().is_some();
        let claim = own.claim.as_ref().and_then(|name| snapshot.claim(name));
        let by_name = claim.is_some_and(|claim| is_of(own, &claim.meta.uid));
        !own.terminating && !by_id && !by_name && now.duration_since(own.launched) >= YOUNG
    };
    instances.iter().filter(is_orphan).cloned().collect()
}

/// True when a machine may have been launched for the claim with this uid.
fn is_of(own: &Instance, uid: &str) -> bool {
    own.claim_uid.as_deref().is_none_or(|own| own == uid)
}

/// Looks every two minutes, until the future is dropped.
pub(crate) async fn run(ctx: Ctx) {
    loop {
        ctx.clock.sleep(EVERY).await;
        if ctx.world.is_listed() && !ctx.api.is_dry_run() {
            pass(&ctx).await;
        }
    }
}

/// One look. A machine that nobody uses costs money: what fails is tried again before the next one.
async fn pass(ctx: &Ctx) {
    // The claims first: a machine that is launched later cannot be missing from them.
    let before = ctx.world.snapshot();
    let listed = insist(&ctx.clock, TRIES, || ctx.cloud.instances().boxed());
    let instances = match listed.await {
        Ok(instances) => instances,
        Err(error) => {
            tracing::error!(controller = NAME, %error, "cannot list machines");
            return;
        }
    };
    let mut deletions = Vec::new();
    for own in lost(&before, &instances) {
        if super::is_managed(&*ctx.cloud, &own) {
            deletions.push(delete(ctx, own));
        }
    }
    let deletions = stream::iter(deletions).buffer_unordered(AT_ONCE);
    deletions.collect::<Vec<()>>().await;
    let now = ctx.clock.now();
    let mut ends = Vec::new();
    for own in orphans(&ctx.world.snapshot(), &instances, now) {
        ends.push(end(ctx, own));
    }
    let ends = stream::iter(ends).buffer_unordered(AT_ONCE);
    ends.collect::<Vec<()>>().await;
}

async fn delete(ctx: &Ctx, own: Arc<LiveClaim>) {
    let deleted = insist(&ctx.clock, TRIES, || {
        claim::delete(ctx, &own, "garbage_collected").boxed()
    });
    if let Err(error) = deleted.await {
        tracing::error!(controller = NAME, NodeClaim = &**own.name(), %error, "cannot delete");
    }
}

/// Ends a machine without a claim.
async fn end(ctx: &Ctx, own: Instance) {
    let id = &own.id;
    match insist(&ctx.clock, TRIES, || try_end(ctx, &own).boxed()).await {
        Ok(true) => tracing::info!(
            controller = NAME,
            provider_id = %id,
            NodeClaim = own.claim.as_deref().unwrap_or_default(),
            "garbage collected cloudprovider instance"
        ),
        Ok(false) => {}
        Err(error) => {
            tracing::error!(controller = NAME, provider_id = %id, %error, "cannot end a machine");
        }
    }
}

/// Asks the server itself first. False when there is a claim after all.
async fn try_end(ctx: &Ctx, own: &Instance) -> Result<bool, Failure> {
    let is_alone = is_alone(ctx, own).await?;
    if is_alone {
        ctx.cloud.terminate(&own.id).await?;
    }
    Ok(is_alone)
}

/// True when the server says that there is no claim for the machine.
async fn is_alone(ctx: &Ctx, own: &Instance) -> Result<bool, ApiFailure> {
    let Some(name) = &own.claim else {
        return Ok(true);
    };
    let claim = ctx.api.get(Kind::NodeClaim, name).await?;
    Ok(claim.is_none_or(|claim| {
        let uid = claim["metadata"]["uid"].as_str();
        !is_of(own, uid.unwrap_or_default())
    }))
}
