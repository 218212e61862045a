//! Answers to "why is this pod where it is, or nowhere" and "why is this node kept, why did it go".
//!
//! An answer is put together from what was decided, which comes from memory or from a file, and from
//! the cluster as it is now, where there is one to look at.

use std::collections::BTreeSet;

pub use crate::answers::{Live, NoAnswer, NodeAnswer, NodeState, PodAnswer, PodState};
use crate::decision::{Decision, DecisionQuery};
use crate::details::Kept;
use crate::fate::{NodeFate, Receipt, of_node, of_pod};
use crate::near::near;

/// Most receipts in one answer, the latest.
const RECEIPTS_MAX: usize = 20;
/// Decisions that are searched for names when a name is not known.
const SEARCHED_MAX: usize = 1_000;

/// Where decisions come from.
pub type Find<'a> = &'a dyn Fn(&DecisionQuery) -> Vec<Decision>;

/// What was decided about a pod (`namespace/name`, or a name that only one pod has), and how it is
/// now.
///
/// # Errors
/// When there is no such pod, or more than one.
pub fn pod(wanted: &str, now: Option<&dyn Live>, find: Find<'_>) -> Result<PodAnswer, NoAnswer> {
    let is_wanted = |name: &&str| match wanted.contains('/') {
        true => *name == wanted,
        false => last_part(name) == wanted,
    };
    let decided = about(last_part(wanted), find);
    let live = now.map(|live| {
        let names = live.pods().filter(is_wanted);
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    });
    let mut all = live.unwrap_or_default();
    if all.is_empty() {
        all = names(&decided, "pod");
        all.retain(|name| is_wanted(&name.as_str()));
    }
    if all.len() > 1 {
        return Err(NoAnswer::Several {
            name: wanted.to_owned(),
            all: all.into_iter().take(RECEIPTS_MAX).collect(),
        });
    }
    let Some(name) = all.pop_first() else {
        let live = now.into_iter().flat_map(Live::pods);
        return Err(unknown("pod", wanted, live, find));
    };
    let receipts = decided.iter().filter_map(|line| of_pod(line, &name));
    Ok(PodAnswer {
        now: now.map(Live::time),
        state: now.and_then(|live| live.pod(&name)),
        receipts: latest(receipts.collect()),
        pod: name,
    })
}

/// What was decided about a node, by its name or that of its claim, and why it is kept now.
///
/// # Errors
/// When nothing is known by that name.
pub fn node(
    wanted: &str,
    now: Option<&dyn Live>,
    kept: Option<Kept>,
    find: Find<'_>,
) -> Result<NodeAnswer, NoAnswer> {
    let mut decided = about(wanted, find);
    let live = now.and_then(|live| live.node(wanted));
    let is_known = ["node", "nodeclaim"]
        .iter()
        .any(|kind| names(&decided, kind).contains(wanted));
    let mut answer = match live {
        Some(live) => NodeAnswer {
            node: live.node,
            node_claim: live.node_claim,
            state: Some(live.state),
            ..NodeAnswer::default()
        },
        None if is_known => named(wanted, &decided),
        None => {
            let live = now.into_iter().flat_map(Live::nodes);
            return Err(unknown("node", wanted, live, find));
        }
    };
    let both = [answer.node_claim.as_deref(), Some(&answer.node)];
    let other = both.into_iter().flatten().filter(|name| *name != wanted);
    let other: Vec<&str> = other.collect();
    for name in &other {
        let known: BTreeSet<String> = decided.iter().map(|line| line.about.join(" ")).collect();
        let mut more = about(name, find);
        more.retain(|line| !known.contains(&line.about.join(" ")));
        decided.extend(more);
    }
    decided.sort_by_key(|line| line.time);
    let all: Vec<&str> = other.into_iter().chain([wanted]).collect();
    let receipts = decided.iter().filter_map(|line| of_node(line, &all));
    answer.receipts = latest(receipts.collect());
    answer.now = now.map(Live::time);
    // What was said of a node that is gone was said before it went.
    answer.kept = kept.filter(|_| answer.state.is_some());
    Ok(answer)
}

/// The decisions about an object.
fn about(name: &str, find: Find<'_>) -> Vec<Decision> {
    find(&DecisionQuery {
        about: Some(name.to_owned()),
        ..DecisionQuery::default()
    })
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn latest<T>(mut receipts: Vec<Receipt<T>>) -> Vec<Receipt<T>> {
    let n = receipts.len().saturating_sub(RECEIPTS_MAX);
    receipts.drain(..n);
    receipts
}

/// Objects of a kind that decisions are about.
fn names(decided: &[Decision], kind: &str) -> BTreeSet<String> {
    let about = decided.iter().flat_map(|line| &line.about);
    let of_kind = about.filter_map(|object| object.strip_prefix(kind)?.strip_prefix('/'));
    of_kind.map(str::to_owned).collect()
}

fn unknown<'l>(
    what: &str,
    name: &str,
    live: impl Iterator<Item = &'l str>,
    find: Find<'_>,
) -> NoAnswer {
    let mut all: BTreeSet<String> = live.map(str::to_owned).collect();
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
    for line in decided {
        let machine = match of_node(line, &[wanted]).map(|receipt| receipt.fate) {
            Some(NodeFate::Kept { why }) => why.machine,
            Some(NodeFate::Removed { details, .. }) => {
                let mut removed = details.removed.into_iter();
                let machine = removed.find(|it| it.node == wanted || it.node_claim == wanted);
                machine.unwrap_or_default()
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

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
