//! How the Node of a claim joins.

use joiner_state::live::Kind;
use serde_json::json;

use super::{GOOD, joined, registered, settle, with};
use crate::nodeclaim::lifecycle::made::{at, launched, merge, node, text};

#[test]
fn core_217_a_node_is_registered() {
    let claim = json!({
        "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/x": "1"}},
        "spec": {
            "taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"},
                {"key": "here", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "cni", "effect": "NoExecute", "timeAdded": text(1)}],
        },
    });
    let unregistered = json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"});
    let here = json!({"key": "here", "value": "own", "effect": "NoSchedule"});
    let node = json!({
        "metadata": {"labels": {"team": "b", "kept": "yes"}, "finalizers": ["example.com/theirs"]},
        "spec": {"taints": [unregistered, here]},
    });
    let mut cluster = joined(&claim, &node);
    let told = settle(&mut cluster, &GOOD, at(30));
    assert_eq!(told, ["sync", "write", "write", "wait"]);
    let node = cluster.get(Kind::Node, "n");
    let owner = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c",
        "uid": "uid-c", "blockOwnerDeletion": true});
    assert_eq!(node["metadata"]["ownerReferences"], json!([owner]));
    let finalizers = json!(["example.com/theirs", "karpenter.sh/termination"]);
    assert_eq!(node["metadata"]["finalizers"], finalizers);
    for (label, value) in [
        ("team", "a"),
        ("kept", "yes"),
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/nodepool", "p"),
        ("karpenter.kwok.sh/kwoknodeclass", "k"),
    ] {
        assert_eq!(node["metadata"]["labels"][label], value, "{label}");
    }
    assert_eq!(node["metadata"]["annotations"]["example.com/x"], "1");
    let taints = json!([
        {"key": "here", "value": "own", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
        {"key": "cni", "effect": "NoExecute"},
    ]);
    assert_eq!(node["spec"]["taints"], taints);
    assert_eq!(cluster.condition("Registered"), "True Registered");
    let claim = cluster.get(Kind::NodeClaim, "c");
    assert_eq!(claim["status"]["nodeName"], "n");
}

#[test]
fn core_217_the_owner_is_added_once_and_others_stay() {
    let other = json!({"apiVersion": "example.com/v1", "kind": "Rack", "name": "r", "uid": "u"});
    let ours = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "c",
        "uid": "uid-c", "blockOwnerDeletion": true});
    for (before, n_after) in [
        (json!([other]), 2),
        (json!([other, ours]), 2),
        (json!([ours]), 1),
    ] {
        let node = json!({"metadata": {"ownerReferences": before}});
        let mut cluster = joined(&json!({}), &node);
        settle(&mut cluster, &GOOD, at(30));
        let node = cluster.get(Kind::Node, "n");
        let owners = node["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), n_after, "{owners:?}");
        assert!(owners.contains(&ours));
    }
}

#[test]
fn two_nodes_of_one_machine_are_never_registered() {
    let mut cluster = joined(&json!({}), &json!({}));
    cluster.put(
        Kind::Node,
        node(&json!({"metadata": {"name": "m", "uid": "uid-m"}})),
    );
    let told = settle(&mut cluster, &GOOD, at(30));
    assert_eq!(told, ["write", "wait 900 s"]);
    assert_eq!(
        cluster.condition("Registered"),
        "False MultipleNodesFound Invariant violated, matched multiple nodes"
    );
    assert!(
        cluster
            .condition("Ready")
            .starts_with("False UnhealthyDependents")
    );
    cluster.remove(Kind::Node, "m");
    assert_eq!(settle(&mut cluster, &GOOD, at(31)), ["wait 899 s"]);
    let told = settle(&mut cluster, &GOOD, at(931));
    assert_eq!(told, ["give up: registration_timeout"]);
}

#[test]
fn core_218_a_node_without_the_taint_is_registered_all_the_same() {
    let mut cluster = joined(&json!({}), &json!({"spec": {"taints": []}}));
    let told = settle(&mut cluster, &GOOD, at(30));
    assert_eq!(told[0], "sync a bare node");
    assert_eq!(cluster.condition("Registered"), "True Registered");
    let labeled = json!({"metadata": {"labels": {"karpenter.sh/registered": "true"}},
        "spec": {"taints": []}});
    let mut cluster = joined(&json!({}), &labeled);
    assert_eq!(settle(&mut cluster, &GOOD, at(30))[0], "sync");
}

#[test]
fn core_219_taints_are_not_synced_to_a_node_that_says_so() {
    for (value, n_taints) in [("true", 0), ("false", 2), ("", 2)] {
        let claim = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "b", "effect": "NoSchedule"}]}});
        let node = json!({"metadata": {"labels": {"karpenter.sh/do-not-sync-taints": value}}});
        let mut cluster = joined(&claim, &node);
        settle(&mut cluster, &GOOD, at(30));
        let taints = &cluster.get(Kind::Node, "n")["spec"]["taints"];
        assert_eq!(taints.as_array().unwrap().len(), n_taints, "{value:?}");
    }
}

#[test]
fn core_220_startup_taints_that_were_lifted_stay_lifted() {
    let claim = json!({"spec": {"startupTaints": [{"key": "cni", "effect": "NoSchedule"}]}});
    let mut cluster = joined(&claim, &json!({}));
    settle(&mut cluster, &GOOD, at(30));
    let version = cluster.get(Kind::Node, "n")["metadata"]["resourceVersion"].clone();
    let lift = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": []}});
    cluster.change(Kind::Node, "n", &lift);
    let told = settle(&mut cluster, &GOOD, at(31));
    assert_eq!(told, ["mark", "write", "wait"]);
    // Even if the claim does not know yet that its Node was registered: a write was lost.
    let lost = launched(&["Launched"], &claim);
    cluster.put(Kind::NodeClaim, lost);
    settle(&mut cluster, &GOOD, at(32));
    assert_eq!(cluster.condition("Registered"), "True Registered");
    assert_eq!(cluster.get(Kind::Node, "n")["spec"]["taints"], json!([]));
}

#[test]
fn core_222_initialization_waits_for_the_first_thing_that_is_missing() {
    let taint = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
    let not_ready = json!([{"type": "Ready", "status": "Unknown", "lastTransitionTime": text(0)}]);
    let cases = [
        (
            json!({"status": {"conditions": not_ready}}),
            "NodeNotReady Node status is NotReady",
        ),
        (
            taint("cni"),
            "StartupTaintsExist StartupTaint \"cni=v:NoSchedule\" still exists",
        ),
        (
            taint("node.kubernetes.io/not-ready"),
            "KnownEphemeralTaintsExist KnownEphemeralTaint \
             \"node.kubernetes.io/not-ready:NoSchedule\" still exists",
        ),
        (
            taint("readiness.k8s.io/network"),
            "KnownEphemeralTaintsExist KnownEphemeralTaint \
             \"readiness.k8s.io/network:NoSchedule\" still exists",
        ),
        (
            json!({"status": {"allocatable": {"nvidia.com/gpu": "0"}}}),
            "ResourceNotRegistered Resource \"nvidia.com/gpu\" was requested but not registered",
        ),
    ];
    let claim = json!({"spec": {
        "startupTaints": [{"key": "cni", "value": "v", "effect": "NoSchedule"}],
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1", "example.com/none": "0"}},
    }});
    let whole = json!({"status": {"allocatable": {"nvidia.com/gpu": "1"}}});
    for (node, wanted) in cases {
        let mut more = whole.clone();
        merge(&mut more, &node);
        let mut cluster = registered(&claim, &more);
        let told = settle(&mut cluster, &GOOD, at(40));
        assert_eq!(told, ["write", "wait"], "{wanted}");
        assert_eq!(
            cluster.condition("Initialized"),
            format!("Unknown {wanted}")
        );
        // The rest of the Node is as it should be: once that is cleared it is initialized.
        let mut cured = registered(&claim, &whole);
        cured.put(Kind::NodeClaim, cluster.get(Kind::NodeClaim, "c").clone());
        let told = settle(&mut cured, &GOOD, at(50));
        assert_eq!(told, ["mark", "write", "wait"], "{wanted}");
        assert_eq!(cured.condition("Initialized"), "True Initialized");
        assert_eq!(cured.condition("Ready"), "True Ready");
        let labels = &cured.get(Kind::Node, "n")["metadata"]["labels"];
        assert_eq!(labels["karpenter.sh/initialized"], "true");
    }
}

#[test]
fn core_222_a_claim_that_is_not_registered_is_never_initialized() {
    let mut cluster = with(launched(&["Launched"], &json!({})));
    settle(&mut cluster, &GOOD, at(30));
    assert!(
        cluster
            .condition("Initialized")
            .starts_with("Unknown AwaitingReconciliation")
    );
    let mut lost = with(launched(&["Launched", "Registered"], &json!({})));
    settle(&mut lost, &GOOD, at(30));
    assert!(
        lost.condition("Initialized")
            .starts_with("Unknown NodeNotFound")
    );
}

#[test]
fn core_222_once_initialized_always_initialized() {
    let all = ["Launched", "Registered", "Initialized"];
    let not_ready = json!([{"type": "Ready", "status": "False", "lastTransitionTime": text(0)}]);
    let mut cluster = with(launched(&all, &json!({})));
    cluster.put(
        Kind::Node,
        node(&json!({"status": {"conditions": not_ready}})),
    );
    settle(&mut cluster, &GOOD, at(40));
    assert_eq!(cluster.condition("Initialized"), "True Initialized");
}

#[test]
fn core_223_conditions_follow_the_generation() {
    let all = ["Launched", "Registered", "Initialized"];
    let mut cluster = with(launched(&all, &json!({"metadata": {"generation": 4}})));
    cluster.put(Kind::Node, node(&json!({})));
    let told = settle(&mut cluster, &GOOD, at(40));
    assert_eq!(told, ["write", "wait"]);
    let claim = cluster.get(Kind::NodeClaim, "c");
    for own in claim["status"]["conditions"].as_array().unwrap() {
        assert_eq!(own["observedGeneration"], 4, "{own}");
    }
    assert_eq!(cluster.condition("Ready"), "True Ready");
}
