//! Faults that are switched on a running cloud.

use joiner_cloud::{Cloud, CloudError, LaunchError};
use joiner_cloud_sim::{Settings, State};
use joiner_model::{InstanceType, NanoDollars, keys};
use serde_json::json;

use crate::sandbox::support::{World, kwok_class, kwok_order};

#[tokio::test(start_paused = true)]
async fn a_shortage_lasts_as_long_as_it_says() {
    let world = World::new(Settings::default());
    let until = world.clock.now() + jiff::SignedDuration::from_secs(600);
    world
        .write_faults(&format!(
            "shortages: [{{instanceType: c-4x-amd64-linux, until: {until}}}]"
        ))
        .await;
    let order = kwok_order("web-1");
    for _ in 0..3 {
        let error = world.cloud().launch(&order).await.unwrap_err();
        assert!(
            matches!(error, LaunchError::InsufficientCapacity(_)),
            "{error}"
        );
        world.pass(181).await;
    }
    world.pass(60).await;
    world.launch(&order).await;
}

#[tokio::test(start_paused = true)]
async fn a_shortage_counts_before_any_watch_tells_of_it() {
    let world = World::new(Settings::default());
    world
        .write_faults("shortages: [{instanceType: c-4x-amd64-linux}]")
        .await;
    world.crash();
    let order = kwok_order("web-1");
    let error = world.cloud().launch(&order).await.unwrap_err();
    assert!(
        matches!(error, LaunchError::InsufficientCapacity(_)),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn quotas_hold_until_a_machine_ends() {
    let world = World::new(Settings::default());
    world.write_faults("quotas: {maxVcpus: 8}").await;
    let first = world.launch(&kwok_order("web-1")).await;
    world.launch(&kwok_order("web-2")).await;
    world.crash();
    world.pass(1).await;
    let error = world
        .cloud()
        .launch(&kwok_order("web-3"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, LaunchError::InsufficientCapacity(_)),
        "{error}"
    );
    world.cloud().terminate(&first.id).await.unwrap();
    world.pass(181).await;
    world.launch(&kwok_order("web-3")).await;
    assert_eq!(world.records().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn prices_change_and_change_back() {
    let world = World::new(Settings::default());
    let class = kwok_class(json!({}));
    let price = async || {
        let types = world.cloud().instance_types(&class).await.unwrap();
        let of = |ty: &&InstanceType| &*ty.name == "c-4x-amd64-linux";
        types.iter().find(of).unwrap().offerings[0].price
    };
    let listed = price().await;
    world
        .write_faults("prices: [{zone: test-zone-a, percent: 300}]")
        .await;
    assert_eq!(price().await, NanoDollars::new(listed.get() * 3));
    let instance = world.launch(&kwok_order("web-1")).await;
    assert_eq!(
        &*instance.labels[keys::ZONE],
        "test-zone-b",
        "the cheapest now"
    );
    world.write_faults("").await;
    assert_eq!(price().await, listed);
}

#[tokio::test(start_paused = true)]
async fn calls_fail_and_take_time_as_asked() {
    let world = World::new(Settings::default());
    world
        .write_faults("{errorPercent: 50, latencyMillis: 2000}")
        .await;
    let cloud = world.cloud();
    let before = world.clock.now();
    let mut n_failed = 0;
    for _ in 0..100 {
        match cloud.instances().await {
            Ok(_) => {}
            Err(CloudError::Other(_)) => n_failed += 1,
            Err(other @ CloudError::Throttled(_)) => panic!("{other}"),
        }
    }
    assert!((30..70).contains(&n_failed), "{n_failed}");
    let taken = world.clock.now().duration_since(before).as_secs();
    assert!((200..205).contains(&taken), "{taken}");
}

#[tokio::test(start_paused = true)]
async fn a_typing_error_changes_nothing() {
    let world = World::new(Settings::default());
    world.write_faults("quotas: {maxInstances: 0}").await;
    world.write_faults("quotas: {maxInstances: [}").await;
    assert_eq!(world.cloud().faults().quotas.max_instances, Some(0));
}

#[tokio::test(start_paused = true)]
async fn some_machines_never_join() {
    let world = World::new(Settings::default());
    world.write_faults("neverJoinPercent: 100").await;
    world.launch(&kwok_order("web-1")).await;
    world.pass(3600).await;
    assert!(world.node_names().await.is_empty());
    assert_eq!(world.records().await[0].state, State::Pending);
}
