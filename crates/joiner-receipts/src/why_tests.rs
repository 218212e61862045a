//! Answers from decisions alone, and with a cluster beside them.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::details::{DISRUPTION, KEPT, PROVISIONING, UNSCHEDULABLE};
use crate::fate::PodFate;

/// A cluster with one node and some pods.
struct Cluster {
    pods: Vec<&'static str>,
}

impl Live for Cluster {
    fn time(&self) -> Timestamp {
        at(100)
    }

    fn pods(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.pods.iter().copied())
    }

    fn nodes(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(["node-1"].into_iter())
    }

    fn pod(&self, name: &str) -> Option<PodState> {
        self.pods.contains(&name).then(|| PodState {
            phase: "Pending".to_owned(),
            ..PodState::default()
        })
    }

    fn node(&self, name: &str) -> Option<NodeState> {
        ["node-1", "claim-1"].contains(&name).then(|| NodeState {
            node: "node-1".to_owned(),
            node_claim: Some("claim-1".to_owned()),
            state: "is up".to_owned(),
        })
    }
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(secs).unwrap()
}

fn line(secs: i64, kind: &str, about: &[&str], details: serde_json::Value) -> Decision {
    Decision {
        time: at(secs),
        kind: kind.to_owned(),
        outcome: format!("{kind} at {secs}"),
        about: about.iter().map(|name| (*name).to_owned()).collect(),
        details,
        ..Decision::default()
    }
}

/// A pod waits and gets a node; that node is kept; another one goes.
fn log() -> Vec<Decision> {
    let web = "pod/shop/web-1";
    let bought = json!({"nodes": [{"nodeClaim": "claim-1", "pods": ["shop/web-1"]}]});
    let kept =
        json!({"nodes": [{"node": "node-1", "nodeClaim": "claim-1", "reason": "it is full"}]});
    let gone = json!({"removed": [{"node": "node-0", "nodeClaim": "claim-0"}],
        "moves": [{"pod": "shop/api-1", "from": "node-0", "to": "node/node-1"}]});
    vec![
        line(1, UNSCHEDULABLE, &[web], json!({"reasons": ["no pool"]})),
        line(2, PROVISIONING, &[web, "nodeclaim/claim-1"], bought),
        line(3, KEPT, &["node/node-1", "nodeclaim/claim-1"], kept),
        line(
            4,
            DISRUPTION,
            &["node/node-0", "nodeclaim/claim-0", "pod/shop/api-1"],
            gone,
        ),
    ]
}

fn find(query: &DecisionQuery) -> Vec<Decision> {
    let mut all = log();
    all.retain(|line| query.wants(line));
    all
}

#[test]
fn a_pod_is_answered_from_decisions_alone() {
    let answer = pod("web-1", None, &find).unwrap();
    assert_eq!(answer.pod, "shop/web-1");
    assert_eq!((answer.now, &answer.state), (None, &None));
    let [first, second] = answer.receipts.as_slice() else {
        panic!("{answer:?}");
    };
    assert!(matches!(&first.fate, PodFate::Unschedulable { why } if why.reasons == ["no pool"]));
    assert!(
        matches!(&second.fate, PodFate::NewNode { node } if node.machine.node_claim == "claim-1")
    );
    let moved = pod("shop/api-1", None, &find).unwrap();
    let PodFate::Moved { to, why } = &moved.receipts[0].fate else {
        panic!("{moved:?}");
    };
    assert_eq!((&*to.to, &**why), ("node/node-1", "disruption at 4"));
}

#[test]
fn pods_of_the_cluster_come_first_and_must_be_told_apart() {
    let cluster = |pods: &[&'static str]| Cluster {
        pods: pods.to_vec(),
    };
    let answer = pod("web-1", Some(&cluster(&["test/web-1"])), &find).unwrap();
    assert_eq!(answer.pod, "test/web-1", "the one that is there");
    assert_eq!(answer.now, Some(at(100)));
    assert_eq!(answer.state.unwrap().phase, "Pending");
    assert!(answer.receipts.is_empty(), "those are of another one");
    let twins = cluster(&["test/web-1", "shop/web-1"]);
    let error = pod("web-1", Some(&twins), &find).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is more than one pod \"web-1\": say which one: shop/web-1, test/web-1"
    );
    let gone = pod("api-1", Some(&twins), &find).unwrap();
    assert_eq!((&*gone.pod, gone.state), ("shop/api-1", None));
    let error = pod("web-2", Some(&twins), &find).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no pod \"web-2\", and nothing was decided about one; did you mean shop/web-1, \
         test/web-1?"
    );
}

#[test]
fn a_node_is_answered_by_either_name() {
    let cluster = Cluster { pods: Vec::new() };
    let kept = Kept {
        reason: "it is full".to_owned(),
        ..Kept::default()
    };
    let both = ["node-1", "claim-1"].map(|name| {
        let answer = node(name, Some(&cluster), Some(kept.clone()), &find).unwrap();
        assert_eq!(answer.state.as_deref(), Some("is up"));
        assert_eq!(answer.kept.as_ref(), Some(&kept));
        answer
    });
    assert_eq!(both[0], both[1]);
    assert_eq!(both[0].receipts.len(), 2, "bought and kept: {both:?}");
    let error = node("node-7", Some(&cluster), None, &find).unwrap_err();
    let NoAnswer::Unknown { near, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(near, ["node-0", "node-1"]);
}

#[test]
fn a_node_that_is_gone_is_answered_without_what_was_said_before() {
    let cluster = Cluster { pods: Vec::new() };
    let kept = Some(Kept::default());
    let answer = node("claim-0", Some(&cluster), kept, &find).unwrap();
    assert_eq!(answer.node, "node-0");
    assert_eq!(answer.node_claim.as_deref(), Some("claim-0"));
    assert_eq!((&answer.state, &answer.kept), (&None, &None));
    let [receipt] = answer.receipts.as_slice() else {
        panic!("{answer:?}");
    };
    assert_eq!(receipt.time, at(4));
    assert!(matches!(receipt.fate, NodeFate::Removed { .. }));
}

#[test]
fn only_the_latest_receipts_are_shown() {
    let many = |query: &DecisionQuery| {
        let line = |secs| line(secs, UNSCHEDULABLE, &["pod/shop/web-1"], json!({}));
        let mut all: Vec<Decision> = (0..50).map(line).collect();
        all.retain(|line| query.wants(line));
        all
    };
    let answer = pod("shop/web-1", None, &many).unwrap();
    assert_eq!(answer.receipts.len(), RECEIPTS_MAX);
    assert_eq!(answer.receipts[0].time, at(30));
}
