//! Claims whose machine is gone, and machines whose claim is gone: controller
//! `nodeclaim.garbagecollection`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use joiner_api::conditions as condition;
use joiner_cloud::{Cloud, Instance};
use joiner_engine::{Failure, Looping, Next, Reconcile, Shared};
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, Snapshot};

use super::{is_managed, lifecycle};
use crate::catalogs::cloud_failed;

/// How often a pass is made.
const EVERY: Duration = Duration::from_secs(120);
/// A machine this young may have a claim that is not known of yet.
const YOUNG: SignedDuration = SignedDuration::from_secs(60);
/// Deletions at a time.
const AT_ONCE: usize = 20;

/// Claims whose machine the cloud does not know any more, and whose node does not answer.
pub(crate) fn lost(snapshot: &Snapshot, instances: &[Instance]) -> Vec<Arc<LiveClaim>> {
    let there = instances.iter().filter(|instance| !instance.terminating);
    let there: BTreeSet<&str> = there.map(|instance| &*instance.id.0).collect();
    let is_lost = |claim: &&Arc<LiveClaim>| {
        let id = claim.provider_id.as_deref();
        let ready = snapshot.node_of(claim).is_some_and(|node| node.is_ready());
        claim.is_true(&condition::REGISTERED)
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
    let is_orphan = |instance: &&Instance| {
        let by_id = snapshot.claims_with_id(&instance.id.0).next().is_some();
        let claim = instance.claim.as_ref();
        let claim = claim.and_then(|name| snapshot.claim(name));
        let by_name = claim.is_some_and(|claim| is_of(instance, &claim.meta.uid));
        let is_young = now.duration_since(instance.launched) < YOUNG;
        !instance.terminating && !by_id && !by_name && !is_young
    };
    instances.iter().filter(is_orphan).cloned().collect()
}

/// True when a machine may have been launched for the claim with this uid.
fn is_of(instance: &Instance, uid: &str) -> bool {
    let claim_uid = instance.claim_uid.as_deref();
    claim_uid.is_none_or(|claim_uid| claim_uid == uid)
}

/// Deletes claims without a machine, and ends machines without a claim. A machine that is not used costs
/// money: a pass in which anything failed is repeated soon.
pub(super) struct GarbageCollection {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
}

impl GarbageCollection {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
        }
    }

    /// The claims are those from before the machines are listed: a machine that is launched later cannot
    /// be missing from them.
    async fn collect(&self, before: &Snapshot) -> Result<Next, Failure> {
        let instances = match self.cloud.instances().await {
            Ok(instances) => instances,
            Err(error) => {
                tracing::error!(%error, "cannot list machines");
                return Err(cloud_failed(error));
            }
        };
        let mut lost = lost(before, &instances);
        lost.retain(|claim| is_managed(&*self.cloud, claim));
        let deletions = stream::iter(lost).map(|claim| self.delete(claim));
        let mut results: Vec<_> = deletions.buffer_unordered(AT_ONCE).collect().await;
        let now = self.shared.clock.now();
        let orphans = orphans(&self.shared.world.snapshot(), &instances, now);
        let ends = stream::iter(orphans).map(|instance| self.end(instance));
        results.extend(ends.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await);
        let failed = results.into_iter().find_map(Result::err);
        failed.map_or(Ok(Next::Again(EVERY)), Err)
    }

    async fn delete(&self, claim: Arc<LiveClaim>) -> Result<(), Failure> {
        let deleted = lifecycle::delete(&self.shared, &claim, "garbage_collected").await;
        if let Err(error) = &deleted {
            tracing::error!(NodeClaim = &**claim.name(), %error, "cannot delete");
        }
        deleted
    }

    /// Ends a machine, unless the server says that there is a claim for it after all.
    async fn end(&self, instance: Instance) -> Result<(), Failure> {
        let id = &instance.id;
        match self.try_end(&instance).await {
            Ok(true) => tracing::info!(
                provider_id = %id,
                NodeClaim = instance.claim.as_deref().unwrap_or_default(),
                "garbage collected cloudprovider instance"
            ),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(provider_id = %id, %error, "cannot end a machine");
                return Err(error);
            }
        }
        Ok(())
    }

    /// False when there is a claim.
    async fn try_end(&self, instance: &Instance) -> Result<bool, Failure> {
        if let Some(name) = &instance.claim {
            let claim = self.shared.api.get(Kind::NodeClaim, name).await?;
            let uid = claim.as_ref().map(|claim| &claim["metadata"]["uid"]);
            let uid = uid.map(|uid| uid.as_str().unwrap_or_default());
            if uid.is_some_and(|uid| is_of(instance, uid)) {
                return Ok(false);
            }
        }
        let ended = self.cloud.terminate(&instance.id).await;
        ended.map_err(cloud_failed)?;
        Ok(true)
    }
}

impl Looping for GarbageCollection {
    fn name(&self) -> &'static str {
        "nodeclaim.garbagecollection"
    }

    fn wakes(&mut self, _: &Change, _: &Snapshot) -> bool {
        false
    }

    fn starts_after(&self) -> Duration {
        EVERY
    }

    fn runs_dry(&self) -> bool {
        false
    }

    fn pass<'a>(&'a mut self, now: &'a Arc<Snapshot>, _: Timestamp) -> Reconcile<'a> {
        self.collect(now).boxed()
    }
}
