//! Claims whose machine is gone, and machines whose claim is gone: controller
//! `nodeclaim.garbagecollection`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use joiner_cloud::{Instance, ProviderId};
use joiner_model::Name;
use joiner_state::live::{Conditions as _, Kind, LiveClaim, Snapshot};

use crate::claim;
use crate::context::Ctx;

/// Upstream's name of it.
const NAME: &str = "nodeclaim.garbagecollection";
/// How often it looks.
const EVERY: Duration = Duration::from_secs(120);
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
) -> Vec<(ProviderId, Option<Name>)> {
    let is_orphan = |own: &&Instance| {
        let by_id = snapshot.claims_with_id(&own.id.0).next().is_some();
        let by_name = own
            .claim
            .as_ref()
            .is_some_and(|name| snapshot.claim(name).is_some());
        !own.terminating && !by_id && !by_name && now.duration_since(own.launched) >= YOUNG
    };
    let orphans = instances.iter().filter(is_orphan);
    orphans
        .map(|own| (own.id.clone(), own.claim.clone()))
        .collect()
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

async fn pass(ctx: &Ctx) {
    // The claims first: a machine that is launched later cannot be missing from them.
    let before = ctx.world.snapshot();
    let instances = match ctx.cloud.instances().await {
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
    for (id, claim) in orphans(&ctx.world.snapshot(), &instances, now) {
        ends.push(end(ctx, id, claim));
    }
    let ends = stream::iter(ends).buffer_unordered(AT_ONCE);
    ends.collect::<Vec<()>>().await;
}

async fn delete(ctx: &Ctx, own: Arc<LiveClaim>) {
    if let Err(error) = claim::delete(ctx, &own, "garbage_collected").await {
        tracing::error!(controller = NAME, NodeClaim = &**own.name(), %error, "cannot delete");
    }
}

/// Ends a machine without a claim, after asking the server itself.
async fn end(ctx: &Ctx, id: ProviderId, claim: Option<Name>) {
    if let Some(name) = claim.as_deref()
        && !is_gone(ctx, name).await
    {
        return;
    }
    match ctx.cloud.terminate(&id).await {
        Ok(_) => tracing::info!(
            controller = NAME,
            provider_id = %id,
            NodeClaim = claim.as_deref().unwrap_or_default(),
            "garbage collected cloudprovider instance"
        ),
        Err(error) => {
            tracing::error!(controller = NAME, provider_id = %id, %error, "cannot end a machine");
        }
    }
}

/// True when the server says that there is no such claim.
async fn is_gone(ctx: &Ctx, name: &str) -> bool {
    let (group, version, plural, kind) = Kind::NodeClaim.api();
    let resource = joiner_runtime::resource(group, version, plural, kind);
    let api: kube::Api<kube::api::DynamicObject> =
        kube::Api::all_with(ctx.client.clone(), &resource);
    matches!(api.get_opt(name).await, Ok(None))
}
