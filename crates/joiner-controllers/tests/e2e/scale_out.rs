//! Pods come, nodes follow.

use joiner_controllers::Settings;
use serde_json::json;

use crate::stage::{CLAIMS, NODES, PODS, Stage};

/// Runs one story on the embedded control plane and on a real one.
macro_rules! on_both {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn embedded() {
                super::$name(&Stage::embedded(Settings::default()).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn real() {
                if let Some(stage) = Stage::real(Settings::default()).await {
                    super::$name(&stage).await;
                }
            }
        }
    };
}

on_both!(one_pod);
async fn one_pod(stage: &Stage) {
    stage.pool("general", json!({})).await;
    stage.deployment("web", 1, "1", json!({})).await;
    stage.all_run(1, 60).await;
    assert_eq!(stage.agrees().await, 1);
    let claim = &stage.list(CLAIMS).await[0];
    let node = &stage.list(NODES).await[0];
    assert_eq!(
        node["metadata"]["labels"]["karpenter.sh/nodepool"],
        "general"
    );
    assert_eq!(
        node["metadata"]["labels"]["karpenter.sh/initialized"],
        "true"
    );
    assert_eq!(
        node["metadata"]["ownerReferences"],
        json!([{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"],
            "blockOwnerDeletion": true}])
    );
    stage
        .until("the claim is ready", 10, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let conditions = claims[0]["status"]["conditions"].clone();
            let ready = |own: &serde_json::Value| own["type"] == "Ready" && own["status"] == "True";
            conditions.as_array().unwrap().iter().any(ready)
        })
        .await;
}

on_both!(a_hundred_pods_with_rules);
async fn a_hundred_pods_with_rules(stage: &Stage) {
    stage.pool("general", json!({})).await;
    let arm = json!({"spec": {"weight": 10, "template": {"spec": {"requirements": [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}}}});
    stage.pool("arm", arm).await;
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}}}]});
    stage.deployment("spread", 40, "500m", spread).await;
    let apart = json!({"affinity": {"podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app": "apart"}}}]}}});
    stage.deployment("apart", 10, "250m", apart).await;
    let selected = json!({"nodeSelector": {"kubernetes.io/arch": "amd64"}});
    stage.deployment("selected", 50, "300m", selected).await;
    stage.all_run(100, 180).await;
    stage.agrees().await;
    let pods = stage.list(PODS).await;
    let nodes = stage.list(NODES).await;
    let label = |node: &serde_json::Value, key: &str| {
        let own = nodes
            .iter()
            .find(|own| own["metadata"]["name"] == *node)
            .unwrap();
        own["metadata"]["labels"][key].as_str().unwrap().to_owned()
    };
    let of = |app: &str| {
        let own = pods
            .iter()
            .filter(|own| own["metadata"]["labels"]["app"] == app);
        own.map(|own| own["spec"]["nodeName"].clone())
            .collect::<Vec<_>>()
    };
    let mut zones = std::collections::BTreeMap::new();
    for node in of("spread") {
        *zones
            .entry(label(&node, "topology.kubernetes.io/zone"))
            .or_insert(0) += 1;
    }
    assert_eq!(zones.len(), 4);
    assert!(zones.values().all(|n| *n == 10), "{zones:?}");
    let apart: std::collections::BTreeSet<String> =
        of("apart").iter().map(ToString::to_string).collect();
    assert_eq!(apart.len(), 10);
    for node in of("selected") {
        assert_eq!(label(&node, "kubernetes.io/arch"), "amd64");
    }
}
