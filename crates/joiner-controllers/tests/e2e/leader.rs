//! Of two processes one acts; the other takes over in seconds.

use std::time::Duration;

use joiner_sim::Process;
use joiner_testkit::stage::{NODES, Setup, Stage, Trouble};
use serde_json::json;

/// How long the next may take after an orderly end, in seconds.
const HAND_OVER_SECS: u64 = 4;
/// The same after a crash: the Lease runs out first.
const TAKE_OVER_SECS: u64 = 21;

async fn leads(stage: &Stage, process: &Process, secs: u64) {
    stage
        .until("it leads", secs, async |_| process.leads())
        .await;
}

fn n_decided(process: &Process) -> usize {
    let all = process
        .autoscaler()
        .shared()
        .decisions
        .recent(&Default::default());
    all.len()
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_other_follows() {
    let stage = Stage::empty(Setup::adaptive());
    stage.pool("general", json!({})).await;
    let first = stage.another(Some("first"));
    leads(&stage, &first, 5).await;
    let second = stage.another(Some("second"));
    stage.deployment("web", 10, "1", json!({})).await;
    stage.all_run(10, 60).await;
    stage.agrees().await;
    assert!(n_decided(&first) > 0);
    assert!(!second.leads(), "two lead");
    assert_eq!(n_decided(&second), 0);

    first.stop().await;
    leads(&stage, &second, HAND_OVER_SECS).await;
    stage.deployment("web", 20, "1", json!({})).await;
    stage.all_run(20, 60).await;
    stage.agrees().await;

    let third = stage.another(Some("third"));
    second.kill().await;
    leads(&stage, &third, TAKE_OVER_SECS).await;
    let n_nodes = stage.list(NODES).await.len();
    stage.deployment("web", 400, "1", json!({})).await;
    stage.all_run(400, 60).await;
    assert!(stage.agrees().await > n_nodes);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_the_next_begins() {
    let mut stage = Stage::empty(Setup::adaptive());
    stage.pool("general", json!({})).await;
    stage.elect_in_trouble("first", 1, Trouble::default()).await;
    stage
        .until("the first leads", 5, async |stage| stage.leads())
        .await;
    let second = stage.another(Some("second"));
    let cut = Trouble {
        fail_percent: 100,
        watch: Some(Duration::from_secs(1)),
        ..Trouble::default()
    };
    stage.network().set(cut);
    let mut n_looks = 0;
    stage
        .until("the second leads", 60, async |stage| {
            n_looks += 1;
            assert!(!(stage.leads() && second.leads()), "two lead");
            second.leads()
        })
        .await;
    assert!(n_looks > 50, "it was looked at all the while");
    assert!(!stage.leads());
    stage.deployment("web", 10, "1", json!({})).await;
    stage.all_run(10, 60).await;
}
