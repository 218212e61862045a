//! Commands under way: controller `disruption.queue`.
//!
//! Replacements are initialized before anything is deleted. A command that cannot be finished is
//! undone: taints go, claims are as before, and what was bought is found empty later.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use jiff::Timestamp;
use joiner_api::conditions as condition;
use joiner_cloud::Cloud;
use joiner_engine::{Controller, Failure, Keyed, Next, Reconcile, Shared, events};
use joiner_model::Name;
use joiner_runtime::Events;
use joiner_runtime::metric_names::DISRUPTION_QUEUE_FAILURES;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, Snapshot};

use super::apply::Undone;
use super::intent::Intent;
use super::ledger::Ledger;
use super::{Disruptor, apply, moves};
use crate::nodeclaim::{is_managed, lifecycle};

/// A command is given this long at least.
const TIME_MIN: Duration = Duration::from_secs(600);
/// And this long at most.
const TIME_MAX: Duration = Duration::from_secs(3600);
/// What each claim under way adds.
const TIME_EACH: Duration = Duration::from_millis(80);

/// What to do about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandStep {
    /// Replacements are on their way.
    Wait,
    /// All replacements are up: the members go.
    Delete,
    /// It cannot be finished; why, in words.
    Undo(String),
    /// Nothing is left of it.
    Done,
}

/// What to do next about a command.
#[must_use]
pub(super) fn next_step(
    intent: &Intent,
    snapshot: &Snapshot,
    n_under_way: usize,
    now: Timestamp,
) -> CommandStep {
    let members = intent
        .members
        .iter()
        .filter_map(|name| snapshot.claim(name));
    let mut waiting = members.filter(|claim| claim.meta.deleting.is_none());
    if waiting.next().is_none() {
        return CommandStep::Done;
    }
    match all_up(intent, snapshot) {
        Ok(true) => return CommandStep::Delete,
        Ok(false) => {}
        Err(why) => return CommandStep::Undo(why),
    }
    let most = time_limit(n_under_way);
    let age = Duration::try_from(now.duration_since(intent.started)).unwrap_or_default();
    if age > most {
        return CommandStep::Undo(format!(
            "its replacements are not up after {} s",
            age.as_secs()
        ));
    }
    CommandStep::Wait
}

/// How long a command is given with so many claims under way.
pub(super) fn time_limit(n_under_way: usize) -> Duration {
    let n = u32::try_from(n_under_way).unwrap_or(u32::MAX);
    TIME_EACH.saturating_mul(n).clamp(TIME_MIN, TIME_MAX)
}

/// Whether all replacements are initialized; why they will not be, in words, when one is lost.
fn all_up(intent: &Intent, snapshot: &Snapshot) -> Result<bool, String> {
    let mut all_up = true;
    for name in &intent.replacements {
        match snapshot.claim(name) {
            None => return Err(format!("its replacement {name} is gone")),
            Some(claim) if claim.meta.deleting.is_some() => {
                return Err(format!("its replacement {name} is going"));
            }
            Some(claim) => all_up &= claim.is_true(&condition::INITIALIZED),
        }
    }
    Ok(all_up)
}

/// How often a command under way is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Finishes commands that are under way. Keys are claims.
pub(super) struct CommandQueue {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    ledger: Ledger,
    /// Workloads carry how often their pods were moved.
    counts_moves: bool,
}

/// The controller of commands that are under way.
pub(super) fn controller(disruptor: &Disruptor) -> Controller {
    Controller::keyed(CommandQueue {
        shared: disruptor.shared.clone(),
        cloud: Arc::clone(&disruptor.cloud),
        ledger: Ledger::new(&disruptor.shared, &disruptor.catalogs),
        counts_moves: disruptor.settings.moves_per_replica > 0,
    })
}

impl CommandQueue {
    async fn go_on(&self, snapshot: &Snapshot, key: &Name) -> Result<Next, Failure> {
        let Some(claim) = snapshot.claim(key) else {
            self.ledger.gone(snapshot, key);
            return Ok(Next::Done);
        };
        let intent = Intent::of(claim).filter(|_| is_managed(&*self.cloud, claim));
        let Some(intent) = intent else {
            return Ok(Next::Done);
        };
        self.ledger.note(snapshot, &intent);
        if claim.meta.deleting.is_some() {
            return Ok(Next::Done);
        }
        // Each member goes by itself, so that none is deleted and counted twice.
        if all_up(&intent, snapshot) == Ok(true) {
            delete(&self.shared, snapshot, claim, &intent).await?;
        } else if speaker(snapshot, &intent).as_ref() == Some(key) {
            self.speak(snapshot, claim, &intent).await?;
        }
        Ok(Next::Again(EVERY))
    }

    /// Decides about a whole command.
    async fn speak(
        &self,
        snapshot: &Snapshot,
        claim: &LiveClaim,
        intent: &Intent,
    ) -> Result<(), Failure> {
        let marked = snapshot
            .claims()
            .filter(|claim| Intent::of(claim).is_some());
        let n_under_way = marked.count();
        match next_step(intent, snapshot, n_under_way, self.shared.clock.now()) {
            CommandStep::Done => {}
            CommandStep::Wait => report_wait(&self.shared.events, snapshot, intent),
            CommandStep::Delete => delete(&self.shared, snapshot, claim, intent).await?,
            CommandStep::Undo(why) => {
                if give_up(&self.shared, snapshot, intent, (&why, self.counts_moves)).await {
                    self.ledger.undone(snapshot, intent, &why);
                }
            }
        }
        Ok(())
    }
}

/// Members of the command that a claim was to be the replacement of, if that has come to nothing: their
/// command is undone at once.
fn bereaved(now: &Snapshot, name: &Name) -> Vec<Name> {
    let is_lost = now
        .claim(name)
        .is_none_or(|own| own.meta.deleting.is_some());
    let awaited = |own: &&Arc<LiveClaim>| {
        let intent = Intent::of(own);
        intent.is_some_and(|own| own.replacements.iter().any(|own| **own == **name))
    };
    let members = now.claims().filter(|_| is_lost).filter(awaited);
    members.map(|own| own.name().clone()).collect()
}

/// One member speaks for all of them: the first that carries the command and is not going yet.
pub(super) fn speaker(snapshot: &Snapshot, intent: &Intent) -> Option<Name> {
    let mut members = intent.carriers(snapshot);
    let speaker = members.find(|own| own.meta.deleting.is_none());
    speaker.map(|own| own.name().clone())
}

fn report_wait(events: &Events, snapshot: &Snapshot, intent: &Intent) {
    for claim in intent
        .replacements
        .iter()
        .filter_map(|name| snapshot.claim(name))
    {
        if claim.is_true(&condition::INITIALIZED) {
            continue;
        }
        let launching = format!("Launching NodeClaim: {}", intent.reason);
        let waiting = "Waiting on readiness to continue disruption".to_owned();
        let told = [
            ("DisruptionLaunching", launching),
            ("DisruptionWaitingReadiness", waiting),
        ];
        for (reason, message) in told {
            events::note(events, events::claim(claim), reason, message);
        }
    }
}

async fn delete(
    shared: &Shared,
    snapshot: &Snapshot,
    claim: &LiveClaim,
    intent: &Intent,
) -> Result<(), Failure> {
    let told = |kind: &str| format!("Disrupting {kind}: {}", intent.reason);
    let about = events::claim(claim);
    events::note(
        &shared.events,
        about,
        "DisruptionTerminating",
        told("NodeClaim"),
    );
    if let Some(node) = snapshot.node_of(claim) {
        let about = events::node(node);
        events::note(&shared.events, about, "DisruptionTerminating", told("Node"));
    }
    lifecycle::delete(shared, claim, &intent.reason.to_lowercase()).await?;
    Ok(())
}

/// Undoes a command. True when nothing is left of it.
async fn give_up(
    shared: &Shared,
    snapshot: &Snapshot,
    intent: &Intent,
    (why, counts_moves): (&str, bool),
) -> bool {
    tracing::warn!(
        command_id = intent.id,
        members = intent.members.join(","),
        "a disruption is undone: {why}"
    );
    let moves = moves::of_intent(snapshot, intent);
    let undone = apply::undo(shared, intent).await;
    if undone == Undone::NotYet {
        return false;
    }
    let missing = intent.replacements.iter().filter(|name| {
        let claim = snapshot.claim(name);
        claim.is_none_or(|own| !own.is_true(&condition::INITIALIZED))
    });
    let labels = [
        ("decision", intent.decision()),
        ("reason", &*intent.reason.to_lowercase()),
        ("consolidation_type", intent.decision()),
    ];
    let n = u32::try_from(missing.count()).unwrap_or(u32::MAX);
    shared
        .metrics
        .count(DISRUPTION_QUEUE_FAILURES, &labels, f64::from(n));
    let is_undone = undone == Undone::All;
    if is_undone && counts_moves {
        moves::give_back(shared, &moves).await;
    }
    is_undone
}

impl Keyed for CommandQueue {
    fn name(&self) -> &'static str {
        "disruption.queue"
    }

    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
        if change.kind != Kind::NodeClaim {
            return Vec::new();
        }
        let is_member = match now.claim(&change.name) {
            Some(claim) => Intent::of(claim).is_some(),
            None => self.ledger.knows(&change.name),
        };
        let mut all: Vec<Name> = is_member.then(|| change.name.clone()).into_iter().collect();
        all.extend(bereaved(now, &change.name));
        all
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let claims = now.claims().filter(|own| Intent::of(own).is_some());
        claims.map(|own| own.name().clone()).collect()
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        self.go_on(now, key).boxed()
    }
}
