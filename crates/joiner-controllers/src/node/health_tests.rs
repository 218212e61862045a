//! When an unhealthy node is replaced.

use std::time::Duration;

use joiner_cloud::RepairPolicy;
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::health::{Health, deadline, health, snake_case};
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched, node, text};

const POLICIES: &[RepairPolicy] = &[
    RepairPolicy {
        condition: "Ready",
        status: "False",
        toleration: Duration::from_secs(600),
    },
    RepairPolicy {
        condition: "Ready",
        status: "Unknown",
        toleration: Duration::from_secs(600),
    },
    RepairPolicy {
        condition: "BadNode",
        status: "True",
        toleration: Duration::from_secs(60),
    },
];

/// A node with these conditions, each `Type=Status` since so many seconds.
fn sick(name: &str, pool: Option<&str>, conditions: &[(&str, i64)]) -> Value {
    let one = |(condition, since): &(&str, i64)| {
        let (kind, status) = condition.split_once('=').unwrap();
        json!({"type": kind, "status": status, "lastTransitionTime": text(*since)})
    };
    let conditions: Vec<Value> = conditions.iter().map(one).collect();
    node(&json!({
        "metadata": {"name": name, "uid": name, "labels": {"karpenter.sh/nodepool": pool},
            "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {"providerID": format!("kwok://{name}")},
        "status": {"conditions": conditions},
    }))
}

/// What becomes of the node `n` with these conditions, at this second.
fn found(conditions: &[(&str, i64)], secs: i64) -> String {
    let cluster = Cluster::default().with(Kind::NodeClaim, launched(&["Launched"], &json!({})));
    let now = cluster
        .with(Kind::Node, sick("n", Some("p"), conditions))
        .snapshot();
    let (node, claim) = (now.node("n").unwrap(), now.claim("c").unwrap());
    match health(&now, node, claim, POLICIES, at(secs)) {
        Health::Healthy => "healthy".to_owned(),
        Health::Tolerated(left) => format!("{} s left", left.as_secs()),
        Health::Blocked => "blocked".to_owned(),
        Health::Replace(policy) => format!("replace {}={}", policy.condition, policy.status),
    }
}

#[test]
fn core_243_and_244_a_condition_is_tolerated_for_a_while() {
    for (conditions, secs, expected) in [
        (&[("Ready=True", 0)][..], 9999, "healthy"),
        (&[("Ready=False", 100)], 100, "600 s left"),
        (&[("Ready=False", 100)], 699, "1 s left"),
        (&[("Ready=False", 100)], 700, "replace Ready=False"),
        (&[("Ready=Unknown", 100)], 700, "replace Ready=Unknown"),
        // Another type, another status.
        (&[("DiskPressure=True", 0)], 9999, "healthy"),
        (&[("BadNode=False", 0)], 9999, "healthy"),
        (&[("BadNode=Unknown", 0)], 9999, "healthy"),
        // The earliest end counts, not the earliest beginning.
        (
            &[("Ready=False", 0), ("BadNode=True", 100)],
            110,
            "50 s left",
        ),
        (
            &[("Ready=False", 0), ("BadNode=True", 100)],
            160,
            "replace BadNode=True",
        ),
        (
            &[("Ready=False", 0), ("BadNode=True", 590)],
            600,
            "replace Ready=False",
        ),
    ] {
        assert_eq!(
            found(conditions, secs),
            expected,
            "{conditions:?} at {secs}"
        );
    }
}

#[test]
fn core_243_and_245_the_machine_may_go_at_once_unless_its_time_has_come_already() {
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    for (set, written) in [
        (None, true),
        (Some(text(2000)), true),
        (Some(text(1000)), false),
        (Some(text(500)), false),
        (Some("soon".to_owned()), true),
    ] {
        let more = json!({
            "metadata": {"annotations": {key: set}},
            "spec": {"terminationGracePeriod": "24h"},
        });
        let cluster = Cluster::default().with(Kind::NodeClaim, launched(&["Launched"], &more));
        let now = cluster.snapshot();
        let patch = deadline(now.claim("c").unwrap(), at(1000));
        let expected = json!({"metadata": {"annotations": {key: text(1000)}}});
        assert_eq!(patch, written.then_some(expected), "{set:?}");
    }
}

#[test]
fn core_246_many_unhealthy_nodes_are_not_replaced() {
    // (nodes of the pool, unhealthy ones among them, blocked)
    for (n, unhealthy, blocked) in [
        (1, 1, false),
        (3, 1, false),
        (3, 2, true),
        (5, 1, false),
        (5, 2, true),
        (6, 2, false),
        (10, 2, false),
        (10, 3, true),
        (11, 3, false),
    ] {
        for pool in [Some("p"), None] {
            let labels = json!({"metadata": {"labels": {"karpenter.sh/nodepool": pool}}});
            let claim = launched(&["Launched"], &labels);
            let mut cluster = Cluster::default().with(Kind::NodeClaim, claim);
            for ix in 0..n {
                // Unhealthy counts from the first moment, tolerated or not.
                let conditions = match ix {
                    0 => [("Ready=False", 0)],
                    ix if ix < unhealthy => [("Ready=False", 900)],
                    _ => [("Ready=True", 0)],
                };
                let name = if ix == 0 {
                    "n".to_owned()
                } else {
                    format!("n-{ix}")
                };
                cluster.put(Kind::Node, sick(&name, pool, &conditions));
            }
            if pool.is_some() {
                // Nodes of others do not count.
                for ix in 0..10 {
                    let name = format!("other-{ix}");
                    cluster.put(Kind::Node, sick(&name, Some("q"), &[("Ready=False", 0)]));
                }
            }
            let now = cluster.snapshot();
            let (node, claim) = (now.node("n").unwrap(), now.claim("c").unwrap());
            let found = health(&now, node, claim, POLICIES, at(1000));
            assert_eq!(
                matches!(found, Health::Blocked),
                blocked,
                "{unhealthy} of {n}, pool {pool:?}: {found:?}"
            );
        }
    }
}

#[test]
fn conditions_are_counted_in_snake_case() {
    for (word, expected) in [
        ("Ready", "ready"),
        ("DiskPressure", "disk_pressure"),
        ("PIDPressure", "pid_pressure"),
        ("AcceleratedHardwareReady", "accelerated_hardware_ready"),
        ("KernelDeadlock", "kernel_deadlock"),
        ("", ""),
    ] {
        assert_eq!(snake_case(word), expected);
    }
}
