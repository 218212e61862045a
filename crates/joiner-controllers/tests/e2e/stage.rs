//! A cluster with an autoscaler on it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud_sim::{Settings as CloudSettings, SimulatedCloud, SimulatedKubelets};
use joiner_controllers::Settings;
use joiner_controllers::assembly::{Autoscaler, Parts};
use joiner_controllers::settings::FeatureGates;
use joiner_runtime::{Build, Clock, DecisionSettings, Decisions, Events, Metrics, resource};
use joiner_sandbox::Sandbox;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) use crate::objects::{condition, merge, n_running, since};
use crate::plane::{self, Turn};

/// Seconds that a story on a real control plane has at least for anything: a busy machine is slow.
const REAL_SECS_MIN: u64 = 120;
/// Seconds after which a story on a real control plane is given up, whatever it allows.
const REAL_SECS_MAX: u64 = 300;
/// Seconds within which claims, nodes and machines must fit together.
const AGREE_SECS_MAX: u64 = 10;
/// Between two looks at what a story waits for.
const POLL: Duration = Duration::from_millis(200);
/// Pods that are made together come within this long of each other on a real control plane, even on
/// a busy machine.
const TOGETHER: Duration = Duration::from_millis(1_500);
/// How often a busy server is asked at most.
const ASKED_MAX: usize = 6;
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How a story wants its cluster.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) cloud: CloudSettings,
    /// How fast time goes on a real control plane. Its own programs know nothing of it, so that
    /// what we write is dated later than what they write.
    pub(crate) speed: u32,
    pub(crate) dry_run: bool,
    /// Pods are planned for as soon as by default. Other stories count nodes, and pods that a real
    /// control plane makes one after the other should end up in one plan.
    pub(crate) adaptive: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            cloud: CloudSettings::default(),
            speed: 1,
            dry_run: false,
            adaptive: false,
        }
    }
}

impl Setup {
    /// With feature gates.
    pub(crate) fn gates(gates: FeatureGates) -> Self {
        let settings = Settings {
            gates,
            ..Settings::default()
        };
        Self {
            settings,
            ..Self::default()
        }
    }

    /// With pods planned for as soon as by default.
    pub(crate) fn adaptive() -> Self {
        Self {
            adaptive: true,
            ..Self::default()
        }
    }

    /// The same for a real control plane, where time goes on while others work.
    fn unhurried(mut self) -> Self {
        let batching = &mut self.settings.batching;
        if !self.adaptive {
            batching.idle = Some(TOGETHER * self.speed);
            batching.max *= self.speed;
        }
        self
    }

    /// With this speed on a real control plane.
    pub(crate) fn speed(self, speed: u32) -> Self {
        Self { speed, ..self }
    }
}

/// A cluster with an autoscaler on it.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) cloud: Arc<SimulatedCloud>,
    pub(crate) autoscaler: Arc<Autoscaler>,
    setup: Setup,
    /// The process of the autoscaler.
    process: JoinSet<()>,
    /// What outlives it.
    _cluster: JoinSet<()>,
    _sandbox: Option<Sandbox>,
    turn: Option<Turn>,
}

/// Group, version, plural and kind.
pub(crate) type What = (&'static str, &'static str, &'static str, &'static str);
pub(crate) const PODS: What = ("", "v1", "pods", "Pod");
pub(crate) const NODES: What = ("", "v1", "nodes", "Node");
pub(crate) const CONFIG_MAPS: What = ("", "v1", "configmaps", "ConfigMap");
pub(crate) const VOLUME_CLAIMS: What =
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim");
pub(crate) const TEMPLATES: What = ("", "v1", "podtemplates", "PodTemplate");
pub(crate) const EVENTS: What = ("", "v1", "events", "Event");
pub(crate) const CLAIMS: What = ("karpenter.sh", "v1", "nodeclaims", "NodeClaim");
pub(crate) const POOLS: What = ("karpenter.sh", "v1", "nodepools", "NodePool");
pub(crate) const OVERLAYS: What = ("karpenter.sh", "v1alpha1", "nodeoverlays", "NodeOverlay");
pub(crate) const BUFFERS: What = (
    "autoscaling.x-k8s.io",
    "v1beta1",
    "capacitybuffers",
    "CapacityBuffer",
);
pub(crate) const CLASSES: What = (
    "karpenter.kwok.sh",
    "v1alpha1",
    "kwoknodeclasses",
    "KWOKNodeClass",
);
pub(crate) const DEPLOYMENTS: What = ("apps", "v1", "deployments", "Deployment");
pub(crate) const DAEMON_SETS: What = ("apps", "v1", "daemonsets", "DaemonSet");
pub(crate) const STATEFUL_SETS: What = ("apps", "v1", "statefulsets", "StatefulSet");
pub(crate) const STORAGE: What = ("storage.k8s.io", "v1", "storageclasses", "StorageClass");
pub(crate) const BUDGETS: What = (
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
);

/// Runs one story on the embedded control plane, in virtual time, and on a real one, where stories
/// take turns.
macro_rules! on_both {
    ($name:ident) => {
        on_both!($name, crate::stage::Setup::default());
    };
    ($name:ident, $setup:expr) => {
        mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn embedded() {
                let mut stage = Stage::embedded($setup).await;
                super::$name(&mut stage).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn real() {
                if let Some(mut stage) = Stage::real($setup).await {
                    super::$name(&mut stage).await;
                }
            }
        }
    };
}
pub(crate) use on_both;

/// A process of the autoscaler.
fn start(
    client: &Client,
    clock: &Clock,
    setup: &Setup,
) -> (Arc<SimulatedCloud>, Arc<Autoscaler>, JoinSet<()>) {
    let mut process = JoinSet::new();
    let cloud = SimulatedCloud::new(client.clone(), clock.clone(), setup.cloud.clone());
    let cloud = Arc::new(cloud);
    process.spawn(Arc::clone(&cloud).run());
    let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
    let (events, writer) = Events::new(
        client.clone(),
        clock.clone(),
        Arc::clone(&metrics),
        setup.dry_run,
    );
    process.spawn(writer.run());
    let autoscaler = Arc::new(Autoscaler::start(Parts {
        client: client.clone(),
        cloud: Arc::clone(&cloud) as Arc<_>,
        clock: clock.clone(),
        settings: setup.settings.clone(),
        pace: (0, 0),
        dry_run: setup.dry_run,
        decisions: Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics)),
        metrics,
        events,
    }));
    let leader = Arc::clone(&autoscaler);
    process.spawn(async move { leader.lead().await });
    (cloud, autoscaler, process)
}

impl Stage {
    /// On the embedded control plane. Needs a paused runtime.
    pub(crate) async fn embedded(setup: Setup) -> Self {
        let clock = Clock::new(Timestamp::from_second(1_800_000_000).unwrap(), 1);
        let empty = joiner_sandbox::Settings {
            n_nodes: 0,
            ..joiner_sandbox::Settings::default()
        };
        let sandbox = Sandbox::start(clock.clone(), &empty).unwrap();
        let mut stage = Self::begin(sandbox.client(), clock, setup);
        stage._sandbox = Some(sandbox);
        stage
    }

    /// On a real control plane, if there is one.
    pub(crate) async fn real(setup: Setup) -> Option<Self> {
        let (client, turn) = plane::take().await?;
        let setup = setup.unhurried();
        let clock = Clock::system(setup.speed);
        let mut stage = Self::begin(client.clone(), clock.clone(), setup);
        let kubelets = SimulatedKubelets::new(client.clone(), clock, 0);
        stage._cluster.spawn(kubelets.run());
        stage._cluster.spawn(plane::provision(client));
        stage.turn = Some(turn);
        Some(stage)
    }

    fn begin(client: Client, clock: Clock, setup: Setup) -> Self {
        let (cloud, autoscaler, process) = start(&client, &clock, &setup);
        Self {
            client,
            clock,
            cloud,
            autoscaler,
            setup,
            process,
            _cluster: JoinSet::new(),
            _sandbox: None,
            turn: None,
        }
    }

    /// The autoscaler and its cloud die, whatever they were doing, and start anew.
    pub(crate) async fn restart(&mut self) {
        self.process.shutdown().await;
        let (cloud, autoscaler, process) = start(&self.client, &self.clock, &self.setup);
        (self.cloud, self.autoscaler, self.process) = (cloud, autoscaler, process);
    }

    /// True on a real control plane.
    pub(crate) fn is_real(&self) -> bool {
        self.turn.is_some()
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
        let (params, patch) = (PatchParams::apply("test").force(), Patch::Apply(&object));
        patiently(async || api.patch(&name, &params, &patch).await).await;
    }

    /// Merges something into an object of the cluster or of the default namespace.
    pub(crate) async fn patch(&self, what: What, name: &str, patch: Value) {
        let api = self.api(what, namespace_of(what));
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        patiently(async || api.patch(name, &params, &patch).await).await;
    }

    /// Merges something into the status of an object of the cluster.
    pub(crate) async fn patch_status(&self, what: What, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let (api, params) = (self.api(what, None), PatchParams::default());
        patiently(async || api.patch_status(name, &params, &patch).await).await;
    }

    /// Asks for the end of an object of the cluster or of the default namespace.
    pub(crate) async fn delete(&self, what: What, name: &str) {
        let api = self.api(what, namespace_of(what));
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, what: What) -> Vec<Value> {
        self.listed(what, &ListParams::default()).await
    }

    /// Names of all objects of a kind.
    pub(crate) async fn names(&self, what: What) -> Vec<String> {
        let all = self.list(what).await;
        let names = all.iter().map(|own| own["metadata"]["name"].as_str());
        names.map(|name| name.unwrap().to_owned()).collect()
    }

    async fn listed(&self, what: What, which: &ListParams) -> Vec<Value> {
        let api = self.api(what, None);
        let list = patiently(async || api.list(which).await).await;
        let items = list.items.into_iter();
        items
            .map(|own| serde_json::to_value(own).unwrap())
            .collect()
    }

    /// Machines of the simulated cloud.
    pub(crate) async fn machines(&self) -> Vec<Value> {
        let which = ListParams::default().labels(joiner_cloud_sim::INSTANCE_LABEL);
        self.listed(CONFIG_MAPS, &which).await
    }

    /// Waits until something holds; shows the world when it does not.
    pub(crate) async fn until(
        &self,
        what: &str,
        secs: u64,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let started = tokio::time::Instant::now();
        let limit = match self.turn {
            Some(_) => secs.clamp(REAL_SECS_MIN, REAL_SECS_MAX),
            None => secs,
        };
        while !holds(self).await {
            if started.elapsed() > Duration::from_secs(limit) {
                panic!("not within {limit} s: {what}\n{}", self.shown().await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Makes sure that something holds for a while of the autoscaler's time.
    pub(crate) async fn stays(&self, what: &str, secs: u64, holds: impl AsyncFnMut(&Self) -> bool) {
        let until = self.clock.now() + Duration::from_secs(secs);
        self.stays_until(what, until, holds).await;
    }

    /// Makes sure that something holds until some time of the autoscaler's.
    pub(crate) async fn stays_until(
        &self,
        what: &str,
        until: Timestamp,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        loop {
            let held = holds(self).await;
            // An answer that comes after the end says nothing.
            if self.clock.now() >= until {
                return;
            }
            assert!(held, "{what}\n{}", self.shown().await);
            tokio::time::sleep(POLL).await;
        }
    }

    async fn shown(&self) -> String {
        let mut text = String::new();
        for what in [POOLS, CLAIMS, NODES] {
            for own in self.list(what).await {
                let conditions = own["status"]["conditions"].clone();
                let going = &own["metadata"]["deletionTimestamp"];
                let taints = &own["spec"]["taints"];
                let name = &own["metadata"]["name"];
                text += &format!("{} {name} {going} {taints} {conditions}\n", what.3);
            }
        }
        let pods = self.list(PODS).await;
        let waiting = pods
            .iter()
            .filter(|own| own["status"]["phase"] != "Running");
        for own in waiting.take(5) {
            text += &format!("{} {}\n", own["metadata"]["name"], own["status"]);
        }
        for own in self.list(EVENTS).await.iter().rev().take(20) {
            let about = &own["involvedObject"]["name"];
            text += &format!("{about} {} {}\n", own["reason"], own["message"]);
        }
        text
    }

    /// A KWOKNodeClass and a pool that buys linux on demand and whose nodes nobody disrupts; `more`
    /// is merged into it.
    pub(crate) async fn pool(&self, name: &str, more: Value) {
        self.apply(CLASSES, json!({"metadata": {"name": "default"}}))
            .await;
        let mut pool = json!({"metadata": {"name": name}, "spec": {
            "disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}}}});
        merge(&mut pool, more);
        self.apply(POOLS, pool).await;
    }

    /// The same pool when so many pods wait: all of them are in one plan, however slowly they were made.
    pub(crate) async fn pool_for(&self, n: usize, name: &str, more: Value) {
        self.until("all pods wait", 60, async |stage| {
            let waits = |own: &&Value| condition(own, "PodScheduled") == "False Unschedulable";
            stage.list(PODS).await.iter().filter(waits).count() == n
        })
        .await;
        self.pool(name, more).await;
    }

    /// A Deployment of pods with these requests; `more` is merged into the pod's spec.
    pub(crate) async fn deployment(&self, name: &str, replicas: usize, cpu: &str, more: Value) {
        let template = json!({"spec": more});
        self.deployment_of(name, replicas, cpu, template).await;
    }

    /// A Deployment of pods with these requests; `more` is merged into the pod's template.
    pub(crate) async fn deployment_of(&self, name: &str, replicas: usize, cpu: &str, more: Value) {
        let labels = json!({"app": name});
        let mut template = json!({"metadata": {"labels": labels}, "spec": {
            "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "pause",
                "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}]}});
        merge(&mut template, more);
        let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels}, "template": template}});
        self.apply(DEPLOYMENTS, object).await;
    }

    /// Waits until this many pods run and none waits.
    pub(crate) async fn all_run(&self, n: usize, secs: u64) {
        self.until(&format!("{n} pods run"), secs, async |stage| {
            let pods = stage.list(PODS).await;
            n_running(&pods) == n && pods.len() == n
        })
        .await;
    }

    /// Waits until a claim is gone, and its Node and its machine with it.
    pub(crate) async fn gone(&self, claim: &Value, secs: u64) {
        let name = claim["metadata"]["name"].as_str().unwrap();
        let uid = claim["metadata"]["uid"].clone();
        let id = claim["status"]["providerID"].clone();
        self.until(&format!("{name} is gone"), secs, async |stage| {
            let claims = stage.list(CLAIMS).await;
            let nodes = stage.list(NODES).await;
            let machines = stage.machines().await;
            !claims.iter().any(|own| own["metadata"]["uid"] == uid)
                && !nodes.iter().any(|own| own["spec"]["providerID"] == id)
                && !machines.iter().any(|own| {
                    let text = own["data"].to_string();
                    text.contains(uid.as_str().unwrap())
                })
        })
        .await;
    }

    /// The only claim, when it is ready.
    pub(crate) async fn ready_claim(&self) -> Value {
        let mut claims = Vec::new();
        self.until("one claim is ready", 60, async |stage| {
            claims = stage.list(CLAIMS).await;
            claims.len() == 1 && condition(&claims[0], "Ready") == "True Ready"
        })
        .await;
        claims.remove(0)
    }

    /// Waits for an event with this reason whose message has this word in it.
    pub(crate) async fn told(&self, reason: &str, word: &str) {
        let text = format!("an event {reason} about {word}");
        self.until(&text, 60, async |stage| stage.is_told(reason, word).await)
            .await;
    }

    /// True when there is an event with this reason whose message has this word in it.
    pub(crate) async fn is_told(&self, reason: &str, word: &str) -> bool {
        let events = self.list(EVENTS).await;
        events.iter().any(|own| {
            let message = own["message"].as_str().unwrap_or_default();
            own["reason"] == reason && message.contains(word)
        })
    }

    /// Nodes that were planned, by the decision log.
    pub(crate) fn n_planned(&self) -> usize {
        let all = self.autoscaler.ctx().decisions.recent(&Default::default());
        let nodes = all.iter().map(|own| own.details["nodes"].as_array());
        nodes.map(|own| own.map_or(0, Vec::len)).sum()
    }

    /// Waits until claims, nodes and machines are the same in number, and fit together one by one.
    pub(crate) async fn agrees(&self) -> usize {
        let mut n = 0;
        let what = "claims, nodes and machines fit together";
        self.until(what, AGREE_SECS_MAX, async |stage| {
            let agreed = stage.agreed().await;
            n = agreed.unwrap_or_default();
            agreed.is_some()
        })
        .await;
        n
    }

    /// How many claims there are, if each has one node and one machine, and there are no others.
    async fn agreed(&self) -> Option<usize> {
        let (claims, nodes) = (self.list(CLAIMS).await, self.list(NODES).await);
        let n_machines = self.machines().await.len();
        let has_node = |claim: &Value| {
            let id = &claim["status"]["providerID"];
            let matching = nodes.iter().filter(|own| own["spec"]["providerID"] == *id);
            matching.count() == 1
        };
        let n = claims.len();
        (n == nodes.len() && n == n_machines && claims.iter().all(has_node)).then_some(n)
    }

    /// Waits until claims, nodes and machines are this many, and fit together.
    pub(crate) async fn settles(&self, n: usize, secs: u64) {
        self.settles_within(n..=n, secs).await;
    }

    /// Waits until claims, nodes and machines are about this many and fit together, and none is on its
    /// way out.
    pub(crate) async fn settles_within(&self, wanted: RangeInclusive<usize>, secs: u64) {
        self.until(&format!("{wanted:?} nodes"), secs, async |stage| {
            let is_going = |own: &Value| !own["metadata"]["deletionTimestamp"].is_null();
            let stay = !stage.list(CLAIMS).await.iter().any(is_going);
            stay && stage.agreed().await.is_some_and(|n| wanted.contains(&n))
        })
        .await;
    }
}

/// Asks again where a busy server or a cut connection was in the way.
pub(crate) async fn patiently<T>(ask: impl AsyncFn() -> kube::Result<T>) -> T {
    for _ in 1..ASKED_MAX {
        match ask().await {
            Ok(answer) => return answer,
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 409 => {
                panic!("{status:?}");
            }
            Err(error) => eprintln!("asked again: {error}"),
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
    ask().await.unwrap()
}

fn namespace_of(what: What) -> Option<&'static str> {
    let cluster = ["nodes", "persistentvolumes", "storageclasses"].contains(&what.2)
        || what.0.starts_with("karpenter");
    (!cluster).then_some("default")
}
