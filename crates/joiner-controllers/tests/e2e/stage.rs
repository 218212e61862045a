//! A cluster with an autoscaler on it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud_sim::{Settings as CloudSettings, SimulatedCloud, SimulatedKubelets};
use joiner_controllers::Settings;
use joiner_controllers::assembly::{Autoscaler, Parts};
use joiner_runtime::{Build, Clock, DecisionSettings, Decisions, Events, Metrics, resource};
use joiner_sandbox::Sandbox;
use joiner_testkit::control_plane::ControlPlane;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A cluster with an autoscaler on it.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) cloud: Arc<SimulatedCloud>,
    pub(crate) autoscaler: Arc<Autoscaler>,
    _tasks: JoinSet<()>,
    _sandbox: Option<Sandbox>,
    _plane: Option<ControlPlane>,
}

/// Group, version, plural and kind.
pub(crate) type What = (&'static str, &'static str, &'static str, &'static str);
pub(crate) const PODS: What = ("", "v1", "pods", "Pod");
pub(crate) const NODES: What = ("", "v1", "nodes", "Node");
pub(crate) const CONFIG_MAPS: What = ("", "v1", "configmaps", "ConfigMap");
pub(crate) const CLAIMS: What = ("karpenter.sh", "v1", "nodeclaims", "NodeClaim");
pub(crate) const POOLS: What = ("karpenter.sh", "v1", "nodepools", "NodePool");
pub(crate) const CLASSES: What = (
    "karpenter.kwok.sh",
    "v1alpha1",
    "kwoknodeclasses",
    "KWOKNodeClass",
);
pub(crate) const DEPLOYMENTS: What = ("apps", "v1", "deployments", "Deployment");

impl Stage {
    /// On the embedded control plane. Needs a paused runtime.
    pub(crate) async fn embedded(settings: Settings) -> Self {
        let clock = Clock::new(Timestamp::from_second(1_800_000_000).unwrap(), 1);
        let empty = joiner_sandbox::Settings {
            n_nodes: 0,
            ..joiner_sandbox::Settings::default()
        };
        let sandbox = Sandbox::start(clock.clone(), &empty).unwrap();
        let mut stage = Self::begin(sandbox.client(), clock, false, settings);
        stage._sandbox = Some(sandbox);
        stage
    }

    /// On a real control plane, if there is one.
    pub(crate) async fn real(settings: Settings) -> Option<Self> {
        let plane = ControlPlane::start().unwrap()?;
        for crd in joiner_api::crds() {
            let text = crd.to_string();
            plane
                .kubectl_with_input(&["apply", "--server-side", "-f", "-"], &text)
                .unwrap();
        }
        plane
            .kubectl(&[
                "wait",
                "--for=condition=Established",
                "crd",
                "--all",
                "--timeout=30s",
            ])
            .unwrap();
        let file = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options)
            .await
            .unwrap();
        let client = Client::try_from(config).unwrap();
        let mut stage = Self::begin(client, Clock::system(1), true, settings);
        stage._plane = Some(plane);
        Some(stage)
    }

    fn begin(client: Client, clock: Clock, kubelets: bool, settings: Settings) -> Self {
        let mut tasks = JoinSet::new();
        let cloud = SimulatedCloud::new(client.clone(), clock.clone(), CloudSettings::default());
        let cloud = Arc::new(cloud);
        tasks.spawn(Arc::clone(&cloud).run());
        if kubelets {
            tasks.spawn(SimulatedKubelets::new(client.clone(), clock.clone(), 0).run());
        }
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        let (events, writer) =
            Events::new(client.clone(), clock.clone(), Arc::clone(&metrics), false);
        tasks.spawn(writer.run());
        let autoscaler = Arc::new(Autoscaler::start(Parts {
            client: client.clone(),
            cloud: Arc::clone(&cloud) as Arc<_>,
            clock: clock.clone(),
            settings,
            pace: (0, 0),
            dry_run: false,
            decisions: Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics)),
            metrics,
            events,
        }));
        let leader = Arc::clone(&autoscaler);
        tasks.spawn(async move { leader.lead().await });
        Self {
            client,
            clock,
            cloud,
            autoscaler,
            _tasks: tasks,
            _sandbox: None,
            _plane: None,
        }
    }

    pub(crate) fn api(&self, what: What, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource(what.0, what.1, what.2, what.3);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Applies an object.
    pub(crate) async fn apply(&self, what: What, object: Value) {
        let mut object = object;
        let api_version = match what.0 {
            "" => what.1.to_owned(),
            group => format!("{group}/{}", what.1),
        };
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(what.3);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .map(ToOwned::to_owned);
        let api = self.api(what, namespace.as_deref());
        let params = PatchParams::apply("test").force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, what: What) -> Vec<Value> {
        let list = self
            .api(what, None)
            .list(&ListParams::default())
            .await
            .unwrap();
        let items = list.items.into_iter();
        items
            .map(|own| serde_json::to_value(own).unwrap())
            .collect()
    }

    /// Machines of the simulated cloud.
    pub(crate) async fn machines(&self) -> Vec<Value> {
        let params = ListParams::default().labels(joiner_cloud_sim::INSTANCE_LABEL);
        let list = self.api(CONFIG_MAPS, None).list(&params).await.unwrap();
        let items = list.items.into_iter();
        items
            .map(|own| serde_json::to_value(own).unwrap())
            .collect()
    }

    /// Waits until something holds; shows the world when it does not.
    pub(crate) async fn until(
        &self,
        what: &str,
        secs: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let deadline = self.clock.now() + Duration::from_secs(secs);
        while !holds(self).await {
            if self.clock.now() > deadline {
                panic!("not within {secs} s: {what}\n{}", self.shown().await);
            }
            self.clock.sleep(Duration::from_millis(200)).await;
        }
    }

    async fn shown(&self) -> String {
        let mut text = String::new();
        for what in [POOLS, CLAIMS, NODES] {
            for own in self.list(what).await {
                let conditions = own["status"]["conditions"].clone();
                text += &format!("{} {} {conditions}\n", what.3, own["metadata"]["name"]);
            }
        }
        let pods = self.list(PODS).await;
        let waiting = pods
            .iter()
            .filter(|own| own["status"]["phase"] != "Running");
        for own in waiting.take(5) {
            text += &format!("{} {}\n", own["metadata"]["name"], own["status"]);
        }
        text
    }

    /// A KWOKNodeClass and a pool that buys linux on demand; `more` is merged into its spec.
    pub(crate) async fn pool(&self, name: &str, more: Value) {
        self.apply(CLASSES, json!({"metadata": {"name": "default"}}))
            .await;
        let mut pool = json!({"metadata": {"name": name}, "spec": {
            "disruption": {"consolidateAfter": "Never"},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}}}});
        merge(&mut pool, more);
        self.apply(POOLS, pool).await;
    }

    /// A Deployment of pods with these requests; `more` is merged into the pod's spec.
    pub(crate) async fn deployment(&self, name: &str, replicas: usize, cpu: &str, more: Value) {
        let mut spec = json!({"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}]});
        merge(&mut spec, more);
        let labels = json!({"app": name});
        let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec}}});
        self.apply(DEPLOYMENTS, object).await;
    }

    /// Waits until this many pods run and none waits.
    pub(crate) async fn all_run(&self, n: usize, secs: u64) {
        self.until(&format!("{n} pods run"), secs, async |stage| {
            let pods = stage.list(PODS).await;
            let running = pods
                .iter()
                .filter(|own| own["status"]["phase"] == "Running")
                .count();
            running == n && pods.len() == n
        })
        .await;
    }

    /// Claims, nodes and machines are the same in number, and fit together one by one.
    pub(crate) async fn agrees(&self) -> usize {
        let (claims, nodes) = (self.list(CLAIMS).await, self.list(NODES).await);
        let machines = self.machines().await;
        assert_eq!(claims.len(), nodes.len(), "claims and nodes");
        assert_eq!(claims.len(), machines.len(), "claims and machines");
        for claim in &claims {
            let id = &claim["status"]["providerID"];
            let matching = nodes.iter().filter(|own| own["spec"]["providerID"] == *id);
            assert_eq!(matching.count(), 1, "nodes of {id}");
        }
        claims.len()
    }
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}
