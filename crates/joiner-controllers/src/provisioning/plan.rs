//! One plan: from a snapshot to NodeClaims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use joiner_cloud::Cloud;
use joiner_model::{Name, Plan, Problem};
use joiner_runtime::metric_names::SCHEDULING_DURATION;
use joiner_runtime::{ApiFailure, Written};
use joiner_state::ReadError;
use joiner_state::live::{Ask, Asked, Kind, PLANNED, Snapshot, VirtualPod};

use super::claims::{self, NewClaim};
use super::left_over::Fates;
use super::{NAME, Planner, report};
use crate::capacity_buffer;
use crate::catalogs::Lists;
use crate::nodeclaim::is_managed;
use crate::seating::{self, Seating};
use crate::state_metrics::zones;

/// How many claims are created at the same time.
const CREATE_AT_ONCE: usize = 32;

/// How planning ended.
pub(super) enum Planned {
    /// A plan was made and carried out, or there was nothing to plan.
    Done,
    /// There is no pool to buy for, and why; the first that can be used is planned with at once.
    NoPools(String),
    /// Something has to come first.
    NotYet,
    /// It came to nothing.
    Failed,
}

/// Plans for all pods that wait, and carries the plan out.
pub(super) async fn plan(planner: &Planner, fates: &mut Fates) -> Planned {
    let shared = &planner.shared;
    let now = shared.world.snapshot();
    if is_unsettled(&*planner.cloud, &now) {
        return Planned::NotYet;
    }
    if let Some(why) = now.why_no_pool() {
        return Planned::NoPools(why);
    }
    for (class, trouble) in planner.catalogs.refresh(&*planner.cloud, &now).await {
        tracing::error!(class = &*class.name, "no instance types: {trouble}");
    }
    let started = shared.clock.now();
    let headroom = match planner.has_buffers {
        true => capacity_buffer::virtual_pods(&now),
        false => Vec::new(),
    };
    let solved = solve(planner, Arc::clone(&now), headroom.clone()).await;
    let Some((asked, plan)) = solved else {
        return Planned::Failed;
    };
    let took = shared.clock.now().duration_since(started).as_secs_f64();
    let labels = [("controller", NAME)];
    shared.metrics.observe(SCHEDULING_DURATION, &labels, took);
    if !plan.launches.is_empty() || !plan.unplaced.is_empty() {
        report::found(&asked, &plan);
    }
    zones::show(&shared.metrics, NAME, &asked);
    let created = create(planner, &now, &asked, &plan).await;
    let planned = seating::planned(&now, &asked, &plan, &created);
    planner.seating.plan(planned);
    report::pods(planner, &now, &asked, &plan, &created);
    report::decide(planner, &now, &asked, &plan, &created, fates);
    report::buffers(planner, &asked, &plan, &headroom).await;
    let all_created = created.len() == plan.launches.len();
    fates.report(planner, now, asked, plan);
    match all_created {
        true => Planned::Done,
        false => Planned::Failed,
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

/// Nodes that go, and whose pods have a plan already.
pub(super) fn spoken_for(seating: &Seating, now: &Snapshot) -> BTreeSet<Name> {
    let mut all = seating.moving_nodes(now);
    all.append(&mut now.awaiting_replacements());
    all
}

/// A plan that the verifier has accepted.
async fn solve(
    planner: &Planner,
    now: Arc<Snapshot>,
    headroom: Vec<VirtualPod>,
) -> Option<(Asked, Plan)> {
    let catalogs = planner.catalogs.lists();
    let policy = planner.policy;
    let at = planner.shared.clock.now();
    let planned = spoken_for(&planner.seating, &now);
    let work = move || {
        let ask = Ask {
            catalogs: &catalogs,
            policy,
            now: at,
            planned: &planned,
            headroom: &headroom,
        };
        let asked = now.problem(&ask).inspect_err(cannot_be_read).ok()?;
        let plan = joiner_solver::solve(&asked.problem);
        let violations = joiner_verify::check(&asked.problem, &plan);
        Some((asked, plan, violations))
    };
    let (asked, plan, violations) = planner.background.run(work).await??;
    if violations.is_empty() {
        return Some((asked, plan));
    }
    let first: Vec<String> = violations.iter().take(3).map(ToString::to_string).collect();
    tracing::error!(
        violations = violations.len(),
        "the verifier rejects the plan, nothing is changed: {}",
        first.join("; ")
    );
    None
}

/// Says that nothing can be decided, and nothing is changed.
pub(crate) fn cannot_be_read(error: &ReadError) {
    tracing::error!(%error, "the cluster cannot be planned for, nothing is changed");
}

/// Creates the claims of a plan. Returns those that exist now, by index of the launch.
async fn create(
    planner: &Planner,
    now: &Snapshot,
    asked: &Asked,
    plan: &Plan,
) -> BTreeMap<usize, Name> {
    let wanted = new_claims(now, &planner.catalogs.lists(), &asked.problem, plan);
    let creations = wanted.into_iter().map(|(ix, new)| async move {
        let name: Name = new.claim.metadata.name.as_str().into();
        create_one(planner, &new).await.then_some((ix, name))
    });
    let done = stream::iter(creations).buffer_unordered(CREATE_AT_ONCE);
    let done: Vec<Option<(usize, Name)>> = done.collect().await;
    done.into_iter().flatten().collect()
}

/// The claims of a plan, by index of the launch.
pub(super) fn new_claims(
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
async fn create_one(planner: &Planner, new: &NewClaim) -> bool {
    let claim = &new.claim;
    let object = serde_json::to_value(claim).unwrap_or_default();
    let pool = claim.metadata.labels.get(joiner_api::labels::NODE_POOL);
    let pool = pool.map_or("", String::as_str);
    match planner.shared.api.create(Kind::NodeClaim, &object).await {
        Ok(Written::Object(_)) => {
            report::created(planner, claim, pool, new.pods.len());
            true
        }
        Ok(Written::Dry) => {
            report::would_create(claim, pool, new.pods.len());
            true
        }
        // Made by a try that did not live to see the answer; the watch brings it.
        Err(ApiFailure::AlreadyExists) => true,
        Err(error) => {
            let name = claim.metadata.name.as_str();
            tracing::error!(NodeClaim = name, error = %error, "cannot create");
            false
        }
    }
}
