//! What people hear of a plan: logs, events, metrics, the decision log.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use joiner_api::types::NodeClaim;
use joiner_model::{Name, NanoDollars, Plan, Problem, Unplaced};
use joiner_runtime::{About, Decision, Event};
use joiner_state::live::{Asked, LivePod, PLANNED, Snapshot, VirtualPod};
use serde_json::json;

use super::NAME;
use crate::buffer::{self, Placed};
use crate::context::Ctx;
use crate::nominations::Nominations;

/// A pod hears that it fits nowhere this often at most.
const REFUSED_EVERY: Duration = Duration::from_secs(300);
/// Reasons in one event.
const REASONS_MAX: usize = 5;
/// Instance types in one line.
const TYPES_SHOWN_MAX: usize = 4;

/// The log lines that people know.
pub(super) fn found(asked: &Asked, plan: &Plan) {
    let pending = asked.problem.pending().count();
    tracing::info!(
        controller = NAME,
        pods = pending,
        "found provisionable pod(s)"
    );
    if !plan.launches.is_empty() {
        let n_pods: usize = plan.launches.iter().map(|launch| launch.pods.len()).sum();
        tracing::info!(
            controller = NAME,
            nodeclaims = plan.launches.len(),
            pods = n_pods,
            price_per_hour = %plan.cost.price,
            lower_bound_per_hour = %plan.cost.bound,
            "computed new nodeclaim(s) to fit pod(s)"
        );
    }
}

/// A claim was created.
pub(super) fn created(ctx: &Ctx, claim: &NodeClaim, pool: &str, n_pods: usize) {
    let name = claim.metadata.name.as_str();
    let planned = claim.metadata.annotations.get(PLANNED);
    let planned = planned.map_or("", String::as_str);
    tracing::info!(
        controller = NAME,
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
    ctx.metrics
        .count("karpenter_nodeclaims_created_total", &labels, 1.0);
}

/// A claim would have been created.
pub(super) fn would_create(claim: &NodeClaim, pool: &str, n_pods: usize) {
    let name = claim.metadata.name.as_str();
    let planned = claim.metadata.annotations.get(PLANNED);
    let planned = planned.map_or("", String::as_str);
    tracing::info!(
        controller = NAME,
        NodePool = pool,
        NodeClaim = name,
        planned,
        pods = n_pods,
        "dry run: would create nodeclaim"
    );
}

/// Tells every pod what became of it, and writes the decision down.
pub(super) fn pods(
    ctx: &Ctx,
    now: &Snapshot,
    asked: &Asked,
    plan: &Plan,
    created: &BTreeMap<usize, Name>,
) {
    let problem = &asked.problem;
    let pod = |ix: &joiner_model::PodIx| now.pod(&problem.pods[ix.0 as usize].name);
    let lasting = Nominations::lasting(ctx.settings.batching.max);
    let at = ctx.clock.now();
    for (ix, claim) in created {
        let Some(launch) = plan.launches.get(*ix) else {
            continue;
        };
        ctx.nominations.nominate(claim, at, lasting);
        for pod in launch.pods.iter().filter_map(pod) {
            nominated(ctx, pod, &format!("nodeclaim/{claim}"));
        }
    }
    for placement in &plan.placements {
        let node = &problem.nodes[placement.node.0 as usize].name;
        let target = match asked.in_flight.get(&placement.node) {
            Some(claim) => format!("nodeclaim/{claim}"),
            None => format!("node/{node}"),
        };
        let real = placement.pods.iter().filter_map(pod);
        let mut any = false;
        for pod in real.filter(|pod| pod.is_provisionable()) {
            any = true;
            nominated(ctx, pod, &target);
        }
        if any {
            ctx.nominations.nominate(node, at, lasting);
        }
    }
    for unplaced in &plan.unplaced {
        if let Some(pod) = pod(&unplaced.pod) {
            refused(ctx, pod, unplaced);
        }
    }
    gauges(ctx, asked, plan);
    decide(ctx, now, asked, plan, created);
}

/// Tells capacity buffers what became of their headroom.
pub(super) async fn buffers(ctx: &Ctx, asked: &Asked, plan: &Plan, headroom: &[VirtualPod]) {
    let problem = &asked.problem;
    let mut kept = BTreeSet::new();
    for placement in &plan.placements {
        let mut pods = placement.pods.iter();
        if pods.any(|pod| asked.headroom.contains(&problem.pods[pod.0 as usize].name)) {
            kept.insert(problem.nodes[placement.node.0 as usize].name.clone());
        }
    }
    ctx.nominations.set_headroom(kept);
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
    let outcomes = buffer::outcomes(headroom, of);
    if let Err(error) = buffer::report(ctx, &outcomes).await {
        tracing::warn!(controller = NAME, %error, "cannot tell a capacity buffer");
    }
}

fn about(pod: &LivePod) -> About {
    About {
        kind: "Pod",
        api_version: "v1",
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

fn nominated(ctx: &Ctx, pod: &LivePod, target: &str) {
    ctx.pod_decisions.placed(&pod.uid, ctx.clock.now());
    ctx.events.tell(Event {
        about: about(pod),
        warning: false,
        reason: "Nominated".into(),
        message: format!("Pod should schedule on: {target}"),
        same: target.to_owned(),
        every: Duration::from_secs(120),
    });
}

fn refused(ctx: &Ctx, pod: &LivePod, unplaced: &Unplaced) {
    ctx.pod_decisions.refused(&pod.uid, ctx.clock.now());
    let reasons: Vec<String> = unplaced.refusals.iter().map(ToString::to_string).collect();
    let mut shown = reasons
        .iter()
        .take(REASONS_MAX)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if reasons.len() > REASONS_MAX {
        shown = format!("{shown}; and {} more", reasons.len() - REASONS_MAX);
    }
    tracing::error!(
        controller = NAME,
        Pod = &*pod.name,
        reasons = shown,
        "could not schedule pod"
    );
    ctx.events.tell(Event {
        about: about(pod),
        warning: true,
        reason: "FailedScheduling".into(),
        message: format!("Failed to schedule pod, {shown}"),
        same: String::new(),
        every: REFUSED_EVERY,
    });
}

fn gauges(ctx: &Ctx, asked: &Asked, plan: &Plan) {
    let labels = [("controller", NAME)];
    #[expect(clippy::cast_precision_loss, reason = "counts of pods are small")]
    let number = |n: usize| n as f64;
    ctx.metrics.gauge(
        "karpenter_scheduler_unschedulable_pods_count",
        &labels,
        number(plan.unplaced.len()),
    );
    ctx.metrics.gauge(
        "karpenter_scheduler_ignored_pods_count",
        &[],
        number(asked.ignored.len()),
    );
}

fn decide(ctx: &Ctx, now: &Snapshot, asked: &Asked, plan: &Plan, created: &BTreeMap<usize, Name>) {
    // Pods that wait for a node to come are planned for again and again: that is no decision.
    if plan.launches.is_empty() && plan.unplaced.is_empty() {
        return;
    }
    let problem = &asked.problem;
    let nodes = plan.launches.iter().enumerate().map(|(ix, launch)| {
        let instance_type = &problem.types[launch.offering.0.0 as usize];
        let offering = &instance_type.offerings[launch.offering.1.0 as usize];
        json!({
            "nodeClaim": created.get(&ix).map(|name| &**name),
            "nodePool": &*problem.pools[launch.pool.0 as usize].name,
            "instanceType": &*instance_type.name,
            "offering": offering.labels.iter().map(|(k, v)| (k.to_string(), json!(&**v))).collect::<serde_json::Map<_, _>>(),
            "pricePerHour": launch.price.to_string(),
            "alternatives": launch.types.len(),
            "pods": launch.pods.iter().map(|pod| &*problem.pods[pod.0 as usize].name).collect::<Vec<_>>(),
        })
    });
    let unplaced = plan.unplaced.iter().map(|own| {
        json!({
            "pod": &*problem.pods[own.pod.0 as usize].name,
            "reasons": own.refusals.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    ctx.decisions.record(Decision {
        time: ctx.clock.now(),
        kind: "provisioning".to_owned(),
        generation: now.generation,
        outcome: outcome(problem, plan),
        price_before: None,
        price_after: Some(plan.cost.price),
        reasons: vec![format!("no legal placement of these pods costs less than {}", plan.cost.bound)],
        alternatives: Vec::new(),
        about: created.values().map(ToString::to_string).collect(),
        details: json!({"nodes": nodes.collect::<Vec<_>>(), "unplaced": unplaced.collect::<Vec<_>>()}),
    });
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
    fn prices_have_four_decimals() {
        let shown = |nanos| dollars(NanoDollars::new(nanos));
        assert_eq!(shown(96_000_000), "$0.0960");
        assert_eq!(shown(1_234_567_890), "$1.2346");
        assert_eq!(shown(0), "$0.0000");
    }
}
