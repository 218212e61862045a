//! What a cluster shows to somebody who watches from outside: when things happened.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

/// The label that tells what a node costs.
const PRICE: &str = "eks-node-viewer/instance-price";
/// What is watched.
const PATHS: [&str; 3] = [
    "/api/v1/namespaces/default/pods?watch=1",
    "/api/v1/nodes?watch=1",
    "/apis/karpenter.sh/v1/nodeclaims?watch=1",
];

/// A line of a watch.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    what: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<String>,
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    what: String,
    status: String,
}

/// When a thing was first seen in each of its states.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    /// It was there.
    there: Duration,
    /// A pod was told that it fits nowhere, or bound, whichever came first.
    judged: Option<Duration>,
    /// A pod was bound.
    bound: Option<Duration>,
    /// A pod ran, a node was ready, a claim was initialized.
    up: Option<Duration>,
}

/// Everything seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pods: BTreeMap<String, Life>,
    nodes: BTreeMap<String, Life>,
    claims: BTreeMap<String, Life>,
    prices: BTreeMap<String, f64>,
    n_pods_ever: usize,
    /// What a watch that has ended had seen: the next one says again what is still there.
    earlier: BTreeMap<String, Life>,
}

/// When the last of each came, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// The last pod was created.
    pub(super) pods_there: f64,
    /// The scheduler had looked at the last pod.
    pub(super) pods_judged: f64,
    /// The last claim was created.
    pub(super) claims_there: f64,
    /// The last node was ready.
    pub(super) nodes_up: f64,
    /// The last pod was bound.
    pub(super) pods_bound: f64,
    /// The last pod ran.
    pub(super) pods_up: f64,
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "last pod created after {:.1} s, looked at by the scheduler {:.1} s, last claim {:.1} s, \
             last node ready {:.1} s, last pod bound {:.1} s, running {:.1} s",
            self.pods_there,
            self.pods_judged,
            self.claims_there,
            self.nodes_up,
            self.pods_bound,
            self.pods_up
        )
    }
}

impl Seen {
    /// Pods there are.
    pub(super) fn n_pods(&self) -> usize {
        self.pods.len()
    }

    /// Pods that there were at any time.
    pub(super) fn n_pods_ever(&self) -> usize {
        self.n_pods_ever
    }

    /// Pods that run.
    pub(super) fn pods_up(&self) -> usize {
        self.pods.values().filter(|life| life.up.is_some()).count()
    }

    /// Nodes that are ready.
    pub(super) fn nodes_up(&self) -> usize {
        self.nodes.values().filter(|life| life.up.is_some()).count()
    }

    /// Nodes there are.
    pub(super) fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// When a pod came, in seconds.
    pub(super) fn pod_there(&self, name: &str) -> Option<f64> {
        Some(self.pods.get(name)?.there.as_secs_f64())
    }

    /// When the claims came, in order, in seconds.
    pub(super) fn claims(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self
            .claims
            .values()
            .map(|c| c.there.as_secs_f64())
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }

    /// What all nodes cost an hour.
    pub(super) fn price(&self) -> f64 {
        self.prices.values().sum()
    }

    /// When the last of each came.
    pub(super) fn times(&self) -> Times {
        let last = |times: &mut dyn Iterator<Item = Duration>| {
            times.max().unwrap_or_default().as_secs_f64()
        };
        Times {
            pods_there: last(&mut self.pods.values().map(|life| life.there)),
            pods_judged: last(&mut self.pods.values().filter_map(|life| life.judged)),
            claims_there: last(&mut self.claims.values().map(|life| life.there)),
            nodes_up: last(&mut self.nodes.values().filter_map(|life| life.up)),
            pods_bound: last(&mut self.pods.values().filter_map(|life| life.bound)),
            pods_up: last(&mut self.pods.values().filter_map(|life| life.up)),
        }
    }

    /// A watch of these begins anew, with all that is there.
    fn begin_anew(&mut self, path: &str) {
        let lives = match path {
            own if own == PATHS[0] => &mut self.pods,
            own if own == PATHS[1] => &mut self.nodes,
            _ => &mut self.claims,
        };
        if path == PATHS[1] {
            self.prices.clear();
        }
        self.earlier.append(lives);
    }

    fn take(&mut self, line: Line, at: Duration) {
        let object = line.object;
        let name = object.metadata.name;
        let lives = match object.kind.as_str() {
            "Pod" => &mut self.pods,
            "Node" => &mut self.nodes,
            "NodeClaim" => &mut self.claims,
            _ => return,
        };
        if line.what == "DELETED" {
            lives.remove(&name);
            self.prices.remove(&name);
            return;
        }
        let says = |what: &str, status: &str| {
            let mut all = object.status.conditions.iter();
            all.any(|own| own.what == what && own.status == status)
        };
        let earlier = self.earlier.remove(&name);
        if object.kind == "Pod" && !lives.contains_key(&name) && earlier.is_none() {
            self.n_pods_ever += 1;
        }
        let life = lives.entry(name.clone()).or_insert_with(|| {
            earlier.unwrap_or(Life {
                there: at,
                ..Life::default()
            })
        });
        let is_up = match object.kind.as_str() {
            "Pod" => object.status.phase.as_deref() == Some("Running"),
            "Node" => says("Ready", "True"),
            _ => says("Initialized", "True"),
        };
        let is_bound = object.spec.node_name.is_some();
        let note = |when: &mut Option<Duration>, holds: bool| {
            if holds {
                when.get_or_insert(at);
            }
        };
        note(&mut life.up, is_up);
        note(&mut life.bound, is_bound);
        note(&mut life.judged, is_bound || says("PodScheduled", "False"));
        if object.kind == "Node"
            && let Some(price) = object.metadata.labels.get(PRICE)
        {
            self.prices.insert(name, price.parse().unwrap_or_default());
        }
    }
}

/// Watches a cluster until it is dropped.
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    /// Those who watch now; none once it is over.
    children: Arc<Mutex<Option<Vec<Child>>>>,
    /// When it began.
    pub(super) began: Instant,
}

impl Watch {
    /// Begins to watch; `kubectl` makes calls to the cluster.
    pub(super) fn begin(kubectl: &dyn Fn() -> Command) -> Self {
        let watch = Self {
            seen: Arc::default(),
            children: Arc::new(Mutex::new(Some(Vec::new()))),
            began: Instant::now(),
        };
        for path in PATHS {
            let mut command = kubectl();
            command.args(["get", "--raw", path]).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::null());
            let (seen, children) = (Arc::clone(&watch.seen), Arc::clone(&watch.children));
            let began = watch.began;
            // A server ends a watch that cannot follow; the next one starts with what there is.
            std::thread::spawn(move || {
                while let Some(out) = start(&mut command, &children) {
                    locked(&seen).begin_anew(path);
                    for line in BufReader::new(out).lines().map_while(Result::ok) {
                        if let Ok(line) = serde_json::from_str::<Line>(&line) {
                            locked(&seen).take(line, began.elapsed());
                        }
                    }
                }
            });
        }
        watch
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        locked(&self.seen)
    }
}

/// Starts a call and returns its output; nothing once it is over.
fn start(command: &mut Command, children: &Mutex<Option<Vec<Child>>>) -> Option<ChildStdout> {
    let mut children = locked(children);
    let children = children.as_mut()?;
    let mut child = command.spawn().ok()?;
    let out = child.stdout.take();
    children.push(child);
    out
}

impl Drop for Watch {
    fn drop(&mut self) {
        for mut child in locked(&self.children).take().into_iter().flatten() {
            // One that has ended already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_counts() {
        let mut seen = Seen::default();
        let line = |what: &str, status: &str| {
            let text = format!(
                r#"{{"type": "{what}", "object": {{"kind": "Pod", "metadata": {{"name": "p"}},
                    "spec": {{"nodeName": "n"}}, "status": {status}}}}}"#
            );
            serde_json::from_str::<Line>(&text).unwrap()
        };
        let pending = r#"{"phase": "Pending"}"#;
        let running = r#"{"phase": "Running"}"#;
        seen.take(line("ADDED", pending), Duration::from_secs(1));
        assert_eq!(seen.pods_up(), 0);
        for second in [2, 3] {
            seen.take(line("MODIFIED", running), Duration::from_secs(second));
        }
        let times = seen.times();
        assert_eq!(
            (seen.pods_up(), times.pods_bound, times.pods_up),
            (1, 1.0, 2.0)
        );
        // Another watch begins: what it does not list is gone, what it lists is as old as before.
        seen.begin_anew(PATHS[0]);
        assert_eq!(seen.n_pods(), 0);
        seen.take(line("ADDED", running), Duration::from_secs(5));
        assert_eq!((seen.n_pods_ever(), seen.times().pods_up), (1, 2.0));
        seen.take(line("DELETED", running), Duration::from_secs(6));
        assert_eq!(seen.pods_up(), 0);
    }
}
