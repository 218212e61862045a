//! Pending pods become NodeClaims: controller `provisioner`.
//!
//! *Flow*: collect pods that fit nowhere ([`batch`]); turn the snapshot into a problem; solve;
//! verify; create one claim per node of the plan ([`claims`]); tell the pods ([`tell`]).
//!
//! *Guarantees*: one plan at a time, on a snapshot that has everything the last plan created; a
//! plan that the verifier rejects changes nothing; a crash anywhere in between creates nothing
//! twice, since claims that are not launched yet are nodes to the next plan.

mod batch;
pub(crate) mod claims;
#[cfg(test)]
mod claims_tests;
mod left_over;
pub(crate) mod propose;
mod tell;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use joiner_cloud::Cloud;
use joiner_model::{Name, Plan, Policy, Problem};
use joiner_runtime::{ApiFailure, Written};
use joiner_state::ReadError;
use joiner_state::live::{
    Ask, Asked, Change, Conditions as _, Kind, LiveClaim, LivePod, PLANNED, Snapshot, VirtualPod,
};
use tokio::sync::broadcast::error::RecvError;

use self::batch::Batch;
use self::claims::NewClaim;
use self::left_over::Fates;
use crate::catalogs::Lists;
use crate::context::Ctx;
use crate::disruption::spoken_for;
use crate::turns::Turns;
use crate::upkeep::is_managed;

/// Upstream's name of this controller.
pub const NAME: &str = "provisioner";
/// How many claims are created at the same time.
const CREATE_AT_ONCE: usize = 32;
/// How long a plan waits for claims of others to be launched before it is asked again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Runs until its future is dropped.
pub async fn run(ctx: Ctx) {
    let mut changes = ctx.world.subscribe();
    let mut batch = Batch::default();
    // What was said last of the pools that are missing.
    let mut lacks_pools: Option<String> = None;
    let mut fates = Fates::default();
    loop {
        if lacks_pools.is_some() {
            let why = ctx.world.snapshot().why_no_pool();
            if why.is_none() {
                batch.forget();
            }
            say_missing(&mut lacks_pools, why);
        }
        // Asked before anybody is left out for it: turns may be over when the look is.
        let in_turns = !ctx.turns.is_empty();
        let is_listed = ctx.world.is_listed();
        if is_listed {
            let now = ctx.world.snapshot();
            ask(&mut batch, &now, &ctx.turns, ctx.clock.now());
            // Buffers ask again and again, but nobody asks when the last one is gone.
            if now.buffers().next().is_none() {
                ctx.nominations.set_headroom(BTreeSet::new());
            }
        }
        let now = ctx.clock.now();
        let closes = batch.closes(ctx.settings.batching);
        if closes.is_some_and(|at| at <= now) {
            match pass(&ctx, &mut fates).await {
                Pass::Done => batch.close(ctx.clock.now()),
                Pass::NoPools(why) => {
                    batch.close(ctx.clock.now());
                    say_missing(&mut lacks_pools, Some(why));
                }
                Pass::NotYet => ctx.clock.sleep(LOOK_AGAIN).await,
                Pass::Failed => {
                    batch.close(ctx.clock.now());
                    ctx.clock.sleep(Duration::from_secs(1)).await;
                    batch.forget();
                }
            }
            continue;
        }
        // When pods leave in turns, others in their stead are looked after as soon as that is over.
        let turn = in_turns.then(|| now.checked_add(LOOK_AGAIN).unwrap_or(now));
        let times = [closes, batch.next(), turn];
        let wake = times.into_iter().flatten().min();
        tokio::select! {
            biased;
            change = changes.recv() => {
                let (mut lost, mut up) = (false, false);
                let mut change = change;
                loop {
                    match &change {
                        Ok(told) => {
                            let now = ctx.world.snapshot();
                            lost |= is_launch_lost(told, &now);
                            up |= is_node_up(told, &now);
                        }
                        Err(RecvError::Lagged(_)) => {}
                        Err(RecvError::Closed) => return,
                    }
                    match changes.try_recv() {
                        Ok(next) => change = Ok(next),
                        Err(_) => break,
                    }
                }
                // Its pods need another node now, and not only when they are next heard.
                if lost {
                    batch.forgive();
                }
                if up {
                    batch.settle(ctx.clock.now());
                }
            }
            () = ctx.clock.sleep_until(wake.unwrap_or(Timestamp::MAX)), if wake.is_some() => {}
            // Until everything is listed there may be no changes to wait for.
            () = ctx.clock.sleep(Duration::from_millis(50)), if !is_listed => {}
        }
    }
}

/// True when a claim goes that never got a machine.
fn is_launch_lost(changes: &[Change], now: &Snapshot) -> bool {
    changes.iter().any(|change| {
        let claim = now
            .claim(&change.name)
            .filter(|_| change.kind == Kind::NodeClaim);
        claim.is_some_and(|own| own.meta.deleting.is_some() && own.provider_id.is_none())
    })
}

/// True when a claim changes whose node is up, and no other node is still to come.
fn is_node_up(changes: &[Change], now: &Snapshot) -> bool {
    let is_coming =
        |own: &Arc<LiveClaim>| !own.is_true("Initialized") && own.meta.deleting.is_none();
    if now.claims().any(is_coming) {
        return false;
    }
    changes.iter().any(|change| {
        let claim = now
            .claim(&change.name)
            .filter(|_| change.kind == Kind::NodeClaim);
        claim.is_some_and(|own| own.is_true("Initialized"))
    })
}

/// Everybody who waits for a plan now.
fn ask(batch: &mut Batch, now: &Snapshot, turns: &Turns, at: Timestamp) {
    let doomed = now.doomed();
    batch.look(now.provisionable().count() + doomed.len(), at);
    let moving = turns.owners();
    let is_moving = |pod: &LivePod| {
        let owner = pod.owner.as_ref();
        owner.is_some_and(|owner| moving.contains(&owner.uid))
    };
    for pod in now.provisionable().filter(|pod| !is_moving(pod)) {
        batch.ask(&pod.uid);
    }
    for pod in doomed.iter().filter(|pod| !is_moving(pod)) {
        batch.ask(&pod.uid);
    }
    batch.expect(now.fresh().count(), doomed.len());
    let planned = planned(turns, now);
    let unplanned = now
        .leaving_nodes()
        .filter(|own| !planned.contains(own.name()));
    for node in unplanned {
        if now.movable_pods(node.name(), at).next().is_some() {
            batch.ask(&node.meta.uid);
        }
    }
    for buffer in now.buffers() {
        let meta = &buffer.meta;
        batch.ask(&format!("{}@{}", meta.uid, meta.version).into());
    }
}

/// Nodes that go, and whose pods have a plan already.
fn planned(turns: &Turns, now: &Snapshot) -> BTreeSet<Name> {
    let mut all = turns.nodes(now);
    all.append(&mut spoken_for(now));
    all
}

/// Logs which pools are missing, once for each change: pods may come by the thousand meanwhile.
fn say_missing(said: &mut Option<String>, why: Option<String>) {
    if let Some(why) = why.as_ref().filter(|why| said.as_ref() != Some(*why)) {
        tracing::info!(controller = NAME, "no dynamic nodepools found: {why}");
    }
    *said = why;
}

/// How a pass ended.
enum Pass {
    /// A plan was made and carried out, or there was nothing to plan.
    Done,
    /// There is no pool to buy for, and why; the first that can be used is planned with at once.
    NoPools(String),
    /// Something has to come first.
    NotYet,
    /// It came to nothing.
    Failed,
}

async fn pass(ctx: &Ctx, fates: &mut Fates) -> Pass {
    let now = ctx.world.snapshot();
    if is_unsettled(&*ctx.cloud, &now) {
        return Pass::NotYet;
    }
    if let Some(why) = now.why_no_pool() {
        return Pass::NoPools(why);
    }
    for (class, trouble) in ctx.catalogs.refresh(&*ctx.cloud, &now).await {
        tracing::error!(
            controller = NAME,
            class = &*class.name,
            "no instance types: {trouble}"
        );
    }
    let started = ctx.clock.now();
    let headroom = match ctx.settings.gates.capacity_buffer {
        true => crate::buffer::virtual_pods(&now),
        false => Vec::new(),
    };
    let Some((asked, plan)) = plan(ctx, Arc::clone(&now), headroom.clone()).await else {
        return Pass::Failed;
    };
    let took = ctx.clock.now().duration_since(started).as_secs_f64();
    let labels = [("controller", NAME)];
    ctx.metrics.observe(
        "karpenter_scheduler_scheduling_duration_seconds",
        &labels,
        took,
    );
    if !plan.launches.is_empty() || !plan.unplaced.is_empty() {
        tell::found(&asked, &plan);
    }
    crate::metrics_state::zones::show(ctx, NAME, &asked);
    let created = create(ctx, &now, &asked, &plan).await;
    ctx.nominations
        .plan(propose::planned(&now, &asked, &plan, &created));
    tell::pods(ctx, &now, &asked, &plan, &created);
    tell::decide(ctx, &now, &asked, &plan, &created, fates);
    tell::buffers(ctx, &asked, &plan, &headroom).await;
    let all_created = created.len() == plan.launches.len();
    fates.tell(ctx, now, asked, plan);
    if all_created {
        Pass::Done
    } else {
        Pass::Failed
    }
}

/// A claim that we did not plan is not launched: what it will be cannot be known yet. One of a class that
/// the cloud does not know may never be launched.
fn is_unsettled(cloud: &dyn Cloud, now: &Snapshot) -> bool {
    now.claims().any(|claim| {
        claim.provider_id.is_none()
            && claim.meta.deleting.is_none()
            && is_managed(cloud, claim)
            && claim
                .pool()
                .is_some_and(|pool| now.pool(pool).is_some_and(|pool| pool.is_dynamic()))
            && claim.meta.annotation(PLANNED).is_none()
    })
}

/// A plan that the verifier has accepted.
async fn plan(ctx: &Ctx, now: Arc<Snapshot>, headroom: Vec<VirtualPod>) -> Option<(Asked, Plan)> {
    let catalogs = ctx.catalogs.lists();
    let policy = Policy {
        preferences: ctx.settings.preferences,
        min_values: ctx.settings.min_values,
        ..Policy::default()
    };
    let at = ctx.clock.now();
    let planned = planned(&ctx.turns, &now);
    let work = move || {
        let ask = Ask {
            catalogs: &catalogs,
            policy,
            now: at,
            planned: &planned,
            headroom: &headroom,
        };
        let asked = now.problem(&ask);
        let asked = asked.inspect_err(|error| unreadable(NAME, error)).ok()?;
        let plan = joiner_solver::solve(&asked.problem);
        let violations = joiner_verify::check(&asked.problem, &plan);
        Some((asked, plan, violations))
    };
    let (asked, plan, violations) = in_background(work).await??;
    if violations.is_empty() {
        return Some((asked, plan));
    }
    let first: Vec<String> = violations.iter().take(3).map(ToString::to_string).collect();
    tracing::error!(
        controller = NAME,
        violations = violations.len(),
        "the verifier rejects the plan, nothing is changed: {}",
        first.join("; ")
    );
    None
}

/// Says that nothing can be decided, and nothing is changed.
pub(crate) fn unreadable(controller: &str, error: &ReadError) {
    tracing::error!(controller, %error, "the cluster cannot be planned for, nothing is changed");
}

/// Runs long work beside the runtime's own threads. On a paused clock it runs in place: time must
/// not jump while it works.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let handle = tokio::runtime::Handle::current();
    if handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::CurrentThread {
        return Some(work());
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(controller = NAME, "planning ended badly: {error}");
            None
        }
    }
}

/// Creates the claims of a plan. Returns those that exist now, by index of the launch.
async fn create(ctx: &Ctx, now: &Snapshot, asked: &Asked, plan: &Plan) -> BTreeMap<usize, Name> {
    let wanted = new_claims(now, &ctx.catalogs.lists(), &asked.problem, plan);
    let creations = wanted.into_iter().map(|(ix, new)| async move {
        let name: Name = new.claim.metadata.name.as_str().into();
        create_one(ctx, &new).await.then_some((ix, name))
    });
    let done = stream::iter(creations).buffer_unordered(CREATE_AT_ONCE);
    let done: Vec<Option<(usize, Name)>> = done.collect().await;
    done.into_iter().flatten().collect()
}

/// The claims of a plan, by index of the launch.
fn new_claims(
    now: &Snapshot,
    catalogs: &Lists,
    problem: &Problem,
    plan: &Plan,
) -> Vec<(usize, NewClaim)> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut claims = Vec::with_capacity(plan.launches.len());
    for (ix, launch) in plan.launches.iter().enumerate() {
        let pool = &problem.pools[launch.pool.0 as usize].name;
        let Some(pool) = now.pool(pool) else {
            continue;
        };
        let pods = launch
            .pods
            .iter()
            .map(|pod| &problem.pods[pod.0 as usize].name);
        let uids: Vec<&str> = pods
            .map(|name| now.pod(name).map_or(&**name, |pod| &*pod.uid))
            .collect();
        let taken = |name: &str| names.contains(name) || now.claim(name).is_some();
        let mut new = claims::claim_for(problem, launch, &pool.pool, &uids, &taken);
        if let Some(types) = catalogs.get(&pool.class) {
            claims::mark_overlays(&mut new, problem, launch, types);
        }
        names.insert(new.claim.metadata.name.clone());
        claims.push((ix, new));
    }
    claims
}

/// True when the claim exists now.
async fn create_one(ctx: &Ctx, new: &NewClaim) -> bool {
    let claim = &new.claim;
    let object = serde_json::to_value(claim).unwrap_or_default();
    let pool = claim.metadata.labels.get(joiner_api::labels::NODE_POOL);
    let pool = pool.map_or("", String::as_str);
    match ctx.api.create(Kind::NodeClaim, &object).await {
        Ok(Written::Object(_)) => {
            tell::created(ctx, claim, pool, new.pods.len());
            true
        }
        Ok(Written::Dry) => {
            tell::would_create(claim, pool, new.pods.len());
            true
        }
        // Made by a try that did not live to see the answer; the watch brings it.
        Err(ApiFailure::AlreadyExists) => true,
        Err(error) => {
            let name = claim.metadata.name.as_str();
            tracing::error!(controller = NAME, NodeClaim = name, error = %error, "cannot create");
            false
        }
    }
}
