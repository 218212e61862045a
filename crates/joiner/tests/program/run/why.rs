//! `joiner why` as people use it: against `joiner run`, against its decision log when it is gone, and
//! against a sandbox.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::cluster::Served;
use crate::run::process::{Joiner, joiner, outcome, place};
use joiner_testkit::stage::{DEPLOYMENTS, EVENTS, NODES, PODS, client_of};

/// The longest that an answer may take to become what it should be on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(120);

async fn why(args: &[&str]) -> Output {
    let mut command = joiner();
    command.arg("why").args(args).env("KUBECONFIG", "/dev/null");
    outcome(command).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Asks until the answer has all of these words, and returns it.
async fn answers(args: &[&str], words: &[&str]) -> String {
    let start = Instant::now();
    loop {
        let output = why(args).await;
        let said = text(&output.stdout);
        if output.status.success() && words.iter().all(|word| said.contains(word)) {
            return said;
        }
        let errors = text(&output.stderr);
        assert!(
            start.elapsed() < ANSWER_MAX,
            "no {words:?} for {args:?}: {said}{errors}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Asserts that the question fails in one line with all of these words.
async fn fails(args: &[&str], words: &[&str]) {
    let output = why(args).await;
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    for word in words {
        assert!(errors.contains(word), "{word:?} is not in {errors}");
    }
}

/// The name of a pod of a Deployment, as soon as there is one.
async fn pod_of(cluster: &Served, app: &str) -> String {
    let mut name = None;
    cluster
        .until("there is a pod", 20, async |cluster| {
            let pods = cluster.list(PODS).await;
            let mut pods = pods.iter();
            let own = pods.find(|own| own["metadata"]["labels"]["app"] == app);
            let own = own.and_then(|own| own["metadata"]["name"].as_str());
            name = own.map(str::to_owned);
            name.is_some()
        })
        .await;
    name.unwrap()
}

/// A Deployment of one pod that asks for a zone that nobody has.
async fn moon(cluster: &Served) {
    let labels = json!({"app": "moon"});
    let spec = json!({"nodeSelector": {"topology.kubernetes.io/zone": "moon-1a"}, "containers": [
        {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "1"}}}]});
    let object = json!({"metadata": {"name": "moon", "namespace": "default"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec}}});
    cluster.apply(DEPLOYMENTS, object).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_is_answered_live_and_from_the_log() {
    let cluster = Served::embedded().await;
    cluster.pool().await;
    let file = place("decisions");
    let log = file.display().to_string();
    let flags = ["--disable-leader-election", "--decision-log", &log];
    let mut running = Joiner::start(&cluster.kubeconfig, &flags);
    cluster.deployment("web", 3).await;
    cluster.all_run(3, 60).await;
    moon(&cluster).await;
    for namespace in ["default", "kube-system"] {
        let spec =
            json!({"schedulerName": "nobody", "containers": [{"name": "c", "image": "pause"}]});
        let twin = json!({"metadata": {"name": "twin", "namespace": namespace}, "spec": spec});
        cluster.apply(PODS, twin).await;
    }
    running.says("\"message\":\"listening\"").await;
    let line = &running.told("listening")[0];
    let port = line["metrics"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let url = format!("http://127.0.0.1:{port}");
    let live = ["--controller", url.as_str()];
    let written = ["--decision-log", log.as_str()];

    let (waiting, placed) = (
        pod_of(&cluster, "moon").await,
        pod_of(&cluster, "web").await,
    );
    let node = cluster.list(NODES).await[0]["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let no_zone = [
        "No place",
        "zone \"moon-1a\" does not exist in the catalog",
        "0 with topology.kubernetes.io/zone In [moon-1a]",
        "The cheapest change that would help:",
        "drop topology.kubernetes.io/zone=moon-1a from the pod's node selector",
        "an hour more",
    ];
    let planned = [
        "on a new node, general-",
        "of NodePool general at $",
        "would do, too",
    ];
    let kept = ["has consolidation disabled", "Bought"];
    for from in [live, written] {
        let ask = |about: &'static str, name: &str| -> Vec<String> {
            let words = [about, name].into_iter().chain(from);
            words.map(str::to_owned).collect()
        };
        let questions = [
            (ask("pod", &waiting), &no_zone[..]),
            (ask("pod", &placed), &planned[..]),
            (ask("node", &node), &kept[..]),
        ];
        for (args, words) in questions {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            answers(&args, words).await;
        }
    }
    let events = cluster.list(EVENTS).await;
    let told = events.iter().any(|own| {
        let message = own["message"].as_str().unwrap_or_default();
        own["reason"] == "FailedScheduling" && message.contains("zone \"moon-1a\" does not exist")
    });
    assert!(told, "{events:?}");
    let args = ["pod", &waiting, "-o", "json", live[0], live[1]];
    let answer: Value = serde_json::from_str(&answers(&args, &[]).await).unwrap();
    let receipt = &answer["receipts"][0];
    assert_eq!(receipt["outcome"], "unschedulable");
    assert_eq!(receipt["changes"][0]["kind"], "DropNodeSelector");
    let steps = receipt["funnel"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["offeringsLeft"], 0);
    assert_eq!(answer["state"]["phase"], "Pending");

    fails(
        &["pod", "moon", live[0], live[1]],
        &["there is no pod \"moon\"", "did you mean default/moon-"],
    )
    .await;
    fails(
        &["pod", "twin", live[0], live[1]],
        &[
            "more than one pod \"twin\"",
            "default/twin, kube-system/twin",
        ],
    )
    .await;
    answers(
        &["pod", "twin", "-n", "default", live[0], live[1]],
        &["It waits for the scheduler"],
    )
    .await;

    assert_eq!(running.stop().await.code(), Some(0));
    fails(
        &["node", &node, live[0], live[1]],
        &[
            "cannot reach the controller",
            &url,
            "--controller",
            "--decision-log",
        ],
    )
    .await;
    answers(&["node", &node, written[0], written[1]], &kept).await;
    fails(
        &["node", "nobody", written[0], written[1]],
        &[&log, "there is no node \"nobody\""],
    )
    .await;
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_says_what_to_do() {
    fails(
        &["pod", "x", "--decision-log", "/nowhere/decisions"],
        &[
            "cannot read the decision log /nowhere/decisions",
            "joiner run --decision-log",
        ],
    )
    .await;
    fails(
        &["pod", "x", "--controller", "localhost:8080"],
        &["--controller \"localhost:8080\" is no address", "http://"],
    )
    .await;
}

/// A sandbox with the autoscaler; killed when this is dropped.
struct WithAutoscaler(Child);

impl Drop for WithAutoscaler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl WithAutoscaler {
    fn start(kubeconfig: &Path) -> Self {
        let mut command = joiner();
        command.args(["sandbox", "--nodes", "0", "--kubeconfig"]);
        let mut child = command
            .arg(kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("Ctrl-C")));
        Self(child)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_is_found_by_its_kubeconfig() {
    let kubeconfig = place("kubeconfig");
    let sandbox = WithAutoscaler::start(&kubeconfig);
    let api = client_of(&kubeconfig).await;
    let resource = joiner_runtime::resource("", "v1", "pods", "Pod");
    let api: kube::Api<kube::api::DynamicObject> =
        kube::Api::namespaced_with(api, "default", &resource);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lonely"},
        "spec": {"containers": [{"name": "c", "image": "pause"}]}});
    let params = kube::api::PostParams::default();
    api.create(&params, &serde_json::from_value(pod).unwrap())
        .await
        .unwrap();
    let path = kubeconfig.display().to_string();
    answers(
        &["pod", "lonely", "--kubeconfig", &path],
        &[
            "Pod default/lonely is Pending",
            "It waits for a NodePool to buy a node from: there is no NodePool",
        ],
    )
    .await;
    drop(sandbox);
    let _ = std::fs::remove_file(&kubeconfig);
}
