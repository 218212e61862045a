//! A single replica that must not drop to zero while it moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use std::time::Duration;

use futures::StreamExt as _;
use joiner_cloud_sim::Delay;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use joiner_testkit::on_both;
use joiner_testkit::stage::{CLAIMS, DEPLOYMENTS, NODES, PODS, STATEFUL_SETS, Setup, Stage, merge};

const SURGE: &str = "joiner.dev/surge";

/// Sees every change of every pod.
struct Observer {
    /// The fewest ready pods that there were at any time.
    fewest: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

/// It serves: ready, and not on its way out.
fn serves(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|own| own["type"] == "Ready" && own["status"] == "True");
    pod["metadata"]["deletionTimestamp"].is_null() && ready.next().is_some()
}

impl Observer {
    async fn of(stage: &Stage) -> Self {
        let api = stage.api(PODS, Some("default"));
        let list = api.list(&ListParams::default()).await.unwrap();
        let version = list.metadata.resource_version.unwrap();
        let mut pods: BTreeMap<String, bool> = BTreeMap::new();
        for pod in list.items {
            let name = pod.metadata.name.clone().unwrap();
            pods.insert(name, serves(&serde_json::to_value(pod).unwrap()));
        }
        let count = |pods: &BTreeMap<String, bool>| pods.values().filter(|own| **own).count();
        let fewest = Arc::new(AtomicUsize::new(count(&pods)));
        let mut task = JoinSet::new();
        let told = Arc::clone(&fewest);
        task.spawn(async move {
            let watch = api.watch(&WatchParams::default(), &version).await.unwrap();
            let mut watch = std::pin::pin!(watch);
            while let Some(Ok(event)) = watch.next().await {
                match event {
                    WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                        let name = pod.metadata.name.clone().unwrap();
                        pods.insert(name, serves(&serde_json::to_value(pod).unwrap()));
                    }
                    WatchEvent::Deleted(pod) => {
                        pods.remove(&pod.metadata.name.unwrap());
                    }
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
                }
                told.fetch_min(count(&pods), Ordering::SeqCst);
            }
        });
        Self {
            fewest,
            _task: task,
        }
    }

    fn fewest(&self) -> usize {
        self.fewest.load(Ordering::SeqCst)
    }
}

async fn deployment(stage: &Stage) -> Value {
    stage.list(DEPLOYMENTS).await.pop().unwrap()
}

/// One pod that asks for a successor, and the claim that it runs on.
async fn asking(stage: &Stage, pool: Value) -> Value {
    stage.pool("general", pool).await;
    stage.deployment("web", 1, "500m", json!({})).await;
    let asked = json!({"metadata": {"annotations": {"joiner.dev/surge-on-move": "true"}}});
    stage.patch(DEPLOYMENTS, "web", asked).await;
    stage.all_run(1, 60).await;
    stage
        .until("it serves", 60, async |stage| {
            stage.list(PODS).await.iter().all(serves)
        })
        .await;
    stage.ready_claim().await
}

/// One pod serves on another node than before, and nothing else is left of the move.
async fn moved(stage: &Stage, claim: &Value) {
    stage.gone(claim, 240).await;
    stage
        .until("one pod is left, and no trace", 120, async |stage| {
            let own = deployment(stage).await;
            let pods = stage.list(PODS).await;
            own["spec"]["replicas"] == 1
                && own["metadata"]["annotations"][SURGE].is_null()
                && pods.len() == 1
                && serves(&pods[0])
        })
        .await;
}

on_both!(a_single_replica_never_drops_to_zero, Setup::default());
async fn a_single_replica_never_drops_to_zero(stage: &Stage) {
    let claim = asking(stage, json!({})).await;
    let observer = Observer::of(stage).await;
    stage
        .delete(CLAIMS, claim["metadata"]["name"].as_str().unwrap())
        .await;
    moved(stage, &claim).await;
    assert_eq!(observer.fewest(), 1, "somebody served at any time");
    stage.told("Surged", "Scaled to 2").await;
    assert_eq!(stage.list(NODES).await.len(), 1, "no room was bought twice");
}

/// Machines take five seconds to boot, so that there is time to see what happens meanwhile.
fn slow_boots() -> Setup {
    let mut setup = Setup::default();
    setup.cloud.delays.boot = Delay::Constant(Duration::from_secs(5));
    setup
}

on_both!(a_crash_in_the_middle_of_a_surge_is_survived, slow_boots());
async fn a_crash_in_the_middle_of_a_surge_is_survived(stage: &mut Stage) {
    let claim = asking(stage, json!({})).await;
    let observer = Observer::of(stage).await;
    stage
        .delete(CLAIMS, claim["metadata"]["name"].as_str().unwrap())
        .await;
    for replicas in [2, 1] {
        stage
            .until("it is scaled", 120, async |stage| {
                deployment(stage).await["spec"]["replicas"] == replicas
            })
            .await;
        stage.restart().await;
    }
    moved(stage, &claim).await;
    assert_eq!(observer.fewest(), 1, "somebody served at any time");
}

on_both!(
    what_others_set_while_a_pod_is_surged_stays,
    Setup::default()
);
async fn what_others_set_while_a_pod_is_surged_stays(stage: &Stage) {
    let claim = asking(stage, json!({})).await;
    stage
        .delete(CLAIMS, claim["metadata"]["name"].as_str().unwrap())
        .await;
    stage
        .until("it is scaled", 120, async |stage| {
            deployment(stage).await["spec"]["replicas"] == 2
        })
        .await;
    let three = json!({"spec": {"replicas": 3}});
    stage.patch(DEPLOYMENTS, "web", three).await;
    stage.gone(&claim, 240).await;
    stage
        .until(
            "three pods serve, and no trace is left",
            120,
            async |stage| {
                let own = deployment(stage).await;
                let pods = stage.list(PODS).await;
                own["spec"]["replicas"] == 3
                    && own["metadata"]["annotations"][SURGE].is_null()
                    && pods.iter().filter(|pod| serves(pod)).count() == 3
            },
        )
        .await;
}

on_both!(twice a_consolidated_replica_never_drops_to_zero, Setup::default());
async fn a_consolidated_replica_never_drops_to_zero(stage: &Stage) {
    let eager = json!({"spec": {"disruption": {"consolidateAfter": "0s",
        "budgets": [{"nodes": "100%"}]}}});
    let mut large = eager.clone();
    let sizes = json!({"spec": {"template": {"spec": {"requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["16"]}]}}}});
    merge(&mut large, sizes);
    let claim = asking(stage, large).await;
    let observer = Observer::of(stage).await;
    let any = json!({"spec": {"template": {"spec": {"requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}}}});
    stage
        .patch(joiner_testkit::stage::POOLS, "general", any)
        .await;
    moved(stage, &claim).await;
    assert_eq!(observer.fewest(), 1, "somebody served at any time");
}

on_both!(
    a_stateful_set_is_moved_without_a_successor,
    Setup::default()
);
async fn a_stateful_set_is_moved_without_a_successor(stage: &Stage) {
    let pool = json!({"metadata": {"annotations": {"joiner.dev/surge-on-move": "true"}}});
    stage.pool("general", pool).await;
    let labels = json!({"app": "db"});
    let set = json!({"metadata": {"name": "db", "namespace": "default"}, "spec": {
        "replicas": 1, "serviceName": "db", "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]}}}});
    stage.apply(STATEFUL_SETS, set).await;
    stage.all_run(1, 60).await;
    let claim = stage.ready_claim().await;
    stage
        .delete(CLAIMS, claim["metadata"]["name"].as_str().unwrap())
        .await;
    stage.gone(&claim, 240).await;
    stage.told("CannotSurge", "only a Deployment").await;
    stage.all_run(1, 60).await;
}
