//! Machines boot and join, once, whatever crashes.

use joiner_cloud::{Cloud, LaunchError, Termination};
use joiner_cloud_sim::{Delays, Settings, State};
use joiner_model::{Requirements, keys};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::sandbox::support::{World, ec2_order, kwok_class, kwok_order};

fn delayed() -> Settings {
    Settings {
        delays: Delays {
            launch: "5s".parse().unwrap(),
            boot: "20s".parse().unwrap(),
            ..Delays::default()
        },
        ..Settings::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_joins_after_its_delays() {
    let world = World::new(delayed());
    let mut order = kwok_order("web-1");
    order.class = Some(kwok_class(
        json!({"spec": {"nodeRegistrationDelay": "30s"}}),
    ));
    let instance = world.launch(&order).await;
    assert!(
        instance.id.0.starts_with("kwok://kwok-web-1-"),
        "{}",
        instance.id
    );
    let name = instance.id.0.strip_prefix("kwok://").unwrap().to_owned();
    world.pass(54).await;
    assert!(world.node(&name).await.is_null());
    assert_eq!(world.records().await[0].state, State::Pending);
    world.pass(2).await;
    let node = world.node(&name).await;
    assert_eq!(node["spec"]["providerID"], *instance.id.0);
    let taints = node["spec"]["taints"].as_array().unwrap();
    let unregistered = json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"});
    assert!(taints.contains(&unregistered), "{taints:?}");
    let labels = &node["metadata"]["labels"];
    for (key, value) in [
        (keys::INSTANCE_TYPE, "c-4x-amd64-linux"),
        (keys::ZONE, "test-zone-a"),
        (keys::CAPACITY_TYPE, "spot"),
        (keys::NODE_POOL, "default"),
        (keys::HOSTNAME, "web-1"),
        ("karpenter.kwok.sh/instance-memory", "8Gi"),
        ("kwok-partition", "a"),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    assert_eq!(node["status"]["capacity"]["cpu"], "4");
    assert_eq!(node["status"]["allocatable"]["cpu"], "3900m");
    assert_eq!(world.records().await[0].state, State::Running);
}

#[tokio::test(start_paused = true)]
async fn machines_of_ec2_classes_look_like_ec2() {
    let world = World::new(Settings {
        region: "eu-west-1".to_owned(),
        ..Settings::default()
    });
    let instance = world.launch(&ec2_order("web-1")).await;
    let zone = &instance.labels[keys::ZONE];
    assert!(
        instance
            .id
            .0
            .starts_with(&format!("simulated:///{zone}/i-0")),
        "{}",
        instance.id
    );
    assert_eq!(&*instance.labels[keys::REGION], "eu-west-1");
    assert_eq!(&*instance.labels["karpenter.k8s.aws/instance-family"], "m5");
    world.pass(1).await;
    let names = world.node_names().await;
    assert!(names[0].starts_with("ip-10-"), "{names:?}");
    assert!(
        names[0].ends_with(".eu-west-1.compute.internal"),
        "{names:?}"
    );
    let node = world.node(&names[0]).await;
    assert_eq!(node["metadata"]["labels"][keys::HOSTNAME], *names[0]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_a_machine_boots_does_not_matter() {
    let world = World::new(delayed());
    world.launch(&kwok_order("web-1")).await;
    world.pass(10).await;
    world.crash();
    world.pass(10).await;
    world.crash();
    assert!(world.node_names().await.is_empty());
    world.pass(6).await;
    assert_eq!(world.node_names().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_note_that_a_machine_has_joined_does_not_matter() {
    let world = World::new(Settings::default());
    world.launch(&kwok_order("web-1")).await;
    world.pass(1).await;
    let node = world.node(&world.node_names().await[0]).await;
    // As if the process had died after it created the Node.
    let mut record = world.records().await.remove(0);
    record.state = State::Pending;
    let name = world.machines().await[0].metadata.name.clone().unwrap();
    let patch = json!({"data": {"instance": serde_json::to_string(&record).unwrap()}});
    let patch = Patch::Merge(&patch);
    world.crash();
    world
        .maps()
        .patch(&name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(world.records().await[0].state, State::Pending);
    world.pass(1).await;
    assert_eq!(world.records().await[0].state, State::Running);
    let again = world.node(&world.node_names().await[0]).await;
    assert_eq!(node["metadata"]["uid"], again["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_ends_while_it_boots_never_joins() {
    let world = World::new(delayed());
    let instance = world.launch(&kwok_order("web-1")).await;
    world.pass(10).await;
    let answer = world.cloud().terminate(&instance.id).await.unwrap();
    assert_eq!(answer, Termination::Gone);
    world.pass(600).await;
    assert!(world.node_names().await.is_empty());
    assert!(world.records().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_is_not_taken_twice() {
    let world = World::new(delayed());
    let instance = world.launch(&ec2_order("web-1")).await;
    let name = world.records().await[0].node_name.clone();
    let other = json!({"metadata": {"name": name}, "spec": {"providerID": "other:///1"}});
    let other = serde_json::from_value(other).unwrap();
    world
        .nodes()
        .create(&PostParams::default(), &other)
        .await
        .unwrap();
    world.pass(60).await;
    let record = world.records().await.remove(0);
    assert_ne!(record.node_name, name);
    assert_eq!(record.state, State::Running);
    let node = world.node(&record.node_name).await;
    assert_eq!(node["spec"]["providerID"], *instance.id.0);
    assert_eq!(
        node["status"]["addresses"][0]["address"],
        record.address.unwrap()
    );
    assert_eq!(world.node(&name).await["spec"]["providerID"], "other:///1");
}

#[tokio::test(start_paused = true)]
async fn a_kwok_class_needs_types_that_exist() {
    let world = World::new(Settings::default());
    let mut order = kwok_order("web-1");
    order.types = Vec::new();
    order.requirements = Requirements::new();
    let error = world.cloud().launch(&order).await.unwrap_err();
    assert!(matches!(error, LaunchError::Other(_)), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("node.kubernetes.io/instance-type"),
        "{error}"
    );
    let mut order = kwok_order("web-2");
    order.requirements = Requirements::new();
    order.types = vec!["m99.huge".into()];
    let error = world.cloud().launch(&order).await.unwrap_err();
    assert!(error.to_string().contains("m99.huge not found"), "{error}");
}
