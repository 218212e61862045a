//! Where machines are kept, and how those of older versions get there.

use http::{Method, Request, Response};
use joiner_cloud::{Cloud, ProviderId};
use joiner_cloud_sim::{INSTANCE_LABEL, Settings};
use joiner_sim::{Crash, Network, Trouble};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::json;

use crate::sandbox::support::{World, ec2_order, kwok_order};

/// Writes of a takeover in which the process dies at each.
const WRITES_MAX: u64 = 6;

/// What the cloud says of a machine.
#[derive(Debug, PartialEq)]
struct Machine {
    id: ProviderId,
    all: String,
}

/// Six machines that an older version launched, and nobody who looks after them.
async fn aged() -> (World, Vec<Machine>) {
    aged_for(&["web-1", "web-2", "web-3"]).await
}

/// Two machines for each of these.
async fn aged_for(claims: &[&str]) -> (World, Vec<Machine>) {
    let world = World::new(Settings::default());
    for claim in claims {
        world.launch(&kwok_order(claim)).await;
        world.launch(&ec2_order(&format!("{claim}-ec2"))).await;
    }
    world.pass(30).await;
    let instances = sorted(&world).await;
    assert_eq!(instances.len(), 2 * claims.len());
    world.stop();
    for map in world.maps().list(&ListParams::default()).await.unwrap() {
        let name = map.metadata.name.clone().unwrap();
        if map.metadata.labels.is_some() {
            let old = ConfigMap {
                metadata: ObjectMeta {
                    name: Some(name.clone()),
                    labels: map.metadata.labels.clone(),
                    ..ObjectMeta::default()
                },
                ..map
            };
            let how = PostParams::default();
            world.told().create(&how, &old).await.unwrap();
        }
        let how = DeleteParams::default();
        world.maps().delete(&name, &how).await.unwrap();
    }
    assert_eq!(n_old(&world).await, instances.len());
    (world, instances)
}

/// All machines that the cloud tells of.
async fn sorted(world: &World) -> Vec<Machine> {
    let instances = world.cloud().instances().await.unwrap().into_iter();
    let machine = |own: joiner_cloud::Instance| Machine {
        all: format!("{own:?}"),
        id: own.id,
    };
    let mut machines: Vec<Machine> = instances.map(machine).collect();
    machines.sort_by(|a, b| a.all.cmp(&b.all));
    machines
}

/// Machines where older versions kept them.
async fn n_old(world: &World) -> usize {
    let how = ListParams::default().labels(INSTANCE_LABEL);
    world.told().list(&how).await.unwrap().items.len()
}

/// A line to the API server for somebody who may not do some things.
fn limited(client: Client, refuses: fn(&Method, &str) -> bool) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let path = request.uri().path_and_query().unwrap().as_str().to_owned();
            if !refuses(request.method(), &path) {
                return client.send(request).await;
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": format!("{path} is forbidden"), "reason": "Forbidden", "code": 403});
            let body = Body::from(status.to_string().into_bytes());
            let answer = Response::builder().status(403).body(body);
            Ok(answer.unwrap())
        }
    });
    Client::new(service, "default")
}

/// What the chart does not allow.
fn beyond_the_chart(method: &Method, path: &str) -> bool {
    path.starts_with("/api/v1/namespaces/kube-system/configmaps")
        && !path.contains("joiner-simulated-cloud")
        || method == Method::POST && path.starts_with("/api/v1/namespaces?")
}

#[tokio::test(start_paused = true)]
async fn machines_have_a_namespace_of_their_own() {
    let world = World::new(Settings::default());
    world.launch(&kwok_order("web-1")).await;
    assert_eq!(world.machines().await.len(), 1);
    assert_eq!(n_old(&world).await, 0);
    // Whoever deletes the namespace deletes the machines, and the next ones make it anew.
    let namespaces: Api<Namespace> = Api::all(world.client());
    let how = DeleteParams::default();
    namespaces.delete("joiner-machines", &how).await.unwrap();
    world.pass(30).await;
    assert!(world.node_names().await.is_empty());
    let mut launched = world.cloud().launch(&kwok_order("web-2")).await;
    if launched.is_err() {
        launched = world.cloud().launch(&kwok_order("web-2")).await;
    }
    launched.unwrap();
    world.pass(30).await;
    assert_eq!(world.node_names().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn machines_of_older_versions_are_taken_over_once() {
    let (world, instances) = aged().await;
    let nodes = world.node_names().await;
    // Also those who only look see them, before anybody takes them over.
    world.crash();
    world.stop();
    assert_eq!(sorted(&world).await, instances);
    world.crash();
    world.pass(30).await;
    assert_eq!(n_old(&world).await, 0);
    assert_eq!(world.machines().await.len(), 6);
    assert_eq!(sorted(&world).await, instances);
    assert_eq!(world.node_names().await, nodes);
    for own in &instances {
        world.cloud().terminate(&own.id).await.unwrap();
    }
    world.crash();
    world.pass(60).await;
    assert!(world.cloud().instances().await.unwrap().is_empty());
    assert!(world.node_names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_machine_can_be_ended_before_it_is_taken_over() {
    let (world, instances) = aged().await;
    world.crash();
    world.stop();
    world.cloud().terminate(&instances[0].id).await.unwrap();
    world.crash();
    world.pass(60).await;
    let left = sorted(&world).await;
    assert_eq!(left, instances[1..]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_takeover_does_not_matter() {
    for write in 1..=WRITES_MAX {
        for after in [false, true] {
            let (world, instances) = aged_for(&["web-1"]).await;
            let (client, network) = Network::to(world.client(), 0);
            network.set(Trouble {
                crash: Some(Crash { write, after }),
                ..Trouble::default()
            });
            world.begin(client);
            world.pass(5).await;
            world.crash();
            world.pass(5).await;
            assert_eq!(sorted(&world).await, instances, "{write} {after}");
            assert_eq!(n_old(&world).await, 0, "{write} {after}");
            let nodes = world.node_names().await;
            assert_eq!(nodes.len(), instances.len(), "{write} {after}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_not_taken_for_nothing() {
    let (world, instances) = aged().await;
    world.begin(limited(world.client(), beyond_the_chart));
    world.pass(60).await;
    assert_eq!(
        world.node_names().await.len(),
        6,
        "none is taken for left over"
    );
    let error = world
        .cloud()
        .launch(&kwok_order("web-9"))
        .await
        .unwrap_err();
    let words = error.to_string();
    assert!(words.contains("ConfigMaps of kube-system"), "{words}");
    assert!(words.contains("simulatedCloud.takeOver"), "{words}");
    world.crash();
    world.pass(30).await;
    assert_eq!(sorted(&world).await, instances);
    // From then on the rights of the chart are enough.
    world.begin(limited(world.client(), beyond_the_chart));
    world.pass(30).await;
    world.launch(&kwok_order("web-9")).await;
    assert_eq!(sorted(&world).await.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_charts_rights_are_enough_for_a_fresh_start() {
    let world = World::new(Settings::default());
    world.begin(limited(world.client(), beyond_the_chart));
    let error = world
        .cloud()
        .launch(&kwok_order("web-1"))
        .await
        .unwrap_err();
    let remedy = "kubectl create namespace joiner-machines";
    assert!(error.to_string().contains(remedy), "{error}");
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some("joiner-machines".to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(world.client());
    let how = PostParams::default();
    namespaces.create(&how, &namespace).await.unwrap();
    world.pass(30).await;
    world.launch(&kwok_order("web-1")).await;
    world.pass(30).await;
    assert_eq!(world.node_names().await.len(), 1);
}
