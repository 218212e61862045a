//! Answers to "why is this pod where it is, or nowhere" and "why is this node kept, why did it go".
//!
//! The answer is put together from what was decided, which comes from memory or from a file, and from
//! the cluster as it is now, where there is one to look at.

use std::collections::BTreeSet;

use jiff::Timestamp;
use joiner_state::live::{Conditions as _, LivePod, Phase, Snapshot};
use serde::{Deserialize, Serialize};

use crate::decisions::{Decision, DecisionQuery};
use crate::near::near;
use crate::receipt::{Kept, NodeFate, PodFate, Receipt, of_node, of_pod};

/// Most receipts in one answer, the latest.
const RECEIPTS_MAX: usize = 20;
/// Decisions that are searched for names when a name is not known.
const SEARCHED_MAX: usize = 1_000;

/// Where decisions come from.
pub type Find<'a> = &'a dyn Fn(&DecisionQuery) -> Vec<Decision>;

/// What is known about a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAnswer {
    /// `namespace/name`.
    pub pod: String,
    /// The time of the answer, on the controller's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Timestamp>,
    /// The pod as it is now; nothing when it is gone, or when only a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PodState>,
    /// What was decided, oldest first.
    pub receipts: Vec<Receipt<PodFate>>,
}

/// A pod as it is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodState {
    /// Its phase.
    pub phase: String,
    /// The node it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The claim of that node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// What it requests.
    pub requests: String,
    /// When it was created.
    pub created: Timestamp,
    /// What it waits for, if that is not for us to decide, or cannot be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

/// What is known about a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAnswer {
    /// Name of the Node; of the claim while there is no Node.
    pub node: String,
    /// Name of its NodeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// The time of the answer, on the controller's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Timestamp>,
    /// How it stands; nothing when it is gone, or when only a file was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it stays, as of the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// What was decided, oldest first.
    pub receipts: Vec<Receipt<NodeFate>>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", tag = "error")]
pub enum NoAnswer {
    /// Nobody has that name.
    #[error("{}", nobody(what, name, near))]
    Unknown {
        /// `pod` or `node`.
        what: String,
        /// What was asked for.
        name: String,
        /// Names that may have been meant.
        near: Vec<String>,
    },
    /// Several have that name.
    #[error("there is more than one pod {name:?}: say which one: {}", all.join(", "))]
    Several {
        /// What was asked for.
        name: String,
        /// All of them.
        all: Vec<String>,
    },
}

fn nobody(what: &str, name: &str, near: &[String]) -> String {
    let there = format!("there is no {what} {name:?}, and nothing was decided about one");
    match near {
        [] => there,
        near => format!("{there}; did you mean {}?", near.join(", ")),
    }
}

/// What was decided about a pod (`namespace/name`, or a name that only one pod has), and how it is
/// now.
///
/// # Errors
/// When there is no such pod, or more than one.
pub fn pod(
    wanted: &str,
    now: Option<(&Snapshot, Timestamp)>,
    find: Find<'_>,
) -> Result<PodAnswer, NoAnswer> {
    let own_name = wanted.rsplit('/').next().unwrap_or(wanted);
    let is_wanted = |name: &str| match wanted.contains('/') {
        true => name == wanted,
        false => name.rsplit('/').next() == Some(wanted),
    };
    let decided = find(&DecisionQuery {
        about: Some(own_name.to_owned()),
        ..DecisionQuery::default()
    });
    let live = now.map(|(snapshot, _)| {
        let names = snapshot.pods().map(|own| &*own.name);
        names
            .filter(|name| is_wanted(name))
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    });
    let mut all = live.unwrap_or_default();
    if all.is_empty() {
        all.extend(
            names(&decided, "pod")
                .into_iter()
                .filter(|name| is_wanted(name)),
        );
    }
    if all.len() > 1 {
        return Err(NoAnswer::Several {
            name: wanted.to_owned(),
            all: all.into_iter().take(RECEIPTS_MAX).collect(),
        });
    }
    let Some(name) = all.pop_first() else {
        let live = now.into_iter().flat_map(|(snapshot, _)| snapshot.pods());
        let live = live.map(|own| own.name.to_string()).collect();
        return Err(unknown("pod", wanted, live, find));
    };
    let receipts = decided
        .iter()
        .filter_map(|own| of_pod(own, &name))
        .collect();
    Ok(PodAnswer {
        now: now.map(|(_, now)| now),
        state: now.and_then(|(snapshot, _)| Some(pod_state(snapshot, snapshot.pod(&name)?))),
        receipts: latest(receipts),
        pod: name,
    })
}

/// What was decided about a node, by its name or that of its claim, and why it is kept now.
///
/// # Errors
/// When nothing is known by that name.
pub fn node(
    wanted: &str,
    now: Option<(&Snapshot, Timestamp)>,
    kept: Option<Kept>,
    find: Find<'_>,
) -> Result<NodeAnswer, NoAnswer> {
    let ask = |name: &str| {
        find(&DecisionQuery {
            about: Some(name.to_owned()),
            ..DecisionQuery::default()
        })
    };
    let mut decided = ask(wanted);
    let live = now.and_then(|(snapshot, _)| live_node(snapshot, wanted));
    let is_known = ["node", "nodeclaim"]
        .iter()
        .any(|kind| names(&decided, kind).contains(wanted));
    if live.is_none() && !is_known {
        let live = now.into_iter().flat_map(|(snapshot, _)| snapshot.nodes());
        let live = live.map(|own| own.name().to_string()).collect();
        return Err(unknown("node", wanted, live, find));
    }
    let mut answer = live.unwrap_or_else(|| named(wanted, &decided));
    let other = answer.node_claim.clone().into_iter();
    let other: Vec<String> = other
        .chain([answer.node.clone()])
        .filter(|name| name != wanted)
        .collect();
    for name in &other {
        let known: BTreeSet<String> = decided.iter().map(|own| own.about.join(" ")).collect();
        let more = ask(name);
        decided.extend(
            more.into_iter()
                .filter(|own| !known.contains(&own.about.join(" "))),
        );
    }
    decided.sort_by_key(|own| own.time);
    let both: Vec<&str> = other.iter().map(String::as_str).chain([wanted]).collect();
    let receipts = decided
        .iter()
        .filter_map(|own| of_node(own, &both))
        .collect();
    answer.receipts = latest(receipts);
    answer.now = now.map(|(_, now)| now);
    // What was said of a node that is gone was said before it went.
    answer.kept = kept.filter(|_| answer.state.is_some());
    Ok(answer)
}

fn latest<T>(mut receipts: Vec<Receipt<T>>) -> Vec<Receipt<T>> {
    let n = receipts.len().saturating_sub(RECEIPTS_MAX);
    receipts.drain(..n);
    receipts
}

/// Objects of a kind that decisions are about.
fn names(decided: &[Decision], kind: &str) -> BTreeSet<String> {
    let about = decided.iter().flat_map(|own| &own.about);
    let of_kind = about.filter_map(|own| own.strip_prefix(kind)?.strip_prefix('/'));
    of_kind.map(str::to_owned).collect()
}

fn unknown(what: &str, name: &str, live: BTreeSet<String>, find: Find<'_>) -> NoAnswer {
    let mut all = live;
    let last = DecisionQuery {
        limit: Some(SEARCHED_MAX),
        ..DecisionQuery::default()
    };
    all.extend(names(&find(&last), what));
    NoAnswer::Unknown {
        what: what.to_owned(),
        name: name.to_owned(),
        near: near(name, &all),
    }
}

/// The other name of a node that is gone, from what was decided about it.
fn named(wanted: &str, decided: &[Decision]) -> NodeAnswer {
    let mut answer = NodeAnswer {
        node: wanted.to_owned(),
        ..NodeAnswer::default()
    };
    for own in decided {
        let machine = match of_node(own, &[wanted]).map(|own| own.fate) {
            Some(NodeFate::Kept { why }) => why.machine,
            Some(NodeFate::Removed { details, .. }) => {
                let mut removed = details.removed.into_iter();
                let own = removed.find(|own| own.node == wanted || own.node_claim == wanted);
                own.unwrap_or_default()
            }
            Some(NodeFate::Bought { node }) => node.machine,
            Some(NodeFate::Replaces { machine, .. }) => machine,
            None => continue,
        };
        if !machine.node.is_empty() {
            answer.node = machine.node;
        }
        if !machine.node_claim.is_empty() {
            answer.node_claim = Some(machine.node_claim);
        }
    }
    answer
}

fn live_node(snapshot: &Snapshot, wanted: &str) -> Option<NodeAnswer> {
    let by_name = snapshot.node(wanted);
    let claim = snapshot
        .claim(wanted)
        .or_else(|| by_name.and_then(|own| snapshot.claim_of(own)));
    let node = by_name.or_else(|| claim.and_then(|own| snapshot.node_of(own)));
    let state = match (node, claim) {
        (None, None) => return None,
        (_, Some(claim)) if claim.meta.deleting.is_some() => "is going",
        (Some(node), _) if node.meta.deleting.is_some() => "is going",
        (Some(_), None) => "is none of ours: no NodeClaim stands for it, so it is never disrupted",
        (Some(node), Some(claim)) if !claim.is_true("Initialized") => match node.is_ready() {
            true => "is up, and not initialized yet",
            false => "has joined, and is not ready yet",
        },
        (Some(node), Some(_)) if !node.is_ready() => "is not ready",
        (Some(_), Some(_)) => "is up",
        (None, Some(claim)) if claim.is_true("Launched") => "is launched, and has not joined yet",
        (None, Some(_)) => "is not launched yet",
    };
    let name = node.map(|own| own.name()).or(claim.map(|own| own.name()))?;
    Some(NodeAnswer {
        node: name.to_string(),
        node_claim: claim.map(|own| own.name().to_string()),
        state: Some(state.to_owned()),
        ..NodeAnswer::default()
    })
}

fn pod_state(snapshot: &Snapshot, pod: &LivePod) -> PodState {
    let phase = match pod.phase {
        _ if pod.deleting.is_some() => "Terminating",
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
        Phase::Unknown => "Unknown",
    };
    let node = pod.node.as_ref().and_then(|name| snapshot.node(name));
    let claim = node.and_then(|own| snapshot.claim_of(own));
    PodState {
        phase: phase.to_owned(),
        node: pod.node.as_ref().map(ToString::to_string),
        node_claim: claim.map(|own| own.name().to_string()),
        requests: pod.requests().to_string(),
        created: pod.created,
        waits_for: waits_for(snapshot, pod),
    }
}

/// What a pod without a node waits for, where no decision would tell.
fn waits_for(snapshot: &Snapshot, pod: &LivePod) -> Option<String> {
    if pod.node.is_some() || !pod.is_active() {
        return None;
    }
    if pod.is_daemon() {
        return Some("its node: pods of DaemonSets get no node of their own".to_owned());
    }
    if !pod.unschedulable {
        return Some("the scheduler, which has not said yet that it fits nowhere".to_owned());
    }
    if let Some(node) = &pod.nominated {
        return Some(format!(
            "the scheduler, which has chosen node {node} for it"
        ));
    }
    let why = snapshot.why_no_pool()?;
    Some(format!("a NodePool to buy a node from: {why}"))
}
