//! Nodes are given back.

use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud_sim::Delay;
use joiner_receipts::DecisionQuery;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, DEPLOYMENTS, NODES, PODS, POOLS, Setup, Stage, condition};

/// Decisions are looked at again after a while; on a real control plane it need not be that long.
fn brisk() -> Setup {
    Setup::default().speed(5)
}

fn eager() -> Value {
    json!({"spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}}})
}

/// Dollars an hour for all nodes.
async fn price(stage: &Stage) -> f64 {
    let nodes = stage.list(NODES).await;
    let of = |node: &Value| {
        let text = node["metadata"]["labels"]["eks-node-viewer/instance-price"].as_str();
        text.and_then(|text| text.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    nodes.iter().map(of).sum()
}

async fn scale(stage: &Stage, name: &str, replicas: usize) {
    let patch = json!({"spec": {"replicas": replicas}});
    let api = stage.api(DEPLOYMENTS, Some("default"));
    let params = kube::api::PatchParams::default();
    api.patch(name, &params, &kube::api::Patch::Merge(&patch))
        .await
        .unwrap();
}

on_both!(twice what_is_not_needed_goes, brisk());
async fn what_is_not_needed_goes(stage: &Stage) {
    stage.pool("general", eager()).await;
    stage.deployment("web", 40, "900m", json!({})).await;
    stage.all_run(40, 120).await;
    let full = price(stage).await;
    scale(stage, "web", 8).await;
    stage
        .until("the price follows the pods", 300, async |stage| {
            let pods = stage.list(PODS).await;
            let running = pods
                .iter()
                .filter(|pod| pod["status"]["phase"] == "Running")
                .count();
            running == 8 && pods.len() == 8 && price(stage).await <= full * 0.3
        })
        .await;
    scale(stage, "web", 0).await;
    stage
        .until("all nodes are gone", 300, async |stage| {
            stage.list(NODES).await.is_empty()
                && stage.list(CLAIMS).await.is_empty()
                && stage.machines().await.is_empty()
        })
        .await;
}

/// Nodes that are on their way out, or will be when others are up.
fn n_disrupted(nodes: &[Value]) -> usize {
    let is_disrupted = |node: &&Value| {
        let taints = node["spec"]["taints"].as_array();
        let mut taints = taints.into_iter().flatten();
        taints.any(|own| own["key"] == "karpenter.sh/disrupted")
    };
    nodes.iter().filter(is_disrupted).count()
}

/// A pod keeps off nodes with others of its workload.
fn apart(name: &str) -> Value {
    json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": name}}}]}}})
}

on_both!(always drifted_nodes_are_replaced_one_by_one, brisk());
async fn drifted_nodes_are_replaced_one_by_one(stage: &Stage) {
    let careful = json!({"spec": {"disruption": {"consolidateAfter": "Never",
        "budgets": [{"nodes": "1"}]}}});
    stage.pool("general", careful.clone()).await;
    stage.deployment("web", 3, "500m", apart("web")).await;
    stage.all_run(3, 60).await;
    let before = stage.names(CLAIMS).await;
    assert_eq!(before.len(), 3);
    let label = json!({"spec": {"template": {"metadata": {"labels": {"example.com/new": "yes"}}}}});
    stage.patch(POOLS, "general", label).await;
    stage
        .until("all nodes are new", 600, async |stage| {
            let nodes = stage.list(NODES).await;
            assert!(n_disrupted(&nodes) <= 1, "the budget is one");
            assert!(nodes.len() <= 4, "one more than there were");
            let names = stage.names(CLAIMS).await;
            names.len() == 3 && names.iter().all(|name| !before.contains(name))
        })
        .await;
    stage.all_run(3, 60).await;
    for node in stage.list(NODES).await {
        assert_eq!(node["metadata"]["labels"]["example.com/new"], "yes");
    }
    stage.agrees().await;
}

/// Machines take so long to boot that commands overlap. Time goes as it does for the server, which says
/// when a claim was made: one that is older than a quarter of an hour is given up.
fn slow_boots() -> Setup {
    let mut setup = Setup::default();
    setup.cloud.delays.boot = Delay::Constant(Duration::from_secs(15));
    setup
}

on_both!(
    successors_of_drifted_nodes_boot_at_the_same_time,
    slow_boots()
);
async fn successors_of_drifted_nodes_boot_at_the_same_time(stage: &Stage) {
    let three = json!({"spec": {"disruption": {"consolidateAfter": "Never",
        "budgets": [{"nodes": "3"}]}}});
    stage.pool("general", three).await;
    stage.deployment("web", 6, "500m", apart("web")).await;
    stage.all_run(6, 300).await;
    let before = stage.names(CLAIMS).await;
    let label = json!({"spec": {"template": {"metadata": {"labels": {"example.com/new": "yes"}}}}});
    stage.patch(POOLS, "general", label).await;
    let mut most = 0;
    stage
        .until("all nodes are new", 900, async |stage| {
            let nodes = stage.list(NODES).await;
            assert!(n_disrupted(&nodes) <= 3, "the budget is three");
            most = most.max(n_disrupted(&nodes));
            let names = stage.names(CLAIMS).await;
            names.len() == 6 && names.iter().all(|name| !before.contains(name))
        })
        .await;
    assert_eq!(most, 3, "no command waits for the machines of another");
    stage.all_run(6, 60).await;
    stage.agrees().await;
}

on_both!(a_pod_that_must_not_move_keeps_its_node, brisk());
async fn a_pod_that_must_not_move_keeps_its_node(stage: &Stage) {
    stage.pool("general", eager()).await;
    let keep = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    stage.deployment_of("web", 12, "900m", keep).await;
    stage.all_run(12, 120).await;
    scale(stage, "web", 2).await;
    let held = async |stage: &Stage| {
        let pods = stage.list(PODS).await;
        let nodes: std::collections::BTreeSet<String> = pods
            .iter()
            .map(|pod| pod["spec"]["nodeName"].to_string())
            .collect();
        nodes.len()
    };
    stage
        .until("only nodes with pods are left", 120, async |stage| {
            stage.list(PODS).await.len() == 2 && stage.list(NODES).await.len() == held(stage).await
        })
        .await;
    let n = held(stage).await;
    stage
        .stays("they stay", 60, async |stage| {
            stage.list(NODES).await.len() == n
        })
        .await;
}

/// Moves that a Deployment says its pods have made.
async fn moves(stage: &Stage, name: &str) -> u32 {
    let all = stage.list(DEPLOYMENTS).await;
    let own = all.iter().find(|own| own["metadata"]["name"] == name);
    let text = own.unwrap()["metadata"]["annotations"]["joiner.dev/moves"].as_str();
    let counts = text.unwrap_or_default().split(',');
    let counts = counts.filter_map(|part| part.split_once('=')?.1.split('/').next());
    counts.filter_map(|n| n.parse::<u32>().ok()).sum()
}

on_both!(a_workload_that_was_moved_enough_is_left_alone, brisk());
async fn a_workload_that_was_moved_enough_is_left_alone(stage: &mut Stage) {
    stage.pool("general", eager()).await;
    stage.deployment("web", 12, "900m", json!({})).await;
    stage.all_run(12, 120).await;
    let hour = stage.clock.now().strftime("%Y-%m-%dT%H").to_string();
    let tired = json!({"metadata": {"annotations": {"joiner.dev/moves": format!("{hour}=1000")}}});
    stage.patch(DEPLOYMENTS, "web", tired).await;
    scale(stage, "web", 1).await;
    let hold = async |stage: &Stage| {
        let pods = stage.list(PODS).await;
        let nodes = pods.iter().map(|pod| pod["spec"]["nodeName"].to_string());
        let nodes: std::collections::BTreeSet<String> = nodes.collect();
        (pods.len() == 1).then_some(nodes.len())
    };
    stage
        .until("only nodes with pods are left", 120, async |stage| {
            hold(stage).await == Some(stage.list(NODES).await.len())
        })
        .await;
    let before = price(stage).await;
    // Who forgets at a restart would move them now.
    stage.restart().await;
    stage
        .stays("it is left alone", 50, async |stage| {
            (price(stage).await - before).abs() < 1e-9
        })
        .await;
    let rested = json!({"metadata": {"annotations": {"joiner.dev/moves": null}}});
    stage.patch(DEPLOYMENTS, "web", rested).await;
    stage
        .until("it may be moved again", 700, async |stage| {
            price(stage).await < before
        })
        .await;
    let n = moves(stage, "web").await;
    assert!((1..=2).contains(&n), "two for each replica at most: {n}");
    let booked = DecisionQuery {
        kind: Some("ledger".to_owned()),
        ..DecisionQuery::default()
    };
    let decisions = &stage.autoscaler().shared().decisions;
    stage
        .until("what came of it is in the ledger", 120, async |_| {
            let all = decisions.recent(&booked);
            let saved = all.iter().filter(|own| {
                own.details["command"]["reason"] == "Underutilized"
                    && own.outcome.starts_with("done")
            });
            saved.clone().count() > 0
                && saved.clone().all(|own| {
                    let number = |field: &str| own.details[field].as_f64().unwrap();
                    // The cloud launches the cheapest type that is open to it.
                    own.details["complete"] == true
                        && number("moves") >= 1.0
                        && number("realized") >= number("promised") - 1e-9
                        && number("promised") > 0.0
                })
        })
        .await;
    let shown = stage.autoscaler().shared().metrics.render();
    let line = "joiner_disruption_savings_realized_dollars_per_hour{reason=\"underutilized\"}";
    assert!(shown.contains(line), "{line} is not shown");
}

on_both!(twice empty_nodes_and_others_go_in_one_round);
async fn empty_nodes_and_others_go_in_one_round(stage: &Stage) {
    stage.pool("general", eager()).await;
    let arch = |own: &str| json!({"nodeSelector": {"kubernetes.io/arch": own}});
    stage.deployment("solo", 1, "900m", arch("arm64")).await;
    stage.deployment("web", 40, "900m", arch("amd64")).await;
    stage.all_run(41, 120).await;
    // Nothing goes before all that is too much can be seen: a real control plane takes its time.
    let allow = |nodes: &str| json!({"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}});
    stage.patch(POOLS, "general", allow("0")).await;
    scale(stage, "solo", 0).await;
    scale(stage, "web", 4).await;
    stage.all_run(4, 60).await;
    stage
        .until("all nodes are quiet", 60, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let is_quiet = |own: &Value| condition(own, "Consolidatable").starts_with("True");
            let names = [stage.names(NODES).await, stage.names(CLAIMS).await].concat();
            let (nominations, now) = (stage.autoscaler().nominations(), stage.clock.now());
            let is_nominated = |node: &String| nominations.is_nominated(node, now);
            claims.iter().all(is_quiet) && !names.iter().any(is_nominated)
        })
        .await;
    let began = stage.clock.now();
    stage.patch(POOLS, "general", allow("100%")).await;
    let commands = || {
        let query = DecisionQuery {
            kind: Some("disruption".to_owned()),
            ..DecisionQuery::default()
        };
        let all = stage.autoscaler().shared().decisions.recent(&query);
        let new = all.into_iter().filter(|own| own.time >= began);
        let method = |own: &Value| own["command"]["method"].as_str().map(ToOwned::to_owned);
        new.filter_map(|own| Some((method(&own.details)?, own.time)))
            .collect::<Vec<_>>()
    };
    // Both after one wait of fifteen seconds, not each after its own.
    let both = |all: &[(String, Timestamp)]| {
        let (empty, others): (Vec<_>, Vec<_>) = all.iter().partition(|own| own.0 == "empty");
        let pairs = empty
            .iter()
            .flat_map(|own| others.iter().map(|other| (own.1, other.1)));
        let apart = pairs.map(|(a, b)| a.duration_since(b).unsigned_abs());
        apart.min()
    };
    stage
        .until("both are begun", 120, async |_| both(&commands()).is_some())
        .await;
    let all = commands();
    assert!(both(&all).unwrap().as_secs() < 14, "{all:?}");
}
