//! Figures of the sandbox under load, as one line of JSON: `cargo xtask bench --sandbox` makes a
//! table of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderValue, Method};
use joiner_runtime::Clock;
use joiner_sandbox::exchange::{Body, Request, User};
use joiner_sandbox::server::Server;
use joiner_sandbox::{Sandbox, Settings, serve};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The allocator of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PODS: usize = 10_000;
const WATCHERS: usize = 10;
const ROUNDS: usize = 500;
const PATH: &str = "/api/v1/namespaces/default/pods";

type Figures = BTreeMap<&'static str, f64>;

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "tier": "front"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/web:1.2.3",
            "ports": [{"containerPort": 8080}],
            "env": [{"name": "MODE", "value": "bench"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"},
                "limits": {"memory": "256Mi"}}}]}})
}

fn request(method: Method, path: &str, body: String) -> Request {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    Request {
        method,
        path: path.to_owned(),
        query: Vec::new(),
        headers,
        body: body.into(),
        user: User::administrator(),
    }
}

/// Resident memory of this process, where the system tells.
fn rss_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    number.unwrap_or(0.0)
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn per_second(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

fn server() -> Arc<Server> {
    let server = Arc::new(Server::new(Clock::system(1), 1));
    let namespace = json!({"metadata": {"name": "default"}}).to_string();
    let made = server.handle(&request(Method::POST, "/api/v1/namespaces", namespace));
    assert_eq!(made.status, 201);
    server
}

/// Creations and memory, and lists of what was created, with nobody watching.
async fn create_and_list(figures: &mut Figures) {
    let raw = server();
    let before = rss_kib();
    let started = Instant::now();
    for n in 0..PODS {
        let body = pod(&format!("pod-{n}")).to_string();
        assert_eq!(raw.handle(&request(Method::POST, PATH, body)).status, 201);
    }
    figures.insert("creates_per_second_raw", per_second(PODS, started));
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let per_pod = (rss_kib() - before) / PODS as f64;
    figures.insert("kib_per_pod_created", per_pod);
    let started = Instant::now();
    let reply = raw.handle(&request(Method::GET, PATH, String::new()));
    figures.insert("list_raw_ms", ms(started));
    if let Body::Full(bytes) = reply.body {
        figures.insert(
            "list_mib",
            f64::from(u32::try_from(bytes.len()).unwrap_or(0)) / 1048576.0,
        );
    }
    let api: Api<Pod> = Api::namespaced(serve::client(&raw), "default");
    let started = Instant::now();
    let all = api.list(&ListParams::default()).await.expect("a list");
    figures.insert("list_kube_ms", ms(started));
    assert_eq!(all.items.len(), PODS);

    let api: Api<Pod> = Api::namespaced(serve::client(&server()), "default");
    let started = Instant::now();
    for n in 0..PODS / 5 {
        let pod: Pod = serde_json::from_value(pod(&format!("pod-{n}"))).expect("a pod");
        api.create(&PostParams::default(), &pod)
            .await
            .expect("made");
    }
    figures.insert("creates_per_second_kube", per_second(PODS / 5, started));
}

/// From the moment a pod is created until each of ten kube watches has it.
async fn watch_latency(figures: &mut Figures) {
    let server = server();
    let (sender, mut seen) = mpsc::unbounded_channel::<Instant>();
    for _ in 0..WATCHERS {
        let api: Api<Pod> = Api::namespaced(serve::client(&server), "default");
        let sender = sender.clone();
        tokio::spawn(async move {
            let events = api
                .watch(&WatchParams::default(), "0")
                .await
                .expect("a watch");
            let each = events.try_for_each(|event| {
                if matches!(event, WatchEvent::Added(_)) {
                    let _ = sender.send(Instant::now());
                }
                std::future::ready(Ok(()))
            });
            let _ = each.await;
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut delays: Vec<f64> = Vec::new();
    for n in 0..ROUNDS {
        let body = pod(&format!("pod-{n}")).to_string();
        let started = Instant::now();
        let _ = server.handle(&request(Method::POST, PATH, body));
        for _ in 0..WATCHERS {
            let at = seen.recv().await.expect("watchers are there");
            delays.push(at.duration_since(started).as_secs_f64() * 1e3);
        }
    }
    delays.sort_by(f64::total_cmp);
    figures.insert("watch_median_ms", delays[delays.len() / 2]);
    figures.insert("watch_p99_ms", delays[delays.len() * 99 / 100]);
}

/// A whole cluster brings ten thousand pods up: scheduler and kubelets included.
async fn bring_up(figures: &mut Figures) {
    let settings = Settings {
        n_nodes: 100,
        node_cpu: "64".to_owned(),
        node_memory: "256Gi".to_owned(),
        ..Settings::default()
    };
    let sandbox = Sandbox::start(Clock::system(1), &settings).expect("a cluster");
    let before = rss_kib();
    let started = Instant::now();
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web"}, "spec": {"replicas": PODS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web", "tier": "front"}},
                "spec": pod("x")["spec"]}}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let body = deployment.to_string();
    let made = sandbox.server().handle(&request(Method::POST, path, body));
    assert_eq!(made.status, 201);
    let pods = (String::new(), "pods".to_owned());
    let is_running = |pod: &&Arc<Value>| pod["status"]["phase"] == "Running";
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let n_running = sandbox.server().store().with(|s| {
            let all = s.objects(&pods).into_iter().flat_map(|all| all.values());
            all.filter(is_running).count()
        });
        if n_running == PODS || started.elapsed() > Duration::from_secs(240) {
            figures.insert("bring_up_s", started.elapsed().as_secs_f64());
            figures.insert(
                "bring_up_running",
                f64::from(u32::try_from(n_running).unwrap_or(0)),
            );
            break;
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let per_pod = (rss_kib() - before) / PODS as f64;
    figures.insert("kib_per_pod_running", per_pod);
}

/// A day of ten nodes and fifty pods in virtual time: leases, CronJobs, and watches that time out.
async fn day(figures: &mut Figures) {
    let settings = Settings {
        n_nodes: 10,
        ..Settings::default()
    };
    let clock = Clock::system(1);
    let sandbox = Sandbox::start(clock.clone(), &settings).expect("a cluster");
    let started = Instant::now();
    let post = |path: &str, object: &Value| {
        let request = request(Method::POST, path, object.to_string());
        assert_eq!(sandbox.server().handle(&request).status, 201);
    };
    let template = |restart: &str| {
        let mut spec = pod("x")["spec"].clone();
        spec["restartPolicy"] = json!(restart);
        json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})
    };
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 47, "selector": {"matchLabels": {"app": "web"}},
            "template": template("Always")}});
    post("/apis/apps/v1/namespaces/default/deployments", &web);
    for n in 0..3 {
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": format!("tick-{n}")}, "spec": {"schedule": "*/10 * * * *",
                "jobTemplate": {"spec": {"template": template("Never")}}}});
        post("/apis/batch/v1/namespaces/default/cronjobs", &cron);
    }
    let pods: Api<Pod> = Api::all(sandbox.client());
    let leases: Api<Lease> = Api::all(sandbox.client());
    let watchers = [
        tokio::spawn(watcher(pods, watcher::Config::default()).for_each(|_| async {})),
        tokio::spawn(watcher(leases, watcher::Config::default()).for_each(|_| async {})),
    ];
    clock.sleep(Duration::from_hours(24)).await;
    figures.insert("day_s", started.elapsed().as_secs_f64());
    assert!(watchers.iter().all(|task| !task.is_finished()));
}

/// Each part has a process of its own, so that memory is its own, too.
fn part(name: &str) -> Figures {
    let program = std::env::current_exe().expect("this program");
    let arguments = ["--bench", "--part", name];
    let output = std::process::Command::new(program).args(arguments).output();
    let output = output.expect("a part that runs");
    assert!(output.status.success(), "{name}: {}", output.status);
    let figures: BTreeMap<String, f64> = serde_json::from_slice(&output.stdout).expect("figures");
    let leaked = figures
        .into_iter()
        .map(|(name, value)| (&*name.leak(), value));
    leaked.collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test` runs benches, too, to see whether they work: figures are not asked for then.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let mut figures = Figures::new();
    let at = arguments.iter().position(|argument| argument == "--part");
    match at.and_then(|at| arguments.get(at + 1)) {
        Some(name) => {
            let runtime = match name.as_str() {
                "day" => tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .start_paused(true)
                    .build(),
                _ => tokio::runtime::Runtime::new(),
            };
            runtime.expect("a runtime").block_on(async {
                match name.as_str() {
                    "day" => day(&mut figures).await,
                    "create" => create_and_list(&mut figures).await,
                    "watch" => watch_latency(&mut figures).await,
                    _ => bring_up(&mut figures).await,
                }
            });
        }
        None => {
            for name in ["create", "watch", "bring-up", "day"] {
                figures.extend(part(name));
            }
        }
    }
    let line = serde_json::to_string(&figures).expect("figures");
    #[expect(clippy::print_stdout, reason = "the figures are for whoever ran this")]
    {
        println!("{line}");
    }
}
