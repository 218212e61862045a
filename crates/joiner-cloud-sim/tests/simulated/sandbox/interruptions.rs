//! Machines that are taken back.

use std::time::Duration;

use futures::StreamExt;
use joiner_cloud::{Cloud, InterruptionKind};
use joiner_cloud_sim::{Notice, Settings};
use joiner_model::keys;
use tokio::time::timeout;

use crate::sandbox::support::{World, ec2_order, kwok_order};

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn a_spot_machine_is_taken_two_minutes_after_its_notice() {
    let world = World::new(Settings::default());
    let instance = world.launch(&ec2_order("web-1")).await;
    let other = world.launch(&ec2_order("web-2")).await;
    world.pass(1).await;
    let mut notices = world.cloud().interruptions();
    assert!(
        timeout(SOON, notices.next()).await.is_err(),
        "there is none yet"
    );
    let record = world.records().await;
    let record = record
        .iter()
        .find(|record| record.claim == "web-1")
        .unwrap();
    let node = record.node_name.clone();
    world
        .write_faults(&format!("interruptions: [{{node: {node}}}]"))
        .await;
    let notice = timeout(SOON, notices.next()).await.unwrap().unwrap();
    assert_eq!(notice.id, instance.id);
    assert_eq!(notice.kind, InterruptionKind::SpotInterruption);
    assert!(
        timeout(SOON, notices.next()).await.is_err(),
        "it is told once"
    );
    // Nobody listened, and the process died: who comes next is told.
    world.crash();
    let again = timeout(SOON, world.cloud().interruptions().next())
        .await
        .unwrap();
    assert_eq!(again.unwrap().id, instance.id);
    world.pass(100).await;
    assert_eq!(world.node_names().await.len(), 2);
    world.pass(20).await;
    assert!(world.node(&node).await.is_null());
    assert!(
        world
            .cloud()
            .instance(&instance.id)
            .await
            .unwrap()
            .is_none()
    );
    assert!(world.cloud().instance(&other.id).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_back_is_not_sold_for_three_minutes() {
    let world = World::new(Settings::default());
    let bought = async |claim: &str| {
        let instance = world.launch(&ec2_order(claim)).await;
        let of = |key: &str| instance.labels.get(key).cloned().unwrap();
        [keys::INSTANCE_TYPE, keys::ZONE, keys::CAPACITY_TYPE].map(of)
    };
    let first = bought("web-1").await;
    world.pass(1).await;
    let node = &world.node_names().await[0];
    let cloud = world.cloud();
    assert_eq!(bought("web-2").await, first, "the cheapest");
    assert!(
        cloud
            .interrupt(node, Notice::SpotInterruption)
            .await
            .unwrap()
    );
    assert_ne!(bought("web-3").await, first, "not again what is taken back");
    world.pass(180).await;
    assert_eq!(bought("web-4").await, first);
}

#[tokio::test(start_paused = true)]
async fn a_warning_takes_nothing() {
    let world = World::new(Settings::default());
    let instance = world.launch(&kwok_order("web-1")).await;
    world.pass(1).await;
    let mut notices = world.cloud().interruptions();
    let node = &world.node_names().await[0];
    let cloud = world.cloud();
    assert!(
        cloud
            .interrupt(node, Notice::RebalanceRecommendation)
            .await
            .unwrap()
    );
    assert!(
        !cloud
            .interrupt("nobody", Notice::SpotInterruption)
            .await
            .unwrap()
    );
    let notice = timeout(SOON, notices.next()).await.unwrap().unwrap();
    assert_eq!(notice.kind, InterruptionKind::RebalanceRecommendation);
    world.pass(600).await;
    assert!(cloud.instance(&instance.id).await.unwrap().is_some());
    assert!(
        cloud
            .interrupt(node, Notice::SpotInterruption)
            .await
            .unwrap()
    );
    let notice = timeout(SOON, notices.next()).await.unwrap().unwrap();
    assert_eq!(notice.kind, InterruptionKind::SpotInterruption);
}

#[tokio::test(start_paused = true)]
async fn chance_takes_spot_machines() {
    let world = World::new(Settings::default());
    for n in 0..20 {
        world.launch(&kwok_order(&format!("web-{n}"))).await;
    }
    world.pass(1).await;
    world.write_faults("interruptionsPerHour: 1").await;
    world.pass(3600).await;
    let left = world.node_names().await.len();
    // A share of 1/e is expected: seven of them.
    assert!((3..=12).contains(&left), "{left} are left");
    assert_eq!(world.records().await.len(), left);
}
