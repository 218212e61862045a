//! Controller `nodeclass`: how a node class stands, by what the cloud found, and when it may go.
//!
//! Only kinds with a finalizer are looked after; what a class of another kind says of itself counts. In
//! a dry run a status that is there is somebody's who knows the real cloud, and counts, too.

use std::time::Duration;

use futures::FutureExt as _;
use joiner_cloud::{ClassKind, ClassStatus, Cloud};
use joiner_model::Name;
use joiner_runtime::{About, ApiFailure, ClassPath};
use joiner_state::NodeClassRef;
use joiner_state::live::{Change, Kind, LiveClass, Snapshot};
use serde_json::{Value, json};

use crate::catalogs::for_cloud;
use crate::conditions::{ConditionSet, Finished, READY};
use crate::context::{Ctx, Failure, Next};
use crate::engine::{Controller, Stateless};
use crate::observe;

/// When to look again after somebody else wrote the same status first.
const AFTER_CONFLICT: Duration = Duration::from_millis(500);
/// How often it is told that claims are in the way of a class that is to go.
const WAITING: Duration = Duration::from_secs(600);

/// The controllers of node classes.
#[must_use]
pub fn controllers() -> Vec<std::sync::Arc<dyn Controller>> {
    vec![std::sync::Arc::new(NODE_CLASS)]
}

/// Follows node classes, and claims for the sake of classes that are to go.
const NODE_CLASS: Stateless = Stateless {
    name: "nodeclass",
    concerned,
    all,
    look: |ctx, key| look(ctx, key).boxed(),
};

fn all(now: &Snapshot) -> Vec<Name> {
    now.classes()
        .map(|class| LiveClass::key(&class.reference))
        .collect()
}

fn concerned(change: &Change, now: &Snapshot) -> Vec<Name> {
    if change.kind == Kind::NodeClass {
        return vec![change.name.clone()];
    }
    // A class that is to go waits for its last claim.
    let classes = now.classes().filter(|class| class.meta.deleting.is_some());
    let going = classes.map(|class| LiveClass::key(&class.reference));
    going.filter(|_| change.kind == Kind::NodeClaim).collect()
}

/// What the cloud says of the kind of a class, if it gives such classes their status.
pub(crate) fn kind_of(cloud: &dyn Cloud, class: &NodeClassRef) -> Option<&'static ClassKind> {
    let mut classes = cloud.classes().iter();
    classes.find(|own| {
        own.finalizer.is_some() && own.group == &*class.group && own.kind == &*class.kind
    })
}

/// Looks at one class.
async fn look(ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
    let now = ctx.world.snapshot();
    let mut classes = now.classes();
    let Some(class) = classes.find(|class| LiveClass::key(&class.reference) == *key) else {
        return Ok(Next::Done);
    };
    let Some(kind) = kind_of(&*ctx.cloud, &class.reference) else {
        return Ok(Next::Done);
    };
    if class.meta.deleting.is_some() {
        return end(ctx, &now, class, kind).await;
    }
    if ctx.api.is_dry_run() {
        let found = ctx.api.get_class(path(kind), &class.reference.name).await?;
        let Some(found) = found else {
            return Ok(Next::Done);
        };
        if says_how_it_stands(&found) {
            ctx.world.believe(Kind::NodeClass, found).await;
            return Ok(Next::Done);
        }
    }
    let wanted = for_cloud(class);
    let reserving = ctx.settings.gates.reserved_capacity;
    let Some(status) = ctx.cloud.class_status(&wanted, reserving).await? else {
        return Ok(Next::Done);
    };
    if let Some(patch) = held(class, kind) {
        // The answer is a change of the class, and leads back here.
        return done(
            ctx.api
                .patch_class(path(kind), &class.reference.name, "", &patch)
                .await,
        );
    }
    let finished = judged(class, &status, ctx.clock.now());
    let again = status.again.map_or(Next::Done, Next::Again);
    let Some(patch) = changed(class, &status, &finished) else {
        return Ok(again);
    };
    let name = &class.reference.name;
    let written = ctx
        .api
        .patch_class(path(kind), name, "status", &patch)
        .await;
    if written.is_ok() {
        observe::transitions(ctx, &about(class, kind), &finished.transitions);
    }
    match done(written)? {
        Next::Done => Ok(again),
        sooner @ Next::Again(_) => Ok(sooner),
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

/// Somebody has written whether the class is ready.
fn says_how_it_stands(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == READY)
}

fn done<T>(written: Result<T, ApiFailure>) -> Result<Next, Failure> {
    match written {
        Ok(_) | Err(ApiFailure::NotFound) => Ok(Next::Done),
        Err(ApiFailure::Conflict(_)) => Ok(Next::Again(AFTER_CONFLICT)),
        Err(failure) => Err(failure.into()),
    }
}

fn about(class: &LiveClass, kind: &'static ClassKind) -> About {
    About {
        kind: kind.kind,
        api_version: format!("{}/{}", kind.group, kind.version).into(),
        name: class.meta.name.clone(),
        uid: class.meta.uid.clone(),
    }
}

/// The patch that makes a class wait for its claims, unless it does.
fn held(class: &LiveClass, kind: &ClassKind) -> Option<Value> {
    let finalizer = kind.finalizer?;
    if class.meta.has_finalizer(finalizer) {
        return None;
    }
    let own = class.meta.finalizers.iter().map(AsRef::as_ref);
    Some(finalizers(class, own.chain([finalizer])))
}

/// The list is written as a whole, so nobody may have changed it since it was read.
fn finalizers<'f>(class: &LiveClass, all: impl Iterator<Item = &'f str>) -> Value {
    json!({"metadata": {
        "resourceVersion": class.meta.version.to_string(),
        "finalizers": all.collect::<Vec<_>>(),
    }})
}

/// The conditions of a class that the cloud has looked up.
fn judged(class: &LiveClass, status: &ClassStatus, now: jiff::Timestamp) -> Finished {
    let dependents: Vec<&'static str> = status.verdicts.iter().map(|own| own.condition).collect();
    let mut set = ConditionSet::new(&class.meta, &class.conditions, &dependents, now);
    for own in &status.verdicts {
        match &own.failed {
            None => set.set_true(own.condition),
            Some((reason, message)) => set.set_false(own.condition, reason, message),
        }
    }
    set.finished()
}

/// The patch of a status that says something new.
fn changed(class: &LiveClass, status: &ClassStatus, finished: &Finished) -> Option<Value> {
    let known = &class.object["status"];
    let fields = status.fields.as_object().into_iter().flatten();
    let same = fields.clone().all(|(field, value)| known[field] == *value);
    if same && !finished.changed {
        return None;
    }
    let mut patch: serde_json::Map<String, Value> = fields
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    patch.insert("conditions".to_owned(), finished.to_value());
    Some(json!({
        "metadata": {"resourceVersion": class.meta.version.to_string()},
        "status": patch,
    }))
}

/// Lets a class go that is to go, once no claim names it.
async fn end(
    ctx: &Ctx,
    now: &Snapshot,
    class: &LiveClass,
    kind: &'static ClassKind,
) -> Result<Next, Failure> {
    let Some(finalizer) = kind.finalizer.filter(|own| class.meta.has_finalizer(own)) else {
        return Ok(Next::Done);
    };
    if ctx.api.is_dry_run() {
        return Ok(Next::Done);
    }
    let own = &class.reference;
    let names_it = |reference: &joiner_api::types::NodeClassRef| {
        *reference.group == *own.group
            && *reference.kind == *own.kind
            && *reference.name == *own.name
    };
    let claims = now.claims();
    let waits_for: Vec<&str> = claims
        .filter(|claim| names_it(&claim.claim.spec.node_class_ref))
        .map(|claim| &**claim.name())
        .collect();
    if !waits_for.is_empty() {
        let message = format!(
            "Waiting on NodeClaim termination for {}",
            pretty(&waits_for)
        );
        let about = about(class, kind);
        observe::note(ctx, about, "WaitingOnNodeClaimTermination", message);
        return Ok(Next::Again(WAITING));
    }
    let rest = class.meta.finalizers.iter().map(AsRef::as_ref);
    let patch = finalizers(class, rest.filter(|other| *other != finalizer));
    let written = ctx.api.patch_class(path(kind), &own.name, "", &patch).await;
    if written.is_ok() {
        observe::finalized(ctx, about(class, kind), finalizer);
    }
    done(written)
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
