//! Drifts under watch: every node of a cluster is replaced, and observers see whether a promise is
//! broken meanwhile: what must be available is, and no more nodes go at once than may.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use joiner_api::labels::ours::COMMAND;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::cluster::Cluster;
use super::kinds::{BUDGETS, CLAIMS, DEPLOYMENTS, NODES, PODS, POOLS};

/// Nodes, and pods of each workload.
const N: usize = 50;
/// Percent of the nodes that may go at once.
const BUDGET_PERCENT: usize = 20;
/// Workloads, and how many of their pods must be there.
const WORKLOADS: [(&str, usize); 2] = [("web", 44), ("api", 40)];
/// All nodes are new by then.
const DRIFT_SECS: u64 = 400;

/// What observers know, and what they found wrong.
#[derive(Debug, Default)]
struct Seen {
    /// Pods that are ready and not going, by uid, with their workload.
    ready: BTreeMap<String, String>,
    /// Nodes that are going or about to.
    nodes_going: BTreeSet<String>,
    /// Claims that are going or about to, by uid, and the node of each.
    claims_going: BTreeMap<String, String>,
    claims: BTreeSet<String>,
    /// From here on promises count.
    watching: bool,
    least: BTreeMap<String, usize>,
    most_going: usize,
    wrong: Vec<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Seen {
    fn pod(&mut self, pod: &Value, there: bool) {
        let (uid, app) = (
            text(&pod["metadata"]["uid"]),
            text(&pod["metadata"]["labels"]["app"]),
        );
        let conditions = pod["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.any(|own| own["type"] == "Ready" && own["status"] == "True");
        if there && ready && pod["metadata"]["deletionTimestamp"].is_null() {
            self.ready.insert(uid, app);
            return;
        }
        self.ready.remove(&uid);
        if !self.watching {
            return;
        }
        for (name, wanted) in WORKLOADS {
            let n = self.ready.values().filter(|own| *own == name).count();
            let least = self.least.entry(name.to_owned()).or_insert(n);
            *least = (*least).min(n);
            if n < wanted {
                let pod = &pod["metadata"]["name"];
                self.wrong
                    .push(format!("{n} of {name} after {pod}, not {wanted}"));
            }
        }
    }

    fn node(&mut self, node: &Value, there: bool) {
        let name = text(&node["metadata"]["name"]);
        let taints = node["spec"]["taints"].as_array();
        let mut taints = taints.into_iter().flatten();
        let marked = taints.any(|own| own["key"] == "karpenter.sh/disrupted");
        if there && (marked || !node["metadata"]["deletionTimestamp"].is_null()) {
            self.nodes_going.insert(name);
        } else {
            self.nodes_going.remove(&name);
        }
        self.count();
    }

    fn claim(&mut self, claim: &Value, there: bool) {
        let meta = &claim["metadata"];
        let uid = text(&meta["uid"]);
        let going = !meta["deletionTimestamp"].is_null() || !meta["annotations"][COMMAND].is_null();
        let node = text(&claim["status"]["nodeName"]);
        if there {
            self.claims.insert(uid.clone());
        } else {
            self.claims.remove(&uid);
        }
        if there && going {
            self.claims_going.insert(uid, node);
        } else {
            self.claims_going.remove(&uid);
        }
        self.count();
    }

    /// No more may go at once than the budget says.
    fn count(&mut self) {
        if !self.watching {
            return;
        }
        // A node that is gone before its claim is no longer disrupted twice.
        let mut going: BTreeSet<&String> = self.nodes_going.iter().collect();
        going.extend(self.claims_going.values());
        let limit = (self.claims.len() * BUDGET_PERCENT).div_ceil(100);
        self.most_going = self.most_going.max(going.len());
        if going.len() > limit {
            self.wrong
                .push(format!("{} go at once, not {limit}", going.len()));
        }
    }
}

/// How an observer learns of an object, and whether it is there.
type Tell = fn(&mut Seen, &Value, bool);

/// Something that happened.
#[derive(Debug)]
struct Change {
    /// The server's count of changes to anything: watches of two kinds may be behind each other.
    version: u64,
    object: Value,
    there: bool,
    tell: Tell,
}

/// Sees all changes in the order in which they happened.
#[derive(Debug, Default)]
struct Observer {
    seen: Seen,
    changes: Arc<Mutex<Vec<Change>>>,
    watches: JoinSet<()>,
}

impl Observer {
    fn follow(&mut self, api: kube::Api<kube::api::DynamicObject>, tell: Tell) {
        self.watches
            .spawn(follow(api, Arc::clone(&self.changes), tell));
    }

    /// Goes through what has happened since the last look.
    fn look(&mut self) {
        let mut changes = std::mem::take(&mut *self.changes.lock().unwrap());
        changes.sort_by_key(|own| own.version);
        for own in changes {
            (own.tell)(&mut self.seen, &own.object, own.there);
        }
    }
}

/// Follows a kind and notes every change.
async fn follow(
    api: kube::Api<kube::api::DynamicObject>,
    changes: Arc<Mutex<Vec<Change>>>,
    tell: Tell,
) {
    let mut events = watcher(api, watcher::Config::default()).boxed();
    let (mut known, mut listed) = (BTreeMap::new(), BTreeSet::new());
    let mut version = 0;
    while let Some(event) = events.next().await {
        let mut note = |object: &Value, there| {
            let own = text(&object["metadata"]["resourceVersion"])
                .parse()
                .unwrap();
            version = version.max(own);
            changes.lock().unwrap().push(Change {
                version: if there { own } else { version },
                object: object.clone(),
                there,
                tell,
            });
        };
        let uid = |object: &Value| text(&object["metadata"]["uid"]);
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(own) | watcher::Event::Apply(own)) => {
                let object = serde_json::to_value(own).unwrap();
                listed.insert(uid(&object));
                note(&object, true);
                known.insert(uid(&object), object);
            }
            Ok(watcher::Event::Delete(own)) => {
                let object = serde_json::to_value(own).unwrap();
                known.remove(&uid(&object));
                note(&object, false);
            }
            // What is not there any more has gone while nobody looked.
            Ok(watcher::Event::InitDone) => known.retain(|uid, object| {
                let stays = listed.contains(uid);
                if !stays {
                    note(object, false);
                }
                stays
            }),
            Err(error) => eprintln!("an observer looks again: {error}"),
        }
    }
}

/// A cluster of fifty nodes with two workloads, whose nodes drift again and again.
#[derive(Debug)]
pub struct Drifts {
    cluster: Cluster,
    observer: Observer,
    round: usize,
}

impl Drifts {
    /// Makes pool and workloads, and waits for their nodes: a process of the autoscaler runs.
    pub async fn begin(cluster: &Cluster) -> Self {
        cluster.pool("general", json!({})).await;
        pool(cluster, 0).await;
        workloads(cluster).await;
        cluster.all_run(N * WORKLOADS.len(), 120).await;
        cluster
            .until("fifty nodes", 60, async |cluster| is_new(cluster, 0).await)
            .await;
        let mut observer = Observer::default();
        observer.follow(cluster.api(PODS, None), Seen::pod);
        observer.follow(cluster.api(NODES, None), Seen::node);
        observer.follow(cluster.api(CLAIMS, None), Seen::claim);
        cluster
            .until("observers see everything", 20, async |_| {
                observer.look();
                let seen = &observer.seen;
                seen.ready.len() == N * WORKLOADS.len() && seen.claims.len() == N
            })
            .await;
        observer.seen.watching = true;
        Self {
            cluster: cluster.clone(),
            observer,
            round: 0,
        }
    }

    /// All nodes drift.
    pub async fn drift(&mut self) {
        self.round += 1;
        pool(&self.cluster, self.round).await;
    }

    /// Waits until all nodes are new, and makes sure that no promise was broken on the way.
    pub async fn end_well(&mut self) {
        let (cluster, round) = (&self.cluster, self.round);
        cluster
            .until("all nodes are new", DRIFT_SECS, async |cluster| {
                is_new(cluster, round).await
            })
            .await;
        cluster.all_run(N * WORKLOADS.len(), 60).await;
        cluster.agrees().await;
        hashes_agree(cluster).await;
        let observer = &mut self.observer;
        cluster
            .until("observers see the end", 20, async |_| {
                observer.look();
                observer.seen.claims_going.is_empty() && observer.seen.nodes_going.is_empty()
            })
            .await;
        let seen = &self.observer.seen;
        let (least, most) = (&seen.least, seen.most_going);
        eprintln!("round {round}: least ready {least:?}, most at once {most}");
        assert!(seen.wrong.is_empty(), "{}", seen.wrong.join("\n"));
        assert!(most > 1, "the observer sees nodes go");
    }
}

/// The pool; its nodes say in which round they were made.
async fn pool(cluster: &Cluster, round: usize) {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let requirements = json!([
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["2"]}]);
    let budget = format!("{BUDGET_PERCENT}%");
    let pool = json!({"metadata": {"name": "general"}, "spec": {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "20s",
            "budgets": [{"nodes": budget}]},
        "template": {"metadata": {"labels": {"example.com/round": round.to_string()}},
            "spec": {"nodeClassRef": class, "requirements": requirements}}}});
    cluster.apply(POOLS, pool).await;
}

/// Two workloads with a pod on every node, and a budget for each.
async fn workloads(cluster: &Cluster) {
    for (name, wanted) in WORKLOADS {
        let labels = json!({"app": name});
        let selector = json!({"matchLabels": labels});
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]}});
        let resources = json!({"requests": {"cpu": "500m", "memory": "256Mi"}});
        let spec = json!({"terminationGracePeriodSeconds": 1, "affinity": apart,
            "containers": [{"name": "c", "image": "pause", "resources": resources}]});
        let meta = json!({"name": name, "namespace": "default"});
        let object = json!({"metadata": meta, "spec": {"replicas": N, "selector": selector,
            "template": {"metadata": {"labels": labels}, "spec": spec}}});
        cluster.apply(DEPLOYMENTS, object).await;
        let budget =
            json!({"metadata": meta, "spec": {"minAvailable": wanted, "selector": selector}});
        cluster.apply(BUDGETS, budget).await;
    }
}

/// All nodes are of this round, and nothing else is there.
async fn is_new(cluster: &Cluster, round: usize) -> bool {
    let claims = cluster.list(CLAIMS).await;
    let label = round.to_string();
    let new = |own: &Value| {
        own["metadata"]["labels"]["example.com/round"] == label.as_str()
            && own["metadata"]["deletionTimestamp"].is_null()
            && own["metadata"]["annotations"][COMMAND].is_null()
    };
    claims.len() == N
        && claims.iter().all(new)
        && cluster.list(NODES).await.len() == N
        && cluster.machines().await.len() == N
}

/// Every claim is made from the pool as it is.
async fn hashes_agree(cluster: &Cluster) {
    const HASH: &str = "karpenter.sh/nodepool-hash";
    let pool = &cluster.list(POOLS).await[0];
    for claim in cluster.list(CLAIMS).await {
        let (own, wanted) = (
            &claim["metadata"]["annotations"][HASH],
            &pool["metadata"]["annotations"][HASH],
        );
        assert!(own.is_string());
        assert_eq!(own, wanted);
    }
}
