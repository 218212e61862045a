//! What can be seen of it from outside: endpoints, log lines, decisions, and a dry run.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::cluster::Served;
use crate::run::process::{Joiner, WORDS_MAX, place};
use joiner_testkit::stage::{CLAIMS, Cluster, EVENTS, LEASES, NODES, POOLS};

const ALONE: &str = "--disable-leader-election";

/// What the program was built from: seven digits, unless there is no repository.
fn commit() -> &'static str {
    let commit = env!("JOINER_BUILT_FROM");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_digits = commit.len() == 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_digits || !root.join(".git").exists(), "{commit}");
    commit
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_what_it_does() {
    let cluster = Served::embedded().await;
    cluster.pool().await;
    let file = place("decisions");
    let path = file.display().to_string();
    let flags = [ALONE, "--decision-log", &path];
    let mut joiner = Joiner::start(&cluster.kubeconfig, &flags);
    cluster.deployment("web", 20).await;
    cluster.all_run(20, 60).await;
    let n_nodes = cluster.agrees().await;
    joiner.says("initialized nodeclaim").await;

    for message in [
        "created nodeclaim",
        "launched nodeclaim",
        "registered nodeclaim",
        "initialized nodeclaim",
    ] {
        cluster
            .until(message, 20, async |_| joiner.told(message).len() == n_nodes)
            .await;
        for line in joiner.told(message) {
            assert_eq!(line["level"], "INFO");
            assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
            let name = line["NodeClaim"]["name"].as_str().unwrap();
            assert!(name.starts_with("general-"), "{line}");
            assert_eq!(line["NodePool"], json!({"name": "general"}), "{line}");
            let needs_node = ["registered nodeclaim", "initialized nodeclaim"].contains(&message);
            let has_node = line["Node"]["name"]
                .as_str()
                .is_some_and(|name| !name.is_empty());
            assert!(has_node || !needs_node, "{line}");
            if message != "created nodeclaim" {
                assert_eq!(line["controller"], "nodeclaim.lifecycle");
                assert_eq!(line["controllerKind"], "NodeClaim");
                assert_eq!(line["name"], line["NodeClaim"]["name"]);
                assert_eq!(line["reconcileID"].as_str().unwrap().len(), 36, "{line}");
            }
        }
    }
    let lines = joiner.lines();
    let commit = commit();
    for line in &lines {
        assert_eq!(line["commit"], commit, "{line}");
        assert_eq!(line["logger"], "controller", "{line}");
        for kind in ["NodeClaim", "NodePool", "Node", "Pod"] {
            let object = line.get(kind);
            let is_object = object.is_none_or(|object| object["name"].is_string());
            assert!(is_object, "{kind} is no object: {line}");
        }
    }
    assert!(!joiner.told("found provisionable pod(s)").is_empty());
    assert!(
        !joiner
            .told("computed new nodeclaim(s) to fit pod(s)")
            .is_empty()
    );
    assert_eq!(joiner.get("health", "/healthz").await, (200, "ok".into()));
    assert_eq!(joiner.get("health", "/readyz").await.0, 200);
    assert_eq!(joiner.get("health", "/elsewhere").await.0, 404);
    // Those about the state of the cluster come every five seconds.
    let start = Instant::now();
    let metrics = loop {
        let metrics = joiner.metrics().await;
        let all = metrics
            .keys()
            .any(|key| key.starts_with("karpenter_nodes_allocatable"));
        if all || start.elapsed() > WORDS_MAX {
            break metrics;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let created: f64 = metrics
        .iter()
        .filter(|(name, _)| name.starts_with("karpenter_nodeclaims_created_total{"))
        .map(|(_, value)| value)
        .sum();
    assert_eq!(created as usize, n_nodes);
    let has = |name: &str| metrics.keys().any(|key| key.starts_with(name));
    for name in [
        "karpenter_build_info",
        "karpenter_cluster_state_synced",
        "karpenter_nodes_allocatable",
        "karpenter_scheduler_scheduling_duration_seconds",
        "client_go_request_total",
    ] {
        assert!(has(name), "{name}");
    }

    let written = std::fs::read_to_string(&file).unwrap();
    let decisions: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(!decisions.is_empty());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(joiner.stop().await.code(), Some(0));
    let leases = cluster.list(LEASES).await;
    let elected = leases
        .iter()
        .any(|lease| lease["metadata"]["name"] == "karpenter-leader-election");
    assert!(!elected, "nobody asked for an election");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_changes_nothing() {
    let cluster = Served::embedded().await;
    cluster.pool().await;
    cluster.deployment("web", 20).await;
    // No autoscaler has ever been here: the dry run says itself how pools stand.
    let before = seen(&cluster).await;
    let mut dry = Joiner::start(&cluster.kubeconfig, &[ALONE, "--dry-run"]);
    dry.says("dry run: would create nodeclaim").await;
    // Time enough to do harm.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(seen(&cluster).await, before);
    assert_eq!(cluster.list(NODES).await.len(), 0);
    assert_eq!(dry.stop().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_says_what_is_wrong_with_the_pools() {
    let cluster = Served::embedded().await;
    cluster.deployment("web", 1).await;
    let mut dry = Joiner::start(&cluster.kubeconfig, &[ALONE, "--dry-run"]);
    dry.says("no dynamic nodepools found: there is no NodePool")
        .await;
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "missing"});
    let template = json!({"template": {"spec": {"nodeClassRef": class}}});
    Cluster::pool(&cluster, "general", json!({"spec": template})).await;
    dry.says("no dynamic nodepools found: no NodePool is ready: general (KWOKNodeClass missing is not there")
        .await;
    assert_eq!(dry.stop().await.code(), Some(0));
}

/// Everything that it could have changed, apart from what others go on changing.
async fn seen(cluster: &Served) -> Vec<String> {
    let mut all = cluster.list(POOLS).await;
    all.extend(cluster.list(CLAIMS).await);
    all.extend(cluster.machines().await);
    let own = |event: &Value| event["source"]["component"] == "karpenter";
    let events = cluster.list(EVENTS).await;
    all.extend(events.into_iter().filter(own));
    all.iter().map(ToString::to_string).collect()
}
