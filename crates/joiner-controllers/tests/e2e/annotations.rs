//! Annotations of ours that cannot be read are told, once for each value.

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, DEPLOYMENTS, EVENTS, POOLS, Setup, Stage};
use serde_json::json;

const REASON: &str = "UnreadableAnnotation";

/// Warnings about an annotation of an object of this kind.
async fn warnings(stage: &Stage, kind: &str, word: &str) -> i64 {
    let events = stage.list(EVENTS).await;
    let own = events.iter().filter(|own| {
        own["reason"] == REASON
            && own["involvedObject"]["kind"] == kind
            && own["message"]
                .as_str()
                .is_some_and(|own| own.contains(word))
    });
    own.map(|own| own["count"].as_i64().unwrap_or(1)).sum()
}

on_both!(
    values_that_cannot_be_read_are_told_once,
    Setup::default().speed(8)
);
async fn values_that_cannot_be_read_are_told_once(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    stage.all_run(1, 120).await;
    let claim = stage.ready_claim().await;
    let claim = claim["metadata"]["name"].as_str().unwrap();
    let with = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    for (what, name, key) in [
        (DEPLOYMENTS, "web", "joiner.dev/surge-on-move"),
        (DEPLOYMENTS, "web", "joiner.dev/moves"),
        (POOLS, "general", "joiner.dev/surge-on-move"),
        (CLAIMS, claim, "joiner.dev/planned"),
    ] {
        stage.patch(what, name, with(key, "odd")).await;
        let told = format!("{} {key}", what.3);
        stage
            .until(&told, 60, async |stage| {
                warnings(stage, what.3, &format!("{key} cannot be read: \"odd\"")).await == 1
            })
            .await;
    }
    let surge = "joiner.dev/surge-on-move";
    stage.patch(DEPLOYMENTS, "web", with(surge, "true")).await;
    stage
        .patch(
            DEPLOYMENTS,
            "web",
            json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await;
    stage
        .stays("nothing more is told", 200, async |stage| {
            warnings(stage, "Deployment", surge).await == 1
        })
        .await;
}

on_both!(
    pods_and_nodes_are_told_of_what_the_cluster_reads,
    Setup::default().speed(8)
);
async fn pods_and_nodes_are_told_of_what_the_cluster_reads(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let odd = json!({"metadata": {"annotations": {
        "joiner.dev/cpu-usage": "lots", "joiner.dev/stop-seconds": "soon"}}});
    stage.deployment_of("web", 1, "500m", odd).await;
    stage.all_run(1, 120).await;
    for key in ["joiner.dev/cpu-usage", "joiner.dev/stop-seconds"] {
        stage
            .until(key, 60, async |stage| {
                warnings(stage, "Pod", key).await == 1
            })
            .await;
    }
    let node = stage.names(joiner_testkit::stage::NODES).await.remove(0);
    let odd = json!({"metadata": {"annotations": {"joiner.dev/kubelet": "no"}}});
    stage.patch(joiner_testkit::stage::NODES, &node, odd).await;
    stage
        .until("the node is told of", 60, async |stage| {
            warnings(stage, "Node", "joiner.dev/kubelet").await == 1
        })
        .await;
}
