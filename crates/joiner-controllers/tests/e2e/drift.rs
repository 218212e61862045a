//! Killed at any moment while fifty nodes are replaced, it breaks no promise: what must be available
//! is, no more nodes go at once than may, and in the end everything is there, once, and new.

use std::time::Duration;

use joiner_testkit::Random;
use joiner_testkit::stage::{Crash, Drifts, Setup, Stage, Trouble};

/// Kills in one drift.
const KILLS: usize = 4;
/// A process dies after at most so many writes, or when so much time has passed: the first nodes are
/// chosen after ten seconds.
const WRITES: u64 = 300;
const LIFE_MILLIS: u64 = 30_000;

async fn drifts(seed: &str, n: usize) {
    let seed = joiner_testkit::seed(seed);
    let mut random = Random::new(&seed);
    let mut stage = Stage::embedded(Setup::adaptive()).await;
    let mut drifts = Drifts::begin(&stage).await;
    for _ in 0..n {
        drifts.drift().await;
        for _ in 0..KILLS {
            let trouble = Trouble {
                latency: (Duration::from_millis(1), Duration::from_millis(30)),
                crash: Some(Crash {
                    write: random.between(1, WRITES),
                    after: random.percent(50),
                }),
                ..Trouble::default()
            };
            stage.restart_in_trouble(random.bits(), trouble).await;
            let life = Duration::from_millis(random.between(10_000, LIFE_MILLIS));
            let _ = tokio::time::timeout(life, stage.network().died()).await;
        }
        stage.restart().await;
        drifts.end_well().await;
    }
}

#[tokio::test(start_paused = true)]
async fn kills_during_drifts_break_no_promise() {
    drifts("drift", 3).await;
}

#[tokio::test(start_paused = true)]
async fn kills_during_other_drifts_break_no_promise() {
    drifts("other drift", 3).await;
}
