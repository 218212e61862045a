//! Nodes and machines that go missing, in every order.

use joiner_cloud::{Cloud, Termination};
use joiner_cloud_sim::{Delays, Settings};
use kube::api::DeleteParams;
use serde_json::json;

use crate::sandbox::support::{World, ec2_order, kwok_order};

const FINALIZER: &str = "karpenter.sh/termination";

#[tokio::test(start_paused = true)]
async fn a_kwok_machine_goes_with_its_node() {
    let world = World::new(Settings::default());
    let instance = world.launch(&kwok_order("web-1")).await;
    world.pass(1).await;
    let cloud = world.cloud();
    let name = &world.node_names().await[0];
    world
        .nodes()
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
    assert!(cloud.instance(&instance.id).await.unwrap().is_none());
    assert!(cloud.instances().await.unwrap().is_empty());
    world.pass(1).await;
    assert!(world.records().await.is_empty(), "nothing is leaked");
    world.pass(600).await;
    assert!(
        world.node_names().await.is_empty(),
        "it does not join again"
    );
    assert_eq!(
        cloud.terminate(&instance.id).await.unwrap(),
        Termination::Gone
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_being_drained_counts_as_gone_and_can_be_ended() {
    let world = World::new(Settings::default());
    let instance = world.launch(&kwok_order("web-1")).await;
    world.pass(1).await;
    let cloud = world.cloud();
    let name = &world.node_names().await[0];
    let finalizers = |list: &[&str]| json!({"metadata": {"finalizers": list}});
    world.patch_node(name, finalizers(&[FINALIZER])).await;
    world
        .nodes()
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
    world.pass(60).await;
    assert!(cloud.instance(&instance.id).await.unwrap().is_none());
    assert!(cloud.instances().await.unwrap().is_empty());
    assert_eq!(world.records().await.len(), 1, "it runs until it is ended");
    assert_eq!(
        cloud.terminate(&instance.id).await.unwrap(),
        Termination::Gone
    );
    world.pass(60).await;
    assert_eq!(
        world.node_names().await.len(),
        1,
        "the finalizer is not ours"
    );
    world.patch_node(name, finalizers(&[])).await;
    world.pass(1).await;
    assert!(world.node_names().await.is_empty());
    assert!(world.records().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_ec2_machine_outlives_its_node() {
    let world = World::new(Settings::default());
    let instance = world.launch(&ec2_order("web-1")).await;
    world.pass(1).await;
    let name = &world.node_names().await[0];
    world
        .nodes()
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
    world.pass(600).await;
    let cloud = world.cloud();
    assert!(cloud.instance(&instance.id).await.unwrap().is_some());
    assert!(
        world.node_names().await.is_empty(),
        "it does not join again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_follows_its_machine() {
    let world = World::new(Settings {
        delays: Delays {
            shutdown: "30s".parse().unwrap(),
            ..Delays::default()
        },
        ..Settings::default()
    });
    for order in [kwok_order("web-1"), ec2_order("web-2")] {
        let instance = world.launch(&order).await;
        world.pass(1).await;
        let cloud = world.cloud();
        assert_eq!(
            cloud.terminate(&instance.id).await.unwrap(),
            Termination::Going
        );
        world.pass(10).await;
        assert_eq!(
            cloud.terminate(&instance.id).await.unwrap(),
            Termination::Going
        );
        assert!(
            cloud
                .instance(&instance.id)
                .await
                .unwrap()
                .unwrap()
                .terminating
        );
        // Who starts anew goes on where the other one stopped.
        world.crash();
        world.pass(19).await;
        assert_eq!(world.node_names().await.len(), 1);
        world.pass(2).await;
        assert!(world.node_names().await.is_empty());
        assert!(world.records().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_record_goes() {
    let world = World::new(Settings::default());
    world.launch(&ec2_order("web-1")).await;
    world.pass(1).await;
    world.crash();
    let name = world.machines().await[0].metadata.name.clone().unwrap();
    world
        .maps()
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    world.pass(1).await;
    assert!(world.node_names().await.is_empty());
}
