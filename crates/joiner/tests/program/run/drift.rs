//! The real program killed at any moment while fifty nodes are replaced breaks no promise. In virtual
//! time, and at every write, `joiner-controllers` tests the same.

use std::time::{Duration, Instant};

use joiner_testkit::Random;
use joiner_testkit::stage::Drifts;

use crate::run::cluster::Served;
use crate::run::crash::{Launches, note};
use crate::run::process::Joiner;

/// A kill comes at most this long after the start: the first nodes are chosen after ten seconds.
const KILL_MILLIS: u64 = 18_000;

/// So many drifts with so many kills each.
async fn drifts(cluster: &Served, (n, kills): (usize, usize), seed: &str) {
    let flags = ["--disable-leader-election"];
    let mut joiner = Joiner::start(&cluster.kubeconfig, &flags);
    let mut drifts = Drifts::begin(cluster).await;
    let (mut launches, mut random) = (Launches::new(), Random::new(&joiner_testkit::seed(seed)));
    for _ in 0..n {
        let start = Instant::now();
        drifts.drift().await;
        for _ in 0..kills {
            tokio::time::sleep(Duration::from_millis(random.below(KILL_MILLIS))).await;
            joiner.kill();
            note(&mut launches, &joiner);
            joiner = Joiner::start(&cluster.kubeconfig, &flags);
        }
        println!("killed {kills} times in {:?}", start.elapsed());
        drifts.end_well().await;
        println!("new after {:?}", start.elapsed());
    }
    note(&mut launches, &joiner);
    for (claim, machines) in launches {
        assert_eq!(machines.len(), 1, "{claim}: {machines:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes minutes; in virtual time it always runs"]
async fn kills_during_a_drift_break_no_promise() {
    let cluster = Served::embedded().await;
    drifts(&cluster, (1, 4), "drift").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: takes seven minutes"]
async fn twenty_kills_during_drifts_break_no_promise() {
    let cluster = Served::embedded().await;
    drifts(&cluster, (5, 4), "twenty").await;
}

mod real {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "soak: takes minutes on the real control plane"]
    async fn kills_during_a_drift_break_no_promise() {
        if let Some(cluster) = Served::real().await {
            drifts(&cluster, (1, 4), "real").await;
        }
    }
}
