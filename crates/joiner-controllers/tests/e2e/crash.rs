//! Killed before or after any write, the autoscaler loses nothing, leaks nothing and buys nothing twice.
//!
//! The process dies with its cloud; what it had asked for and was not answered may have taken effect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use joiner_testkit::Random;
use joiner_testkit::stage::{CLAIMS, Cluster, Crash, NODES, PODS, Setup, Stage, Trouble, record};
use serde_json::json;

/// Pods of every scale-out.
const PODS_EACH: usize = 60;
/// A scale-out is over by then, with what kills cost.
const ROUND_SECS: u64 = 240;
/// Most kills in one scale-out.
const KILLS: u64 = 3;
/// A scale-out is about so many writes.
const WRITES: u64 = 220;
/// A process that has not come to the write at which it dies has nothing to do any more.
const IDLE: Duration = Duration::from_secs(40);

/// Rounds of one test.
const ROUNDS: usize = 25;

/// What was seen of all rounds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Machines by the claim that they were launched for, all that there ever were.
    launches: BTreeMap<String, BTreeSet<String>>,
    /// Requests of every process that was killed.
    n_requests: Vec<usize>,
    /// Processes that died at the write that was meant for it.
    n_died: usize,
}

impl Seen {
    async fn note(&mut self, cluster: &Cluster) {
        for machine in cluster.machines().await {
            let record = record(&machine);
            let text = |key: &str| record[key].as_str().unwrap().to_owned();
            let machines = self.launches.entry(text("claimUid")).or_default();
            machines.insert(text("providerID"));
        }
    }
}

/// A process that dies at a write.
async fn a_short_life(stage: &mut Stage, random: &mut Random, seen: &mut Seen) {
    let millis = |n: u64| Duration::from_millis(n);
    let trouble = Trouble {
        latency: (millis(1), millis(random.between(2, 200))),
        crash: Some(Crash {
            write: random.between(1, WRITES),
            after: random.percent(50),
        }),
        ..Trouble::default()
    };
    stage.restart_in_trouble(random.bits(), trouble).await;
    let died = tokio::time::timeout(IDLE, stage.network().died()).await;
    seen.n_died += usize::from(died.is_ok());
    seen.n_requests.push(stage.network().seen().len());
    seen.note(stage).await;
}

/// Processors of all nodes.
async fn bought(cluster: &Cluster) -> usize {
    let nodes = cluster.list(NODES).await;
    let cpus = nodes.iter().map(|node| {
        let text = node["status"]["capacity"]["cpu"].as_str().unwrap();
        text.parse::<usize>().unwrap()
    });
    cpus.sum()
}

/// A scale-out with kills, and the way back to an empty cluster with another kill.
async fn round(stage: &mut Stage, random: &mut Random, seen: &mut Seen) {
    stage.deployment("web", PODS_EACH, "1", json!({})).await;
    for _ in 0..random.between(1, KILLS) {
        a_short_life(stage, random, seen).await;
    }
    stage.restart().await;
    stage.all_run(PODS_EACH, ROUND_SECS).await;
    stage.agrees().await;
    seen.note(stage).await;
    // A kill between two claims makes the next plan a plan for the rest, which may be cut
    // differently, but is never bought twice.
    let n_cpus = bought(stage).await;
    assert!(n_cpus < PODS_EACH * 4 / 3, "{n_cpus} for {PODS_EACH} pods");

    // Pods that are still there would need a place elsewhere.
    stage.deployment("web", 0, "1", json!({})).await;
    stage.all_run(0, ROUND_SECS).await;
    stage.delete_all(CLAIMS, None).await;
    a_short_life(stage, random, seen).await;
    stage.restart().await;
    stage
        .until("everything is gone", ROUND_SECS, async |stage| {
            stage.machines().await.is_empty()
                && stage.list(NODES).await.is_empty()
                && stage.list(CLAIMS).await.is_empty()
                && stage.list(PODS).await.is_empty()
        })
        .await;
}

/// Rounds of kills, all from one seed.
async fn rounds(seed: &str, n: usize) -> Seen {
    let seed = joiner_testkit::seed(seed);
    let mut random = Random::new(&seed);
    let mut stage = Stage::empty(Setup::adaptive());
    let small = json!({"spec": {"template": {"spec": {"requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]}]}}}});
    stage.pool("general", small).await;
    let mut seen = Seen::default();
    for n_round in 0..n {
        eprintln!("round {n_round} of seed {seed}");
        round(&mut stage, &mut random, &mut seen).await;
    }
    assert!(seen.launches.len() >= n, "machines were launched");
    for (claim, machines) in &seen.launches {
        assert_eq!(machines.len(), 1, "{claim}: {machines:?}");
    }
    let (n_died, n_lives) = (seen.n_died, seen.n_requests.len());
    eprintln!("{n_died} of {n_lives} processes died at a write");
    assert!(
        n_died * 4 > n_lives,
        "{n_died} of {n_lives} died in the midst of things"
    );
    seen
}

/// Tests of [`ROUNDS`] rounds each.
macro_rules! kills_lose_nothing {
    ($($name:ident)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                rounds(stringify!($name), ROUNDS).await;
            }
        )*
    };
}
kills_lose_nothing!(
    kills_lose_nothing_1 kills_lose_nothing_2 kills_lose_nothing_3 kills_lose_nothing_4
    kills_lose_nothing_5 kills_lose_nothing_6 kills_lose_nothing_7 kills_lose_nothing_8
);

#[test]
fn the_same_seed_kills_at_the_same_moment() {
    let play = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(rounds("same", 3))
    };
    assert_eq!(play(), play());
}
