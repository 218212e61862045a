//! Clusters to run on: the embedded control plane as a process of its own, and a real one.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use joiner_runtime::resource;
use joiner_testkit::control_plane::ControlPlane;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::process::{joiner, place};

/// Group, version, plural and kind.
pub(crate) type What = (&'static str, &'static str, &'static str, &'static str);
pub(crate) const PODS: What = ("", "v1", "pods", "Pod");
pub(crate) const NODES: What = ("", "v1", "nodes", "Node");
pub(crate) const CONFIG_MAPS: What = ("", "v1", "configmaps", "ConfigMap");
pub(crate) const EVENTS: What = ("", "v1", "events", "Event");
pub(crate) const LEASES: What = ("coordination.k8s.io", "v1", "leases", "Lease");
pub(crate) const CLAIMS: What = ("karpenter.sh", "v1", "nodeclaims", "NodeClaim");
pub(crate) const POOLS: What = ("karpenter.sh", "v1", "nodepools", "NodePool");
pub(crate) const DEPLOYMENTS: What = ("apps", "v1", "deployments", "Deployment");
const CLASSES: What = (
    "karpenter.kwok.sh",
    "v1alpha1",
    "kwoknodeclasses",
    "KWOKNodeClass",
);

/// Seconds that anything may take at least: a busy machine is slow.
const SECS_MIN: u64 = 120;
/// Seconds after which claims, nodes and machines must fit together.
const AGREE_SECS_MAX: u64 = 300;

/// Who serves.
enum Server {
    Sandbox(Child),
    Plane(Box<ControlPlane>),
}

/// A cluster without an autoscaler; it ends when this is dropped.
pub(crate) struct Cluster {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) client: Client,
    server: Server,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Server::Sandbox(child) = &mut self.server {
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_file(&self.kubeconfig);
        }
    }
}

/// A client for a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(file, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

impl Cluster {
    /// `joiner sandbox` without nodes and without the autoscaler.
    pub(crate) async fn embedded() -> Self {
        let kubeconfig = place("kubeconfig");
        let mut command = joiner();
        command
            .args(["sandbox", "--autoscaler=false", "--nodes", "0"])
            .arg("--kubeconfig")
            .arg(&kubeconfig);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("Ctrl-C")));
        Self {
            client: client(&kubeconfig).await,
            kubeconfig,
            server: Server::Sandbox(child),
        }
    }

    /// A real control plane without our kinds, if there is one.
    pub(crate) async fn bare() -> Option<Self> {
        let Some(plane) = ControlPlane::start().unwrap() else {
            println!("skipped: there is no control plane; cargo xtask control-plane build");
            return None;
        };
        Some(Self {
            client: client(&plane.kubeconfig()).await,
            kubeconfig: plane.kubeconfig(),
            server: Server::Plane(Box::new(plane)),
        })
    }

    /// A real control plane with our kinds, if there is one.
    pub(crate) async fn real() -> Option<Self> {
        let cluster = Self::bare().await?;
        cluster.install();
        Some(cluster)
    }

    /// The real control plane.
    pub(crate) fn plane(&self) -> &ControlPlane {
        match &self.server {
            Server::Plane(plane) => plane,
            Server::Sandbox(_) => panic!("a sandbox has no kubectl"),
        }
    }

    /// Installs our kinds.
    pub(crate) fn install(&self) {
        let plane = self.plane();
        for crd in joiner_api::crds() {
            let apply = ["apply", "--server-side", "-f", "-"];
            plane.kubectl_with_input(&apply, &crd.to_string()).unwrap();
        }
        let wait = [
            "wait",
            "--for=condition=Established",
            "crd",
            "--all",
            "--timeout=30s",
        ];
        plane.kubectl(&wait).unwrap();
    }

    pub(crate) fn api(&self, what: What, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource(what.0, what.1, what.2, what.3);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Applies an object.
    pub(crate) async fn apply(&self, what: What, mut object: Value) {
        object["apiVersion"] = json!(resource(what.0, what.1, what.2, what.3).api_version);
        object["kind"] = json!(what.3);
        let meta = &object["metadata"];
        let name = meta["name"].as_str().unwrap().to_owned();
        let namespace = meta["namespace"].as_str().map(ToOwned::to_owned);
        let api = self.api(what, namespace.as_deref());
        let params = PatchParams::apply("test").force();
        let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
        applied.unwrap();
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, what: What) -> Vec<Value> {
        self.listed(what, ListParams::default()).await
    }

    /// Machines of the simulated cloud.
    pub(crate) async fn machines(&self) -> Vec<Value> {
        let params = ListParams::default().labels(joiner_cloud_sim::INSTANCE_LABEL);
        self.listed(CONFIG_MAPS, params).await
    }

    async fn listed(&self, what: What, params: ListParams) -> Vec<Value> {
        let list = self.api(what, None).list(&params).await.unwrap();
        let items = list.items.into_iter();
        items
            .map(|own| serde_json::to_value(own).unwrap())
            .collect()
    }

    /// A KWOKNodeClass and a pool that buys linux on demand, in machines of up to 16 processors.
    pub(crate) async fn pool(&self) {
        self.apply(CLASSES, json!({"metadata": {"name": "default"}}))
            .await;
        let class =
            json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
        let requirements = json!([
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]}]);
        let pool = json!({"metadata": {"name": "general"}, "spec": {
            "disruption": {"consolidateAfter": "Never"},
            "template": {"spec": {"nodeClassRef": class, "requirements": requirements}}}});
        self.apply(POOLS, pool).await;
    }

    /// A Deployment of pods with one processor each.
    pub(crate) async fn deployment(&self, name: &str, replicas: usize) {
        let resources = json!({"requests": {"cpu": "1", "memory": "256Mi"}});
        let spec = json!({"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "c", "image": "pause", "resources": resources}]});
        let labels = json!({"app": name});
        let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec}}});
        self.apply(DEPLOYMENTS, object).await;
    }

    /// Asks for the end of all objects of a kind.
    pub(crate) async fn delete_all(&self, what: What, namespace: Option<&str>) {
        let api = self.api(what, namespace);
        let (how, which) = (DeleteParams::default(), ListParams::default());
        api.delete_collection(&how, &which).await.unwrap();
    }

    /// Waits until something holds; shows the world when it does not.
    pub(crate) async fn until(
        &self,
        what: &str,
        secs: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let (start, secs) = (Instant::now(), secs.max(SECS_MIN));
        while !holds(self).await {
            if start.elapsed() > Duration::from_secs(secs) {
                panic!("not within {secs} s: {what}\n{}", self.shown().await);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn shown(&self) -> String {
        let mut text = String::new();
        for what in [POOLS, CLAIMS, NODES] {
            for own in self.list(what).await.iter().take(10) {
                let (meta, conditions) = (&own["metadata"], &own["status"]["conditions"]);
                let held = &meta["finalizers"];
                text += &format!("{} {} held by {held}, {conditions}\n", what.3, meta["name"]);
            }
        }
        for own in self.machines().await.iter().take(10) {
            text += &format!(
                "machine {} of {}\n",
                own["metadata"]["name"],
                record(own)["claim"]
            );
        }
        let pods = self.list(PODS).await;
        let waiting = pods.iter().filter(|own| !is_running(own));
        for own in waiting.take(5) {
            text += &format!("{} {}\n", own["metadata"]["name"], own["status"]);
        }
        text
    }

    /// Waits until this many pods run and none waits.
    pub(crate) async fn all_run(&self, n: usize, secs: u64) {
        self.until(&format!("{n} pods run"), secs, async |cluster| {
            let pods = cluster.list(PODS).await;
            pods.len() == n && pods.iter().all(is_running)
        })
        .await;
    }

    /// Waits until every claim has one machine and one node, and there are no others. Returns how many.
    pub(crate) async fn agrees(&self) -> usize {
        let mut n = 0;
        let what = "claims, nodes and machines fit together";
        self.until(what, AGREE_SECS_MAX, async |cluster| {
            let agreed = cluster.agreed().await;
            n = agreed.unwrap_or_default();
            agreed.is_some()
        })
        .await;
        n
    }

    /// How many machines there are, if each has one claim and one node, and there are no others.
    async fn agreed(&self) -> Option<usize> {
        let (claims, nodes) = (self.list(CLAIMS).await, self.list(NODES).await);
        let records: Vec<Value> = self.machines().await.iter().map(record).collect();
        let all = |values: &[Value], of: &dyn Fn(&Value) -> Value| {
            let mut all: Vec<String> = values.iter().map(|v| of(v).to_string()).collect();
            all.sort();
            all
        };
        let machines = all(&records, &|own| own["providerID"].clone());
        let agree = all(&claims, &|own| own["metadata"]["uid"].clone())
            == all(&records, &|own| own["claimUid"].clone())
            && all(&claims, &|own| own["status"]["providerID"].clone()) == machines
            && all(&nodes, &|own| own["spec"]["providerID"].clone()) == machines;
        agree.then_some(machines.len())
    }
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

/// What a ConfigMap says of its machine.
fn record(map: &Value) -> Value {
    let texts = map["data"].as_object().unwrap().values();
    let read = texts.filter_map(|text| serde_json::from_str::<Value>(text.as_str()?).ok());
    let mut records = read.filter(|record| record["claimUid"].is_string());
    records
        .next()
        .expect("the ConfigMap of a machine says which")
}
