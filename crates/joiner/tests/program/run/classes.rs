//! Dry runs on classes of EC2, and what `joiner why` says where pools are not ready.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::cluster::Served;
use crate::run::process::{Joiner, WORDS_MAX, joiner, outcome, place};
use joiner_testkit::stage::{Cluster, EC2_CLASSES, EVENTS, PODS, POOLS, Patience, client_of};

const FLAGS: [&str; 2] = ["--disable-leader-election", "--dry-run"];

/// What `joiner why` says of the only pod; asked until it has these words.
async fn why(cluster: &Served, dry: &mut Joiner, words: &str) {
    let mut pod = String::new();
    cluster
        .until("there is a pod", 60, async |cluster| {
            pod = cluster.names(PODS).await.pop().unwrap_or_default();
            !pod.is_empty()
        })
        .await;
    dry.says("\"message\":\"listening\"").await;
    let listening = dry.told("listening").remove(0);
    let port = listening["metrics"].as_str().unwrap().rsplit(':').next();
    let address = format!("http://localhost:{}", port.unwrap());
    let start = Instant::now();
    loop {
        let mut command = joiner();
        command.args(["why", "pod", &pod, "--controller", &address]);
        let output = outcome(command).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if said.contains(words) {
            return;
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            start.elapsed() < WORDS_MAX,
            "no {words:?} in {said}{errors}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Nothing has been written on pools and classes.
async fn is_untouched(cluster: &Served) -> bool {
    let [classes, pools] = [cluster.list(EC2_CLASSES).await, cluster.list(POOLS).await];
    let told = cluster.list(EVENTS).await;
    let none = |own: &Value, path: &str| own.pointer(path).is_none_or(Value::is_null);
    classes
        .iter()
        .all(|own| none(own, "/status") && none(own, "/metadata/finalizers"))
        && pools.iter().all(|own| none(own, "/status/conditions"))
        && told
            .iter()
            .all(|own| own["source"]["component"] != "karpenter")
}

/// From no class at all to one that can be used.
async fn from_nothing_to_a_plan(cluster: Served) {
    cluster.deployment("web", 1).await;
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let template = json!({"template": {"spec": {"nodeClassRef": class}}});
    Cluster::pool(&cluster, "general", json!({"spec": template})).await;
    let mut dry = Joiner::start(&cluster.kubeconfig, &FLAGS);
    let missing = "no NodePool is ready: general (EC2NodeClass default is not there";
    dry.says(&format!("no dynamic nodepools found: {missing}"))
        .await;
    why(&cluster, &mut dry, missing).await;

    cluster
        .ec2_class(json!({"subnetSelectorTerms": [{"id": "subnet-web"}]}))
        .await;
    let bad = "general (EC2NodeClass default is not ready: SubnetsReady: the simulated account has no subnet";
    dry.says(&format!("no NodePool is ready: {bad}")).await;
    why(&cluster, &mut dry, bad).await;

    let tags = json!([{"tags": {"karpenter.sh/discovery": "shop"}}]);
    cluster
        .ec2_class(json!({"subnetSelectorTerms": tags}))
        .await;
    dry.says("dry run: would create nodeclaim").await;
    assert!(is_untouched(&cluster).await);
    assert_eq!(dry.stop().await.code(), Some(0));
}

mod from_nothing {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn embedded() {
        super::from_nothing_to_a_plan(super::Served::embedded().await).await;
    }

    #[ignore = "soak: one of many on the real control plane"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn real() {
        if let Some(cluster) = super::Served::real().await {
            super::from_nothing_to_a_plan(cluster).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_says_on_stderr_what_cannot_be_read() {
    let kubeconfig = place("kubeconfig");
    let mut command = joiner();
    command
        .args(["sandbox", "--region", "eu-west-1", "--kubeconfig"])
        .arg(&kubeconfig);
    let mut sandbox = Joiner::spawn(command);
    sandbox.says("Ctrl-C").await;
    let cluster = served(&kubeconfig).await;
    cluster.ec2_pool("general", json!({})).await;
    cluster
        .until("the class is ready in its region", 60, async |cluster| {
            let classes = cluster.list(EC2_CLASSES).await;
            let zone = &classes[0]["status"]["subnets"][0]["zone"];
            zone.as_str()
                .is_some_and(|zone| zone.starts_with("eu-west-1"))
        })
        .await;
    let odd = json!({"metadata": {"annotations": {"joiner.dev/cpu-usage": "lots"}}});
    cluster.deployment_of("web", 3, "100m", odd).await;
    sandbox
        .says("joiner.dev/cpu-usage cannot be read: \"lots\"")
        .await;
    cluster
        .told("UnreadableAnnotation", "joiner.dev/cpu-usage")
        .await;
    let lines = sandbox.said();
    assert_eq!(lines.matches("cannot be read").count(), 1, "{lines}");
    assert_eq!(sandbox.stop().await.code(), Some(0));
}

/// A cluster by its kubeconfig.
async fn served(kubeconfig: &Path) -> Cluster {
    Cluster {
        client: client_of(kubeconfig).await,
        clock: joiner_runtime::Clock::system(1),
        patience: Patience::REAL,
    }
}
