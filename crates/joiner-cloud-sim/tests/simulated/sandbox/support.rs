//! A cluster with a simulated cloud.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud::{Cloud, Instance, NodeClass, Order};
use joiner_cloud_sim::{Record, Settings, SimulatedCloud};
use joiner_model::{Labels, Name, Requirement, ResourceName, Resources, keys};
use joiner_runtime::Clock;
use joiner_sandbox::Sandbox;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A sandbox without nodes, and a cloud on it.
pub(crate) struct World {
    sandbox: Sandbox,
    pub(crate) clock: Clock,
    settings: Settings,
    running: Mutex<(Arc<SimulatedCloud>, JoinHandle<()>)>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.lock().unwrap().1.abort();
    }
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let clock = Clock::new(Timestamp::from_second(1_000_000).unwrap(), 1);
        let empty = joiner_sandbox::Settings {
            n_nodes: 0,
            ..joiner_sandbox::Settings::default()
        };
        let sandbox = Sandbox::start(clock.clone(), &empty).unwrap();
        let running = start(sandbox.client(), &clock, &settings);
        Self {
            sandbox,
            clock,
            settings,
            running: Mutex::new(running),
        }
    }

    pub(crate) fn cloud(&self) -> Arc<SimulatedCloud> {
        Arc::clone(&self.running.lock().unwrap().0)
    }

    /// Everything in memory is lost.
    pub(crate) fn crash(&self) {
        self.begin(self.client());
    }

    /// It ends, and none takes its place.
    pub(crate) fn stop(&self) {
        self.running.lock().unwrap().1.abort();
    }

    /// Another one starts, with this line to the API server.
    pub(crate) fn begin(&self, client: kube::Client) {
        self.stop();
        *self.running.lock().unwrap() = start(client, &self.clock, &self.settings);
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.sandbox.client()
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client())
    }

    /// ConfigMaps where machines are.
    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), "joiner-machines")
    }

    /// ConfigMaps of the controller's namespace.
    pub(crate) fn told(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client(), "kube-system")
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn launch(&self, order: &Order) -> Instance {
        self.cloud().launch(order).await.unwrap()
    }

    /// ConfigMaps of machines.
    pub(crate) async fn machines(&self) -> Vec<ConfigMap> {
        let how = ListParams::default().labels("joiner.dev/simulated-instance=true");
        self.maps().list(&how).await.unwrap().items
    }

    pub(crate) async fn records(&self) -> Vec<Record> {
        let read = |map: ConfigMap| serde_json::from_str(&map.data.unwrap()["instance"]).unwrap();
        self.machines().await.into_iter().map(read).collect()
    }

    pub(crate) async fn node_names(&self) -> Vec<String> {
        let all = self.nodes().list(&ListParams::default()).await.unwrap();
        let names = all.items.into_iter().filter_map(|node| node.metadata.name);
        names.collect()
    }

    /// A Node as JSON; null if it is not there.
    pub(crate) async fn node(&self, name: &str) -> Value {
        let node = self.nodes().get_opt(name).await.unwrap();
        node.map_or(Value::Null, |node| serde_json::to_value(node).unwrap())
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) {
        let how = PatchParams::default();
        let patch = Patch::Merge(&patch);
        self.nodes().patch(name, &how, &patch).await.unwrap();
    }

    /// Switches faults on a running cloud, as people do.
    pub(crate) async fn write_faults(&self, text: &str) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "joiner-simulated-cloud"}, "data": {"faults": text}});
        let how = PatchParams::apply("people").force();
        let patch = Patch::Apply(&map);
        let name = "joiner-simulated-cloud";
        self.told().patch(name, &how, &patch).await.unwrap();
        self.pass(1).await;
    }
}

fn start(
    client: kube::Client,
    clock: &Clock,
    settings: &Settings,
) -> (Arc<SimulatedCloud>, JoinHandle<()>) {
    let cloud = SimulatedCloud::new(client, clock.clone(), settings.clone());
    let cloud = Arc::new(cloud);
    let task = tokio::spawn(Arc::clone(&cloud).run());
    (cloud, task)
}

pub(crate) fn kwok_class(object: Value) -> NodeClass {
    NodeClass {
        group: "karpenter.kwok.sh".into(),
        kind: "KWOKNodeClass".into(),
        name: "default".into(),
        object: Arc::new(object),
    }
}

pub(crate) fn ec2_class() -> NodeClass {
    NodeClass {
        group: "karpenter.k8s.aws".into(),
        kind: "EC2NodeClass".into(),
        name: "default".into(),
        object: Arc::new(json!({"spec": {
            "role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}],
            "securityGroupSelectorTerms": [{"id": "sg-1"}],
        }})),
    }
}

/// One machine of a KWOKNodeClass, on spot capacity.
pub(crate) fn kwok_order(claim: &str) -> Order {
    order(claim, kwok_class(json!({})), "c-4x-amd64-linux")
}

/// One machine of an EC2NodeClass, on spot capacity.
pub(crate) fn ec2_order(claim: &str) -> Order {
    order(claim, ec2_class(), "m5.large")
}

pub(crate) fn order(claim: &str, class: NodeClass, ty: &str) -> Order {
    let requirements = [
        Requirement::is(keys::INSTANCE_TYPE, ty.into()),
        Requirement::is(keys::CAPACITY_TYPE, "spot".into()),
    ];
    Order {
        claim: claim.into(),
        claim_uid: format!("0e0c2f86-0000-4000-8000-{claim}").into(),
        pool: Some("default".into()),
        requirements: requirements.into_iter().collect(),
        types: vec![ty.into()],
        requests: Resources::new().with(ResourceName::Cpu, 100),
        labels: Labels::from([(keys::NODE_POOL.into(), Name::from("default"))]),
        class: Some(class),
    }
}
