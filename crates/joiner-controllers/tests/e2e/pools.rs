//! What pools, overlays and buffers tell about themselves, and pools of a fixed size.

use joiner_api::types::NodePool;
use joiner_controllers::settings::FeatureGates;
use serde_json::{Value, json};

use joiner_testkit::on_both;
use joiner_testkit::stage::{
    BUFFERS, CLAIMS, CLASSES, OVERLAYS, POOLS, Setup, Stage, TEMPLATES, What, condition,
};

fn setup() -> Setup {
    Setup::gates(FeatureGates {
        node_overlay: true,
        static_capacity: true,
        capacity_buffer: true,
        node_repair: true,
        ..FeatureGates::default()
    })
}

/// Waits for a condition of the only object of a kind.
async fn becomes(stage: &Stage, what: What, kind: &str, expected: &str) {
    let text = format!("{} {kind} is {expected}", what.3);
    stage
        .until(&text, 30, async |stage| {
            let all = stage.list(what).await;
            all.first()
                .is_some_and(|own| condition(own, kind) == expected)
        })
        .await;
}

on_both!(a_pool_waits_for_its_class_and_tells_its_hash, setup());
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

on_both!(
    core_27_a_pool_of_a_class_that_the_cloud_does_not_know_is_left_alone,
    setup()
);
async fn core_27_a_pool_of_a_class_that_the_cloud_does_not_know_is_left_alone(stage: &Stage) {
    let class = json!({"group": "example.com", "kind": "OtherNodeClass", "name": "default"});
    let foreign = json!({"metadata": {"name": "foreign"}, "spec": {"template": {"spec":
        {"nodeClassRef": class, "requirements": []}}}});
    stage.apply(POOLS, foreign).await;
    stage.pool("own", json!({})).await;
    let of = async |stage: &Stage, name: &str| {
        let pools = stage.list(POOLS).await;
        let own = pools
            .into_iter()
            .find(|own| own["metadata"]["name"] == name);
        own.unwrap()
    };
    stage
        .until("the other pool is ready and counted", 30, async |stage| {
            let own = of(stage, "own").await;
            condition(&own, "Ready") == "True Ready" && own["status"]["nodes"] == 0
        })
        .await;
    stage
        .stays("nothing is written on it", 10, async |stage| {
            let own = of(stage, "foreign").await;
            let hash = &own["metadata"]["annotations"]["karpenter.sh/nodepool-hash"];
            own["status"]["conditions"].is_null() && hash.is_null()
        })
        .await;
}

on_both!(
    a_static_pool_grows_to_its_limit_and_shrinks,
    setup().speed(4)
);
async fn a_static_pool_grows_to_its_limit_and_shrinks(stage: &Stage) {
    let spec = |replicas: usize, limit: &str| {
        json!({"spec": {"replicas": replicas, "limits": {"nodes": limit}, "template": {"spec":
            {"requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In",
                "values": ["c-4x-amd64-linux"]}]}}}})
    };
    let initialized = async |stage: &Stage, n: usize| {
        let nodes = stage.list(joiner_testkit::stage::NODES).await;
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

/// The cloud takes five seconds for every answer.
fn slow_cloud() -> Setup {
    let mut setup = setup().speed(4);
    setup.cloud.faults.latency_millis = 5_000;
    setup
}

on_both!(
    static_nodes_drift_and_nothing_else_is_bought_for_their_pods,
    slow_cloud()
);
async fn static_nodes_drift_and_nothing_else_is_bought_for_their_pods(stage: &Stage) {
    let open = json!({"budgets": [{"nodes": "100%"}]});
    let fixed = json!({"spec": {"replicas": 2, "limits": {"nodes": "4"}, "disruption": open,
        "template": {"spec": {"requirements": [{"key": "node.kubernetes.io/instance-type",
            "operator": "In", "values": ["c-4x-amd64-linux"]}]}}}});
    stage.pool("fixed", fixed).await;
    stage.settles(2, 300).await;
    let before = stage.names(CLAIMS).await;
    let nodes = async |stage: &Stage| {
        let up = |own: &Value| own["metadata"]["labels"]["karpenter.sh/initialized"] == "true";
        stage
            .list(joiner_testkit::stage::NODES)
            .await
            .iter()
            .all(up)
    };
    stage.until("both are up", 300, nodes).await;
    stage.pool("general", json!({})).await;
    stage.deployment("web", 4, "500m", json!({})).await;
    stage.all_run(4, 300).await;
    let label = json!({"spec": {"template": {"metadata": {"labels": {"example.com/new": "yes"}}}}});
    stage.patch(POOLS, "fixed", label).await;
    stage
        .until("both are new", 900, async |stage| {
            let claims = stage.list(CLAIMS).await;
            for own in &claims {
                let pool = &own["metadata"]["labels"]["karpenter.sh/nodepool"];
                assert_eq!(pool, "fixed", "bought for pods that have a place");
            }
            let names = stage.names(CLAIMS).await;
            names.len() == 2 && names.iter().all(|name| !before.contains(name))
        })
        .await;
    stage.all_run(4, 300).await;
}

on_both!(overlays_and_buffers_tell_how_they_stand, setup());
async fn overlays_and_buffers_tell_how_they_stand(stage: &Stage) {
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
