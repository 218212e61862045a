//! A day of a cluster passes in seconds, and passes the same way every time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use joiner_runtime::Clock;
use joiner_sandbox::store::Store;
use joiner_sandbox::{Sandbox, Settings};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The allocator of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Midnight.
const START: &str = "2026-01-01T00:00:00Z";
const HOURS: u64 = 24;
/// What a day comes down to.
#[derive(Debug, PartialEq, Eq)]
struct Day {
    /// Of all changes, in order.
    hash: u64,
    n_changes: u64,
    n_jobs_done: usize,
    /// Events that watchers have seen, and how often they started anew.
    n_events: usize,
}

/// Hashes every change there is, as it comes.
async fn record(store: Arc<Store>, day: Arc<std::sync::Mutex<(DefaultHasher, u64)>>) {
    let mut changed = store.subscribe();
    let mut seen = 1;
    loop {
        changed.mark_unchanged();
        store.with(|s| {
            let mut day = day.lock().unwrap();
            for change in s.log_since(seen).expect("the log is long enough") {
                seen = change.revision;
                (seen, &*change.resource, change.what as u8).hash(&mut day.0);
                change.text().hash(&mut day.0);
                day.1 += 1;
            }
        });
        changed.changed().await.expect("the store is there");
    }
}

/// Follows a kind as controllers do.
fn follow<K>(api: Api<K>, n_events: &Arc<AtomicUsize>) -> JoinHandle<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let n_events = Arc::clone(n_events);
    tokio::spawn(async move {
        let events = watcher(api, watcher::Config::default());
        let each = events.try_for_each(|_| async {
            n_events.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        each.await.expect("a watch that times out goes on");
    })
}

fn template(app: &str, image: &str, restart: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"restartPolicy": restart, "containers": [
        {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m"}}}]}})
}

fn web(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 47, "selector": {"matchLabels": {"app": "web"}},
            "template": template("web", image, "Always")}})
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a valid object")
}

async fn live(client: &Client, clock: &Clock, hours: u64) -> usize {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let post = PostParams::default();
    deployments
        .create(&post, &read(web("web:1")))
        .await
        .unwrap();
    let crons: Api<CronJob> = Api::namespaced(client.clone(), "default");
    for n in 0..3 {
        let cron = json!({"metadata": {"name": format!("tick-{n}")}, "spec": {
            "schedule": "*/10 * * * *", "jobTemplate": {"spec": {
                "template": template("tick", "tick:1", "Never")}}}});
        crons.create(&post, &read(cron)).await.unwrap();
    }
    clock.sleep(Duration::from_hours(1)).await;
    let patch = json!({"spec": {"template": template("web", "web:2", "Always")}});
    let merge = Patch::Merge(patch);
    deployments
        .patch("web", &PatchParams::default(), &merge)
        .await
        .unwrap();
    clock.sleep(Duration::from_hours(hours - 1)).await;

    let web = deployments.get("web").await.unwrap().status.unwrap();
    assert_eq!(
        (web.updated_replicas, web.ready_replicas),
        (Some(47), Some(47))
    );
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let new = pods.list(&ListParams::default().labels("app=web")).await;
    for pod in new.unwrap() {
        assert_eq!(
            pod.spec.unwrap().containers[0].image.as_deref(),
            Some("web:2")
        );
    }
    let jobs: Api<Job> = Api::namespaced(client.clone(), "default");
    let jobs = jobs.list(&ListParams::default()).await.unwrap();
    let done = |job: &&Job| job.status.as_ref().is_some_and(|s| s.succeeded == Some(1));
    jobs.iter().filter(done).count()
}

async fn day(seed: u64, hours: u64) -> Day {
    let clock = Clock::new(START.parse::<Timestamp>().unwrap(), 1);
    let settings = Settings {
        n_nodes: 10,
        seed,
        ..Settings::default()
    };
    let sandbox = Sandbox::start(clock.clone(), &settings).unwrap();
    let changes = Arc::new(std::sync::Mutex::new((DefaultHasher::new(), 0)));
    let store = Arc::clone(sandbox.server().store());
    let recorder = tokio::spawn(record(store, Arc::clone(&changes)));
    let client = sandbox.client();
    let n_events = Arc::new(AtomicUsize::new(0));
    let watchers = [
        follow(Api::<Pod>::all(client.clone()), &n_events),
        follow(Api::<Lease>::all(client.clone()), &n_events),
        follow(Api::<Job>::all(client.clone()), &n_events),
    ];
    let n_jobs_done = live(&client, &clock, hours).await;
    assert!(watchers.iter().all(|task| !task.is_finished()));
    assert!(!recorder.is_finished());
    watchers.iter().for_each(JoinHandle::abort);
    recorder.abort();
    let (hasher, n_changes) = &*changes.lock().unwrap();
    Day {
        hash: hasher.finish(),
        n_changes: *n_changes,
        n_jobs_done,
        n_events: n_events.load(Ordering::Relaxed),
    }
}

#[tokio::test(start_paused = true)]
async fn a_day_is_always_the_same() {
    let whole = day(7, HOURS).await;
    assert!(whole.n_jobs_done >= 9, "three jobs of each are kept");
    // Ten nodes renew their leases every ten seconds, and a watch tells of it.
    assert!(whole.n_changes > HOURS * 3600);
    assert!(whole.n_events > 24 * 3600);
    assert_eq!(whole, day(7, HOURS).await);
    assert_ne!(day(7, 2).await.hash, day(8, 2).await.hash);
}

#[tokio::test(start_paused = true)]
async fn watches_follow_the_clock() {
    let clock = Clock::new(START.parse::<Timestamp>().unwrap(), 60);
    let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
    let pods: Api<Pod> = Api::all(sandbox.client());
    let before = tokio::time::Instant::now();
    let params = kube::api::WatchParams::default().timeout(240);
    let mut events = pods.watch(&params, "0").await.unwrap().boxed();
    while let Some(event) = events.try_next().await.unwrap() {
        assert!(
            matches!(event, kube::api::WatchEvent::Bookmark(_)),
            "{event:?}"
        );
    }
    assert_eq!(before.elapsed().as_secs(), 4, "a minute in every second");
}
