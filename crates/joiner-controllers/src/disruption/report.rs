//! What people hear of disruption: logs, events, metrics, the decision log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use joiner_api::types::NodeClaim;
use joiner_disruption::{
    Audience, Command, Decision, Fleet, Member, Method, Pin, Reason, Rejection, Why, pins,
};
use joiner_engine::events;
use joiner_model::{Name, NanoDollars, PodIx, keys};
use joiner_receipts::{
    DISRUPTION, Decision as Record, DisruptionDetails, Kept, Machine, Move, PinnedBy, in_dollars,
};
use joiner_runtime::Event;
use joiner_runtime::metric_names::{
    DISRUPTION_DECISIONS, DISRUPTION_DECISIONS_BY_NODEPOOL, DISRUPTION_FAILED_VALIDATIONS,
    NODECLAIMS_CREATED, NODEPOOLS_ALLOWED_DISRUPTIONS,
};
use joiner_state::live::{DoNotDisrupt, LivePod, Snapshot};
use serde_json::{Value, json};

use super::Disruptor;
use super::intent::Intent;
use super::orders::Order;
use crate::node::termination::report_invalid;
use crate::nodeclaim::is_managed;

/// Why a node cannot be consolidated is told this often at most.
const UNCONSOLIDATABLE_EVERY: Duration = Duration::from_secs(15 * 60);
/// That a budget allows nothing is told this often at most.
const BUDGET_EVERY: Duration = Duration::from_secs(60);
/// Nodes in one line of the log.
const LISTED_MAX: usize = 100;
/// Moves in one record.
const MOVES_MAX: usize = 2_000;

/// What one pass says of a node.
pub(super) struct Judged {
    claim: Name,
    why: Option<Why>,
    drifted: bool,
    kept: Kept,
}

/// What one pass says of every node.
pub(super) fn judged(fleet: &Fleet<'_>, decision: &Decision) -> Vec<Judged> {
    let pins = pins(fleet, &decision.verdicts);
    let verdicts = decision.verdicts.iter().zip(pins);
    let members = fleet.members.iter().zip(verdicts);
    members
        .map(|(member, (verdict, pin))| Judged {
            claim: member.claim().cloned().unwrap_or_default(),
            drifted: member.drifted.is_some(),
            kept: kept(fleet, member, verdict.stays.as_ref(), verdict.bound, pin),
            why: verdict.stays.clone(),
        })
        .collect()
}

fn kept(
    fleet: &Fleet<'_>,
    member: &Member,
    why: Option<&Why>,
    bound: NanoDollars,
    pin: Option<Pin>,
) -> Kept {
    Kept {
        machine: machine(fleet, member),
        because: why.map_or("Going", Why::word).to_owned(),
        reason: why.map_or_else(|| "it goes".to_owned(), |why| said(why, member)),
        blocked: why.is_some_and(|why| why.audience(member.drifted.is_some()) == Audience::Blocked),
        saves_at_most: in_dollars(bound),
        pin: pin.map(|pin| PinnedBy {
            pod: pin.pod.to_string(),
            needs: pin.needs,
            because: pin.because,
            largest_hole: pin.largest_hole,
            more: pin.n_more,
        }),
        pods: member.pods.len(),
        passing: why.is_none_or(Why::is_passing),
        ..Kept::default()
    }
}

/// A reason as a sentence.
fn said(why: &Why, member: &Member) -> String {
    let text = if matches!(why, Why::Buffer) {
        format!("Node {:?} has buffer pods", member.name)
    } else {
        why.to_string()
    };
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn machine(fleet: &Fleet<'_>, member: &Member) -> Machine {
    Machine {
        node_claim: member.claim().map_or_else(String::new, ToString::to_string),
        node: member.name.to_string(),
        node_pool: fleet.terms(member).name.to_string(),
        instance_type: member.type_name.to_string(),
        zone: member.zone.to_string(),
        capacity_type: member.capacity_type.to_string(),
        price_per_hour: member.price.map(in_dollars),
    }
}

/// What every pool allows, and why nodes stay.
pub(super) fn decided(
    disruptor: &Disruptor,
    decision: &Decision,
    judged: Vec<Judged>,
    snapshot: &Snapshot,
) {
    let mut n_nodes: BTreeMap<String, usize> = BTreeMap::new();
    for own in &judged {
        *n_nodes
            .entry(own.kept.machine.node_pool.clone())
            .or_default() += 1;
        stays(disruptor, own, snapshot);
    }
    let pools: Vec<_> = snapshot.pools().collect();
    for (pool, reason, allowed) in &decision.allowed {
        let Some(pool) = pools.get(*pool) else {
            continue;
        };
        let labels = [("nodepool", &**pool.name()), ("reason", reason.as_str())];
        let metrics = &disruptor.shared.metrics;
        metrics.gauge(NODEPOOLS_ALLOWED_DISRUPTIONS, &labels, f64::from(*allowed));
        if *allowed == 0 && n_nodes.contains_key(&**pool.name()) {
            no_budget(disruptor, events::pool(pool), *reason);
        }
    }
    bystanders(disruptor, snapshot);
    let all = judged.into_iter().map(|own| own.kept).collect();
    disruptor
        .shared
        .decisions
        .judged(all, snapshot.generation, disruptor.shared.clock.now());
}

/// Tells claims without a node why nothing is decided about them, and pods that their wish to stay cannot
/// be understood, while there is time to mend it.
fn bystanders(disruptor: &Disruptor, snapshot: &Snapshot) {
    for claim in snapshot.claims() {
        if snapshot.node_of(claim).is_none() && is_managed(&*disruptor.cloud, claim) {
            let message = "Nodeclaim does not have an associated node".to_owned();
            events::note(
                &disruptor.shared.events,
                events::claim(claim),
                "DisruptionBlocked",
                message,
            );
        }
    }
    let is_odd = |pod: &&Arc<LivePod>| {
        matches!(pod.do_not_disrupt, Some(DoNotDisrupt::Invalid(_))) && pod.is_active()
    };
    for pod in snapshot.pods().filter(is_odd) {
        let node = pod.node.as_ref().and_then(|name| snapshot.node(name));
        if node.is_some_and(|node| node.pool().is_some()) {
            report_invalid(&disruptor.shared.events, pod);
        }
    }
}

fn no_budget(disruptor: &Disruptor, about: joiner_runtime::About, reason: Reason) {
    let message =
        format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
    let mut event = Event::normal(about, "DisruptionBlocked", message);
    reason.as_str().clone_into(&mut event.same);
    event.every = BUDGET_EVERY;
    disruptor.shared.events.tell(event);
}

/// Tells a node and its claim why it stays, if it is somebody's business.
fn stays(disruptor: &Disruptor, own: &Judged, snapshot: &Snapshot) {
    let Some(why) = &own.why else {
        return;
    };
    let node = own.kept.machine.node.as_str();
    tracing::debug!(Node = node, "stays: {why}");
    let (reason, every) = match why.audience(own.drifted) {
        Audience::Blocked => ("DisruptionBlocked", joiner_runtime::EVERY),
        Audience::Unconsolidatable => ("Unconsolidatable", UNCONSOLIDATABLE_EVERY),
        Audience::Nobody => return,
    };
    let node = snapshot.node(node).map(|own| events::node(own));
    let claim = snapshot.claim(&own.claim).map(|own| events::claim(own));
    for about in node.into_iter().chain(claim) {
        let mut event = Event::normal(about, reason, own.kept.reason.clone());
        event.every = every;
        disruptor.shared.events.tell(event);
    }
}

/// What a command does to nodes and pods, for whoever asks later.
pub(super) fn receipt(
    fleet: &Fleet<'_>,
    command: &Command,
    replacements: &[NodeClaim],
) -> DisruptionDetails {
    let members = command.members.iter().map(|ix| &fleet.members[*ix]);
    let mut home: BTreeMap<PodIx, &Name> = BTreeMap::new();
    for member in members.clone() {
        home.extend(member.pods.iter().map(|own| (own.pod, &member.name)));
    }
    let problem = fleet.problem;
    let mut moves = Vec::new();
    let mut add = |pods: &[PodIx], to: String| {
        let moved = pods.iter().filter_map(|pod| Some((pod, home.get(pod)?)));
        moves.extend(moved.map(|(pod, from)| Move {
            pod: problem.pods[pod.0 as usize].name.to_string(),
            from: from.to_string(),
            to: to.clone(),
        }));
    };
    for placement in &command.plan.placements {
        let node = &problem.nodes[placement.node.0 as usize].name;
        add(&placement.pods, format!("node/{node}"));
    }
    let mut bought = Vec::new();
    let launches = command.plan.launches.iter().map(Some);
    let launches = launches.chain(std::iter::repeat(None));
    for (own, launch) in replacements.iter().zip(launches) {
        let name = &own.metadata.name;
        let pool = own.metadata.labels.get(joiner_api::labels::NODE_POOL);
        let mut machine = Machine {
            node_claim: name.clone(),
            node_pool: pool.cloned().unwrap_or_default(),
            ..Machine::default()
        };
        if let Some(launch) = launch {
            let instance_type = &problem.types[launch.offering.0.0 as usize];
            let offering = &instance_type.offerings[launch.offering.1.0 as usize];
            let label = |key: &str| {
                offering
                    .labels
                    .get(key)
                    .map_or("", AsRef::as_ref)
                    .to_owned()
            };
            machine.instance_type = instance_type.name.to_string();
            machine.zone = label(keys::ZONE);
            machine.capacity_type = label(keys::CAPACITY_TYPE);
            machine.price_per_hour = Some(in_dollars(launch.price));
            add(&launch.pods, format!("nodeclaim/{name}"));
        }
        bought.push(machine);
    }
    moves.sort_by(|a, b| (&a.from, &a.pod).cmp(&(&b.from, &b.pod)));
    moves.truncate(MOVES_MAX);
    DisruptionDetails {
        removed: members.map(|own| machine(fleet, own)).collect(),
        replacements: bought,
        moves,
        move_cost: in_dollars(command.move_cost),
        ..DisruptionDetails::default()
    }
}

/// A command for money was found; it is asked about again before it starts.
pub(super) fn candidate(disruptor: &Disruptor, order: &Order) {
    let command = &order.command;
    tracing::debug!(why = command.why, "waiting before disrupting node(s)");
    if command.is_delete() {
        return;
    }
    let snapshot = disruptor.shared.world.snapshot();
    let message = format!("Consolidation candidate: {}", command.why);
    about_all(
        disruptor,
        &snapshot,
        command,
        "ConsolidationCandidate",
        &message,
    );
}

/// Tells the nodes and claims of a command something.
fn about_all(
    disruptor: &Disruptor,
    now: &Snapshot,
    command: &Command,
    reason: &'static str,
    message: &str,
) {
    for claim in command.claims.iter().filter_map(|name| now.claim(name)) {
        let node = now.node_of(claim).map(|own| events::node(own));
        for about in node.into_iter().chain([events::claim(claim)]) {
            events::note(&disruptor.shared.events, about, reason, message.to_owned());
        }
    }
}

/// The second look came to another result.
pub(super) fn rejected(disruptor: &Disruptor, order: &Order, rejection: Option<&Rejection>) {
    let kind = order.command.method.consolidation_type();
    let labels = [("consolidation_type", kind)];
    disruptor
        .shared
        .metrics
        .count(DISRUPTION_FAILED_VALIDATIONS, &labels, 1.0);
    let why = rejection.map_or_else(String::new, ToString::to_string);
    tracing::info!(why, "a disruption is dropped: it no longer holds");
    if order.command.method == Method::Single {
        let message = format!(
            "Consolidation rejected: {}, reason: {} (savings: ${})",
            order.command.why,
            rejection.map_or("unknown", Rejection::as_str),
            order.command.savings()
        );
        let now = disruptor.shared.world.snapshot();
        about_all(
            disruptor,
            &now,
            &order.command,
            "ConsolidationRejected",
            &message,
        );
    }
}

/// Claims for the log, with their nodes, as upstream lists them.
fn listed(now: &Snapshot, claims: &[String]) -> String {
    let one = |name: &String| {
        let mut shown = json!({"NodeClaim": {"name": name}});
        let Some(claim) = now.claim(name) else {
            return shown;
        };
        if let Some(node) = claim.node_name() {
            shown["Node"] = json!({"name": node});
        }
        for (key, label) in [
            ("capacity-type", keys::CAPACITY_TYPE),
            ("instance-type", keys::INSTANCE_TYPE),
        ] {
            if let Some(value) = claim.meta.label(label) {
                shown[key] = json!(value);
            }
        }
        shown
    };
    Value::from_iter(claims.iter().take(LISTED_MAX).map(one)).to_string()
}

/// In a dry run.
pub(super) fn would_begin(order: &Order, intent: &Intent) {
    tracing::info!(
        reason = intent.reason,
        nodes = order.nodes.join(","),
        why = order.command.why,
        "dry run: would disrupt node(s)"
    );
}

/// A command is under way.
pub(super) fn begun(disruptor: &Disruptor, order: &Order, intent: &Intent) {
    let command = &order.command;
    let now = disruptor.shared.world.snapshot();
    tracing::info!(
        command_id = intent.id,
        reason = intent.reason.to_lowercase(),
        decision = intent.decision(),
        nodes = order.nodes.join(","),
        replacements = intent.replacements.join(","),
        "disrupted-node-count" = intent.members.len(),
        "replacement-node-count" = intent.replacements.len(),
        "pod-count" = intent.moves,
        "disrupted-nodes" = listed(&now, &intent.members),
        "replacement-nodes" = listed(&now, &intent.replacements),
        price_before = %command.price_before,
        price_after = %command.price_after,
        why = command.why,
        "disrupting node(s)"
    );
    let labels = [
        ("decision", intent.decision()),
        ("reason", &*intent.reason.to_lowercase()),
        ("consolidation_type", &*intent.method),
    ];
    disruptor
        .shared
        .metrics
        .count(DISRUPTION_DECISIONS, &labels, 1.0);
    let snapshot = disruptor.shared.world.snapshot();
    let mut pools: Vec<&str> = Vec::new();
    for name in &command.claims {
        let pool = snapshot.claim(name).and_then(|claim| claim.pool());
        if let Some(pool) = pool.filter(|pool| !pools.contains(pool)) {
            pools.push(pool);
        }
    }
    for pool in pools {
        let [decision, reason, kind] = labels;
        let labels = [("nodepool", pool), decision, reason, kind];
        disruptor
            .shared
            .metrics
            .count(DISRUPTION_DECISIONS_BY_NODEPOOL, &labels, 1.0);
    }
    for own in &order.replacements {
        let pool = own.metadata.labels.get(joiner_api::labels::NODE_POOL);
        let relaxed = own
            .metadata
            .annotations
            .get(joiner_api::labels::MIN_VALUES_RELAXED);
        let labels = [
            ("reason", &*intent.reason.to_lowercase()),
            ("nodepool", pool.map_or("", String::as_str)),
            (
                "min_values_relaxed",
                relaxed.map_or("false", String::as_str),
            ),
        ];
        disruptor
            .shared
            .metrics
            .count(NODECLAIMS_CREATED, &labels, 1.0);
    }
    record(disruptor, order, intent, snapshot.generation);
}

/// Writes a command down.
fn record(disruptor: &Disruptor, order: &Order, intent: &Intent, generation: u64) {
    let command = &order.command;
    let mut details = order.receipt.clone();
    details.command = serde_json::to_value(intent).unwrap_or_default();
    let nodes = order.nodes.iter().map(|node| format!("node/{node}"));
    let replacements = details.replacements.iter();
    let claims = command.claims.iter().map(ToString::to_string);
    let claims = claims.chain(replacements.map(|own| own.node_claim.clone()));
    let pods = details.moves.iter().map(|own| format!("pod/{}", own.pod));
    let about = nodes
        .chain(claims.map(|claim| format!("nodeclaim/{claim}")))
        .chain(pods);
    disruptor.shared.decisions.record(Record {
        time: intent.started,
        kind: DISRUPTION.to_owned(),
        generation,
        outcome: command.why.clone(),
        price_before: Some(command.price_before),
        price_after: Some(command.price_after),
        reasons: vec![format!("{}: {}", intent.reason, command.why)],
        alternatives: Vec::new(),
        about: about.collect(),
        details: serde_json::to_value(details).unwrap_or_default(),
    });
}
