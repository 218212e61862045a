//! Proposes to the scheduler what was planned: a pod is asked to try its node first.
//!
//! A plan fills nodes to the brim. A scheduler that spreads pods as it likes puts small ones where
//! only a large one fits, or anybody on the few nodes that others need, and the rest needs another
//! node. `status.nominatedNodeName` is what Kubernetes has for this: that node is tried first, and room
//! on it is kept for the pod. It is a hint: when the pod fits better elsewhere, or nowhere, nothing is
//! lost, and the pod is planned for again.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use joiner_model::{Name, Plan};
use joiner_state::live::{Asked, Change, Kind, LiveClaim, PROPOSED, Snapshot, What, rfc3339};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::context::Ctx;
use crate::nominations::{PlannedPod, Standing};

/// A node waits this long at most for the proposals to be written.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// And this long for others that are being proposed once more.
const READY_MAX: Duration = Duration::from_secs(3);
/// And this long for other nodes of the same plan to join.
const JOIN_MAX: Duration = Duration::from_secs(2);
/// How often it looks for them.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Room is kept for pods of a spread at least this long after their node is opened: nobody else is to
/// take it while nodes are opened one after the other.
const SPREAD_KEPT_MIN: Duration = Duration::from_millis(1_500);
/// And this long while larger ones of other spreads look for a place.
const SPREAD_KEPT_MAX: Duration = Duration::from_secs(12);
/// Proposals that are written at the same time.
const AT_ONCE: usize = 16;

/// The pods of a plan whose nodes are still to come. The largest of each node come first: should there
/// be no time to propose to all, the small ones find a place most easily.
pub(super) fn planned(
    now: &Snapshot,
    asked: &Asked,
    plan: &Plan,
    created: &BTreeMap<usize, Name>,
) -> Vec<PlannedPod> {
    let problem = &asked.problem;
    let new = created
        .iter()
        .filter_map(|(ix, claim)| Some((&plan.launches.get(*ix)?.pods, claim)));
    let coming = (plan.placements.iter())
        .filter_map(|own| Some((&own.pods, asked.in_flight.get(&own.node)?)));
    let mut all = Vec::new();
    for (pods, claim) in new.chain(coming) {
        for pod in pods.iter().map(|pod| &problem.pods[pod.0 as usize]) {
            let Some(live) = now.pod(&pod.name).filter(|live| live.is_homeless()) else {
                continue;
            };
            let shape = &problem.shapes[pod.shape.0 as usize];
            let pod = PlannedPod {
                name: live.name.clone(),
                uid: live.uid.clone(),
                claim: claim.clone(),
                standing: Standing::Alone,
            };
            all.push((shape.precedence().size, !shape.spreads.is_empty(), pod));
        }
    }
    all.sort_by_key(|(size, _, _)| Reverse(*size));
    let spread = all.iter().filter(|(_, is_spread, _)| *is_spread);
    let largest = spread.map(|(size, _, _)| *size).max();
    let standing = |(size, is_spread, pod): (u64, bool, PlannedPod)| PlannedPod {
        standing: match is_spread {
            false => Standing::Alone,
            true if Some(size) == largest => Standing::Foremost,
            true => Standing::Yielding,
        },
        ..pod
    };
    all.into_iter().map(standing).collect()
}

/// Proposes the node of a claim to the pods that are planned for it, once, and waits for other nodes.
/// What cannot be written is left out. False if there is nothing to say any more.
pub(crate) async fn pods(ctx: &Ctx, claim: &LiveClaim, node: &str) -> bool {
    let planned = match ctx.nominations.is_told(claim.name()) {
        true => Vec::new(),
        false => ctx.nominations.planned_for(claim.name()),
    };
    if planned.is_empty() {
        return false;
    }
    write(ctx, &planned, node).await;
    ctx.nominations.tell(claim.name());
    others(ctx).await;
    // The scheduler takes a proposal back from a pod that it turns down meanwhile. Whoever is done
    // first waits: the scheduler is to find all nodes open, or none.
    write(ctx, &planned, node).await;
    ctx.nominations.make_ready(claim.name());
    all_ready(ctx).await;
    let yielding = planned.into_iter();
    let yielding = yielding.filter(|pod| pod.standing == Standing::Yielding);
    let now = ctx.clock.now();
    let after = |pause| now.checked_add(pause).unwrap_or(Timestamp::MAX);
    ctx.nominations
        .withdraw_within((after(SPREAD_KEPT_MIN), after(SPREAD_KEPT_MAX)), yielding);
    true
}

/// Writes the proposals that do not stand yet, to pods that wait.
async fn write(ctx: &Ctx, planned: &[PlannedPod], node: &str) {
    let snapshot = ctx.world.snapshot();
    let at = rfc3339(ctx.clock.now());
    let mut writes = Vec::with_capacity(planned.len());
    let proposed_to = |pod: &&PlannedPod| pod.standing != Standing::Foremost;
    for pod in planned.iter().filter(proposed_to) {
        let live = snapshot.pod(&pod.name);
        let live = live.filter(|live| live.uid == pod.uid && live.is_homeless());
        if live.is_some_and(|live| live.proposed.as_deref() != Some(node)) {
            let patch = proposal(node, &pod.uid, &at);
            writes.push(propose(ctx, pod.name.clone(), patch));
        }
    }
    let all = stream::iter(writes).buffer_unordered(AT_ONCE).count();
    tokio::select! {
        biased;
        _ = all => {}
        () = ctx.clock.sleep(WAIT_MAX) => {}
    }
}

/// Waits until the other nodes of the plan can be opened, too, if that is soon. Pods whose own node is
/// still closed would take the room of those that nothing is proposed to.
async fn others(ctx: &Ctx) {
    wait(ctx, || {
        let untold = ctx.nominations.untold();
        let snapshot = ctx.world.snapshot();
        let coming = untold.iter().filter_map(|name| snapshot.claim(name));
        let coming = coming.filter(|own| own.meta.deleting.is_none());
        let (joined, unjoined): (Vec<_>, Vec<_>) =
            coming.partition(|own| snapshot.node_of(own).is_some());
        match (joined.is_empty(), unjoined.is_empty()) {
            (true, true) => Duration::ZERO,
            (true, false) => JOIN_MAX,
            (false, _) => WAIT_MAX,
        }
    })
    .await;
}

/// Waits until all nodes whose pods know of them can be opened, if that is soon.
async fn all_ready(ctx: &Ctx) {
    wait(ctx, || match ctx.nominations.unready().is_empty() {
        true => Duration::ZERO,
        false => READY_MAX,
    })
    .await;
}

/// Waits for as long as others are worth waiting for, which changes as they get on.
async fn wait(ctx: &Ctx, worth: impl Fn() -> Duration) {
    let began = ctx.clock.now();
    loop {
        // All are to go on at the same moment: before the first node that is opened keeps the
        // scheduler busy.
        let telling = ctx.nominations.telling();
        tokio::pin!(telling);
        telling.as_mut().enable();
        let age = ctx.clock.now().duration_since(began).unsigned_abs();
        if age >= worth() {
            return;
        }
        tokio::select! {
            biased;
            () = telling => {}
            () = ctx.clock.sleep(LOOK_EVERY) => {}
        }
    }
}

/// Proposes nodes to pods that come in the place of those that a command moves, as they come: the
/// scheduler may be faster, then it decides. Runs until its future is dropped.
pub(crate) async fn run(ctx: Ctx) {
    let mut changes = ctx.world.subscribe();
    let mut looked = ctx.clock.now();
    loop {
        let until = ctx.nominations.next_withdrawal(looked);
        let told = tokio::select! {
            biased;
            told = changes.recv() => told,
            () = ctx.clock.sleep_until(until.unwrap_or(Timestamp::MAX)), if until.is_some() => {
                looked = ctx.clock.now();
                withdraw(&ctx).await;
                continue;
            }
        };
        let mut new = match told {
            Ok(told) => created(&told),
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        while let Ok(told) = changes.try_recv() {
            new.extend(created(&told));
        }
        if new.is_empty() || !ctx.nominations.expects_any() {
            continue;
        }
        let writes = welcomed(&ctx, &new);
        stream::iter(writes)
            .map(|(pod, patch)| propose(&ctx, pod, patch))
            .buffer_unordered(AT_ONCE)
            .count()
            .await;
    }
}

/// Takes proposals back whose time is over, from pods that still wait.
async fn withdraw(ctx: &Ctx) {
    let snapshot = ctx.world.snapshot();
    let waits = |pod: &PlannedPod| {
        let live = snapshot.pod(&pod.name);
        live.is_some_and(|live| live.uid == pod.uid && live.node.is_none())
    };
    let others_wait = ctx.nominations.foremost().iter().any(waits);
    let due = ctx.nominations.withdrawn(ctx.clock.now(), others_wait);
    let writes = due.into_iter().filter(waits).map(|pod| {
        let patch = json!({"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": null}});
        propose(ctx, pod.name, patch)
    });
    let writes: Vec<_> = writes.collect();
    stream::iter(writes).buffer_unordered(AT_ONCE).count().await;
}

/// Pods that came with some changes.
fn created(told: &[Change]) -> Vec<Name> {
    let new = told
        .iter()
        .filter(|change| change.kind == Kind::Pod && change.what == What::Appeared);
    new.map(|change| change.name.clone()).collect()
}

/// The pods that take the place of others, with what is written into their status.
fn welcomed(ctx: &Ctx, new: &[Name]) -> Vec<(Name, Value)> {
    let snapshot = ctx.world.snapshot();
    let now = ctx.clock.now();
    let mut writes = Vec::new();
    for pod in new.iter().filter_map(|name| snapshot.pod(name)) {
        let owner = pod.owner.as_ref().filter(|_| pod.is_fresh());
        let to = owner.and_then(|own| ctx.nominations.welcome(&own.uid, now));
        let Some(to) = to else {
            continue;
        };
        let node = match snapshot.claim(&to) {
            Some(claim) => claim.node_name().map(Name::from),
            None => Some(to),
        };
        if let Some(node) = node.filter(|node| snapshot.node(node).is_some()) {
            let patch = proposal(&node, &pod.uid, &rfc3339(now));
            writes.push((pod.name.clone(), patch));
        }
    }
    writes
}

async fn propose(ctx: &Ctx, pod: Name, patch: Value) {
    let written = ctx.api.merge_status(Kind::Pod, &pod, &patch).await;
    if let Err(error) = written {
        tracing::debug!(Pod = &*pod, %error, "cannot propose a node");
    }
}

/// What is written into the status of a pod.
fn proposal(node: &str, uid: &str, at: &str) -> Value {
    json!({"metadata": {"uid": uid}, "status": {
        "nominatedNodeName": node,
        "conditions": [{
            "type": PROPOSED,
            "status": "True",
            "reason": "Planned",
            "message": node,
            "lastTransitionTime": at,
        }],
    }})
}
