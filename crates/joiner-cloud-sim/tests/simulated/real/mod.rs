//! The simulated cloud and its kubelets on a real control plane.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use joiner_cloud::{Cloud, NodeClass, Order, Termination};
use joiner_cloud_sim::{Settings, SimulatedCloud};
use joiner_model::{Labels, Requirement, Resources, keys};
use joiner_runtime::Clock;
use joiner_testkit::control_plane::ControlPlane;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(120);

async fn client(plane: &ControlPlane) -> Client {
    let file = kube::config::Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// Asks until the answer is yes.
async fn until<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) {
    let start = Instant::now();
    while !ask().await {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn order(claim: &str) -> Order {
    Order {
        claim: claim.into(),
        claim_uid: format!("0e0c2f86-0000-4000-8000-{claim}").into(),
        pool: Some("default".into()),
        requirements: [Requirement::is(
            keys::INSTANCE_TYPE,
            "c-4x-amd64-linux".into(),
        )]
        .into_iter()
        .collect(),
        types: Vec::new(),
        requests: Resources::new(),
        labels: Labels::from([(keys::NODE_POOL.into(), "default".into())]),
        class: Some(NodeClass {
            group: "karpenter.kwok.sh".into(),
            kind: "KWOKNodeClass".into(),
            name: "default".into(),
            object: Arc::new(json!({})),
        }),
    }
}

/// What the controllers do when a Node joins.
async fn register(nodes: &Api<Node>, name: &str) {
    let node = nodes.get(name).await.unwrap();
    let taints = node.spec.unwrap().taints.unwrap_or_default();
    let others = taints
        .into_iter()
        .filter(|taint| taint.key != "karpenter.sh/unregistered");
    let others: Vec<_> = others.collect();
    let patch = json!({"spec": {"taints": others}});
    let how = PatchParams::default();
    nodes
        .patch(name, &how, &Patch::Merge(&patch))
        .await
        .unwrap();
}

fn template(app: &str, more: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "pause",
        "resources": {"requests": {"cpu": "100m"}}}]});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    json!({"metadata": {"labels": {"app": app}}, "spec": spec})
}

fn runs(pod: &Pod) -> bool {
    let status = pod.status.clone().unwrap_or_default();
    status.phase.as_deref() == Some("Running")
        && status.pod_ip.is_some_and(|ip| ip.starts_with("10."))
        && status.start_time.is_some()
}

async fn n_running(pods: &Api<Pod>, app: &str) -> usize {
    let how = ListParams::default().labels(&format!("app={app}"));
    let all = pods.list(&how).await.unwrap();
    all.items.iter().filter(|pod| runs(pod)).count()
}

async fn workloads(client: &Client) {
    let how = PostParams::default();
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    let web = json!({"metadata": {"name": "web"}, "spec": {"replicas": 20,
        "selector": selector("web"), "template": template("web", json!({}))}});
    let agent = json!({"metadata": {"name": "agent"}, "spec": {"selector": selector("agent"),
        "template": template("agent", json!({"tolerations": [{"operator": "Exists"}],
            "nodeSelector": {"kwok-partition": "a"}}))}});
    let task = json!({"metadata": {"name": "task", "labels": {"app": "task"},
        "annotations": {"joiner.dev/stop-seconds": "20"}},
        "spec": template("task", json!({"restartPolicy": "Never"}))["spec"]});
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let sets: Api<DaemonSet> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    deployments
        .create(&how, &serde_json::from_value(web).unwrap())
        .await
        .unwrap();
    sets.create(&how, &serde_json::from_value(agent).unwrap())
        .await
        .unwrap();
    pods.create(&how, &serde_json::from_value(task).unwrap())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_join_and_run_pods() {
    let Some(plane) = ControlPlane::start().unwrap() else {
        println!("skipped: there is no control plane to test on");
        return;
    };
    let client = client(&plane).await;
    let settings = Settings {
        simulated_kubelets: true,
        ..Settings::default()
    };
    let cloud = SimulatedCloud::new(client.clone(), Clock::system(1), settings);
    let cloud = Arc::new(cloud);
    let playing = tokio::spawn(Arc::clone(&cloud).run());
    let nodes: Api<Node> = Api::all(client.clone());
    let foreign = json!({"metadata": {"name": "foreign"}});
    let foreign = serde_json::from_value(foreign).unwrap();
    nodes
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();

    let mut machines = Vec::new();
    for claim in ["web-1", "web-2"] {
        let instance = cloud.launch(&order(claim)).await.unwrap();
        let name = instance.id.0.strip_prefix("kwok://").unwrap().to_owned();
        until("the node joins", async || {
            nodes.get_opt(&name).await.unwrap().is_some()
        })
        .await;
        register(&nodes, &name).await;
        machines.push((instance, name));
    }
    for (_, name) in &machines {
        until("the node is ready", async || {
            let conditions = nodes
                .get(name)
                .await
                .unwrap()
                .status
                .unwrap_or_default()
                .conditions;
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one.type_ == "Ready" && one.status == "True")
        })
        .await;
    }
    workloads(&client).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    until("the deployment runs", async || {
        n_running(&pods, "web").await == 20
    })
    .await;
    until("the daemons run", async || {
        n_running(&pods, "agent").await == 2
    })
    .await;
    until("the task runs", async || {
        n_running(&pods, "task").await == 1
    })
    .await;

    // Graceful deletion: the pod says that it needs twenty seconds.
    pods.delete("task", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        pods.get_opt("task").await.unwrap().is_some(),
        "it has time to stop"
    );
    let left = async || pods.get_opt("task").await.unwrap().is_none();
    until("the task is gone", left).await;

    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let renewed = async |name: &str| {
        let lease = leases.get_opt(name).await.unwrap();
        lease.and_then(|lease| lease.spec?.renew_time)
    };
    let first = renewed(&machines[0].1).await.unwrap();
    until("the lease is renewed", async || {
        renewed(&machines[0].1)
            .await
            .is_some_and(|time| time > first)
    })
    .await;
    assert!(
        renewed("foreign").await.is_none(),
        "nodes of others are left alone"
    );

    let (instance, name) = &machines[0];
    assert_eq!(
        cloud.terminate(&instance.id).await.unwrap(),
        Termination::Gone
    );
    until("the node is gone", async || {
        nodes.get_opt(name).await.unwrap().is_none()
    })
    .await;
    assert_eq!(cloud.instances().await.unwrap().len(), 1);
    until("the deployment runs elsewhere", async || {
        n_running(&pods, "web").await == 20
    })
    .await;
    playing.abort();
}
