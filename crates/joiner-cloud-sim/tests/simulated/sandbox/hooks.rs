//! Nodes that join and are not let in at once.

use std::time::Duration;

use joiner_api::types::NodeClaim;
use joiner_cloud::{Cloud, Instance, Pending, Registration};
use joiner_cloud_sim::Settings;
use serde_json::json;

use crate::sandbox::support::{World, kwok_order};

const HELD: &str = "registration: {holdSeconds: 30, labels: {example.com/rack: r1}}";

fn claim(instance: &Instance) -> NodeClaim {
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "web-1"},
        "spec": {"requirements": [], "nodeClassRef": {
            "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
        "status": {"providerID": &*instance.id.0},
    });
    serde_json::from_value(claim).unwrap()
}

/// Waits for this long, if it waits.
fn pending(answer: &Registration) -> Option<Duration> {
    let all: Vec<&str> = answer.pending.iter().map(|own| &*own.hook).collect();
    assert!(all.is_empty() || all == ["simulated-hold"], "{all:?}");
    answer.pending.first().and_then(|own| own.again)
}

#[tokio::test(start_paused = true)]
async fn a_registration_is_held_across_a_crash() {
    let world = World::new(Settings::default());
    world.write_faults(HELD).await;
    let claim = claim(&world.launch(&kwok_order("web-1")).await);
    let first = world.cloud().registration(&claim).await;
    assert_eq!(pending(&first), Some(Duration::from_secs(30)));
    world.pass(20).await;
    world.crash();
    // Before any watch has told the new process of the fault.
    assert!(world.cloud().has_registration_hooks());
    let second = world.cloud().registration(&claim).await;
    assert_eq!(pending(&second), Some(Duration::from_secs(10)));
    assert!(second.labels.is_empty());
    world.pass(10).await;
    let third = world.cloud().registration(&claim).await;
    assert_eq!(third.pending, []);
    assert_eq!(&*third.labels["example.com/rack"], "r1");
}

#[tokio::test(start_paused = true)]
async fn without_the_fault_there_is_no_hook() {
    let world = World::new(Settings::default());
    world.pass(1).await;
    assert!(!world.cloud().has_registration_hooks());
    let claim = claim(&world.launch(&kwok_order("web-1")).await);
    let answer = world.cloud().registration(&claim).await;
    assert_eq!(answer, Registration::default());
    world.write_faults(HELD).await;
    assert!(world.cloud().has_registration_hooks());
    world.write_faults("").await;
    assert!(!world.cloud().has_registration_hooks());
}

#[tokio::test(start_paused = true)]
async fn a_hook_fails_as_other_calls_do() {
    let world = World::new(Settings::default());
    let claim = claim(&world.launch(&kwok_order("web-1")).await);
    let faults = format!("{HELD}\nerrorPercent: 100");
    world.write_faults(&faults).await;
    let answer = world.cloud().registration(&claim).await;
    let [Pending { hook, error, .. }] = answer.pending.as_slice() else {
        panic!("{answer:?}");
    };
    assert_eq!(&**hook, "simulated-hold");
    assert!(error.as_deref().unwrap().contains("failed"), "{error:?}");
}
