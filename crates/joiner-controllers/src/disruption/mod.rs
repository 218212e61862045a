//! Nodes are given back: controllers `disruption` and `disruption.queue`.
//!
//! *Flow*: every ten seconds, and when something was done, the snapshot becomes a fleet and
//! `joiner_disruption::decide` says which nodes go and what takes their place. A command for money
//! waits fifteen seconds, then the same question is asked again ([`confirm`]): if it still comes
//! out, its nodes are tainted, the intent is written on their claims, and replacements are created
//! ([`execute`]). When those are up, the claims are deleted ([`queue`]).
//!
//! *Guarantees*: nothing is deleted before its replacements are initialized; a crash anywhere leaves
//! either a command on the objects, which goes on, or a taint that is taken away again.

mod execute;
mod fleet;
mod intent;
mod queue;
mod tell;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet, Memory, confirm, decide};
use joiner_model::{Name, Policy, Problem};
use joiner_state::live::{Ask, Change, Kind, LivePool, Snapshot, What};
use tokio::sync::broadcast::error::TryRecvError;

use self::fleet::Facts;
pub use self::intent::{COMMAND, Intent};
pub use self::queue::controllers;
use crate::claim_template::claim_from;
use crate::context::Ctx;
use crate::provisioning::{claims, in_background};

/// Upstream's name of this controller.
pub const NAME: &str = "disruption";
/// How often it looks.
const EVERY: Duration = Duration::from_secs(10);
/// How long a command for money waits before it is asked about again.
const CONFIRM_AFTER: Duration = Duration::from_secs(15);
/// A "nothing to do" holds this long at most.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// Runs until its future is dropped.
pub async fn run(ctx: Ctx) {
    let mut changes = ctx.world.subscribe();
    let mut memory = Memory::default();
    let mut changed = ctx.clock.now();
    loop {
        ctx.clock.sleep(EVERY).await;
        if !ctx.world.is_listed() {
            continue;
        }
        loop {
            match changes.try_recv() {
                Ok(told) if told.iter().any(matters) => changed = ctx.clock.now(),
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => changed = ctx.clock.now(),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => return,
            }
        }
        let now = ctx.clock.now();
        let age = Duration::try_from(now.duration_since(changed)).unwrap_or_default();
        if age >= REMEMBERED_FOR {
            changed = now;
        }
        execute::recover(&ctx).await;
        while pass(&ctx, &mut memory, changed).await {
            changed = ctx.clock.now();
        }
    }
}

/// A change that may turn a "nothing to do" around.
fn matters(change: &Change) -> bool {
    match change.kind {
        // Nodes say often that they are alive; a pod that is bound may have just been.
        Kind::Node => change.what != What::Changed,
        Kind::Pod => change.what != What::Changed || change.about.is_some(),
        Kind::NodeClaim
        | Kind::NodePool
        | Kind::NodeOverlay
        | Kind::NodeClass
        | Kind::PodDisruptionBudget => true,
        Kind::DaemonSet
        | Kind::PersistentVolumeClaim
        | Kind::PersistentVolume
        | Kind::StorageClass
        | Kind::CsiNode
        | Kind::VolumeAttachment
        | Kind::Namespace
        | Kind::PriorityClass
        | Kind::RuntimeClass
        | Kind::CapacityBuffer
        | Kind::PodTemplate
        | Kind::Deployment
        | Kind::ReplicaSet
        | Kind::StatefulSet => false,
    }
}

/// A command with everything that is needed to carry it out.
#[derive(Clone, Debug)]
struct Order {
    command: Command,
    replacements: Vec<NodeClaim>,
    /// Nodes of the members, for people.
    nodes: Vec<Name>,
}

/// One look at everything. True when something was begun.
async fn pass(ctx: &Ctx, memory: &mut Memory, changed: Timestamp) -> bool {
    let snapshot = ctx.world.snapshot();
    if snapshot
        .claims()
        .any(|claim| claim.provider_id.is_none() && claim.meta.deleting.is_none())
    {
        // What a claim will be is not known yet; the next look will tell.
        return false;
    }
    let before = memory.clone();
    let look = look(ctx, Arc::clone(&snapshot), changed, move |fleet| {
        let decision = decide(fleet, &before);
        let nodes: Vec<Name> = fleet.members.iter().map(|own| own.name.clone()).collect();
        (decision.commands.clone(), (decision, nodes))
    });
    let Some(((decision, nodes), orders)) = look.await else {
        return false;
    };
    tell::decided(ctx, &decision, &nodes, &snapshot);
    *memory = decision.memory.clone();
    let mut begun = false;
    for order in orders {
        let order = if order.command.method.waits() {
            tell::candidate(ctx, &order);
            ctx.clock.sleep(CONFIRM_AFTER).await;
            match confirmed(ctx, order).await {
                Some(order) => order,
                None => continue,
            }
        } else {
            order
        };
        begun |= start(ctx, &order).await;
    }
    begun
}

/// Makes a fleet of a snapshot, asks something about it, and prepares the commands that come out.
async fn look<T: Send + 'static>(
    ctx: &Ctx,
    snapshot: Arc<Snapshot>,
    changed: Timestamp,
    ask: impl FnOnce(&Fleet<'_>) -> (Vec<Command>, T) + Send + 'static,
) -> Option<(T, Vec<Order>)> {
    let catalogs = ctx.catalogs.lists();
    let settings = ctx.settings.disruption;
    let policy = Policy {
        preferences: ctx.settings.preferences,
        min_values: ctx.settings.min_values,
        ..Policy::default()
    };
    let nominations = ctx.nominations.clone();
    let now = ctx.clock.now();
    in_background(move || {
        let asked = snapshot.problem(&Ask {
            catalogs: &catalogs,
            policy,
            now,
            leaving: &BTreeSet::new(),
            headroom: &[],
        });
        let facts = Facts {
            snapshot: &snapshot,
            nominations: &nominations,
            settings,
            changed,
            now,
        };
        let fleet = fleet::fleet(&facts, &asked.problem);
        let (mut commands, answer) = ask(&fleet);
        commands.retain(|command| is_legal(&fleet, command));
        let orders = commands.into_iter().map(|command| Order {
            replacements: replacements(&snapshot, &asked.problem, &command),
            nodes: command
                .members
                .iter()
                .map(|ix| fleet.members[*ix].name.clone())
                .collect(),
            command,
        });
        let orders = orders.collect();
        (answer, orders)
    })
    .await
}

/// What the verifier says of a command's plan.
fn is_legal(fleet: &Fleet<'_>, command: &Command) -> bool {
    if command.from_template > 0 {
        return true;
    }
    let question = joiner_disruption::question(fleet, &command.members);
    let violations = joiner_verify::check(&question, &command.plan);
    if let Some(first) = violations.first() {
        tracing::error!(
            controller = NAME,
            violations = violations.len(),
            "the verifier rejects a disruption, nothing is changed: {first}"
        );
    }
    violations.is_empty()
}

/// The claims that take the place of a command's members.
fn replacements(snapshot: &Snapshot, problem: &Problem, command: &Command) -> Vec<NodeClaim> {
    let mut all: Vec<NodeClaim> = Vec::new();
    for launch in &command.plan.launches {
        let pool = &problem.pools[launch.pool.0 as usize].name;
        let Some(pool) = snapshot.pool(pool) else {
            continue;
        };
        let pods = launch
            .pods
            .iter()
            .map(|pod| &problem.pods[pod.0 as usize].name);
        let mut uids: Vec<&str> = pods
            .map(|name| snapshot.pod(name).map_or(&**name, |pod| &*pod.uid))
            .collect();
        // Its pods run already, on a claim whose name is made from them, too.
        uids.extend(command.claims.iter().map(|name| &**name));
        let taken = |name: &str| {
            snapshot.claim(name).is_some() || all.iter().any(|own| own.metadata.name == name)
        };
        all.push(claims::claim_for(problem, launch, &pool.pool, &uids, &taken).claim);
    }
    let claim = command.claims.first().and_then(|name| snapshot.claim(name));
    let pool = claim.and_then(|claim| snapshot.pool(claim.pool()?));
    if let Some(pool) = pool {
        all.extend(copies(snapshot, pool, command));
    }
    all
}

/// Claims made from a pool's template as it is, for pools of constant size.
fn copies(snapshot: &Snapshot, pool: &LivePool, command: &Command) -> Vec<NodeClaim> {
    let mut all: Vec<NodeClaim> = Vec::new();
    for n in 0..command.from_template {
        let seed = format!("{}/{n}", command.claims.join(","));
        let taken = |name: &str| {
            snapshot.claim(name).is_some() || all.iter().any(|own| own.metadata.name == name)
        };
        let name = claims::name(&pool.pool, &[&seed], &taken);
        all.push(claim_from(&pool.pool, &name));
    }
    all
}

/// The same command, decided anew on a fresh snapshot; none when it does not come out again.
async fn confirmed(ctx: &Ctx, order: Order) -> Option<Order> {
    let snapshot = ctx.world.snapshot();
    let command = order.command.clone();
    let changed = ctx.clock.now();
    let look = look(ctx, snapshot, changed, move |fleet| {
        match confirm(fleet, &command) {
            Ok(command) => (vec![command], None),
            Err(rejection) => (Vec::new(), Some(rejection)),
        }
    });
    let (rejection, orders) = look.await?;
    let again = orders.into_iter().next();
    if again.is_none() {
        tell::rejected(ctx, &order, rejection.as_ref());
    }
    again
}

/// Begins a command. True when it is under way.
async fn start(ctx: &Ctx, order: &Order) -> bool {
    let command = &order.command;
    let started = ctx.clock.now();
    let names = order
        .replacements
        .iter()
        .map(|own| own.metadata.name.clone());
    let intent = Intent {
        id: intent::id(&command.claims, started),
        reason: command.reason.as_str().to_owned(),
        method: command.method.consolidation_type().to_owned(),
        started,
        members: command.claims.iter().map(ToString::to_string).collect(),
        replacements: names.collect(),
        saves: command.savings().get(),
    };
    if ctx.api.is_dry_run() {
        tell::would_begin(order, &intent);
        return false;
    }
    match execute::begin(ctx, &intent, &order.replacements).await {
        Ok(()) => {
            tell::begun(ctx, order, &intent);
            true
        }
        Err(error) => {
            tracing::warn!(controller = NAME, %error, "cannot begin a disruption");
            false
        }
    }
}
