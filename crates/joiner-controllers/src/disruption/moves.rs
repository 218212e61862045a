//! How often the pods of a workload were moved for money, kept on the workload.
//!
//! The annotation `joiner.dev/moves` of a Deployment, ReplicaSet or StatefulSet counts moves by hour
//! for a day. It is written before a command begins: a crash in between counts moves that did not
//! happen, and never forgets one that did. A command that is undone gives them back.
//!
//! Moves of workloads that cannot be written to (Jobs, kinds of others, objects that refuse the
//! change) are counted in a [`Book`], which lasts as long as the process. A pod without an owner is
//! not counted: nobody makes another, so that it moves once at most.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use joiner_engine::{Failure, Shared};
use joiner_model::Name;
use joiner_runtime::ApiFailure;
use joiner_state::live::{Kind, LivePod, LiveScalable, Snapshot};
use serde_json::json;

use super::intent::{Intent, counts_moves};

/// Annotation of workloads whose pods were moved, and what it says.
pub use joiner_state::live::MOVES;
pub(super) use joiner_state::live::MoveTally as Tally;
/// More workloads than this are not remembered in the book; the oldest are forgotten first.
const BOOK_MAX: usize = 10_000;

/// Moves of workloads that cannot be written to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book(BTreeMap<Name, Tally>);

impl Book {
    fn used(&self, workload: &Name, now: Timestamp) -> u32 {
        self.0.get(workload).map_or(0, |own| own.used(now, 0))
    }

    fn add(&mut self, workload: &Name, now: Timestamp, n: u32) {
        if self.0.len() >= BOOK_MAX && !self.0.contains_key(workload) {
            self.0.retain(|_, own| own.used(now, 0) > 0);
            let latest = |own: &Tally| own.last_hour();
            let oldest = self.0.iter().min_by_key(|(_, own)| latest(own));
            let oldest = oldest.map(|(name, _)| name.clone());
            if let Some(name) = oldest.filter(|_| self.0.len() >= BOOK_MAX) {
                self.0.remove(&name);
            }
        }
        let own = self.0.entry(workload.clone()).or_default();
        *own = own.and(now, n, 0);
    }
}

/// The workloads of all pods.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    /// By the uid of whatever a pod says owns it.
    by_owner: HashMap<Name, Name>,
    /// How many more moves they put up with; empty without a limit.
    pub(super) left: BTreeMap<Name, u32>,
}

impl Workloads {
    /// Looks at all pods. `limit` is moves for each replica in a day, 0 for any number.
    pub(super) fn new(snapshot: &Snapshot, book: &Book, limit: u32, now: Timestamp) -> Self {
        let mut all = Self::default();
        let mut foreign: BTreeMap<Name, u32> = BTreeMap::new();
        for pod in snapshot.pods().filter(|pod| pod.is_reschedulable()) {
            let Some(owner) = &pod.owner else { continue };
            if let Some(known) = all.by_owner.get(&owner.uid) {
                if let Some(n) = foreign.get_mut(known) {
                    *n += 1;
                }
                continue;
            }
            let name = workload(snapshot, pod);
            let Some(name) = name else { continue };
            all.by_owner.insert(owner.uid.clone(), name.clone());
            match snapshot.workload_of(pod) {
                Some((_, own)) => {
                    let replicas = replicas(own);
                    let used = own.moves.used(now, replicas);
                    let used = used.saturating_add(book.used(&name, now));
                    let left = limit.saturating_mul(replicas).saturating_sub(used);
                    all.left.insert(name, left);
                }
                None => *foreign.entry(name).or_default() += 1,
            }
        }
        for (name, n) in foreign {
            let left = limit.saturating_mul(n);
            let left = left.saturating_sub(book.used(&name, now));
            all.left.insert(name, left);
        }
        if limit == 0 {
            all.left.clear();
        }
        all
    }

    /// The workload of a pod.
    pub(super) fn of(&self, pod: &LivePod) -> Option<Name> {
        self.by_owner.get(&pod.owner.as_ref()?.uid).cloned()
    }
}

/// What a pod's workload is called: `namespace/Kind/name`.
fn workload(snapshot: &Snapshot, pod: &LivePod) -> Option<Name> {
    let owner = pod.owner.as_ref()?;
    let (kind, name) = match snapshot.workload_of(pod) {
        Some((kind, own)) => (kind.api().3, own.meta.own_name()),
        None => (&*owner.kind, &*owner.name),
    };
    Some(format!("{}/{kind}/{name}", pod.namespace()).into())
}

/// How many pods a workload wants.
fn replicas(own: &LiveScalable) -> u32 {
    u32::try_from(own.replicas.max(1)).unwrap_or(u32::MAX)
}

/// Kind and `namespace/name` of a workload that can be written to.
fn object(workload: &str) -> Option<(Kind, Name)> {
    let mut parts = workload.splitn(3, '/');
    let (namespace, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
    let kind = Kind::WORKLOADS.iter().find(|own| own.api().3 == kind)?;
    Some((*kind, format!("{namespace}/{name}").into()))
}

/// Writes moves on their workloads, before the first pod moves.
///
/// # Errors
/// The API server is away; some moves may have been counted.
pub(super) async fn note(
    shared: &Shared,
    book: &mut Book,
    moves: &BTreeMap<Name, u32>,
) -> Result<(), Failure> {
    for (workload, n) in moves {
        let now = shared.clock.now();
        match write(shared, workload, |tally, of| tally.and(now, *n, of)).await {
            Ok(true) => {}
            Ok(false) => book.add(workload, now, *n),
            Err(failure @ (ApiFailure::Away(_) | ApiFailure::TooManyRequests(_))) => {
                return Err(failure.into());
            }
            Err(error) => {
                tracing::warn!(
                    workload = &**workload,
                    %error,
                    "cannot write moves on a workload; they are counted until the next restart"
                );
                book.add(workload, now, *n);
            }
        }
    }
    Ok(())
}

/// Takes back moves that did not happen. What fails stays counted.
pub(super) async fn give_back(shared: &Shared, moves: &BTreeMap<Name, u32>) {
    for (workload, n) in moves {
        let now = shared.clock.now();
        let written = write(shared, workload, |tally, _| tally.without(now, *n)).await;
        if let Err(error) = written {
            tracing::debug!(workload = &**workload, %error, "moves stay counted");
        }
    }
}

/// Changes what is written on a workload; false when it is not one that can be written to.
async fn write(
    shared: &Shared,
    workload: &str,
    change: impl FnOnce(&Tally, u32) -> Tally,
) -> Result<bool, ApiFailure> {
    let snapshot = shared.world.snapshot();
    let Some((kind, name)) = object(workload) else {
        return Ok(false);
    };
    let Some(own) = snapshot.scalable(kind, &name) else {
        return Ok(false);
    };
    let before = own.meta.annotation(MOVES);
    let tally = change(&own.moves, replicas(own));
    let text = Some(tally.text()).filter(|text| !text.is_empty());
    if text.as_deref() == before {
        return Ok(true);
    }
    let patch = json!({"metadata": {"annotations": {MOVES: text}}});
    // Through the status, where annotations can be written, too: whoever may patch workloads
    // themselves may run anything as anybody.
    match shared.api.patch_status(kind, &name, &patch).await {
        // It is gone, and so are its pods.
        Ok(_) | Err(ApiFailure::NotFound) => Ok(true),
        Err(failure) => Err(failure),
    }
}

/// The moves that were counted for a command of which nothing has moved yet.
pub(super) fn of_intent(snapshot: &Snapshot, intent: &Intent) -> BTreeMap<Name, u32> {
    let mut moves = BTreeMap::new();
    if !counts_moves(intent) {
        return moves;
    }
    let claims = intent.members.iter();
    let nodes = claims.filter_map(|name| snapshot.node_of(snapshot.claim(name)?));
    for pod in nodes.flat_map(|node| snapshot.pods_on(node.name())) {
        let counted = pod.is_reschedulable() && pod.created <= intent.started;
        if let Some(name) = counted.then(|| workload(snapshot, pod)).flatten() {
            *moves.entry(name).or_default() += 1;
        }
    }
    moves
}

#[cfg(test)]
mod tests;
