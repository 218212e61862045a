//! Nodes are given back: controllers `disruption` and `disruption.queue`.
//!
//! *Flow*: every ten seconds, and when something was done or has come to its end, the snapshot becomes
//! a fleet and `joiner_disruption::decide` says which nodes go and what takes their place. A command
//! for money waits fifteen seconds, then the same question is asked again ([`confirm`]): if it still comes
//! out, its moves are counted ([`moves`]), its nodes are tainted, the intent is written on their
//! claims, and replacements are created ([`execute`]). When those are up, the claims are deleted
//! ([`queue`]); what came of it is in the [`ledger`].
//!
//! *Guarantees*: nothing is deleted before its replacements are initialized; a crash anywhere leaves
//! either a command on the objects, which goes on, or a taint that is taken away again.

mod execute;
mod fleet;
mod intent;
mod ledger;
mod measure;
mod moves;
mod queue;
mod successors;
mod tell;
mod when;

#[cfg(test)]
mod compat_tests;
#[cfg(test)]
mod queue_tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::labels::IN_TURN;
use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet, Judgement, Memory, confirm, decide, judgements};
use joiner_model::{Name, Policy, Problem};
use joiner_runtime::receipt::DisruptionDetails;
use joiner_state::live::{Ask, LivePool, Snapshot};

use self::fleet::Facts;
pub(crate) use self::intent::spoken_for;
pub use self::intent::{COMMAND, Intent};
use self::moves::Book;
pub use self::moves::MOVES;
pub use self::queue::controllers;
use self::when::{News, has_drifted, is_busy, is_stale, is_too_early, news, rest};
use crate::claim::Terms;
use crate::claim_template::claim_without_pods;
use crate::context::{Ctx, Failure};
use crate::nominations::Successor;
use crate::provisioning::{claims, in_background, unreadable};
use crate::static_pools::{Reserved, room_for_one};
use crate::turns::{self, Move, Turn};

/// Upstream's name of this controller.
pub const NAME: &str = "disruption";
/// How often it looks.
const EVERY: Duration = Duration::from_secs(10);
/// How soon it looks again after it began, ended or dropped something, and while machines are being
/// launched.
const SOON: Duration = Duration::from_secs(1);
/// It does not look in the midst of a burst, but when nothing has happened for this long: what is seen
/// before that is gone a moment later.
const CALM: Duration = Duration::from_secs(1);
/// And some bursts never end: it waits so often at most.
const BURST_MAX: usize = 5;
/// How long a command for money waits before it is asked about again.
const CONFIRM_AFTER: Duration = Duration::from_secs(15);

/// Runs until its future is dropped.
pub async fn run(ctx: Ctx) {
    let mut changes = ctx.world.subscribe();
    let mut known = Known::default();
    measure::begin(&ctx.metrics);
    let mut changed = ctx.clock.now();
    let mut pause = EVERY;
    loop {
        rest(&ctx, pause).await;
        if !ctx.world.is_listed() {
            continue;
        }
        for _ in 0..BURST_MAX {
            match news(&mut changes) {
                News::None => break,
                News::End => return,
                News::Some => {
                    changed = ctx.clock.now();
                    if has_drifted(&ctx.world.snapshot()) {
                        break;
                    }
                    ctx.clock.sleep(CALM).await;
                }
            }
        }
        let now = ctx.clock.now();
        if is_stale(changed, now) {
            changed = now;
        }
        execute::recover(&ctx).await;
        pause = EVERY;
        loop {
            let outcome = pass(&ctx, &mut known, changed).await;
            if outcome == Outcome::Nothing {
                break;
            }
            pause = SOON;
            // What was found out before rests on something that came to nothing, or is under way now.
            changed = ctx.clock.now();
            if outcome == Outcome::Dropped {
                break;
            }
        }
        if is_too_early(Terms::of(&*ctx.cloud), &ctx.world.snapshot()) {
            pause = SOON;
        }
    }
}

/// What is kept from one look to the next. Losing it costs time.
#[derive(Debug, Default)]
struct Known {
    /// What was found out.
    memory: Memory,
    /// Moves that workloads do not carry themselves.
    book: Book,
    /// What is wrong with the budgets of pools: said once.
    complaints: BTreeSet<(Name, String)>,
}

/// A command with everything that is needed to carry it out.
#[derive(Clone, Debug)]
struct Order {
    command: Command,
    replacements: Vec<NodeClaim>,
    /// Nodes of the members, for people.
    nodes: Vec<Name>,
    /// Pods that move, by workload; those without one have an empty name.
    moves: BTreeMap<Name, u32>,
    /// What the pools that give nodes think of it.
    judgements: Vec<Judgement>,
    /// Where the pods are to go that come in the place of those that move.
    successors: Vec<Successor>,
    /// In which turns pods leave.
    turns: Vec<Turn>,
    /// For whoever asks later why.
    receipt: DisruptionDetails,
}

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// A command was begun.
    Begun,
    /// A command did not hold when it was asked about once more: something else may.
    Dropped,
    /// There is nothing to do, or not now.
    Nothing,
}

/// One look at everything.
async fn pass(ctx: &Ctx, known: &mut Known, changed: Timestamp) -> Outcome {
    let snapshot = ctx.world.snapshot();
    if is_too_early(Terms::of(&*ctx.cloud), &snapshot) {
        // The next look will tell.
        return Outcome::Nothing;
    }
    let started = ctx.clock.now();
    let complaints = fleet::complaints(&snapshot, started);
    for (pool, complaint) in complaints.difference(&known.complaints) {
        tracing::error!(
            controller = NAME,
            NodePool = &**pool,
            "invalid disruption budget: {complaint}"
        );
    }
    known.complaints = complaints;
    let before = known.memory.clone();
    let scene = Scene {
        snapshot: Arc::clone(&snapshot),
        book: known.book.clone(),
        changed,
    };
    let look = look(ctx, scene, move |fleet| {
        let decision = decide(fleet, &before);
        let judged = tell::judged(fleet, &decision);
        (decision.commands.clone(), (decision, judged))
    });
    let Some(((decision, judged), orders)) = look.await else {
        return Outcome::Nothing;
    };
    tell::decided(ctx, &decision, judged, &snapshot);
    let took = ctx.clock.now().duration_since(started).as_secs_f64();
    measure::decided(&ctx.metrics, &decision, &snapshot, took);
    known.memory = decision.memory.clone();
    let (waiting, at_once): (Vec<Order>, Vec<Order>) =
        (orders.into_iter()).partition(|order| order.command.method.waits());
    let mut is_begun = false;
    for order in &at_once {
        is_begun |= start(ctx, &mut known.book, order).await;
    }
    let n_waiting = waiting.len();
    let held = after_a_wait(ctx, &known.book, waiting).await;
    let mut is_dropped = held.len() < n_waiting;
    for order in &held {
        match confirmed(ctx, &known.book, order).await {
            Some(order) => is_begun |= start(ctx, &mut known.book, &order).await,
            None => is_dropped = true,
        }
    }
    match (is_begun, is_dropped) {
        (true, _) => Outcome::Begun,
        (false, true) => Outcome::Dropped,
        (false, false) => Outcome::Nothing,
    }
}

/// What is looked at.
struct Scene {
    snapshot: Arc<Snapshot>,
    book: Book,
    changed: Timestamp,
}

/// Makes a fleet of a snapshot, asks something about it, and prepares the commands that come out.
async fn look<T: Send + 'static>(
    ctx: &Ctx,
    scene: Scene,
    ask: impl FnOnce(&Fleet<'_>) -> (Vec<Command>, T) + Send + 'static,
) -> Option<(T, Vec<Order>)> {
    // Nothing may have been bought for hours, or since the start: what is sold is asked for here, too.
    for (class, trouble) in ctx.catalogs.refresh(&*ctx.cloud, &scene.snapshot).await {
        tracing::error!(
            controller = NAME,
            class = &*class.name,
            "no instance types: {trouble}"
        );
    }
    let catalogs = ctx.catalogs.lists();
    let settings = ctx.settings.disruption;
    let policy = Policy {
        preferences: ctx.settings.preferences,
        min_values: ctx.settings.min_values,
        ..Policy::default()
    };
    let nominations = ctx.nominations.clone();
    let terms = Terms::of(&*ctx.cloud);
    let now = ctx.clock.now();
    in_background(move || {
        let snapshot = scene.snapshot;
        let asked = snapshot.problem(&Ask {
            catalogs: &catalogs,
            policy,
            now,
            planned: &BTreeSet::new(),
            headroom: &[],
        });
        let asked = asked.inspect_err(|error| unreadable(NAME, error)).ok()?;
        let facts = Facts {
            snapshot: &snapshot,
            nominations: &nominations,
            book: &scene.book,
            terms,
            settings,
            changed: scene.changed,
            now,
        };
        let fleet = fleet::fleet(&facts, &asked.problem);
        let (mut commands, answer) = ask(&fleet);
        let mut aside = Vec::new();
        commands.retain(|command| {
            let is_legal = is_legal(&fleet, &aside, command);
            aside.extend(&command.members);
            is_legal
        });
        let prepared = |command: &Command| {
            let mut claims = replacements(&snapshot, &asked.problem, command);
            let turns = successors::turns(&snapshot, &fleet, command, &claims);
            for claim in claims.iter_mut().filter(|_| !turns.is_empty()) {
                let annotations = &mut claim.metadata.annotations;
                annotations.insert(IN_TURN.to_owned(), "true".to_owned());
            }
            (claims, turns)
        };
        let commands = commands.into_iter().map(|own| (prepared(&own), own));
        let orders = commands.map(|((replacements, turns), command)| Order {
            turns,
            receipt: tell::receipt(&fleet, &command, &replacements),
            successors: successors::expected(&snapshot, &fleet, &command, &replacements),
            replacements,
            nodes: command
                .members
                .iter()
                .map(|ix| fleet.members[*ix].name.clone())
                .collect(),
            moves: moves_of(&fleet, &command),
            judgements: judgements(&fleet, &command),
            command,
        });
        let orders = orders.collect();
        Some((answer, orders))
    })
    .await?
}

/// Pods that a command moves, by workload.
fn moves_of(fleet: &Fleet<'_>, command: &Command) -> BTreeMap<Name, u32> {
    let mut moves = BTreeMap::new();
    let members = command.members.iter().map(|ix| &fleet.members[*ix]);
    for pod in members.flat_map(|own| &own.pods) {
        let owner = pod.owner.clone().unwrap_or_default();
        *moves.entry(owner).or_default() += 1;
    }
    moves
}

/// What the verifier says of a command's plan, when these members go by another one before it.
fn is_legal(fleet: &Fleet<'_>, aside: &[usize], command: &Command) -> bool {
    if command.from_template > 0 {
        return true;
    }
    let question = joiner_disruption::question(fleet, aside, &command.members);
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
        all.push(claim_without_pods(&pool.pool, &name));
    }
    all
}

/// Waits before these commands are asked about once more. Those that need not be asked any more are
/// left out.
async fn after_a_wait(ctx: &Ctx, book: &Book, mut orders: Vec<Order>) -> Vec<Order> {
    if orders.is_empty() {
        return orders;
    }
    for order in &orders {
        tell::candidate(ctx, order);
        measure::approved(ctx, order);
    }
    let end = ctx.clock.now().checked_add(CONFIRM_AFTER);
    let end = end.unwrap_or(Timestamp::MAX);
    if is_busy(&ctx.world.snapshot()) {
        rest(ctx, CONFIRM_AFTER).await;
        // What was under way has ended, and pods are elsewhere now. Nobody waits for what that was the
        // end of, too.
        if ctx.clock.now() < end {
            let mut held = Vec::new();
            for order in orders {
                if confirmed(ctx, book, &order).await.is_some() {
                    held.push(order);
                }
            }
            orders = held;
        }
    }
    if !orders.is_empty() {
        ctx.clock.sleep_until(end).await;
    }
    orders
}

/// The same command, decided anew on a fresh snapshot; none when it does not come out again.
async fn confirmed(ctx: &Ctx, book: &Book, order: &Order) -> Option<Order> {
    let scene = Scene {
        snapshot: ctx.world.snapshot(),
        book: book.clone(),
        changed: ctx.clock.now(),
    };
    let command = order.command.clone();
    let look = look(ctx, scene, move |fleet| match confirm(fleet, &command) {
        Ok(command) => (vec![command], None),
        Err(rejection) => (Vec::new(), Some(rejection)),
    });
    let (rejection, orders) = look.await?;
    let again = orders.into_iter().next();
    if again.is_none() {
        tell::rejected(ctx, order, rejection.as_ref());
    }
    again
}

/// Begins a command. True when it is under way.
async fn start(ctx: &Ctx, book: &mut Book, order: &Order) -> bool {
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
        moves: order.moves.values().sum(),
    };
    if ctx.api.is_dry_run() {
        tell::would_begin(order, &intent);
        return false;
    }
    let Some(_room) = static_room(ctx, order) else {
        tracing::info!(
            controller = NAME,
            "no room under limits.nodes to replace a node by now"
        );
        return false;
    };
    let counted = match counted(ctx, book, order).await {
        Ok(counted) => counted,
        Err(error) => {
            tracing::warn!(controller = NAME, %error, "cannot count the moves of a disruption");
            return false;
        }
    };
    ctx.turns.plan(to_move(ctx, order, &intent));
    match execute::begin(ctx, &intent, &order.replacements).await {
        Ok(()) => {
            ctx.turns.begin(&intent.id);
            ctx.nominations.expect(order.successors.clone(), started);
            tell::begun(ctx, order, &intent);
            true
        }
        Err(error) => {
            tracing::warn!(controller = NAME, %error, "cannot begin a disruption");
            ctx.turns.forget(&intent.id);
            moves::give_back(ctx, &counted).await;
            false
        }
    }
}

/// Room under the limits of static pools for what takes the place of others there; for other commands
/// none is needed. None when there is not enough.
fn static_room(ctx: &Ctx, order: &Order) -> Option<Vec<Reserved>> {
    if order.command.from_template == 0 {
        return Some(Vec::new());
    }
    let snapshot = ctx.world.snapshot();
    let claims = order.command.claims.iter();
    let rooms = claims.map(|name| {
        let pool = snapshot.claim(name)?.pool()?;
        room_for_one(ctx, snapshot.pool(pool)?)
    });
    rooms.collect()
}

/// How the pods of a command leave.
fn to_move(ctx: &Ctx, order: &Order, intent: &Intent) -> Move {
    let leavers = order.turns.iter().flat_map(|turn| &turn.leavers);
    let owners = leavers.filter_map(|one| one.owner.as_ref());
    Move {
        id: intent.id.clone(),
        members: order.command.claims.clone(),
        replicas: turns::replicas(&ctx.world.snapshot(), owners),
        turns: order.turns.clone(),
    }
}

/// Counts the moves of a command on the workloads that mind, before anything happens. Without a
/// limit nobody does.
async fn counted(
    ctx: &Ctx,
    book: &mut Book,
    order: &Order,
) -> Result<BTreeMap<Name, u32>, Failure> {
    let limited = ctx.settings.disruption.moves_per_replica > 0;
    if !limited || !order.command.reason.is_for_money() {
        return Ok(BTreeMap::new());
    }
    let mut moves = order.moves.clone();
    moves.remove("");
    moves::note(ctx, book, &moves).await?;
    Ok(moves)
}
