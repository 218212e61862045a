//! The real program killed at any moment loses nothing, leaks nothing and buys nothing twice. In
//! virtual time, and at every write, `joiner-controllers` tests the same.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use joiner_testkit::Random;
use serde_json::Value;

use crate::run::cluster::Served;
use crate::run::process::Joiner;
use joiner_testkit::stage::{CLAIMS, NODES, PODS};

/// Pods of every scale-out of the soak.
const PODS_EACH: usize = 500;
/// Pods of the one that always runs.
const PODS_FEW: usize = 100;
/// A scale-out is over by then, with what the restart costs.
const ROUND_SECS: u64 = 240;
/// Most kills in one scale-out. Those that are killed write slowly, so that there is always
/// something half done.
const KILLS: u64 = 3;
/// A kill comes at most this long after the start, which is about when everything is done.
const KILL_MILLIS: u64 = 2_500;

/// Claims and the machines that were launched for them, as the logs have it.
pub(crate) type Launches = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn note(launches: &mut Launches, joiner: &Joiner) {
    for line in joiner.told("launched nodeclaim") {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let claim = text(&line["NodeClaim"]["name"]);
        let machines = launches.entry(claim).or_default();
        machines.insert(text(&line["provider-id"]));
    }
}

/// One scale-out with kills, and the way back to an empty cluster with another kill.
async fn round(cluster: &Served, n_pods: usize, random: &mut Random, launches: &mut Launches) {
    let flags = ["--disable-leader-election"];
    let start = Instant::now();
    cluster.deployment("web", n_pods).await;
    for _ in 0..random.below(KILLS) + 1 {
        let qps = (20 + random.below(200)).to_string();
        let slow = [
            flags[0],
            "--kube-client-qps",
            &qps,
            "--kube-client-burst",
            "20",
        ];
        let mut joiner = Joiner::start(&cluster.kubeconfig, &slow);
        tokio::time::sleep(Duration::from_millis(random.below(KILL_MILLIS))).await;
        joiner.kill();
        note(launches, &joiner);
    }
    println!("killed after {:?}", start.elapsed());
    let mut joiner = Joiner::start(&cluster.kubeconfig, &flags);
    cluster.all_run(n_pods, ROUND_SECS).await;
    let n_nodes = cluster.agrees().await;
    // A kill between two claims makes the next plan a plan for the rest, which may be cut
    // differently, but is never bought twice.
    let n_cpus = bought(cluster).await;
    let took = start.elapsed();
    println!("{n_nodes} nodes, {n_cpus} processors after {took:?}");
    assert!(n_cpus < n_pods * 5 / 4, "{n_cpus} for {n_pods} pods");

    // Pods that are still there would need a place elsewhere.
    cluster.deployment("web", 0).await;
    cluster.all_run(0, ROUND_SECS).await;
    cluster.delete_all(CLAIMS, None).await;
    tokio::time::sleep(Duration::from_millis(random.below(KILL_MILLIS / 2))).await;
    joiner.kill();
    note(launches, &joiner);
    let joiner = Joiner::start(&cluster.kubeconfig, &flags);
    cluster
        .until("everything is gone", ROUND_SECS, async |cluster| {
            let gone = cluster.machines().await.is_empty()
                && cluster.list(NODES).await.is_empty()
                && cluster.list(CLAIMS).await.is_empty();
            gone && cluster.list(PODS).await.is_empty()
        })
        .await;
    note(launches, &joiner);
    println!("gone after {:?}", start.elapsed() - took);
}

/// Processors of all nodes.
async fn bought(cluster: &Served) -> usize {
    let nodes = cluster.list(NODES).await;
    let cpus = nodes.iter().map(|node| {
        let text = node["status"]["capacity"]["cpu"].as_str().unwrap();
        text.parse::<usize>().unwrap()
    });
    cpus.sum()
}

async fn rounds(cluster: &Served, (n, n_pods): (usize, usize), seed: &str) {
    cluster.pool().await;
    let seed = joiner_testkit::seed(seed);
    let mut random = Random::new(&seed);
    let mut launches = Launches::new();
    for n_round in 0..n {
        println!("round {n_round}, seed {seed}");
        round(cluster, n_pods, &mut random, &mut launches).await;
    }
    for (claim, machines) in launches {
        assert_eq!(machines.len(), 1, "{claim}: {machines:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes three to six minutes"]
async fn twenty_rounds_of_kills_lose_nothing_on_the_embedded_control_plane() {
    let cluster = Served::embedded().await;
    rounds(&cluster, (20, PODS_EACH), "embedded").await;
}

mod real {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "soak: takes minutes on the real control plane"]
    async fn three_rounds_of_kills_lose_nothing() {
        if let Some(cluster) = Served::real().await {
            rounds(&cluster, (3, PODS_EACH), "real").await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_round_of_kills_loses_nothing() {
        if let Some(cluster) = Served::real().await {
            rounds(&cluster, (1, PODS_FEW), "few").await;
        }
    }
}
