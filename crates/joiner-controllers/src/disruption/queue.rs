//! Commands under way: controller `disruption.queue`.
//!
//! Replacements are initialized before anything is deleted. A command that cannot be finished is
//! undone: taints go, claims are as before, and what was bought is found empty later.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use joiner_model::Name;
use joiner_runtime::metric_names::DISRUPTION_QUEUE_FAILURES;
use joiner_state::live::{Change, Conditions as _, Kind, LiveClaim, Snapshot};

use super::execute::Undone;
use super::intent::Intent;
use super::ledger::Ledger;
use super::{execute, moves};
use crate::claim;
use crate::context::{Ctx, Failure, Next};
use crate::engine::Controller;
use crate::observe;
use crate::upkeep::is_managed;

/// A command is given this long at least.
const TIME_MIN: Duration = Duration::from_secs(600);
/// And this long at most.
const TIME_MAX: Duration = Duration::from_secs(3600);
/// What each claim under way adds.
const TIME_EACH: Duration = Duration::from_millis(80);

/// What to do about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
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
) -> Step {
    let members = intent
        .members
        .iter()
        .filter_map(|name| snapshot.claim(name));
    let mut waiting = members.filter(|claim| claim.meta.deleting.is_none());
    if waiting.next().is_none() {
        return Step::Done;
    }
    match all_up(intent, snapshot) {
        Ok(true) => return Step::Delete,
        Ok(false) => {}
        Err(why) => return Step::Undo(why),
    }
    let most = time_limit(n_under_way);
    let age = Duration::try_from(now.duration_since(intent.started)).unwrap_or_default();
    if age > most {
        return Step::Undo(format!(
            "its replacements are not up after {} s",
            age.as_secs()
        ));
    }
    Step::Wait
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
            Some(claim) => all_up &= claim.is_true("Initialized"),
        }
    }
    Ok(all_up)
}

/// How often a command under way is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Finishes commands that are under way. Keys are claims.
#[derive(Debug, Default)]
pub(crate) struct CommandQueue {
    ledger: Ledger,
}

/// Controllers that look at one claim at a time.
#[must_use]
pub fn controllers() -> Vec<Arc<dyn Controller>> {
    vec![Arc::new(CommandQueue::default())]
}

impl CommandQueue {
    async fn look(&self, ctx: &Ctx, key: &Name) -> Result<Next, Failure> {
        let snapshot = ctx.world.snapshot();
        let Some(claim) = snapshot.claim(key) else {
            self.ledger.gone(ctx, &snapshot, key);
            return Ok(Next::Done);
        };
        let intent = Intent::of(claim).filter(|_| is_managed(&*ctx.cloud, claim));
        let Some(intent) = intent else {
            return Ok(Next::Done);
        };
        self.ledger.note(ctx, &snapshot, &intent);
        if claim.meta.deleting.is_some() {
            return Ok(Next::Done);
        }
        let speaker = speaker(&snapshot, &intent);
        // But each goes by itself, so that none is deleted and counted twice.
        if all_up(&intent, &snapshot) == Ok(true) {
            delete(ctx, &snapshot, claim, &intent).await?;
            return Ok(Next::Again(EVERY));
        }
        if speaker.as_ref() != Some(key) {
            return Ok(Next::Again(EVERY));
        }
        let n_under_way = snapshot
            .claims()
            .filter(|own| Intent::of(own).is_some())
            .count();
        match next_step(&intent, &snapshot, n_under_way, ctx.clock.now()) {
            Step::Done => Ok(Next::Done),
            Step::Wait => {
                wait(ctx, &snapshot, &intent);
                Ok(Next::Again(EVERY))
            }
            Step::Delete => {
                delete(ctx, &snapshot, claim, &intent).await?;
                Ok(Next::Again(EVERY))
            }
            Step::Undo(why) => {
                if give_up(ctx, &snapshot, &intent, &why).await {
                    self.ledger.undone(ctx, &snapshot, &intent, &why);
                }
                Ok(Next::Again(EVERY))
            }
        }
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

fn wait(ctx: &Ctx, snapshot: &Snapshot, intent: &Intent) {
    for claim in intent
        .replacements
        .iter()
        .filter_map(|name| snapshot.claim(name))
    {
        if claim.is_true("Initialized") {
            continue;
        }
        let launching = format!("Launching NodeClaim: {}", intent.reason);
        let waiting = "Waiting on readiness to continue disruption".to_owned();
        let told = [
            ("DisruptionLaunching", launching),
            ("DisruptionWaitingReadiness", waiting),
        ];
        for (reason, message) in told {
            observe::note(ctx, observe::claim(claim), reason, message);
        }
    }
}

async fn delete(
    ctx: &Ctx,
    snapshot: &Snapshot,
    claim: &LiveClaim,
    intent: &Intent,
) -> Result<(), Failure> {
    let told = |kind: &str| format!("Disrupting {kind}: {}", intent.reason);
    let about = observe::claim(claim);
    observe::note(ctx, about, "DisruptionTerminating", told("NodeClaim"));
    if let Some(node) = snapshot.node_of(claim) {
        let about = observe::node(node);
        observe::note(ctx, about, "DisruptionTerminating", told("Node"));
    }
    claim::delete(ctx, claim, &intent.reason.to_lowercase()).await?;
    Ok(())
}

/// Undoes a command. True when nothing is left of it.
async fn give_up(ctx: &Ctx, snapshot: &Snapshot, intent: &Intent, why: &str) -> bool {
    tracing::warn!(
        controller = "disruption.queue",
        command_id = intent.id,
        members = intent.members.join(","),
        "a disruption is undone: {why}"
    );
    let moves = moves::of_intent(snapshot, intent);
    let undone = execute::undo(ctx, intent).await;
    if undone == Undone::NotYet {
        return false;
    }
    let missing = intent.replacements.iter().filter(|name| {
        let claim = snapshot.claim(name);
        claim.is_none_or(|own| !own.is_true("Initialized"))
    });
    let labels = [
        ("decision", intent.decision()),
        ("reason", &*intent.reason.to_lowercase()),
        ("consolidation_type", intent.decision()),
    ];
    let n = u32::try_from(missing.count()).unwrap_or(u32::MAX);
    ctx.metrics
        .count(DISRUPTION_QUEUE_FAILURES, &labels, f64::from(n));
    let is_undone = undone == Undone::All;
    if is_undone && ctx.settings.disruption.moves_per_replica > 0 {
        moves::give_back(ctx, &moves).await;
    }
    is_undone
}

impl Controller for CommandQueue {
    fn name(&self) -> &'static str {
        "disruption.queue"
    }

    fn concerned(&self, change: &Change, now: &Snapshot) -> Vec<Name> {
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

    fn reconcile<'a>(
        &'a self,
        ctx: &'a Ctx,
        key: &'a Name,
    ) -> BoxFuture<'a, Result<Next, Failure>> {
        self.look(ctx, key).boxed()
    }
}
