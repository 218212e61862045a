//! Who is where, as far as placing the next pod depends on it.
//!
//! One [`Cluster`] lives for one step. It starts with the pods that are bound, and every pod that
//! the step places is added, so that the next one sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::amounts::Amounts;
use super::labels::{Labels, NodeRule, NodeTerm};
use super::node::{Effect, NodeInfo, Taint, Toleration};
use super::pod::{HostPort, Matcher, PodInfo, PodTerm};

/// A node and what is taken of it.
pub(crate) struct Room {
    /// The node.
    pub(crate) info: Arc<NodeInfo>,
    /// Sum of requests.
    pub(crate) used: Amounts,
    /// Sum of weights: cpu and memory.
    pub(crate) weight: (i64, i64),
    /// How many pods are there.
    pub(crate) pods: i64,
    /// Ports taken.
    pub(crate) ports: Vec<HostPort>,
    /// The lowest priority of all pods that have been there.
    pub(crate) lowest: i64,
}

/// What labels, taints and the cordon of a node mean for pods with certain rules.
#[derive(Clone, Copy, Default)]
pub(crate) struct Verdict {
    /// Cordoned, and the pod minds.
    pub(crate) cordoned: bool,
    /// A taint keeps the pod away.
    pub(crate) tainted: bool,
    /// The node affinity rules it out.
    pub(crate) unfit: bool,
    /// Sum of the weights of node wishes that come true.
    pub(crate) wishes: i64,
    /// Taints that the pod would rather avoid.
    pub(crate) soft_taints: i64,
}

/// Which domain of a topology each node is in.
pub(crate) struct Topology {
    /// By node; none without the label.
    pub(crate) domain: Vec<Option<usize>>,
    /// How many domains there are.
    pub(crate) domains: usize,
}

impl Topology {
    /// Sums a figure of nodes by domain.
    pub(crate) fn sum(&self, by_node: &[i64]) -> Vec<i64> {
        let mut sums = vec![0; self.domains];
        for (domain, figure) in self.domain.iter().zip(by_node) {
            if let Some(domain) = domain {
                sums[*domain] += figure;
            }
        }
        sums
    }
}

type RuleKey = (NodeRule, Vec<Toleration>, Vec<(i64, NodeTerm)>);

/// All nodes with all pods on them.
pub(crate) struct Cluster {
    /// Nodes, in order of name.
    pub(crate) rooms: Vec<Room>,
    by_name: BTreeMap<String, usize>,
    /// Placed pods, with the index of their node.
    pub(crate) pods: Vec<(usize, Arc<PodInfo>)>,
    namespaces: BTreeMap<String, Labels>,
    topologies: BTreeMap<Box<str>, Arc<Topology>>,
    counts: BTreeMap<Vec<Matcher>, Vec<i64>>,
    keep_away: BTreeMap<PodTerm, Vec<i64>>,
    pulls: BTreeMap<PodTerm, Vec<i64>>,
    verdicts: BTreeMap<RuleKey, Arc<Vec<Verdict>>>,
    soft_taints: bool,
}

impl Cluster {
    /// The nodes, the pods that are on them, and the labels of namespaces.
    pub(crate) fn new<'p>(
        nodes: impl Iterator<Item = Arc<NodeInfo>>,
        pods: impl Iterator<Item = &'p Arc<PodInfo>>,
        namespaces: BTreeMap<String, Labels>,
    ) -> Self {
        let rooms: Vec<Room> = nodes.map(Room::empty).collect();
        let name = |(ix, room): (usize, &Room)| (room.info.name.clone(), ix);
        let soft = |room: &Room| {
            room.info
                .taints
                .iter()
                .any(|taint| taint.effect == Effect::PreferNoSchedule)
        };
        let mut cluster = Self {
            by_name: rooms.iter().enumerate().map(name).collect(),
            soft_taints: rooms.iter().any(soft),
            rooms,
            pods: Vec::new(),
            namespaces,
            topologies: BTreeMap::new(),
            counts: BTreeMap::new(),
            keep_away: BTreeMap::new(),
            pulls: BTreeMap::new(),
            verdicts: BTreeMap::new(),
        };
        for pod in pods.filter(|pod| pod.is_placed()) {
            let node = pod.node.as_deref().and_then(|name| cluster.index(name));
            if let Some(node) = node {
                cluster.place(node, Arc::clone(pod));
            }
        }
        cluster
    }

    /// The index of a node.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// True when some node has a taint that pods would rather avoid.
    pub(crate) fn has_soft_taints(&self) -> bool {
        self.soft_taints
    }

    /// Puts a pod on a node.
    pub(crate) fn place(&mut self, node: usize, pod: Arc<PodInfo>) {
        self.count_in(node, &pod, 1);
        self.pods.push((node, pod));
    }

    /// Keeps room for a pod on the node that it was promised, if there is such a node.
    pub(crate) fn reserve(&mut self, pod: &PodInfo) {
        self.promise(pod, 1);
    }

    /// Gives that room free again.
    pub(crate) fn release(&mut self, pod: &PodInfo) {
        self.promise(pod, -1);
    }

    fn promise(&mut self, pod: &PodInfo, times: i64) {
        let node = pod.nominated.as_deref().and_then(|name| self.index(name));
        if let Some(node) = node {
            self.rooms[node].take(pod, times);
        }
    }

    /// Leaves a pod out of all figures until it is put back. Only for counts that are known by
    /// then: the pod stays on the list from which new ones are made.
    pub(crate) fn lift(&mut self, node: usize, pod: &PodInfo) {
        self.count_in(node, pod, -1);
    }

    /// Puts a lifted pod back.
    pub(crate) fn put_back(&mut self, node: usize, pod: &PodInfo) {
        self.count_in(node, pod, 1);
    }

    fn count_in(&mut self, node: usize, pod: &PodInfo, times: i64) {
        let nodes = self.rooms.len();
        self.rooms[node].take(pod, times);
        let namespace = labels_of(&self.namespaces, &pod.key.0);
        for (matchers, by_node) in &mut self.counts {
            if matchers.iter().all(|one| one.matches(pod, namespace)) {
                by_node[node] += times;
            }
        }
        let note = |terms: &mut BTreeMap<PodTerm, Vec<i64>>, term: &PodTerm, weight: i64| {
            if let Some(by_node) = terms.get_mut(term) {
                by_node[node] += times * weight;
            } else {
                let mut by_node = vec![0; nodes];
                by_node[node] = times * weight;
                terms.insert(term.clone(), by_node);
            }
        };
        for term in &pod.terms.without {
            note(&mut self.keep_away, term, 1);
        }
        // A pod draws those it must be with by one point, beside all wishes.
        for term in &pod.terms.with {
            note(&mut self.pulls, term, 1);
        }
        for (weight, term) in &pod.terms.wishes {
            note(&mut self.pulls, term, *weight);
        }
    }

    /// How many of the pods that all matchers mean are on each node.
    pub(crate) fn count(&mut self, matchers: &[Matcher]) -> &[i64] {
        if !self.counts.contains_key(matchers) {
            let mut by_node = vec![0; self.rooms.len()];
            for (node, pod) in &self.pods {
                let namespace = labels_of(&self.namespaces, &pod.key.0);
                if matchers.iter().all(|one| one.matches(pod, namespace)) {
                    by_node[*node] += 1;
                }
            }
            self.counts.insert(matchers.to_vec(), by_node);
        }
        &self.counts[matchers]
    }

    /// The domains that a label makes.
    pub(crate) fn topology(&mut self, key: &str) -> Arc<Topology> {
        if let Some(known) = self.topologies.get(key) {
            return Arc::clone(known);
        }
        let mut values: BTreeMap<&str, usize> = BTreeMap::new();
        let domain = self.rooms.iter().map(|room| {
            let value = room.info.labels.get(key)?;
            let next = values.len();
            Some(*values.entry(value).or_insert(next))
        });
        let topology = Arc::new(Topology {
            domain: domain.collect(),
            domains: values.len(),
        });
        self.topologies.insert(key.into(), Arc::clone(&topology));
        topology
    }

    /// True when a matcher means this pod.
    pub(crate) fn is_meant(&self, matcher: &Matcher, pod: &PodInfo) -> bool {
        matcher.matches(pod, labels_of(&self.namespaces, &pod.key.0))
    }

    /// Terms of placed pods that keep this pod away: the label, and how many such pods by node.
    pub(crate) fn kept_away(&self, pod: &PodInfo) -> Vec<(Box<str>, Vec<i64>)> {
        self.about(&self.keep_away, pod)
    }

    /// Terms of placed pods that draw this pod, or push it when negative.
    pub(crate) fn pulled(&self, pod: &PodInfo) -> Vec<(Box<str>, Vec<i64>)> {
        self.about(&self.pulls, pod)
    }

    fn about(
        &self,
        terms: &BTreeMap<PodTerm, Vec<i64>>,
        pod: &PodInfo,
    ) -> Vec<(Box<str>, Vec<i64>)> {
        terms
            .iter()
            .filter(|(term, _)| self.is_meant(&term.matcher, pod))
            .map(|(term, by_node)| (term.topology.clone(), by_node.clone()))
            .collect()
    }

    /// What each node's labels and taints mean for the pod; pods with the same rules share it.
    pub(crate) fn verdicts(&mut self, pod: &PodInfo) -> Arc<Vec<Verdict>> {
        let key = (
            pod.rule.clone(),
            pod.tolerations.clone(),
            pod.preferred.clone(),
        );
        if let Some(known) = self.verdicts.get(&key) {
            return Arc::clone(known);
        }
        let judged = self.rooms.iter().map(|room| judge(&room.info, pod));
        let verdicts = Arc::new(judged.collect::<Vec<_>>());
        self.verdicts.insert(key, Arc::clone(&verdicts));
        verdicts
    }
}

impl Room {
    fn empty(info: Arc<NodeInfo>) -> Self {
        Self {
            info,
            used: Amounts::default(),
            weight: (0, 0),
            pods: 0,
            ports: Vec::new(),
            lowest: i64::MAX,
        }
    }

    /// Takes a pod in, or out when `times` is -1.
    fn take(&mut self, pod: &PodInfo, times: i64) {
        self.weight.0 += times * pod.weight.0;
        self.weight.1 += times * pod.weight.1;
        self.pods += times;
        self.lowest = self.lowest.min(pod.priority);
        if times > 0 {
            self.used.add(&pod.requests);
            self.ports.extend(pod.ports.iter().cloned());
            return;
        }
        self.used.take_away(&pod.requests);
        for port in &pod.ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(at);
            }
        }
    }
}

fn labels_of<'a>(namespaces: &'a BTreeMap<String, Labels>, name: &str) -> &'a Labels {
    static NONE: std::sync::LazyLock<Labels> = std::sync::LazyLock::new(Labels::default);
    namespaces.get(name).unwrap_or(&NONE)
}

/// What a node's labels and taints mean for a pod.
pub(crate) fn judge(node: &NodeInfo, pod: &PodInfo) -> Verdict {
    let tolerated = |taint: &Taint| pod.tolerations.iter().any(|one| one.covers(taint));
    let count = |effects: &[Effect]| {
        let minded = |taint: &&Taint| effects.contains(&taint.effect) && !tolerated(taint);
        node.taints.iter().filter(minded).count()
    };
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".into(),
        value: "".into(),
        effect: Effect::NoSchedule,
    };
    let wishes = pod
        .preferred
        .iter()
        .filter(|(_, term)| term.matches(&node.name, &node.labels));
    Verdict {
        cordoned: node.unschedulable && !tolerated(&cordon),
        tainted: count(&[Effect::NoSchedule, Effect::NoExecute]) > 0,
        unfit: !pod.rule.matches(&node.name, &node.labels),
        wishes: wishes.map(|(weight, _)| weight).sum(),
        soft_taints: i64::try_from(count(&[Effect::PreferNoSchedule])).unwrap_or(i64::MAX),
    }
}
