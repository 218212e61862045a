//! What people hear of a plan: logs, events, metrics, the decision log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use joiner_api::types::NodeClaim;
use joiner_model::{Launch, Name, NanoDollars, NodeIx, Plan, PodIx, Problem, keys};
use joiner_receipts::{
    Alternative, Decision, LeftOver, Machine, PROVISIONING, PlannedNode, ProvisioningDetails,
    Seated, in_dollars,
};
use joiner_runtime::metric_names::{
    NODECLAIMS_CREATED, SCHEDULER_IGNORED_PODS, SCHEDULER_UNSCHEDULABLE_PODS,
};
use joiner_runtime::{About, Event};
use joiner_state::live::{Asked, LivePod, PLANNED, Snapshot, VirtualPod};

use super::NAME;
use super::left_over::{self, Fates};
use super::{Nominations, Planner};
use crate::capacity_buffer::{self, Placed};

/// A pod hears that it fits nowhere this often at most.
const REFUSED_EVERY: Duration = Duration::from_secs(300);
/// Reasons in one event.
const REASONS_MAX: usize = 5;
/// Letters of the reasons and the hint in one event; servers refuse more than 1024 in all.
const MESSAGE_MAX: usize = 950;
/// Other types that are written down for a node.
const NEXT_BEST_MAX: usize = 3;
/// Pods in one line.
const PODS_SHOWN_MAX: usize = 5;
/// Instance types in one line.
const TYPES_SHOWN_MAX: usize = 4;

/// The log lines that people know.
pub(super) fn found(asked: &Asked, plan: &Plan) {
    let pending: Vec<PodIx> = asked.problem.pending().collect();
    tracing::info!(
        Pods = some_pods(&asked.problem, &pending),
        pods = pending.len(),
        "found provisionable pod(s)"
    );
    if !plan.launches.is_empty() {
        let n_pods: usize = plan.launches.iter().map(|launch| launch.pods.len()).sum();
        tracing::info!(
            nodeclaims = plan.launches.len(),
            pods = n_pods,
            price_per_hour = %plan.cost.price,
            lower_bound_per_hour = %plan.cost.bound,
            "computed new nodeclaim(s) to fit pod(s)"
        );
    }
}

/// The first pods of many, as upstream lists them.
fn some_pods(problem: &Problem, pods: &[PodIx]) -> String {
    let shown = pods.iter().take(PODS_SHOWN_MAX);
    let names = shown.map(|pod| &*problem.pods[pod.0 as usize].name);
    let names = names.collect::<Vec<_>>().join(", ");
    match pods.len().saturating_sub(PODS_SHOWN_MAX) {
        0 => names,
        n_more => format!("{names} and {n_more} other(s)"),
    }
}

/// A claim was created.
pub(super) fn created(planner: &Planner, claim: &NodeClaim, pool: &str, n_pods: usize) {
    let name = claim.metadata.name.as_str();
    let planned = claim.metadata.annotations.get(PLANNED);
    let planned = planned.map_or("", String::as_str);
    tracing::info!(
        NodePool = pool,
        NodeClaim = name,
        planned,
        pods = n_pods,
        "created nodeclaim"
    );
    let relaxed = claim
        .metadata
        .annotations
        .get(joiner_api::labels::MIN_VALUES_RELAXED);
    let relaxed = relaxed.map_or("false", String::as_str);
    let labels = [
        ("reason", "provisioned"),
        ("nodepool", pool),
        ("min_values_relaxed", relaxed),
    ];
    planner
        .shared
        .metrics
        .count(NODECLAIMS_CREATED, &labels, 1.0);
}

/// A claim would have been created.
pub(super) fn would_create(claim: &NodeClaim, pool: &str, n_pods: usize) {
    let name = claim.metadata.name.as_str();
    let planned = claim.metadata.annotations.get(PLANNED);
    let planned = planned.map_or("", String::as_str);
    tracing::info!(
        NodePool = pool,
        NodeClaim = name,
        planned,
        pods = n_pods,
        "dry run: would create nodeclaim"
    );
}

/// Tells every pod that has a place where it is.
pub(super) fn pods(
    planner: &Planner,
    now: &Snapshot,
    asked: &Asked,
    plan: &Plan,
    created: &BTreeMap<usize, Name>,
) {
    let problem = &asked.problem;
    let pod = |ix: &joiner_model::PodIx| now.pod(&problem.pods[ix.0 as usize].name);
    let lasting = Nominations::lasting(planner.batching.max);
    let at = planner.shared.clock.now();
    for (ix, claim) in created {
        let Some(launch) = plan.launches.get(*ix) else {
            continue;
        };
        planner.nominations.nominate(claim, at, lasting);
        for pod in launch.pods.iter().filter_map(pod) {
            nominated(planner, pod, &format!("nodeclaim/{claim}"));
        }
    }
    for placement in &plan.placements {
        let node = &problem.nodes[placement.node.0 as usize].name;
        let target = target(asked, placement.node);
        let real = placement.pods.iter().filter_map(pod);
        let mut any = false;
        for pod in real.filter(|pod| pod.is_homeless()) {
            any = true;
            nominated(planner, pod, &target);
        }
        if any {
            planner.nominations.nominate(node, at, lasting);
        }
    }
    gauges(planner, asked, plan);
}

/// Tells capacity buffers what became of their headroom.
pub(super) async fn buffers(
    planner: &Planner,
    asked: &Asked,
    plan: &Plan,
    headroom: &[VirtualPod],
) {
    let problem = &asked.problem;
    let mut kept = BTreeSet::new();
    for placement in &plan.placements {
        let mut pods = placement.pods.iter();
        if pods.any(|pod| asked.headroom.contains(&problem.pods[pod.0 as usize].name)) {
            kept.insert(problem.nodes[placement.node.0 as usize].name.clone());
        }
    }
    planner.headroom.set(kept);
    if headroom.is_empty() {
        return;
    }
    let name = |pod: &joiner_model::PodIx| &*problem.pods[pod.0 as usize].name;
    let mut placed: BTreeMap<&str, Placed> = BTreeMap::new();
    for launch in &plan.launches {
        placed.extend(launch.pods.iter().map(|pod| (name(pod), Placed::New)));
    }
    for placement in &plan.placements {
        placed.extend(
            placement
                .pods
                .iter()
                .map(|pod| (name(pod), Placed::Existing)),
        );
    }
    let of = |pod: &str| placed.get(pod).copied().unwrap_or(Placed::Nowhere);
    let outcomes = capacity_buffer::outcomes(headroom, of);
    if let Err(error) = capacity_buffer::report(&planner.shared, &outcomes).await {
        tracing::warn!(%error, "cannot tell a capacity buffer");
    }
}

fn about(pod: &LivePod) -> About {
    About {
        kind: "Pod",
        api_version: "v1".into(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

fn nominated(planner: &Planner, pod: &LivePod, target: &str) {
    planner
        .pod_decisions
        .placed(&pod.uid, planner.shared.clock.now());
    planner.shared.events.tell(Event {
        about: about(pod),
        warning: false,
        reason: "Nominated".into(),
        message: format!("Pod should schedule on: {target}"),
        same: target.to_owned(),
        every: Duration::from_secs(120),
    });
}

/// Tells a pod why it has no place, and what would help if that is known.
pub(super) fn refused(
    planner: &Planner,
    pod: &LivePod,
    reasons: &[String],
    why: Option<Arc<LeftOver>>,
) {
    planner
        .pod_decisions
        .refused(&pod.uid, planner.shared.clock.now());
    let mut shown = reasons[..reasons.len().min(REASONS_MAX)].join("; ");
    if reasons.len() > REASONS_MAX {
        shown = format!("{shown}; and {} more", reasons.len() - REASONS_MAX);
    }
    let helps = why.as_ref().and_then(|own| own.changes.first());
    let hint = helps.map(left_over::help).unwrap_or_default();
    tracing::error!(
        Pod = &*pod.name,
        reasons = shown,
        hint,
        "could not schedule pod"
    );
    planner.shared.events.tell(Event {
        about: about(pod),
        warning: true,
        reason: "FailedScheduling".into(),
        message: refusal(&shown, &hint),
        same: String::new(),
        every: REFUSED_EVERY,
    });
}

/// The message of a refusal: what would help has its place also when there are many reasons.
fn refusal(reasons: &str, hint: &str) -> String {
    if hint.is_empty() {
        return format!("Failed to schedule pod, {reasons}");
    }
    let room = MESSAGE_MAX.saturating_sub(hint.len());
    let fits = |at: &usize| *at <= room && reasons.is_char_boundary(*at);
    let reasons = match reasons.len() <= room {
        true => reasons.to_owned(),
        false => {
            let end = (0..=room).rev().find(fits).unwrap_or(0);
            format!("{}…", &reasons[..end])
        }
    };
    format!("Failed to schedule pod, {reasons}. It would help to {hint}")
}

fn gauges(planner: &Planner, asked: &Asked, plan: &Plan) {
    let labels = [("controller", NAME)];
    #[expect(clippy::cast_precision_loss, reason = "counts of pods are small")]
    let number = |n: usize| n as f64;
    planner.shared.metrics.gauge(
        SCHEDULER_UNSCHEDULABLE_PODS,
        &labels,
        number(plan.unplaced.len()),
    );
    planner
        .shared
        .metrics
        .gauge(SCHEDULER_IGNORED_PODS, &[], number(asked.ignored.len()));
}

/// Writes the plan down: what is bought for whom, and who goes to nodes there are.
pub(super) fn decide(
    planner: &Planner,
    now: &Snapshot,
    asked: &Asked,
    plan: &Plan,
    created: &BTreeMap<usize, Name>,
    fates: &mut Fates,
) {
    fates.forget(now);
    let problem = &asked.problem;
    let name = |pod: &PodIx| problem.pods[pod.0 as usize].name.clone();
    let mut nodes = Vec::new();
    for (ix, launch) in plan.launches.iter().enumerate() {
        for pod in launch.pods.iter().filter_map(|pod| now.pod(&name(pod))) {
            fates.is_new_place(pod);
        }
        let claim = created.get(&ix).map(ToString::to_string);
        nodes.push(planned(problem, launch, claim.unwrap_or_default()));
    }
    let mut placed = Vec::new();
    for placement in &plan.placements {
        let waiting = placement.pods.iter().filter_map(|pod| now.pod(&name(pod)));
        let waiting = waiting.filter(|pod| pod.is_homeless());
        // Pods that wait for a node to come are planned for again and again: that is no news.
        let news = waiting.filter(|pod| fates.is_new_place(pod));
        let pods: Vec<String> = news.map(|pod| pod.name.to_string()).collect();
        if !pods.is_empty() {
            placed.push(Seated {
                on: target(asked, placement.node),
                pods,
            });
        }
    }
    if nodes.is_empty() && placed.is_empty() {
        return;
    }
    let claims = created.values().map(|claim| format!("nodeclaim/{claim}"));
    let pods = nodes.iter().flat_map(|own| &own.pods);
    let pods = pods.chain(placed.iter().flat_map(|own| &own.pods));
    let about = claims.chain(pods.map(|pod| format!("pod/{pod}"))).collect();
    let details = ProvisioningDetails {
        nodes,
        placed,
        left_over: plan.unplaced.len(),
    };
    planner.shared.decisions.record(Decision {
        time: planner.shared.clock.now(),
        kind: PROVISIONING.to_owned(),
        generation: now.generation,
        outcome: outcome(problem, plan),
        price_before: None,
        price_after: Some(plan.cost.price),
        reasons: vec![format!(
            "no legal placement of these pods costs less than {}",
            plan.cost.bound
        )],
        alternatives: Vec::new(),
        about,
        details: serde_json::to_value(details).unwrap_or_default(),
    });
}

/// A node of the plan, with what would have done as well.
fn planned(problem: &Problem, launch: &Launch, node_claim: String) -> PlannedNode {
    let instance_type = &problem.types[launch.offering.0.0 as usize];
    let offering = &instance_type.offerings[launch.offering.1.0 as usize];
    let label = |key: &str| {
        offering
            .labels
            .get(key)
            .map_or("", AsRef::as_ref)
            .to_owned()
    };
    let others = launch.types.iter().filter(|ty| **ty != launch.offering.0);
    let next_best = others.filter_map(|ty| {
        let own = &problem.types[ty.0 as usize];
        let sold = own.offerings.iter().filter(|own| own.available);
        let allowed = sold.filter(|own| {
            let mut asked = launch.requirements.iter();
            asked.all(|r| own.labels.get(r.key()).is_none_or(|value| r.has(value)))
        });
        Some(Alternative {
            instance_type: own.name.to_string(),
            price_per_hour: in_dollars(allowed.map(|own| own.price).min()?),
        })
    });
    PlannedNode {
        machine: Machine {
            node_claim,
            node: String::new(),
            node_pool: problem.pools[launch.pool.0 as usize].name.to_string(),
            instance_type: instance_type.name.to_string(),
            zone: label(keys::ZONE),
            capacity_type: label(keys::CAPACITY_TYPE),
            price_per_hour: Some(in_dollars(launch.price)),
        },
        types: launch.types.len(),
        next_best: next_best.take(NEXT_BEST_MAX).collect(),
        pods: (launch.pods.iter())
            .map(|pod| problem.pods[pod.0 as usize].name.to_string())
            .collect(),
    }
}

/// A node of the problem, as pods are told of it.
fn target(asked: &Asked, node: NodeIx) -> String {
    match asked.in_flight.get(&node) {
        Some(claim) => format!("nodeclaim/{claim}"),
        None => format!("node/{}", asked.problem.nodes[node.0 as usize].name),
    }
}

/// Dollars for people: four decimals.
fn dollars(price: NanoDollars) -> String {
    let parts = (price.get() + 50_000) / 100_000;
    format!("${}.{:04}", parts / 10_000, parts % 10_000)
}

/// A plan in one line.
fn outcome(problem: &Problem, plan: &Plan) -> String {
    let counted = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let mut parts = Vec::new();
    if !plan.launches.is_empty() {
        let mut types: BTreeMap<&str, usize> = BTreeMap::new();
        for launch in &plan.launches {
            let name = &problem.types[launch.offering.0.0 as usize].name;
            *types.entry(name).or_default() += 1;
        }
        let mut names: Vec<String> = types
            .iter()
            .map(|(name, n)| format!("{n} {name}"))
            .collect();
        let n_more = names.len().saturating_sub(TYPES_SHOWN_MAX);
        names.truncate(TYPES_SHOWN_MAX);
        if n_more > 0 {
            names.push(format!("{n_more} other types"));
        }
        let n_pods = plan.launches.iter().map(|launch| launch.pods.len()).sum();
        parts.push(format!(
            "buy {} for {} ({}) at {} an hour; no plan costs less than {}",
            counted(plan.launches.len(), "node"),
            counted(n_pods, "pod"),
            names.join(", "),
            dollars(plan.cost.price),
            dollars(plan.cost.bound),
        ));
    }
    let n_placed: usize = plan.placements.iter().map(|own| own.pods.len()).sum();
    if n_placed > 0 {
        parts.push(format!("{} on nodes there are", counted(n_placed, "pod")));
    }
    if !plan.unplaced.is_empty() {
        parts.push(format!("{} left over", counted(plan.unplaced.len(), "pod")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_hint_whatever_its_reasons() {
        assert_eq!(refusal("a; b", ""), "Failed to schedule pod, a; b");
        let short = refusal("no pool", "add one: it would go to x for $0.1000 an hour");
        assert_eq!(
            short,
            "Failed to schedule pod, no pool. It would help to add one: it would go to x for \
             $0.1000 an hour"
        );
        let long = refusal(&"ä".repeat(900), "add a NodePool");
        assert!(
            long.ends_with("…. It would help to add a NodePool"),
            "{long}"
        );
        assert!(long.len() <= 1024, "{}", long.len());
    }

    #[test]
    fn prices_have_four_decimals() {
        let shown = |nanos| dollars(NanoDollars::new(nanos));
        assert_eq!(shown(96_000_000), "$0.0960");
        assert_eq!(shown(1_234_567_890), "$1.2346");
        assert_eq!(shown(0), "$0.0000");
    }
}
