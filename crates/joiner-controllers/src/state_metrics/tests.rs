//! What is shown of a small cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use joiner_model::{InstanceType, NanoDollars, Offering, Resources};
use joiner_runtime::{Build, Clock, Metrics, News};
use joiner_state::NodeClassRef;
use joiner_state::live::{ClusterState, Kind, Snapshot};
use serde_json::{Value, json};

use super::*;
use crate::nodeclaim::lifecycle::made::{Cluster, at, launched, merge, node, pod, pool, text};

fn catalogs() -> Lists {
    let offering = |zone: &str, capacity_type: &str, nanos| Offering {
        labels: [
            ("topology.kubernetes.io/zone".into(), zone.into()),
            ("karpenter.sh/capacity-type".into(), capacity_type.into()),
        ]
        .into_iter()
        .collect(),
        price: NanoDollars::new(nanos),
        available: false,
        reservation: None,
        extra_capacity: Resources::new(),
    };
    let sold = InstanceType {
        name: "m-2x".into(),
        labels: BTreeMap::new(),
        capacity: Resources::new(),
        overhead: Resources::new(),
        offerings: vec![
            offering("a", "on-demand", 400_000_000),
            offering("a", "spot", 125_000_000),
            offering("b", "spot", 250_000_000),
        ],
    };
    let class = NodeClassRef {
        group: "karpenter.kwok.sh".into(),
        kind: "KWOKNodeClass".into(),
        name: "k".into(),
    };
    BTreeMap::from([(class, Arc::new(vec![sold]))])
}

fn labels(zone: &str) -> Value {
    json!({"karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": "m-2x",
        "topology.kubernetes.io/zone": zone, "karpenter.sh/capacity-type": "spot",
        "kubernetes.io/arch": "amd64"})
}

fn requesting(cpu: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "i",
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "2Gi"}}}]}})
}

/// A pool with one node of ours, one foreign node, and a few pods.
fn cluster() -> Cluster {
    let mut pool = pool("uid-p");
    merge(
        &mut pool,
        &json!({"spec": {"limits": {"cpu": "10", "nodes": "3"}},
            "status": {"resources": {"cpu": "2", "ephemeral-storage": "10"}}}),
    );
    let mut daemon = requesting("500m");
    merge(
        &mut daemon,
        &json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
            "name": "d", "uid": "d", "controller": true}]}}),
    );
    let mut done = requesting("2");
    merge(&mut done, &json!({"status": {"phase": "Succeeded"}}));
    Cluster::default()
        .with(Kind::NodePool, pool)
        .with(
            Kind::NodeClaim,
            launched(&["Launched"], &json!({"metadata": {"labels": labels("a")}})),
        )
        .with(
            Kind::Node,
            node(&json!({"metadata": {"labels": labels("a")},
                "status": {"allocatable": {"cpu": "1500m", "memory": "3Gi"}}})),
        )
        .with(
            Kind::Node,
            node(
                &json!({"metadata": {"name": "foreign", "uid": "f", "creationTimestamp": text(50)},
                "spec": {"providerID": "other://f"}}),
            ),
        )
        .with(Kind::Pod, pod("web", &requesting("250m")))
        .with(Kind::Pod, pod("daemon", &daemon))
        .with(Kind::Pod, pod("done", &done))
}

fn look(now: Snapshot) -> Look {
    Look::new(Arc::new(now), &catalogs(), Waits::default(), at(100))
}

/// The series of a family, as `label=value,.. value`, without empty labels.
fn shown(look: &Look, family: &str) -> Vec<String> {
    let mut lines = Vec::new();
    look.each(family, &mut |labels, value| {
        let labels = labels.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> = labels.map(|(k, v)| format!("{k}={v}")).collect();
        lines.push(format!("{} {value}", labels.join(",")));
    });
    lines
}

#[test]
fn nodes_show_what_they_have_and_what_is_asked_of_them() {
    let look = look(cluster().snapshot());
    let ours = "node_name=n,managed=true,arch=amd64,capacity_type=spot,instance_type=m-2x,\
                kwoknodeclass=k,nodepool=p,zone=a";
    let foreign = "node_name=foreign,managed=false,kwoknodeclass=k";
    let of = |family: &str, node: &str| -> Vec<String> {
        let lines = shown(&look, family);
        let of_node = lines.iter().filter_map(|line| line.strip_prefix(node));
        of_node
            .map(|rest| rest.trim_start_matches(",resource_type=").trim().to_owned())
            .collect()
    };
    assert_eq!(
        of(NODES_ALLOCATABLE, ours),
        ["cpu 1.5", "memory 3221225472", "pods 110"]
    );
    assert_eq!(
        of(NODES_ALLOCATABLE, foreign),
        ["cpu 2", "memory 4294967296", "pods 110"]
    );
    // Pods that have finished ask for nothing.
    assert_eq!(
        of(NODES_TOTAL_POD_REQUESTS, ours),
        ["cpu 0.75", "memory 2147483648", "pods 2"]
    );
    assert_eq!(
        of(NODES_TOTAL_DAEMON_REQUESTS, ours),
        ["cpu 0.5", "memory 1073741824", "pods 1"]
    );
    // No pod limits processors.
    assert_eq!(
        of(NODES_TOTAL_POD_LIMITS, ours),
        ["memory 4294967296", "pods 2"]
    );
    assert_eq!(
        of(NODES_TOTAL_DAEMON_LIMITS, ours),
        ["memory 2147483648", "pods 1"]
    );
    assert!(of(NODES_TOTAL_POD_REQUESTS, foreign).is_empty());
    assert_eq!(
        of(NODES_SYSTEM_OVERHEAD, ours),
        ["cpu 0.5", "memory 1073741824", "pods 0"]
    );
    assert_eq!(of(NODES_CURRENT_LIFETIME, ours), ["100"]);
    assert_eq!(of(NODES_CURRENT_LIFETIME, foreign), ["50"]);
}

#[test]
fn the_cluster_shows_how_full_it_is() {
    let lines = shown(&look(cluster().snapshot()), CLUSTER_UTILIZATION);
    // 750 of 3500 millicores, 2 of 7 GiB, 2 of 220 pods.
    let figures: Vec<(&str, f64)> = lines
        .iter()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(label, value)| (label, value.parse().unwrap()))
        .collect();
    for ((label, found), (expected, percent)) in figures.iter().zip([
        ("resource_type=cpu", 100.0 * 750.0 / 3500.0),
        ("resource_type=memory", 200.0 / 7.0),
        ("resource_type=pods", 200.0 / 220.0),
    ]) {
        assert_eq!(*label, expected);
        assert!((found - percent).abs() < 1e-9, "{label} {found}");
    }
    assert_eq!(figures.len(), 3);
}

#[test]
fn pools_show_limits_usage_and_price() {
    let mut cluster = cluster();
    for (name, zone) in [("c2", "b"), ("c3", "z")] {
        let more = json!({"metadata": {"name": name, "uid": name, "labels": labels(zone)},
            "status": {"providerID": format!("kwok://{name}")}});
        cluster.put(Kind::NodeClaim, launched(&["Launched"], &more));
    }
    // Not launched: nothing to pay yet.
    let coming = json!({"metadata": {"name": "c4", "uid": "c4", "labels": labels("a")},
        "status": {"providerID": null}});
    cluster.put(Kind::NodeClaim, launched(&[], &coming));
    let look = look(cluster.snapshot());
    assert_eq!(
        shown(&look, NODEPOOLS_LIMIT),
        [
            "nodepool=p,resource_type=cpu 10",
            "nodepool=p,resource_type=nodes 3"
        ]
    );
    assert_eq!(
        shown(&look, NODEPOOLS_USAGE),
        [
            "nodepool=p,resource_type=cpu 2",
            "nodepool=p,resource_type=ephemeral_storage 10"
        ]
    );
    // 0.125 in zone a, 0.25 in zone b; nothing is known of zone z.
    assert_eq!(shown(&look, NODEPOOLS_COST), ["nodepool=p 0.375"]);
    let unpriced: Vec<_> = look
        .unpriced()
        .map(|(pool, claim)| format!("{pool}/{claim}"))
        .collect();
    assert_eq!(unpriced, ["p/c3"]);
}

#[test]
fn pods_show_where_and_how_they_are() {
    let mut cluster = cluster();
    let waiting = json!({
        "metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "name": "r", "uid": "r", "controller": true}]},
        "spec": {"nodeName": null}, "status": {"phase": "Pending"},
    });
    cluster.put(Kind::Pod, pod("waiting", &waiting));
    let ready = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": text(30)}]}});
    cluster.put(Kind::Pod, pod("web", &ready));
    let lines = shown(&look(cluster.snapshot()), PODS_STATE);
    let of = |name: &str| lines.iter().find(|line| line.contains(name)).unwrap();
    assert_eq!(lines.len(), 4);
    assert_eq!(
        of("name=web"),
        "arch=amd64,capacity_type=spot,instance_type=m-2x,managed=true,name=web,namespace=web,\
         node=n,nodepool=p,phase=Running,ready=true,scheduled=true,zone=a 1"
    );
    assert_eq!(
        of("name=waiting"),
        "managed=false,name=waiting,namespace=web,owner=/apis/apps/v1/namespaces/web/replicasets/r,\
         phase=Pending,ready=false,scheduled=false 1"
    );
    assert!(of("name=done").contains("phase=Succeeded"));
}

/// A pod that was created at second 20 and is bound and ready since then, as far as given.
fn pod_at(name: &str, bound: Option<i64>, ready: Option<i64>) -> Value {
    let mut conditions = Vec::new();
    for (kind, since) in [("PodScheduled", bound), ("Ready", ready)] {
        if let Some(since) = since {
            conditions
                .push(json!({"type": kind, "status": "True", "lastTransitionTime": text(since)}));
        }
    }
    if bound.is_none() {
        conditions.push(json!({"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "lastTransitionTime": text(20)}));
    }
    pod(
        name,
        &json!({
            "spec": {"nodeName": bound.map(|_| "n")},
            "status": {"phase": if ready.is_some() { "Running" } else { "Pending" },
                "conditions": conditions},
        }),
    )
}

/// One state, as one owner keeps it: pods that do not change are shared.
#[derive(Default)]
struct Story {
    state: ClusterState,
    version: u64,
    waits: Waits,
    decisions: PodDecisions,
}

impl Story {
    fn put(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.state.apply(Kind::Pod, &object);
    }

    /// Waits that have ended by this second, in short.
    fn ended(&mut self, secs: i64) -> Vec<String> {
        let now = Arc::new(self.state.snapshot());
        let ended = self.waits.follow(&now, Some(&self.decisions), at(secs));
        let short = |family: &str| {
            let family = family.trim_start_matches("karpenter_pods_");
            family.trim_end_matches("_duration_seconds").to_owned()
        };
        let ended = ended.iter();
        ended
            .map(|wait| format!("{} {}", short(wait.family), wait.secs))
            .collect()
    }

    fn waiting(&self, family: &str, secs: i64) -> Vec<String> {
        let mut lines = Vec::new();
        self.waits.each(family, at(secs), &mut |labels, value| {
            lines.push(format!("{}/{} {value}", labels[1].1, labels[0].1));
        });
        lines
    }
}

#[test]
fn a_wait_counts_once_when_it_ends() {
    let mut story = Story::default();
    assert!(story.ended(0).is_empty());
    story.put(pod_at("a", None, None));
    assert!(story.ended(25).is_empty());
    assert_eq!(story.waiting(PODS_UNBOUND_TIME, 30), ["web/a 10"]);
    assert_eq!(story.waiting(PODS_UNSTARTED_TIME, 30), ["web/a 10"]);
    assert_eq!(
        story.waiting(PODS_PROVISIONING_UNDECIDED_TIME, 30),
        ["web/a 10"]
    );
    story.decisions.refused(&"uid-a".into(), at(24));
    story.decisions.placed(&"uid-a".into(), at(27));
    story.decisions.placed(&"uid-a".into(), at(29));
    assert_eq!(story.ended(30), ["scheduling_decision 4"]);
    assert!(
        story
            .waiting(PODS_PROVISIONING_UNDECIDED_TIME, 30)
            .is_empty()
    );
    assert_eq!(
        story.waiting(PODS_PROVISIONING_UNBOUND_TIME, 30),
        ["web/a 3"]
    );
    story.put(pod_at("a", Some(40), None));
    assert_eq!(story.ended(45), ["bound 20", "provisioning_bound 13"]);
    assert!(story.waiting(PODS_UNBOUND_TIME, 45).is_empty());
    assert_eq!(
        story.waiting(PODS_PROVISIONING_UNSTARTED_TIME, 45),
        ["web/a 18"]
    );
    story.put(pod_at("a", Some(40), Some(50)));
    assert_eq!(story.ended(55), ["startup 30", "provisioning_startup 23"]);
    // Ready again after a hiccup is not another start.
    story.put(pod_at("a", Some(40), None));
    assert!(story.ended(60).is_empty());
    story.put(pod_at("a", Some(40), Some(70)));
    assert!(story.ended(75).is_empty());
    assert!(story.waiting(PODS_UNSTARTED_TIME, 75).is_empty());
}

#[test]
fn what_came_and_started_between_two_looks_counts() {
    let mut story = Story::default();
    story.ended(0);
    story.put(pod_at("a", Some(21), Some(23)));
    assert_eq!(story.ended(25), ["bound 1", "startup 3"]);
}

#[test]
fn what_ran_before_the_first_look_does_not_count() {
    let mut story = Story::default();
    story.put(pod_at("ready", Some(21), Some(23)));
    story.put(pod_at("bound", Some(21), None));
    story.put(pod_at("waiting", None, None));
    assert!(story.ended(30).is_empty());
    assert_eq!(story.waiting(PODS_UNBOUND_TIME, 30), ["web/waiting 10"]);
    assert_eq!(
        story.waiting(PODS_UNSTARTED_TIME, 30),
        ["web/bound 10", "web/waiting 10"]
    );
    story.put(pod_at("ready", Some(21), None));
    story.put(pod_at("bound", Some(21), Some(33)));
    assert_eq!(story.ended(35), ["startup 13"]);
}

#[test]
fn pods_that_are_gone_or_replaced_wait_no_longer() {
    let mut story = Story::default();
    for name in ["a", "b", "c"] {
        story.put(pod_at(name, None, None));
    }
    story.ended(30);
    story.state.remove(Kind::Pod, &pod_at("a", None, None));
    let mut other = pod_at("b", None, None);
    other["metadata"]["uid"] = json!("uid-b2");
    other["metadata"]["creationTimestamp"] = json!(text(31));
    story.put(other);
    let mut failed = pod_at("c", None, None);
    failed["status"]["phase"] = json!("Failed");
    story.put(failed);
    assert!(story.ended(35).is_empty());
    assert_eq!(story.waiting(PODS_UNBOUND_TIME, 35), ["web/b 4"]);
}

#[test]
fn nodes_and_claims_that_are_none_yet_are_known() {
    let mut cluster = cluster();
    assert_eq!(n_known(&cluster.snapshot()), 2);
    let coming = json!({"metadata": {"name": "c2", "uid": "c2"}, "status": {"providerID": null}});
    cluster.put(Kind::NodeClaim, launched(&[], &coming));
    let joining = json!({"metadata": {"name": "c3", "uid": "c3"},
        "status": {"providerID": "kwok://c3"}});
    cluster.put(Kind::NodeClaim, launched(&["Launched"], &joining));
    assert_eq!(n_known(&cluster.snapshot()), 4);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_shown_before_everything_is_listed() {
    let clock = Clock::new(at(100), 1);
    let metrics = Metrics::new(clock.clone(), &Build::default());
    let world = World::start();
    world.expect(Kind::Node, "");
    let knowledge = Arc::new(Knowledge {
        world: world.clone(),
        clock: clock.clone(),
        since: clock.now(),
    });
    show_knowledge(&metrics, &knowledge);
    let shown = || -> Vec<String> {
        let text = metrics.render();
        let lines = text.lines().map(str::to_owned);
        lines
            .filter(|line| line.starts_with("karpenter_cluster_state_"))
            .collect()
    };
    clock.sleep(Duration::from_secs(30)).await;
    assert_eq!(
        shown(),
        [
            "karpenter_cluster_state_node_count 0",
            "karpenter_cluster_state_synced 0",
            "karpenter_cluster_state_unsynced_time_seconds 30",
        ]
    );
    let inbox = world.inbox();
    inbox
        .send(News::Begin(Kind::Node, "".into()))
        .await
        .unwrap();
    inbox
        .send(News::Complete(Kind::Node, "".into()))
        .await
        .unwrap();
    world.note(Kind::Node, node(&json!({}))).await;
    assert_eq!(
        shown(),
        [
            "karpenter_cluster_state_node_count 1",
            "karpenter_cluster_state_synced 1",
            "karpenter_cluster_state_unsynced_time_seconds 0",
        ]
    );
    drop(knowledge);
    assert_eq!(shown(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn families_are_rendered_from_what_is_shown_and_vanish_with_it() {
    let metrics = Metrics::new(Clock::new(at(100), 1), &Build::default());
    let shown = Arc::new(Shown::default());
    show(&metrics, &shown);
    *shown.lock().unwrap() = Some(Arc::new(look(cluster().snapshot())));
    let text = metrics.render();
    for family in FAMILIES.iter().filter(|family| !family.contains("_time_")) {
        assert!(
            text.contains(&format!("\n{family}{{")),
            "{family} is missing"
        );
    }
    assert!(!text.contains("joiner_metrics_rejected_total"), "{text}");
    assert!(text.contains("karpenter_nodepools_cost_total{nodepool=\"p\"} 0.125\n"));
    drop(shown);
    assert!(!metrics.render().contains("\nkarpenter_pods_state{"));
}
