//! From a decision to commands that can be carried out: legal ones, with their replacements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_api::labels::IN_TURN;
use joiner_api::types::NodeClaim;
use joiner_disruption::{Command, Fleet, Judgement, judgements};
use joiner_model::{Name, Problem};
use joiner_receipts::DisruptionDetails;
use joiner_state::live::{Ask, LivePool, Snapshot};

use super::fleet::{Facts, fleet};
use super::moves::Book;
use super::{Disruptor, report};
use crate::nodeclaim::template::claim_without_pods;
use crate::provisioning::{cannot_be_read, claims};
use crate::seating::{self, Successor, Turn};

/// A command with everything that is needed to carry it out.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) command: Command,
    pub(super) replacements: Vec<NodeClaim>,
    /// Nodes of the members, for people.
    pub(super) nodes: Vec<Name>,
    /// Pods that move, by workload; those without one have an empty name.
    pub(super) moves: BTreeMap<Name, u32>,
    /// What the pools that give nodes think of it.
    pub(super) judgements: Vec<Judgement>,
    /// Where the pods are to go that come in the place of those that move.
    pub(super) successors: Vec<Successor>,
    /// In which turns pods leave.
    pub(super) turns: Vec<Turn>,
    /// For the one who asks later why.
    pub(super) receipt: DisruptionDetails,
}

/// What is looked at.
pub(super) struct Scene {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) book: Book,
    pub(super) changed: Timestamp,
}

/// Makes a fleet of a snapshot, asks something about it, and prepares the commands that come out.
pub(super) async fn look<T: Send + 'static>(
    disruptor: &Disruptor,
    scene: Scene,
    ask: impl FnOnce(&Fleet<'_>) -> (Vec<Command>, T) + Send + 'static,
) -> Option<(T, Vec<Order>)> {
    // Nothing may have been bought for hours, or since the start: what is sold is asked for here, too.
    let refreshed = disruptor
        .catalogs
        .refresh(&*disruptor.cloud, &scene.snapshot);
    for (class, trouble) in refreshed.await {
        tracing::error!(class = &*class.name, "no instance types: {trouble}");
    }
    let asked = disruptor.clone();
    let now = disruptor.shared.clock.now();
    let work = move || {
        let snapshot = &scene.snapshot;
        let catalogs = asked.catalogs.lists();
        let problem = snapshot.problem(&Ask {
            catalogs: &catalogs,
            policy: asked.policy,
            now,
            planned: &BTreeSet::new(),
            headroom: &[],
        });
        let problem = problem.inspect_err(cannot_be_read).ok()?;
        let facts = Facts {
            snapshot,
            nominations: &asked.nominations,
            headroom: &asked.headroom,
            book: &scene.book,
            terms: asked.terms(),
            settings: asked.settings,
            changed: scene.changed,
            now,
        };
        let fleet = fleet(&facts, &problem.problem);
        let (commands, answer) = ask(&fleet);
        let commands = legal(&fleet, commands);
        let order = |command| order(snapshot, &fleet, command, asked.seating.is_on());
        Some((answer, commands.into_iter().map(order).collect()))
    };
    disruptor.background.run(work).await?
}

/// The commands that the verifier accepts, each with those before it.
fn legal(fleet: &Fleet<'_>, mut commands: Vec<Command>) -> Vec<Command> {
    let mut aside = Vec::new();
    commands.retain(|command| {
        let is_legal = is_legal(fleet, &aside, command);
        aside.extend(&command.members);
        is_legal
    });
    commands
}

/// A command with everything that is needed to carry it out.
fn order(snapshot: &Snapshot, fleet: &Fleet<'_>, command: Command, in_turns: bool) -> Order {
    let mut claims = replacements(snapshot, fleet.problem, &command);
    let turns = match in_turns {
        true => seating::turns(snapshot, fleet, &command, &claims),
        false => Vec::new(),
    };
    for claim in claims.iter_mut().filter(|_| !turns.is_empty()) {
        let annotations = &mut claim.metadata.annotations;
        annotations.insert(IN_TURN.to_owned(), "true".to_owned());
    }
    let members = command.members.iter();
    Order {
        turns,
        receipt: report::receipt(fleet, &command, &claims),
        successors: seating::expected(snapshot, fleet, &command, &claims),
        replacements: claims,
        nodes: members.map(|ix| fleet.members[*ix].name.clone()).collect(),
        moves: moves_of(fleet, &command),
        judgements: judgements(fleet, &command),
        command,
    }
}

/// Pods that a command moves, by workload.
fn moves_of(fleet: &Fleet<'_>, command: &Command) -> BTreeMap<Name, u32> {
    let mut moves = BTreeMap::new();
    let members = command.members.iter().map(|ix| &fleet.members[*ix]);
    for pod in members.flat_map(|member| &member.pods) {
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
            snapshot.claim(name).is_some() || all.iter().any(|claim| claim.metadata.name == name)
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
            snapshot.claim(name).is_some() || all.iter().any(|claim| claim.metadata.name == name)
        };
        let name = claims::name(&pool.pool, &[&seed], &taken);
        all.push(claim_without_pods(&pool.pool, &name));
    }
    all
}
