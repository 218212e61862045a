//! Pools that no node can be bought for, and what a dry run pretends of them.

use serde_json::json;

use super::pool;
use crate::live::{ClusterState, Kind};

#[test]
fn what_is_pretended_counts_at_the_same_version_and_newer_news_replaces_it() {
    let mut state = ClusterState::default();
    let mut unready = pool();
    unready["status"] = json!({});
    state.apply(Kind::NodePool, &unready);
    let why = "no NodePool is ready: general (its status says nothing yet)";
    assert_eq!(state.snapshot().why_no_pool().as_deref(), Some(why));
    assert!(
        state.apply(Kind::NodePool, &pool()).is_none(),
        "same version"
    );
    assert!(state.pretend(Kind::NodePool, &pool()).is_some());
    assert_eq!(state.snapshot().why_no_pool(), None);
    unready["metadata"]["resourceVersion"] = json!("2");
    state.apply(Kind::NodePool, &unready);
    assert!(state.pretend(Kind::NodePool, &pool()).is_none(), "older");
    assert_eq!(state.snapshot().why_no_pool().as_deref(), Some(why));
}

#[test]
fn why_no_pool_tells_none_from_none_ready_and_names_the_reason() {
    let mut state = ClusterState::default();
    let why = |state: &ClusterState| state.snapshot().why_no_pool();
    assert_eq!(why(&state).as_deref(), Some("there is no NodePool"));
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let root = condition("Ready", "UnhealthyDependents", "NodeClassReady=False");
    let cause = condition("NodeClassReady", "NodeClassNotFound", "K c is not there");
    for n in 0..7 {
        let mut unready = pool();
        unready["metadata"]["name"] = json!(format!("p{n}"));
        unready["metadata"]["uid"] = json!(format!("uid-p{n}"));
        unready["status"] = json!({"conditions": [root, cause]});
        state.apply(Kind::NodePool, &unready);
    }
    let told = why(&state).unwrap();
    let start = "no NodePool is ready: p0 (K c is not there), p1 (K c is not there), ";
    assert!(told.starts_with(start), "{told}");
    assert!(told.ends_with("p4 (K c is not there) and 2 more"), "{told}");
    state.apply(Kind::NodePool, &pool());
    assert_eq!(why(&state), None);
}

#[test]
fn only_what_a_pool_needs_is_in_its_way() {
    let mut state = ClusterState::default();
    let condition = |kind: &str, message: &str| {
        json!({"type": kind, "status": "False", "reason": "R", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let mut unready = pool();
    unready["status"] = json!({"conditions": [
        condition("NodeRegistrationHealthy", "nodes do not register"),
        condition("NodeClassReady", "no subnets"),
        condition("ValidationSucceeded", "a taint twice"),
        condition("Ready", "NodeClassReady=False, ValidationSucceeded=False")]});
    state.apply(Kind::NodePool, &unready);
    let why = "no NodePool is ready: general (a taint twice; no subnets)";
    assert_eq!(state.snapshot().why_no_pool().as_deref(), Some(why));
}

#[test]
fn a_pool_of_a_class_of_another_cloud_is_told() {
    let mut state = ClusterState::default();
    let mut foreign = pool();
    foreign["status"] = json!({});
    foreign["spec"]["template"]["spec"]["nodeClassRef"] =
        json!({"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "a"});
    state.apply(Kind::NodePool, &foreign);
    state.begin(Kind::NodeClass, "karpenter.k8s.aws/EC2NodeClass");
    state.finish(Kind::NodeClass, "karpenter.k8s.aws/EC2NodeClass");
    let why = "no NodePool is ready: general (the cloud does not know its class, AKSNodeClass of \
        karpenter.azure.com)";
    assert_eq!(state.snapshot().why_no_pool().as_deref(), Some(why));
}
