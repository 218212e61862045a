//! Nodes are opened together, when their pods know of them.

use std::time::Duration;

use jiff::Timestamp;
use joiner_model::Name;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::openings::{PlannedPod, Standing};
use super::state::{Decision, State, Write};
use crate::nodeclaim::lifecycle::made::{self, Cluster, at, launched, merge};

/// A claim with its Node `node-NAME`.
fn joined(cluster: Cluster, name: &str) -> Cluster {
    let id = format!("kwok://{name}");
    let claim = launched(
        &["Launched"],
        &json!({"metadata": {"name": name, "uid": format!("uid-{name}")},
            "status": {"providerID": id}}),
    );
    let node = made::node(&json!({"metadata": {"name": format!("node-{name}"),
        "uid": format!("uid-node-{name}")}, "spec": {"providerID": id}}));
    cluster.with(Kind::NodeClaim, claim).with(Kind::Node, node)
}

/// A pod that waits, with what the scheduler was told of it.
fn waiting(name: &str, proposed: Option<&str>) -> Value {
    let mut pod = made::pod(name, &json!({"spec": {"nodeName": null}}));
    let unschedulable = json!({"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "lastTransitionTime": made::text(1)});
    let mut conditions = vec![unschedulable];
    if let Some(node) = proposed {
        conditions.push(
            json!({"type": joiner_state::live::PROPOSED, "status": "True",
            "reason": "Planned", "message": node, "lastTransitionTime": made::text(1)}),
        );
    }
    let status = json!({"status": {"phase": "Pending", "nominatedNodeName": proposed,
        "conditions": conditions}});
    merge(&mut pod, &status);
    pod
}

fn planned(name: &str, claim: &str, standing: Standing) -> PlannedPod {
    PlannedPod {
        name: format!("web/{name}").into(),
        uid: format!("uid-{name}").into(),
        claim: claim.into(),
        standing,
    }
}

fn proposal(name: &str, claim: &str) -> Write {
    Write::Propose {
        pod: format!("web/{name}").into(),
        uid: format!("uid-{name}").into(),
        node: format!("node-{claim}").into(),
    }
}

fn ask(state: &mut State, claim: &str) -> bool {
    let node = format!("node-{claim}");
    state
        .openings
        .ask(&Name::from(claim), &Name::from(node.as_str()))
}

fn millis(at: Timestamp, millis: u64) -> Timestamp {
    at + Duration::from_millis(millis)
}

/// Decides until nothing is to be done at this time; what was written and released.
fn settle(state: &mut State, cluster: &Cluster, now: Timestamp) -> Decision {
    let mut all = Decision::default();
    for _ in 0..10 {
        let decision = state.decide(&cluster.snapshot(), now);
        all.writes.extend(decision.writes);
        all.released.extend(decision.released);
        all.next = decision.next;
        if decision.next.is_none_or(|next| next > now) {
            return all;
        }
    }
    panic!("it does not come to rest");
}

#[test]
fn a_claim_that_no_pod_waits_for_opens_at_once() {
    let mut state = State::default();
    assert!(ask(&mut state, "a"));
}

#[test]
fn a_node_opens_after_its_pods_were_told_twice() {
    let mut state = State::default();
    let cluster = joined(Cluster::default(), "a").with(Kind::Pod, waiting("x", None));
    state
        .openings
        .plan(vec![planned("x", "a", Standing::Alone)]);
    assert!(!ask(&mut state, "a"));
    let told = settle(&mut state, &cluster, at(100));
    // The scheduler may have taken the proposal back meanwhile: it is made again.
    assert_eq!(told.writes, [proposal("x", "a"), proposal("x", "a")]);
    assert_eq!(told.released, ["a".into()] as [Name; 1]);
    assert!(ask(&mut state, "a"));
}

#[test]
fn a_proposal_that_stands_is_not_made_again() {
    let mut state = State::default();
    let cluster = joined(Cluster::default(), "a").with(Kind::Pod, waiting("x", Some("node-a")));
    state
        .openings
        .plan(vec![planned("x", "a", Standing::Alone)]);
    assert!(!ask(&mut state, "a"));
    let told = settle(&mut state, &cluster, at(100));
    assert_eq!((told.writes.len(), told.released.len()), (0, 1));
}

#[test]
fn nodes_of_one_plan_open_at_the_same_moment() {
    let mut state = State::default();
    let pods = ["x", "y"].map(|name| waiting(name, None));
    let [x, y] = pods;
    let cluster = Cluster::default().with(Kind::Pod, x).with(Kind::Pod, y);
    let coming = launched(
        &["Launched"],
        &json!({"metadata": {"name": "b", "uid": "uid-b"},
        "status": {"providerID": "kwok://b"}}),
    );
    let cluster = joined(cluster, "a").with(Kind::NodeClaim, coming);
    state.openings.plan(vec![
        planned("x", "a", Standing::Alone),
        planned("y", "b", Standing::Alone),
    ]);
    assert!(!ask(&mut state, "a"));
    let first = settle(&mut state, &cluster, at(100));
    assert_eq!(
        first.released,
        [] as [Name; 0],
        "the other node is still to come"
    );
    assert_eq!(first.next, Some(millis(at(100), 50)));
    let cluster = joined(cluster, "b");
    assert!(!ask(&mut state, "b"));
    let both = settle(&mut state, &cluster, at(101));
    assert_eq!(both.released, ["a".into(), "b".into()] as [Name; 2]);
}

#[test]
fn a_node_that_does_not_join_is_not_waited_for_long() {
    let mut state = State::default();
    let cluster = joined(Cluster::default(), "a").with(Kind::Pod, waiting("x", None));
    let coming = launched(
        &["Launched"],
        &json!({"metadata": {"name": "b", "uid": "uid-b"},
        "status": {"providerID": "kwok://b"}}),
    );
    let cluster = cluster.with(Kind::NodeClaim, coming);
    state.openings.plan(vec![
        planned("x", "a", Standing::Alone),
        planned("y", "b", Standing::Alone),
    ]);
    assert!(!ask(&mut state, "a"));
    assert!(settle(&mut state, &cluster, at(100)).released.is_empty());
    assert!(
        settle(&mut state, &cluster, millis(at(100), 1_999))
            .released
            .is_empty()
    );
    let late = settle(&mut state, &cluster, at(102));
    assert_eq!(late.released, ["a".into()] as [Name; 1]);
}

#[test]
fn a_claim_that_a_new_plan_has_no_pods_for_is_released() {
    let mut state = State::default();
    let plan = vec![
        planned("x", "a", Standing::Alone),
        planned("y", "b", Standing::Alone),
    ];
    assert!(state.openings.plan(plan).is_empty());
    assert!(!ask(&mut state, "a"));
    let released = state
        .openings
        .plan(vec![planned("y", "b", Standing::Alone)]);
    assert_eq!(released, ["a".into()] as [Name; 1]);
    assert!(ask(&mut state, "a"));
}

#[test]
fn a_node_that_was_opened_stays_so_while_it_is_planned_for() {
    let mut state = State::default();
    let cluster = joined(Cluster::default(), "a").with(Kind::Pod, waiting("x", None));
    state
        .openings
        .plan(vec![planned("x", "a", Standing::Alone)]);
    assert!(!ask(&mut state, "a"));
    settle(&mut state, &cluster, at(100));
    let more = vec![
        planned("x", "a", Standing::Alone),
        planned("z", "a", Standing::Alone),
    ];
    assert!(state.openings.plan(more).is_empty());
    assert!(ask(&mut state, "a"));
}

#[test]
fn small_pods_of_a_spread_yield_while_the_foremost_wait() {
    let mut state = State::default();
    let cluster = joined(Cluster::default(), "a")
        .with(Kind::Pod, waiting("small", None))
        .with(Kind::Pod, waiting("large", None));
    state.openings.plan(vec![
        planned("large", "a", Standing::Foremost),
        planned("small", "a", Standing::Yielding),
    ]);
    assert!(!ask(&mut state, "a"));
    let told = settle(&mut state, &cluster, at(100));
    assert!(
        !told.writes.contains(&proposal("large", "a")),
        "it takes what room there is"
    );
    let held = settle(&mut state, &cluster, at(102));
    assert!(
        held.writes.is_empty() && held.next.is_some(),
        "the large one still waits"
    );
    let withdrawn = settle(&mut state, &cluster, at(112)).writes;
    let withdrawal = Write::Withdraw {
        pod: "web/small".into(),
        uid: "uid-small".into(),
    };
    assert_eq!(withdrawn, std::slice::from_ref(&withdrawal));
    assert!(
        settle(&mut state, &cluster, at(113)).writes.is_empty(),
        "once is enough"
    );

    // Where the foremost has its place, the proposal goes as soon as that is safe.
    let mut state = State::default();
    state
        .openings
        .plan(vec![planned("small", "a", Standing::Yielding)]);
    assert!(!ask(&mut state, "a"));
    settle(&mut state, &cluster, at(100));
    assert!(settle(&mut state, &cluster, at(101)).writes.is_empty());
    assert_eq!(settle(&mut state, &cluster, at(102)).writes, [withdrawal]);
}
