//! The one way to write to objects that others write to, too.
//!
//! *Policy on conflicts*: a write that rests on what was read carries the version that was read. When the
//! object was changed meanwhile, nothing is written; the object is read again, so that the next snapshot
//! has it, and the controller decides anew: at once the first times, then after growing pauses.

use futures::future::BoxFuture;
use joiner_runtime::{About, ApiFailure, ClassPath, Written};
use joiner_state::live::{Kind, Meta};
use serde_json::{Value, json};

use crate::conditions::Finished;
use crate::controller::{Failure, Next, Shared};
use crate::events;
use crate::queue::CONFLICTS_MAX;

/// An object that is written to.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Of a node class: where the API server keeps its kind.
    pub class: Option<ClassPath>,
    /// Events about it; its name is the one that it has for the API server.
    pub about: About,
}

impl Object {
    /// An object of a kind that everyone knows.
    #[must_use]
    pub fn new(kind: Kind, about: About) -> Self {
        Self {
            kind,
            class: None,
            about,
        }
    }
}

/// A change of a status, with the conditions in it.
#[derive(Clone, Debug)]
pub struct StatusWrite {
    /// The patch; it holds only for the object as it was read.
    pub patch: Value,
    /// The conditions in it.
    pub finished: Finished,
}

impl StatusWrite {
    /// Writes conditions, and `fields` of the status with them.
    #[must_use]
    pub fn new(meta: &Meta, finished: Finished, fields: Value) -> Self {
        let mut status = fields;
        status["conditions"] = finished.to_value();
        let patch = json!({
            "metadata": {"resourceVersion": meta.version.to_string()},
            "status": status,
        });
        Self { patch, finished }
    }
}

/// Writes a status, and reports which conditions changed.
///
/// # Errors
/// What the API server says; after a conflict the object has been read again.
pub async fn status(shared: &Shared, object: &Object, write: &StatusWrite) -> Result<(), Failure> {
    let name = &object.about.name;
    let api = &shared.api;
    let written = match object.class {
        None => api.patch_status(object.kind, name, &write.patch).await,
        Some(class) => api.patch_class(class, name, "status", &write.patch).await,
    };
    read_again(shared, object.kind, object.class, name, written).await?;
    events::transitions(&shared.events, &object.about, &write.finished.transitions);
    Ok(())
}

/// Writes conditions, unless none of them changed.
///
/// # Errors
/// As for [`status`].
pub async fn conditions(
    shared: &Shared,
    object: &Object,
    meta: &Meta,
    finished: Finished,
) -> Result<(), Failure> {
    if !finished.changed {
        return Ok(());
    }
    status(shared, object, &StatusWrite::new(meta, finished, json!({}))).await
}

/// Changes an object by a merge patch (RFC 7396).
///
/// # Errors
/// What the API server says; after a conflict the object has been read again.
pub async fn patch(
    shared: &Shared,
    kind: Kind,
    name: &str,
    patch: &Value,
) -> Result<Written, Failure> {
    let written = shared.api.patch(kind, name, patch).await;
    read_again(shared, kind, None, name, written).await
}

/// Changes a node class by a merge patch (RFC 7396).
///
/// # Errors
/// What the API server says; after a conflict the object has been read again.
pub async fn patch_class(
    shared: &Shared,
    class: ClassPath,
    name: &str,
    patch: &Value,
) -> Result<Written, Failure> {
    let written = shared.api.patch_class(class, name, "", patch).await;
    read_again(shared, Kind::NodeClass, Some(class), name, written).await
}

/// Passes an answer on; after a conflict the next snapshot has the object as it is now.
async fn read_again(
    shared: &Shared,
    kind: Kind,
    class: Option<ClassPath>,
    name: &str,
    written: Result<Written, ApiFailure>,
) -> Result<Written, Failure> {
    if matches!(written, Err(ApiFailure::Conflict(_))) {
        let object = match class {
            None => shared.api.get(kind, name).await?,
            Some(class) => shared.api.get_class(class, name).await?,
        };
        if let Some(object) = object {
            shared.world.note(kind, object).await;
        }
    }
    Ok(written?)
}

/// Reads an object, so that the next snapshot has it as it is now: the watch may lag.
///
/// # Errors
/// What the API server says.
pub async fn refresh(shared: &Shared, kind: Kind, name: &str) -> Result<(), Failure> {
    if let Some(object) = shared.api.get(kind, name).await? {
        shared.world.note(kind, object).await;
    }
    Ok(())
}

/// What a step came to.
#[derive(Clone, Copy, Debug)]
pub enum After<T> {
    /// Something changed: decide anew.
    Look,
    /// The far end answered: decide anew, with the answer.
    Answered(T),
    /// That is all for now.
    Rest(Next),
}

/// Steps that are taken in one reconcile; no object needs as many.
const STEPS_MAX: usize = 12;

/// Takes one step after the other until there is nothing left to do now. Each step decides on a snapshot of
/// its own, and has the last answer of the far end.
///
/// # Errors
/// The failure of a step, when it is no conflict or not the first one; and when the object is not settled
/// after many steps, because something undoes what is done here: that must not become a race.
pub async fn settle<'a, T: Clone + Send>(
    mut step: impl FnMut(Option<T>) -> BoxFuture<'a, Result<After<T>, Failure>> + Send,
) -> Result<Next, Failure> {
    let (mut answer, mut n_conflicts) = (None, 0);
    for _ in 0..STEPS_MAX {
        match step(answer.clone()).await {
            Ok(After::Look) => {}
            Ok(After::Answered(answered)) => answer = Some(answered),
            Ok(After::Rest(next)) => return Ok(next),
            Err(failure) if failure.is_conflict() && n_conflicts < CONFLICTS_MAX => {
                n_conflicts += 1;
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Other(format!(
        "it is not settled after {STEPS_MAX} steps"
    )))
}

/// Tries a write on its own again after conflicts, up to so many times, with growing pauses in between.
///
/// # Errors
/// The last failure.
pub async fn through_conflicts<'a>(
    shared: &Shared,
    tries: u32,
    attempt: impl Fn() -> BoxFuture<'a, Result<(), Failure>>,
) -> Result<(), Failure> {
    for failures in 1..tries {
        match attempt().await {
            Err(failure) if failure.is_conflict() => {
                let pause = crate::retry::pause_after(failures);
                shared.clock.sleep(pause).await;
            }
            other => return other,
        }
    }
    attempt().await
}

/// Passes what the API server says of an object that may be gone: then there is nothing to do.
///
/// # Errors
/// Any other failure.
pub fn unless_gone<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(done) => Ok(Some(done)),
        Err(Failure::Api(ApiFailure::NotFound)) => Ok(None),
        Err(failure) => Err(failure),
    }
}
