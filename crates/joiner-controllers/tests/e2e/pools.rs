//! What pools, overlays and buffers tell about themselves, and pools of a fixed size.

use joiner_api::types::NodePool;
use joiner_controllers::Settings;
use joiner_controllers::settings::FeatureGates;
use serde_json::{Value, json};

use crate::stage::{CLAIMS, CLASSES, POOLS, Stage, What};

const OVERLAYS: What = ("karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay");
const TEMPLATES: What = ("", "v1", "podtemplates", "PodTemplate");
const BUFFERS: What = (
    "autoscaling.x-k8s.io",
    "v1beta1",
    "capacitybuffers",
    "CapacityBuffer",
);

fn settings() -> Settings {
    Settings {
        gates: FeatureGates {
            node_overlay: true,
            static_capacity: true,
            capacity_buffer: true,
            ..FeatureGates::default()
        },
        ..Settings::default()
    }
}

/// Runs one story on the embedded control plane and on a real one.
macro_rules! on_both {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn embedded() {
                super::$name(&Stage::embedded(settings()).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn real() {
                if let Some(stage) = Stage::real(settings()).await {
                    super::$name(&stage).await;
                }
            }
        }
    };
}

/// `status reason` of a condition of the only object of a kind.
async fn condition(stage: &Stage, what: What, kind: &str) -> String {
    let all = stage.list(what).await;
    let conditions = all.first().map(|own| own["status"]["conditions"].clone());
    let conditions = conditions.and_then(|own| own.as_array().cloned());
    let own = conditions
        .into_iter()
        .flatten()
        .find(|own| own["type"] == kind);
    own.map_or_else(String::new, |own| {
        let text = |field: &str| own[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("status"), text("reason"))
    })
}

/// Waits for a condition of the only object of a kind.
async fn becomes(stage: &Stage, what: What, kind: &str, expected: &str) {
    let text = format!("{} {kind} is {expected}", what.3);
    stage
        .until(&text, 30, async |stage| {
            condition(stage, what, kind).await == expected
        })
        .await;
}

on_both!(a_pool_waits_for_its_class_and_tells_its_hash);
async fn a_pool_waits_for_its_class_and_tells_its_hash(stage: &Stage) {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let pool = json!({"metadata": {"name": "p"}, "spec": {"template": {"spec":
        {"nodeClassRef": class, "requirements": []}}}});
    stage.apply(POOLS, pool).await;
    becomes(stage, POOLS, "NodeClassReady", "False NodeClassNotFound").await;
    becomes(
        stage,
        POOLS,
        "ValidationSucceeded",
        "True ValidationSucceeded",
    )
    .await;
    becomes(stage, POOLS, "Ready", "False UnhealthyDependents").await;
    stage
        .apply(CLASSES, json!({"metadata": {"name": "default"}}))
        .await;
    becomes(stage, POOLS, "Ready", "True Ready").await;
    let unknown = "Unknown AwaitingReconciliation";
    becomes(stage, POOLS, "NodeRegistrationHealthy", unknown).await;
    stage
        .until("the hash and the count are there", 10, async |stage| {
            let pool = stage.list(POOLS).await.pop().unwrap();
            let typed: NodePool = serde_json::from_value(pool.clone()).unwrap();
            let annotations = &pool["metadata"]["annotations"];
            let hash = joiner_api::node_pool_hash(&typed);
            annotations["karpenter.sh/nodepool-hash"] == json!(hash)
                && annotations["karpenter.sh/nodepool-hash-version"] == "v3"
                && pool["status"]["nodes"] == 0
                && pool["status"]["resources"]["cpu"] == "0"
                && pool["status"]["nodeClassObservedGeneration"] == 1
        })
        .await;
}

on_both!(a_static_pool_grows_to_its_limit_and_shrinks);
async fn a_static_pool_grows_to_its_limit_and_shrinks(stage: &Stage) {
    let spec = |replicas: usize, limit: &str| {
        json!({"spec": {"replicas": replicas, "limits": {"nodes": limit}, "template": {"spec":
            {"requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In",
                "values": ["c-4x-amd64-linux"]}]}}}})
    };
    let initialized = async |stage: &Stage, n: usize| {
        let nodes = stage.list(crate::stage::NODES).await;
        let up = |own: &&Value| own["metadata"]["labels"]["karpenter.sh/initialized"] == "true";
        let most = stage.list(CLAIMS).await.len();
        assert!(most <= 4, "{most} claims, above the limit");
        nodes.iter().filter(up).count() == n && nodes.len() == n
    };
    stage.pool("fixed", spec(2, "4")).await;
    stage
        .until("2 nodes", 120, async |s| initialized(s, 2).await)
        .await;
    stage.pool("fixed", spec(9, "4")).await;
    stage
        .until("4 nodes", 120, async |s| initialized(s, 4).await)
        .await;
    stage
        .until("the pool counts them", 10, async |stage| {
            let pool = stage.list(POOLS).await.pop().unwrap();
            pool["status"]["nodes"] == 4 && pool["status"]["resources"]["cpu"] == "16"
        })
        .await;
    let healthy = "True NodeRegistrationHealthy";
    becomes(stage, POOLS, "NodeRegistrationHealthy", healthy).await;
    stage.pool("fixed", spec(1, "4")).await;
    stage
        .until("1 node", 180, async |s| initialized(s, 1).await)
        .await;
    assert_eq!(stage.agrees().await, 1);
}

on_both!(overlays_and_buffers_tell_how_they_stand);
async fn overlays_and_buffers_tell_how_they_stand(stage: &Stage) {
    // Not all of them are part of the assembly yet.
    let overlays = joiner_controllers::overlay::controllers().into_iter();
    for controller in overlays.chain(joiner_controllers::buffer::controllers()) {
        let ctx = stage.autoscaler.ctx().clone();
        tokio::spawn(joiner_controllers::run(controller, ctx));
    }
    stage.pool("general", json!({})).await;
    let overlay = json!({"metadata": {"name": "a"}, "spec": {"requirements": [], "price": "1"}});
    stage.apply(OVERLAYS, overlay).await;
    becomes(stage, OVERLAYS, "Ready", "True Ready").await;
    let rival = json!({"metadata": {"name": "b"}, "spec": {"requirements": [], "price": "2"}});
    stage.apply(OVERLAYS, rival).await;
    becomes(stage, OVERLAYS, "ValidationSucceeded", "False Conflict").await;
    let buffer = json!({"metadata": {"name": "b", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "t"}, "replicas": 2}});
    stage.apply(BUFFERS, buffer).await;
    let missing = "False PodTemplateNotFound";
    becomes(stage, BUFFERS, "ReadyForProvisioning", missing).await;
    let template = json!({"metadata": {"name": "t", "namespace": "default"}, "template":
        {"spec": {"containers": [{"name": "c", "image": "pause",
            "resources": {"requests": {"cpu": "1"}}}]}}});
    stage.apply(TEMPLATES, template).await;
    becomes(stage, BUFFERS, "ReadyForProvisioning", "True Resolved").await;
    let status = stage.list(BUFFERS).await.pop().unwrap()["status"].clone();
    assert_eq!(status["replicas"], 2);
    assert_eq!(status["podTemplateRef"]["name"], "t");
}
