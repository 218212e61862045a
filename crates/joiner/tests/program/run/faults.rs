//! The real program behind a proxy: in virtual time `joiner-controllers` tests the same.
//!
//! A cluster that is hard to reach and a cloud that has little: it gets there all the same, and
//! does not shout meanwhile.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::run::cluster::Served;
use crate::run::process::Joiner;
use crate::run::proxy::{Proxy, Seen, Trouble};
use joiner_testkit::stage::{CONFIG_MAPS, NODES};

const PODS: usize = 60;
/// Requests a second, on average, above which something goes round in circles: watches that start
/// anew every five seconds are twenty-odd requests each time.
const REQUESTS_MAX: usize = 40;
/// Requests about one pod: it is told what is decided, and its node is proposed to it, with retries.
const REQUESTS_EACH: usize = 4;

/// Sells out the cheapest types that a pod fits on.
async fn sell_out(cluster: &Served, types: &[String]) {
    let shortages: Vec<Value> = types.iter().map(|ty| json!({"instanceType": ty})).collect();
    let faults = json!({"shortages": shortages}).to_string();
    let map = json!({"metadata": {"name": "joiner-simulated-cloud", "namespace": "kube-system"},
        "data": {"faults": faults}});
    cluster.apply(CONFIG_MAPS, map).await;
}

/// Names of the cheapest types of the generic catalog with more than one processor.
fn cheapest(n: usize) -> Vec<String> {
    let mut named = Vec::new();
    for cpus in [2, 4, 8, 16] {
        for family in ["c", "s", "m"] {
            for arch in ["amd64", "arm64"] {
                named.push(format!("{family}-{cpus}x-{arch}-linux"));
            }
        }
    }
    named.truncate(n);
    named
}

/// The rate over a time, and what was asked for most.
fn report(what: &str, seen: &[Seen], time: Duration) -> usize {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in seen {
        let path = one.path.split('?').next().unwrap_or_default();
        let key = format!("{} {path}", one.method);
        *counts.entry(key).or_default() += 1;
    }
    let most = counts.iter().max_by_key(|(_, n)| **n);
    let rate = seen.len() / usize::try_from(time.as_secs().max(1)).unwrap();
    println!(
        "{what}: {} requests in {time:?}, {rate} a second; most: {most:?}",
        seen.len()
    );
    rate
}

/// A scale-out in trouble, and the quiet time after it.
async fn converges(seed: &str, trouble: Trouble, secs: u64) {
    let cluster = Served::embedded().await;
    cluster.pool().await;
    sell_out(&cluster, &cheapest(20)).await;
    let proxy = Proxy::start(cluster.client.clone(), seed, trouble).await;
    // The first question is asked once: who starts it starts it again.
    proxy.set(Trouble::default());
    let mut joiner = Joiner::start(&proxy.kubeconfig, &["--disable-leader-election"]);
    joiner.says("starting").await;
    proxy.set(trouble);
    let start = Instant::now();
    cluster.deployment("web", PODS).await;
    cluster.all_run(PODS, secs).await;
    // A claim that was given up before the answer about its machine could be written leaves that machine
    // behind. Those are looked for every two minutes, and again soon where the look fails.
    cluster.agrees().await;
    let took = start.elapsed();
    let rate = report("scale-out", &proxy.seen(), took);
    let secs = usize::try_from(took.as_secs().max(1)).unwrap();
    let most = REQUESTS_MAX + REQUESTS_EACH * PODS / secs;
    assert!(rate <= most, "{rate} requests a second");
    for node in cluster.list(NODES).await {
        let ty = node["metadata"]["labels"]["node.kubernetes.io/instance-type"].as_str();
        assert!(
            !cheapest(20)
                .iter()
                .any(|sold_out| Some(sold_out.as_str()) == ty),
            "{ty:?}"
        );
    }

    let (before, quiet) = (proxy.seen().len(), Duration::from_secs(6));
    tokio::time::sleep(quiet).await;
    let rate = report("afterwards", &proxy.seen()[before..], quiet);
    assert!(rate <= REQUESTS_MAX, "{rate} requests a second");
    assert!(joiner.is_running(), "{}", joiner.said());
    assert_eq!(joiner.stop().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes a minute or more; in virtual time it always runs"]
async fn a_third_of_all_calls_fail() {
    let trouble = Trouble {
        fail_percent: 30,
        watch: Some(Duration::from_secs(5)),
        latency: Duration::ZERO,
    };
    converges("fail", trouble, 120).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes a minute or more; in virtual time it always runs"]
async fn every_call_takes_two_seconds() {
    let trouble = Trouble {
        fail_percent: 0,
        watch: Some(Duration::from_secs(5)),
        latency: Duration::from_secs(2),
    };
    converges("slow", trouble, 120).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes a minute or more; in virtual time it always runs"]
async fn everything_at_once() {
    let trouble = Trouble {
        fail_percent: 30,
        watch: Some(Duration::from_secs(5)),
        latency: Duration::from_secs(2),
    };
    // A call in three fails, and what fails again and again is tried every ten seconds.
    converges("all", trouble, 480).await;
}
