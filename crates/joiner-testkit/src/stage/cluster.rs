//! A cluster as tests see it: objects go in, and outcomes are waited for.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::Timestamp;
use joiner_runtime::Clock;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::kinds::{
    CLAIMS, CLASSES, CONFIG_MAPS, DEPLOYMENTS, EC2_CLASSES, EVENTS, NODES, PODS, POOLS, What,
    namespace_of, resource_of,
};
use super::objects::{condition, merge, n_running, record};

/// Between two looks at what a test waits for.
const POLL: Duration = Duration::from_millis(200);
/// How often a busy server is asked at most.
const ASKED_MAX: usize = 6;
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How long tests wait for what they expect.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Seconds that anything has at least: a busy machine is slow.
    secs_min: u64,
    /// Seconds after which anything is given up.
    secs_max: u64,
    /// Seconds within which claims, nodes and machines must fit together.
    agree_secs_max: u64,
}

impl Patience {
    /// In virtual time things take exactly as long as they take.
    pub const VIRTUAL: Self = Self {
        secs_min: 0,
        secs_max: u64::MAX,
        agree_secs_max: 10,
    };
    /// In real time a busy machine is slow.
    pub const REAL: Self = Self {
        secs_min: 120,
        secs_max: 480,
        agree_secs_max: 300,
    };

    fn secs(self, secs: u64) -> u64 {
        secs.clamp(self.secs_min, self.secs_max)
    }
}

/// A cluster as tests see it.
#[derive(Clone)]
pub struct Cluster {
    /// A client of somebody who may do anything.
    pub client: Client,
    /// The clock of the autoscaler.
    pub clock: Clock,
    /// How long tests wait.
    pub patience: Patience,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// A client of a kind: of a namespace, or of all.
    #[must_use]
    pub fn api(&self, what: What, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource_of(what);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Applies an object.
    pub async fn apply(&self, what: What, object: Value) {
        let mut object = object;
        object["apiVersion"] = json!(resource_of(what).api_version);
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
    pub async fn patch(&self, what: What, name: &str, patch: Value) {
        let api = self.api(what, namespace_of(what));
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        patiently(async || api.patch(name, &params, &patch).await).await;
    }

    /// Merges something into the status of an object of the cluster.
    pub async fn patch_status(&self, what: What, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let (api, params) = (self.api(what, None), PatchParams::default());
        patiently(async || api.patch_status(name, &params, &patch).await).await;
    }

    /// Asks for the end of an object of the cluster or of the default namespace.
    pub async fn delete(&self, what: What, name: &str) {
        let api = self.api(what, namespace_of(what));
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Asks for the end of all objects of a kind.
    pub async fn delete_all(&self, what: What, namespace: Option<&str>) {
        let api = self.api(what, namespace);
        let (how, which) = (DeleteParams::default(), ListParams::default());
        api.delete_collection(&how, &which).await.unwrap();
    }

    /// All objects of a kind.
    pub async fn list(&self, what: What) -> Vec<Value> {
        self.listed(what, &ListParams::default()).await
    }

    /// Names of all objects of a kind.
    pub async fn names(&self, what: What) -> Vec<String> {
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
    pub async fn machines(&self) -> Vec<Value> {
        let which = ListParams::default().labels(joiner_cloud_sim::INSTANCE_LABEL);
        self.listed(CONFIG_MAPS, &which).await
    }

    /// Waits until something holds; shows the world when it does not.
    pub async fn until(&self, what: &str, secs: u64, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let started = tokio::time::Instant::now();
        let limit = self.patience.secs(secs);
        while !holds(self).await {
            if started.elapsed() > Duration::from_secs(limit) {
                panic!("not within {limit} s: {what}\n{}", self.shown().await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Makes sure that something holds for a while of the autoscaler's time.
    pub async fn stays(&self, what: &str, secs: u64, holds: impl AsyncFnMut(&Self) -> bool) {
        let until = self.clock.now() + Duration::from_secs(secs);
        self.stays_until(what, until, holds).await;
    }

    /// Makes sure that something holds until some time of the autoscaler's.
    pub async fn stays_until(
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
    pub async fn pool(&self, name: &str, more: Value) {
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

    /// An EC2NodeClass `default` and the same pool of it; `spec` is merged into that of the class.
    pub async fn ec2_pool(&self, name: &str, spec: Value) {
        self.ec2_class(spec).await;
        let class =
            json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
        let more = json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}});
        self.pool(name, more).await;
    }

    /// An EC2NodeClass `default`; `spec` is merged into its own.
    pub async fn ec2_class(&self, spec: Value) {
        let tags = json!([{"tags": {"karpenter.sh/discovery": "shop"}}]);
        let mut class = json!({"metadata": {"name": "default"}, "spec": {"role": "nodes",
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": tags, "securityGroupSelectorTerms": tags}});
        merge(&mut class, json!({"spec": spec}));
        self.apply(EC2_CLASSES, class).await;
    }

    /// The same pool when so many pods wait: all of them are in one plan, however slowly they were made.
    pub async fn pool_for(&self, n: usize, name: &str, more: Value) {
        self.until("all pods wait", 60, async |cluster| {
            let waits = |own: &&Value| condition(own, "PodScheduled") == "False Unschedulable";
            cluster.list(PODS).await.iter().filter(waits).count() == n
        })
        .await;
        self.pool(name, more).await;
    }

    /// A Deployment of pods with these requests; `more` is merged into the pod's spec.
    pub async fn deployment(&self, name: &str, replicas: usize, cpu: &str, more: Value) {
        let template = json!({"spec": more});
        self.deployment_of(name, replicas, cpu, template).await;
    }

    /// A Deployment of pods with these requests; `more` is merged into the pod's template.
    pub async fn deployment_of(&self, name: &str, replicas: usize, cpu: &str, more: Value) {
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
    pub async fn all_run(&self, n: usize, secs: u64) {
        self.until(&format!("{n} pods run"), secs, async |cluster| {
            let pods = cluster.list(PODS).await;
            n_running(&pods) == n && pods.len() == n
        })
        .await;
    }

    /// Waits until a claim is gone, and its Node and its machine with it.
    pub async fn gone(&self, claim: &Value, secs: u64) {
        let name = claim["metadata"]["name"].as_str().unwrap();
        let uid = claim["metadata"]["uid"].clone();
        let id = claim["status"]["providerID"].clone();
        self.until(&format!("{name} is gone"), secs, async |cluster| {
            let claims = cluster.list(CLAIMS).await;
            let nodes = cluster.list(NODES).await;
            let machines = cluster.machines().await;
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
    pub async fn ready_claim(&self) -> Value {
        let mut claims = Vec::new();
        self.until("one claim is ready", 60, async |cluster| {
            claims = cluster.list(CLAIMS).await;
            claims.len() == 1 && condition(&claims[0], "Ready") == "True Ready"
        })
        .await;
        claims.remove(0)
    }

    /// Waits for an event with this reason whose message has this word in it.
    pub async fn told(&self, reason: &str, word: &str) {
        let text = format!("an event {reason} about {word}");
        self.until(&text, 60, async |cluster| {
            cluster.is_told(reason, word).await
        })
        .await;
    }

    /// True when there is an event with this reason whose message has this word in it.
    pub async fn is_told(&self, reason: &str, word: &str) -> bool {
        let events = self.list(EVENTS).await;
        events.iter().any(|own| {
            let message = own["message"].as_str().unwrap_or_default();
            own["reason"] == reason && message.contains(word)
        })
    }

    /// Waits until every claim has one node and one machine, and there are no others. Returns how many.
    pub async fn agrees(&self) -> usize {
        self.agrees_within(self.patience.agree_secs_max).await
    }

    /// The same, where it may take longer.
    pub async fn agrees_within(&self, secs: u64) -> usize {
        let mut n = 0;
        let what = "claims, nodes and machines fit together";
        self.until(what, secs, async |cluster| {
            let agreed = cluster.agreed().await;
            n = agreed.unwrap_or_default();
            agreed.is_some()
        })
        .await;
        n
    }

    /// How many claims there are, if each has one node and one machine, and there are no others.
    async fn agreed(&self) -> Option<usize> {
        let (claims, nodes) = (self.list(CLAIMS).await, self.list(NODES).await);
        let records: Vec<Value> = self.machines().await.iter().map(record).collect();
        let all = |objects: &[Value], of: &dyn Fn(&Value) -> Value| {
            let mut all: Vec<String> = objects
                .iter()
                .map(|object| of(object).to_string())
                .collect();
            all.sort();
            all
        };
        let machines = all(&records, &|record| record["providerID"].clone());
        let agree = all(&claims, &|claim| claim["metadata"]["uid"].clone())
            == all(&records, &|record| record["claimUid"].clone())
            && all(&claims, &|claim| claim["status"]["providerID"].clone()) == machines
            && all(&nodes, &|node| node["spec"]["providerID"].clone()) == machines;
        agree.then_some(machines.len())
    }

    /// Waits until claims, nodes and machines are this many, and fit together.
    pub async fn settles(&self, n: usize, secs: u64) {
        self.settles_within(n..=n, secs).await;
    }

    /// Waits until claims, nodes and machines are about this many and fit together, and none is on its
    /// way out.
    pub async fn settles_within(&self, wanted: RangeInclusive<usize>, secs: u64) {
        self.until(&format!("{wanted:?} nodes"), secs, async |cluster| {
            let is_going = |own: &Value| !own["metadata"]["deletionTimestamp"].is_null();
            let stay = !cluster.list(CLAIMS).await.iter().any(is_going);
            stay && cluster.agreed().await.is_some_and(|n| wanted.contains(&n))
        })
        .await;
    }
}

/// Asks again where a busy server or a cut connection was in the way.
pub async fn patiently<T>(ask: impl AsyncFn() -> kube::Result<T>) -> T {
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
