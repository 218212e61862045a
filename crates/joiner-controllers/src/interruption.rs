//! Machines that the cloud will take away: controller `interruption`.
//!
//! *Flow*: a notice is kept until the claims of its machine are deleted. From that moment their pods are
//! part of the next plan, so that another node is bought while the old one is drained. Keys are the ids
//! of machines.
//!
//! *Guarantees*: a notice that comes before everything is listed is handled after; one that cannot be
//! handled is tried again for about a minute, and keeps no other from being handled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use joiner_api::labels::CAPACITY_TYPE;
use joiner_cloud::{Cloud, InterruptionKind};
use joiner_engine::{Controller, Failure, Keyed, Next, Reconcile, Shared, events};
use joiner_model::{Name, keys};
use joiner_receipts::Decision;
use joiner_runtime::metric_names::INTERRUPTION_MESSAGES;
use joiner_state::live::{Change, LiveClaim, Snapshot};
use serde_json::json;

use crate::nodeclaim::lifecycle;

/// Upstream's name of it.
const NAME: &str = "interruption";
/// A notice comes once, so that a deletion that fails is tried this often: for about a minute.
const TRIES: u32 = 12;

/// The controller of interruptions.
#[must_use]
pub fn controllers(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Vec<Controller> {
    vec![Controller::keyed(Interruption::new(shared, cloud))]
}

/// What a notice means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// Reason of the event.
    pub(crate) event: &'static str,
    /// For people.
    pub(crate) words: &'static str,
    /// Kind of the message, in metrics.
    pub(crate) message: &'static str,
    /// The node has to go; else it is only reported.
    pub(crate) ends: bool,
}

/// What a notice means.
pub(crate) fn meaning(kind: InterruptionKind) -> Meaning {
    let (event, words, message, ends) = match kind {
        InterruptionKind::SpotInterruption => (
            "SpotInterrupted",
            "the cloud takes its spot capacity back in two minutes",
            "spot_interrupted",
            true,
        ),
        InterruptionKind::RebalanceRecommendation => (
            "SpotRebalanceRecommendation",
            "its spot capacity may be taken back soon",
            "rebalance_recommendation",
            false,
        ),
        InterruptionKind::ScheduledChange => (
            "InstanceUnhealthy",
            "the machine under it is about to be serviced",
            "scheduled_change",
            true,
        ),
        InterruptionKind::StateChange => (
            "InstanceTerminating",
            "its machine was stopped or ended from outside",
            "instance_terminated",
            true,
        ),
    };
    Meaning {
        event,
        words,
        message,
        ends,
    }
}

/// A notice that has not been handled to its end.
#[derive(Clone, Copy, Debug)]
struct Notice {
    kind: InterruptionKind,
    /// How often the claims could not be deleted.
    n_failures: u32,
}

/// Notices by the id of their machine, in the order in which they came.
#[derive(Debug, Default)]
struct Notices(Mutex<BTreeMap<Name, Vec<Notice>>>);

impl Notices {
    fn keep(&self, id: &Name, notice: Notice) {
        self.lock().entry(id.clone()).or_default().push(notice);
    }

    fn take(&self, id: &Name) -> Vec<Notice> {
        self.lock().remove(id).unwrap_or_default()
    }

    fn ids(&self) -> Vec<Name> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Vec<Notice>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles notices.
struct Interruption {
    shared: Shared,
    /// What the cloud says, as it comes.
    stream: tokio::sync::Mutex<BoxStream<'static, joiner_cloud::Interruption>>,
    notices: Notices,
}

impl Interruption {
    fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            stream: tokio::sync::Mutex::new(cloud.interruptions().fuse().boxed()),
            notices: Notices::default(),
        }
    }

    /// Waits for notices, and keeps them. Returns the machines that they are about.
    async fn hear(&self) -> Vec<Name> {
        let mut stream = self.stream.lock().await;
        let Some(first) = stream.next().await else {
            // It ends with the process only; nothing else may end because of it.
            return std::future::pending().await;
        };
        let mut ids = vec![self.keep(first)];
        while let Some(Some(next)) = stream.next().now_or_never() {
            ids.push(self.keep(next));
        }
        ids
    }

    fn keep(&self, heard: joiner_cloud::Interruption) -> Name {
        let notice = Notice {
            kind: heard.kind,
            n_failures: 0,
        };
        self.notices.keep(&heard.id.0, notice);
        heard.id.0
    }

    /// Handles the notices about a machine.
    async fn handle(&self, id: &Name) -> Result<Next, Failure> {
        let mut failed = None;
        for notice in self.notices.take(id) {
            if let Err(failure) = self.handle_one(id, notice).await {
                failed = Some(failure);
            }
        }
        failed.map_or(Ok(Next::Done), Err)
    }

    async fn handle_one(&self, id: &Name, notice: Notice) -> Result<(), Failure> {
        // The notice before may have been the end of the claims.
        let now = self.shared.world.snapshot();
        let meaning = meaning(notice.kind);
        let is_new = notice.n_failures == 0;
        if is_new {
            let labels = [("message_type", meaning.message)];
            self.shared
                .metrics
                .count(INTERRUPTION_MESSAGES, &labels, 1.0);
        }
        let mut failed = None;
        for claim in now.claims_with_id(id) {
            if claim.meta.deleting.is_some() {
                continue;
            }
            if is_new {
                self.report(&now, claim, meaning);
            }
            if meaning.ends
                && let Err(failure) = lifecycle::delete(&self.shared, claim, meaning.message).await
            {
                failed = Some((claim, failure));
            }
        }
        let Some((claim, failure)) = failed else {
            return Ok(());
        };
        let n_failures = notice.n_failures + 1;
        if n_failures >= TRIES {
            tracing::error!(NodeClaim = &**claim.name(), error = %failure, "cannot delete");
            return Ok(());
        }
        let notice = Notice {
            n_failures,
            ..notice
        };
        self.notices.keep(id, notice);
        Err(failure)
    }

    /// Events, the log, and what it comes to.
    fn report(&self, now: &Snapshot, claim: &LiveClaim, meaning: Meaning) {
        let node = now.node_of(claim);
        let name = node.map_or("", |node| node.name());
        tracing::info!(
            NodeClaim = &**claim.name(),
            Node = name,
            reason = meaning.event,
            "interruption: {}",
            meaning.words
        );
        let both = || {
            let node = node.map(|node| events::node(node));
            [events::claim(claim)].into_iter().chain(node)
        };
        for about in both() {
            let words = meaning.words.to_owned();
            match meaning.ends {
                true => events::warn(&self.shared.events, about, meaning.event, words),
                false => events::note(&self.shared.events, about, meaning.event, words),
            }
        }
        if !meaning.ends {
            return;
        }
        for about in both() {
            let words = "It is drained, and its pods get another node".to_owned();
            let reason = "TerminatingOnInterruption";
            events::warn(&self.shared.events, about, reason, words);
        }
        let at = self.shared.clock.now();
        self.shared.decisions.record(Decision {
            time: at,
            kind: NAME.to_owned(),
            generation: now.generation,
            outcome: outcome(now, claim, meaning, at),
            reasons: vec![format!("{}: {}", meaning.event, meaning.words)],
            about: vec![
                format!("nodeclaim/{}", claim.name()),
                format!("node/{name}"),
            ],
            details: json!({"message": meaning.message}),
            ..Decision::default()
        });
    }
}

/// One line about what follows from a notice.
fn outcome(now: &Snapshot, claim: &LiveClaim, meaning: Meaning, at: Timestamp) -> String {
    let label = |key: &str| claim.meta.label(key).unwrap_or("unknown").to_owned();
    let node = now.node_of(claim);
    let pods = node
        .into_iter()
        .flat_map(|node| now.movable_pods(node.name(), at));
    let need = match pods.count() {
        0 => "nothing runs on it".to_owned(),
        1 => "its pod is planned anew at once".to_owned(),
        n => format!("its {n} pods are planned anew at once"),
    };
    format!(
        "{} ({} {} in {}) goes: {}; {need}",
        node.map_or_else(|| claim.name(), |node| node.name()),
        label(CAPACITY_TYPE),
        label(keys::INSTANCE_TYPE),
        label(keys::ZONE),
        meaning.words,
    )
}

impl Keyed for Interruption {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Only the cloud calls for it.
    fn keys(&self, _: &Change, _: &Snapshot) -> Vec<Name> {
        Vec::new()
    }

    fn all(&self, _: &Snapshot) -> Vec<Name> {
        self.notices.ids()
    }

    fn called(&self) -> BoxFuture<'_, Vec<Name>> {
        self.hear().boxed()
    }

    fn reconcile<'a>(&'a self, _: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.handle(key).boxed()
    }
}

#[cfg(test)]
#[path = "interruption_tests.rs"]
mod tests;
