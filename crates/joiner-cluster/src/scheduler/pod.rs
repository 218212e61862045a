//! What of a pod matters to the scheduler?

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::Value;

use super::amounts::{Amounts, pod_requests, pod_weight};
use super::labels::{Labels, NodeRule, NodeTerm, Requirement, Selector, items, texts};
use super::node::Toleration;
use crate::fields::condition;
use crate::view::ObjectKey;

/// Why a pod goes that makes room for another one: the reason of its `DisruptionTarget`.
pub(crate) const PREEMPTED: &str = "PreemptionByScheduler";

/// A port of the node that a pod takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    ip: Box<str>,
    protocol: Box<str>,
    port: i64,
}

impl HostPort {
    /// True when both cannot be on one node: the wildcard address meets every other.
    pub(crate) fn clashes(&self, other: &Self) -> bool {
        let wild = |ip: &str| ip.is_empty() || ip == "0.0.0.0";
        self.port == other.port
            && self.protocol == other.protocol
            && (wild(&self.ip) || wild(&other.ip) || self.ip == other.ip)
    }
}

/// Which pods a term or a constraint is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Matcher {
    namespaces: Vec<Box<str>>,
    namespace_selector: Option<Selector>,
    selector: Selector,
    /// Pods that are being deleted do not count for spreading.
    pub(crate) living: bool,
}

impl Matcher {
    /// True when the pod is meant.
    pub(crate) fn matches(&self, pod: &PodInfo, namespace_labels: &Labels) -> bool {
        if self.living && pod.deleting {
            return false;
        }
        let here = self.namespaces.iter().any(|own| **own == *pod.key.0)
            || self
                .namespace_selector
                .as_ref()
                .is_some_and(|one| one.matches(namespace_labels));
        here && self.selector.matches(&pod.labels)
    }
}

/// One term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodTerm {
    /// The pods it is about.
    pub(crate) matcher: Matcher,
    /// The label of nodes that makes a domain.
    pub(crate) topology: Box<str>,
}

/// All terms of a pod about other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodTerms {
    /// Must be together.
    pub(crate) with: Vec<PodTerm>,
    /// Must not be together.
    pub(crate) without: Vec<PodTerm>,
    /// Wishes; away when the weight is negative.
    pub(crate) wishes: Vec<(i64, PodTerm)>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// The pods that are counted.
    pub(crate) matcher: Matcher,
    /// The label of nodes that makes a domain.
    pub(crate) topology: Box<str>,
    /// The largest difference.
    pub(crate) max_skew: i64,
    /// A rule, or else a wish.
    pub(crate) hard: bool,
    /// With fewer domains than this the least one counts as empty.
    pub(crate) min_domains: usize,
    /// Only nodes that the pod's node affinity allows count.
    pub(crate) honor_affinity: bool,
    /// Only nodes whose taints the pod tolerates count.
    pub(crate) honor_taints: bool,
}

/// A claim that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimUse {
    /// Name of the PersistentVolumeClaim.
    pub(crate) name: String,
    /// Made for this pod alone.
    pub(crate) ephemeral: bool,
}

/// A pod as the scheduler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodInfo {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// Its uid.
    pub(crate) uid: String,
    /// Its labels.
    pub(crate) labels: Labels,
    /// Where it is, if anywhere.
    pub(crate) node: Option<Box<str>>,
    /// Where it would like to be.
    pub(crate) nominated: Option<Box<str>>,
    /// Succeeded or Failed.
    pub(crate) finished: bool,
    /// On its way out.
    pub(crate) deleting: bool,
    /// It was told to make room for a more important pod.
    pub(crate) displaced: bool,
    /// `default-scheduler` is asked.
    pub(crate) ours: bool,
    /// What holds it back.
    pub(crate) gates: Vec<Box<str>>,
    /// Higher goes first.
    pub(crate) priority: i64,
    /// When it was created.
    pub(crate) created: Option<Timestamp>,
    /// What it needs.
    pub(crate) requests: Amounts,
    /// What it weighs when nodes are compared: cpu and memory.
    pub(crate) weight: (i64, i64),
    /// Ports of the node.
    pub(crate) ports: Vec<HostPort>,
    /// What it puts up with.
    pub(crate) tolerations: Vec<Toleration>,
    /// What it demands of a node.
    pub(crate) rule: NodeRule,
    /// What it wishes of a node.
    pub(crate) preferred: Vec<(i64, NodeTerm)>,
    /// Terms about other pods.
    pub(crate) terms: PodTerms,
    /// Spread constraints.
    pub(crate) spread: Vec<Spread>,
    /// Claims.
    pub(crate) claims: Vec<ClaimUse>,
    /// Name and kind of its controller.
    pub(crate) owner: Option<(Box<str>, Box<str>)>,
    /// It displaces nobody.
    pub(crate) never_preempts: bool,
    /// Reason and message of `PodScheduled` when that is false.
    pub(crate) verdict: Option<(String, String)>,
}

impl PodInfo {
    /// Reads a Pod.
    pub(crate) fn read(pod: &Value) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let labels = Labels::read(&pod["metadata"]["labels"]);
        let text = |value: &Value| {
            value
                .as_str()
                .filter(|text| !text.is_empty())
                .map(Into::into)
        };
        let namespace = meta::namespace(pod);
        let reader = TermReader {
            namespace,
            labels: &labels,
        };
        let owner = meta::controller(pod);
        Self {
            key: (namespace.to_owned(), meta::name(pod).to_owned()),
            uid: meta::uid(pod).to_owned(),
            node: text(&spec["nodeName"]),
            nominated: text(&status["nominatedNodeName"]),
            finished: status["phase"] == "Succeeded" || status["phase"] == "Failed",
            deleting: meta::is_deleting(pod),
            displaced: condition(pod, "DisruptionTarget")
                .is_some_and(|one| one["reason"] == PREEMPTED),
            ours: spec["schedulerName"]
                .as_str()
                .unwrap_or("default-scheduler")
                == "default-scheduler",
            gates: items(&spec["schedulingGates"])
                .filter_map(|gate| gate["name"].as_str())
                .map(Into::into)
                .collect(),
            priority: spec["priority"].as_i64().unwrap_or(0),
            created: meta::parse_time(meta::text(pod, "creationTimestamp")),
            requests: pod_requests(spec),
            weight: pod_weight(spec),
            ports: host_ports(spec),
            tolerations: items(&spec["tolerations"]).map(Toleration::read).collect(),
            rule: NodeRule::read(spec),
            preferred: preferred(spec),
            terms: reader.terms(&spec["affinity"]),
            spread: items(&spec["topologySpreadConstraints"])
                .map(|one| reader.spread(one))
                .collect(),
            claims: claims(meta::name(pod), spec),
            owner: owner.and_then(|owner| Some((text(&owner["kind"])?, text(&owner["name"])?))),
            never_preempts: spec["preemptionPolicy"] == "Never",
            verdict: verdict(status),
            labels,
        }
    }

    /// True while it takes up room on a node.
    pub(crate) fn is_placed(&self) -> bool {
        self.node.is_some() && !self.finished
    }

    /// True when it is for this scheduler to place.
    pub(crate) fn is_waiting(&self) -> bool {
        self.node.is_none() && !self.finished && !self.deleting && self.ours
    }

    /// True when a failure of the one is a failure of the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.key.0 == other.key.0
            && self.claims.is_empty()
            && other.claims.is_empty()
            && self.labels == other.labels
            && self.requests == other.requests
            && self.ports == other.ports
            && self.tolerations == other.tolerations
            && self.rule == other.rule
            && self.terms == other.terms
            && self.spread == other.spread
            && self.nominated == other.nominated
            && self.priority == other.priority
            && self.never_preempts == other.never_preempts
    }
}

fn verdict(status: &Value) -> Option<(String, String)> {
    let condition = items(&status["conditions"]).find(|one| one["type"] == "PodScheduled")?;
    let text = |field: &str| condition[field].as_str().unwrap_or("").to_owned();
    (condition["status"] == "False").then(|| (text("reason"), text("message")))
}

fn host_ports(spec: &Value) -> Vec<HostPort> {
    let inits = items(&spec["initContainers"]).filter(|one| super::amounts::is_sidecar(one));
    let ports = items(&spec["containers"])
        .chain(inits)
        .flat_map(|one| items(&one["ports"]));
    let taken = ports.filter_map(|port| {
        Some(HostPort {
            ip: port["hostIP"].as_str().unwrap_or("").into(),
            protocol: port["protocol"].as_str().unwrap_or("TCP").into(),
            port: port["hostPort"].as_i64().filter(|port| *port > 0)?,
        })
    });
    taken.collect()
}

fn preferred(spec: &Value) -> Vec<(i64, NodeTerm)> {
    let wishes =
        &spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    let read = |wish: &Value| {
        let weight = wish["weight"].as_i64().unwrap_or(0);
        (weight, NodeTerm::read(&wish["preference"]))
    };
    items(wishes).map(read).collect()
}

fn claims(pod: &str, spec: &Value) -> Vec<ClaimUse> {
    let used = items(&spec["volumes"]).filter_map(|volume| {
        if let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            return Some(ClaimUse {
                name: name.to_owned(),
                ephemeral: false,
            });
        }
        volume["ephemeral"].is_object().then(|| ClaimUse {
            name: format!("{pod}-{}", volume["name"].as_str().unwrap_or("")),
            ephemeral: true,
        })
    });
    used.collect()
}

/// Reads what a pod says about other pods; its own namespace and labels fill gaps.
struct TermReader<'a> {
    namespace: &'a str,
    labels: &'a Labels,
}

impl TermReader<'_> {
    fn terms(&self, affinity: &Value) -> PodTerms {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        let (with, without) = (&affinity["podAffinity"], &affinity["podAntiAffinity"]);
        let wish = |sign: i64| {
            move |wish: &Value| {
                let weight = sign * wish["weight"].as_i64().unwrap_or(0);
                (weight, self.term(&wish["podAffinityTerm"]))
            }
        };
        PodTerms {
            with: items(&with[REQUIRED]).map(|term| self.term(term)).collect(),
            without: items(&without[REQUIRED])
                .map(|term| self.term(term))
                .collect(),
            wishes: items(&with[PREFERRED])
                .map(wish(1))
                .chain(items(&without[PREFERRED]).map(wish(-1)))
                .collect(),
        }
    }

    fn term(&self, term: &Value) -> PodTerm {
        let mut namespaces: Vec<Box<str>> = texts(&term["namespaces"]).map(Into::into).collect();
        let namespace_selector = &term["namespaceSelector"];
        if namespaces.is_empty() && namespace_selector.is_null() {
            namespaces.push(self.namespace.into());
        }
        let mut selector = Selector::read(&term["labelSelector"]);
        selector.and(self.same(&term["matchLabelKeys"]));
        PodTerm {
            matcher: Matcher {
                namespaces,
                namespace_selector: namespace_selector
                    .is_object()
                    .then(|| Selector::read(namespace_selector)),
                selector,
                living: false,
            },
            topology: term["topologyKey"].as_str().unwrap_or("").into(),
        }
    }

    /// The pod's own values of some keys, as the API server writes them into selectors.
    fn same(&self, keys: &Value) -> Vec<Requirement> {
        texts(keys)
            .filter_map(|key| Some(Requirement::equals(key, self.labels.get(key)?)))
            .collect()
    }

    fn spread(&self, one: &Value) -> Spread {
        let mut selector = Selector::read(&one["labelSelector"]);
        selector.and(self.same(&one["matchLabelKeys"]));
        let min_domains = one["minDomains"].as_u64().unwrap_or(1);
        Spread {
            matcher: spread_matcher(self.namespace, selector),
            topology: one["topologyKey"].as_str().unwrap_or("").into(),
            max_skew: one["maxSkew"].as_i64().unwrap_or(1),
            hard: one["whenUnsatisfiable"] != "ScheduleAnyway",
            min_domains: usize::try_from(min_domains).unwrap_or(usize::MAX),
            honor_affinity: one["nodeAffinityPolicy"] != "Ignore",
            honor_taints: one["nodeTaintsPolicy"] == "Honor",
        }
    }
}

/// The living pods of one namespace that a selector chooses.
pub(crate) fn spread_matcher(namespace: &str, selector: Selector) -> Matcher {
    Matcher {
        namespaces: vec![namespace.into()],
        namespace_selector: None,
        selector,
        living: true,
    }
}
