//! Controller `nodeclass`: how a node class stands, by what the cloud found, and when it may go.
//!
//! Only kinds with a finalizer are looked after; what a class of another kind says of itself counts. In
//! a dry run a status that is there was written by another autoscaler that knows the real cloud, and
//! counts, too.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions::READY;
use joiner_cloud::{ClassKind, ClassStatus, Cloud};
use joiner_engine::conditions::{ConditionSet, ConditionType, Finished};
use joiner_engine::write::{self, Object, StatusWrite};
use joiner_engine::{Controller, Failure, Keyed, Next, Reconcile, Shared, events, finalizer};
use joiner_model::Name;
use joiner_runtime::{About, ClassPath};
use joiner_state::NodeClassRef;
use joiner_state::live::{Change, Kind, LiveClass, Snapshot};
use serde_json::Value;

use crate::catalogs::{cloud_failed, for_cloud};

/// How often it is reported that claims are in the way of a class that is to go.
const WAITING: Duration = Duration::from_secs(600);

/// The controllers of node classes. `reserved_capacity`: reservations are used.
#[must_use]
pub fn controllers(
    shared: &Shared,
    cloud: &Arc<dyn Cloud>,
    reserved_capacity: bool,
) -> Vec<Controller> {
    vec![Controller::keyed(NodeClassController {
        shared: shared.clone(),
        cloud: Arc::clone(cloud),
        reserved_capacity,
    })]
}

/// Follows node classes, and claims for the sake of classes that are to go.
struct NodeClassController {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    /// Reservations are used.
    reserved_capacity: bool,
}

impl Keyed for NodeClassController {
    fn name(&self) -> &'static str {
        "nodeclass"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind == Kind::NodeClass {
            return vec![change.name.clone()];
        }
        // A class that is to go waits for its last claim.
        let classes = now.classes().filter(|class| class.meta.deleting.is_some());
        let going = classes.map(|class| LiveClass::key(&class.reference));
        going.filter(|_| change.kind == Kind::NodeClaim).collect()
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let classes = now.classes();
        classes
            .map(|class| LiveClass::key(&class.reference))
            .collect()
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.check(now, key).boxed()
    }
}

/// What the cloud says of the kind of a class, if it gives such classes their status.
pub(crate) fn kind_of(cloud: &dyn Cloud, class: &NodeClassRef) -> Option<&'static ClassKind> {
    let mut kinds = cloud.classes().iter();
    kinds.find(|kind| {
        kind.finalizer.is_some() && kind.group == &*class.group && kind.kind == &*class.kind
    })
}

impl NodeClassController {
    async fn check(&self, now: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let mut classes = now.classes();
        let Some(class) = classes.find(|class| LiveClass::key(&class.reference) == *key) else {
            return Ok(Next::Done);
        };
        let Some(kind) = kind_of(&*self.cloud, &class.reference) else {
            return Ok(Next::Done);
        };
        if class.meta.deleting.is_some() {
            return self.end(now, class, kind).await;
        }
        let api = &self.shared.api;
        if api.is_dry_run() {
            let found = api.get_class(path(kind), &class.reference.name).await?;
            let Some(found) = found else {
                return Ok(Next::Done);
            };
            if says_how_it_stands(&found) {
                self.shared.world.believe(Kind::NodeClass, found).await;
                return Ok(Next::Done);
            }
        }
        let wanted = for_cloud(class);
        let status = self.cloud.class_status(&wanted, self.reserved_capacity);
        let Some(status) = status.await.map_err(cloud_failed)? else {
            return Ok(Next::Done);
        };
        if let Some(patch) = held(class, kind) {
            // The answer is a change of the class, and leads back here.
            self.patch(class, kind, &patch).await?;
            return Ok(Next::Done);
        }
        let finished = judged(class, &status, self.shared.clock.now());
        if let Some(change) = changed(class, &status, finished) {
            let written = write::status(&self.shared, &object(class, kind), &change).await;
            write::unless_gone(written)?;
        }
        Ok(status.again.map_or(Next::Done, Next::Again))
    }

    /// Lets a class go that is to go, once no claim names it.
    async fn end(
        &self,
        now: &Snapshot,
        class: &LiveClass,
        kind: &'static ClassKind,
    ) -> Result<Next, Failure> {
        let Some(finalizer) = kind.finalizer else {
            return Ok(Next::Done);
        };
        let Some(patch) = finalizer::remove(&class.meta, finalizer) else {
            return Ok(Next::Done);
        };
        if self.shared.api.is_dry_run() {
            return Ok(Next::Done);
        }
        let waits_for = claims_of(now, &class.reference);
        if !waits_for.is_empty() {
            let message = format!(
                "Waiting on NodeClaim termination for {}",
                pretty(&waits_for)
            );
            let about = about(class, kind);
            let reason = "WaitingOnNodeClaimTermination";
            events::note(&self.shared.events, about, reason, message);
            return Ok(Next::Again(WAITING));
        }
        if self.patch(class, kind, &patch).await?.is_some() {
            events::finalized(&self.shared.events, about(class, kind), finalizer);
        }
        Ok(Next::Done)
    }

    /// Changes a class, unless it is gone.
    async fn patch(
        &self,
        class: &LiveClass,
        kind: &ClassKind,
        patch: &Value,
    ) -> Result<Option<()>, Failure> {
        let name = &class.reference.name;
        let written = write::patch_class(&self.shared, path(kind), name, patch).await;
        Ok(write::unless_gone(written)?.map(|_| ()))
    }
}

fn path(kind: &ClassKind) -> ClassPath {
    ClassPath {
        group: kind.group,
        version: kind.version,
        plural: kind.plural,
        kind: kind.kind,
    }
}

/// It is written in the class whether it is ready.
fn says_how_it_stands(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == *READY)
}

fn about(class: &LiveClass, kind: &'static ClassKind) -> About {
    About {
        kind: kind.kind,
        api_version: format!("{}/{}", kind.group, kind.version).into(),
        name: class.meta.name.clone(),
        uid: class.meta.uid.clone(),
    }
}

fn object(class: &LiveClass, kind: &'static ClassKind) -> Object {
    Object {
        kind: Kind::NodeClass,
        class: Some(path(kind)),
        about: about(class, kind),
    }
}

/// The patch that makes a class wait for its claims, unless it does.
fn held(class: &LiveClass, kind: &ClassKind) -> Option<Value> {
    finalizer::add(&class.meta, kind.finalizer?)
}

/// The conditions of a class that the cloud has looked up.
fn judged(class: &LiveClass, status: &ClassStatus, now: Timestamp) -> Finished {
    let verdicts = status.verdicts.iter();
    let dependents: Vec<ConditionType> = verdicts
        .map(|verdict| ConditionType::new(verdict.condition))
        .collect();
    let mut set = ConditionSet::new(&class.meta, &class.conditions, &dependents, now);
    for (kind, verdict) in dependents.iter().zip(&status.verdicts) {
        match &verdict.failed {
            None => set.set_true(*kind),
            Some((reason, message)) => set.set_false(*kind, reason, message),
        }
    }
    set.finished()
}

/// The write of a status that says something new.
fn changed(class: &LiveClass, status: &ClassStatus, finished: Finished) -> Option<StatusWrite> {
    let known = &class.object["status"];
    let mut fields = status.fields.as_object().into_iter().flatten();
    let same = fields.all(|(field, value)| known[field] == *value);
    if same && !finished.changed {
        return None;
    }
    Some(StatusWrite::new(
        &class.meta,
        finished,
        status.fields.clone(),
    ))
}

/// The claims that name a class.
fn claims_of<'s>(now: &'s Snapshot, class: &NodeClassRef) -> Vec<&'s str> {
    let names_it = |named: &joiner_api::types::NodeClassRef| {
        *named.group == *class.group && *named.kind == *class.kind && *named.name == *class.name
    };
    let claims = now.claims();
    let of_class = claims.filter(|claim| names_it(&claim.claim.spec.node_class_ref));
    of_class.map(|claim| &**claim.name()).collect()
}

/// Claims that are named in one sentence.
const NAMED_MAX: usize = 5;

fn pretty(names: &[&str]) -> String {
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} other(s)"),
    }
}

#[cfg(test)]
mod tests;
