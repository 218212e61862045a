//! Which pods are due, in which order, and with which defaults?

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::labels::{Labels, Selector};
use super::pod::{PodInfo, Spread, spread_matcher};
use crate::cache::Cache;
use crate::fields::after;
use crate::view::{Resource, View};

/// Seconds until an unchanged failure is told again.
const REPEAT_SECS: i64 = 300;

/// Pods to place, the most important and oldest first.
pub(crate) fn waiting(pods: &Cache<PodInfo>) -> Vec<(&Arc<Value>, &Arc<PodInfo>)> {
    let mut waiting: Vec<_> = pods.pairs().filter(|(_, pod)| pod.is_waiting()).collect();
    // Pods come in order of namespace and name, which a stable sort keeps.
    // Among equals those go first for whom others have left a node.
    waiting.sort_by_key(|(_, pod)| (-pod.priority, pod.nominated.is_none(), pod.created));
    waiting
}

/// A failure that need not be repeated before something changes.
struct Attempt {
    pod: Arc<PodInfo>,
    world: u64,
    message: String,
    told: Timestamp,
}

/// Pods that could not be placed, by uid.
#[derive(Default)]
pub(crate) struct Attempts(BTreeMap<String, Attempt>);

impl Attempts {
    /// Forgets pods that do not wait any more.
    pub(crate) fn keep(&mut self, waiting: &[(&Arc<Value>, &Arc<PodInfo>)]) {
        if self.0.is_empty() {
            return;
        }
        let mut old = std::mem::take(&mut self.0);
        let kept = waiting
            .iter()
            .filter_map(|(_, pod)| old.remove_entry(&pod.uid));
        self.0 = kept.collect();
    }

    /// True when the pod is new or has changed, or the world has. Pods with claims are always due:
    /// what they wait for is not counted as part of the world.
    pub(crate) fn is_due(&self, pod: &Arc<PodInfo>, world: u64) -> bool {
        let Some(attempt) = self.0.get(&pod.uid) else {
            return true;
        };
        attempt.world != world || !attempt.pod.is_like(pod)
    }

    /// Remembers a failure. True when it has to be told again, though nothing is new about it.
    pub(crate) fn fail(
        &mut self,
        pod: &Arc<PodInfo>,
        world: u64,
        message: &str,
        now: Timestamp,
    ) -> bool {
        let before = self
            .0
            .get(&pod.uid)
            .filter(|attempt| attempt.message == message);
        let told = before.map_or(now, |attempt| attempt.told);
        let loud = now >= after(told, REPEAT_SECS);
        let attempt = Attempt {
            pod: Arc::clone(pod),
            world,
            message: message.to_owned(),
            told: if loud { now } else { told },
        };
        self.0.insert(pod.uid.clone(), attempt);
        loud
    }

    /// Forgets a pod.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }
}

/// What pods without constraints of their own are spread by: hostname and zone, counted over the
/// pods that their controller and their Services choose.
pub(crate) fn default_spread(
    view: &View<'_>,
    namespace: &str,
    (kind, owner): (&str, &str),
    labels: &Labels,
) -> Vec<Spread> {
    let resource: Option<Resource> = match kind {
        "ReplicaSet" => Some(("apps", "replicasets")),
        "StatefulSet" => Some(("apps", "statefulsets")),
        _ => None,
    };
    let mut selector = Selector::from_map(&Value::Null);
    for service in view.within(("", "services"), namespace) {
        let own = Selector::from_map(&service["spec"]["selector"]);
        if !own.is_empty() && own.matches(labels) {
            selector.and_all(own);
        }
    }
    if let Some(owner) = resource.and_then(|resource| view.get(resource, namespace, owner)) {
        selector.and_all(Selector::read(&owner["spec"]["selector"]));
    }
    if selector.is_empty() {
        return Vec::new();
    }
    let constraint = |(topology, max_skew): (&str, i64)| Spread {
        matcher: spread_matcher(namespace, selector.clone()),
        topology: topology.into(),
        max_skew,
        hard: false,
        min_domains: 1,
        honor_affinity: true,
        honor_taints: false,
    };
    let topologies = [
        ("kubernetes.io/hostname", 3),
        ("topology.kubernetes.io/zone", 5),
    ];
    topologies.map(constraint).into()
}
