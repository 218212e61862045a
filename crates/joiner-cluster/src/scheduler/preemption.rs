//! Who makes room for a more important pod?
//!
//! As upstream has it: on each node that is merely crowded, all less important pods go in thought,
//! and as many as possible come back, those first whose budgets allow no disruption, then by
//! importance. Of all nodes the one that hurts least is taken. Volumes are taken as they are: no
//! pod goes for the sake of a volume that it uses.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use joiner_machinery::meta;
use serde_json::Value;

use super::cluster::Cluster;
use super::labels::Selector;
use super::pod::PodInfo;
use super::reasons::{NEVER, Reason, Tally};
use super::trial::Trial;
use crate::disruption_budget::BUDGETS;
use crate::names::Digest;
use crate::view::View;

/// Nodes after which the search may stop, unless a tenth of all is more.
const CANDIDATES_MIN: usize = 100;

/// A node, and who has to leave it.
pub(crate) struct Victims {
    /// The node.
    pub(crate) node: usize,
    /// At least one pod, the most important one first.
    pub(crate) pods: Vec<Arc<PodInfo>>,
    /// How many of them go against a budget.
    violations: usize,
}

/// Why nobody has to leave.
pub(crate) enum Nobody {
    /// Somebody is leaving already: the pod has to wait.
    Leaving,
    /// For this reason: the end of the pod's message.
    Because(String),
}

/// Finds the pods that have to leave, and their node.
///
/// # Errors
/// When nobody has to.
pub(crate) fn find(
    view: &View<'_>,
    cluster: &mut Cluster,
    trial: &mut Trial<'_>,
    pod: &PodInfo,
    tally: &Tally,
) -> Result<Victims, Nobody> {
    if pod.never_preempts {
        return Err(Nobody::Because(NEVER.to_owned()));
    }
    if is_awaiting(cluster, pod, tally) {
        return Err(Nobody::Leaving);
    }
    let all = cluster.rooms.len();
    let enough = CANDIDATES_MIN.max(all / 10);
    let mut lesser = lesser(cluster, pod, tally);
    let mut budgets = None;
    let mut failed = Tally::default();
    let mut found: Vec<Victims> = Vec::new();
    // Where the search begins differs from pod to pod, or all would crowd the same nodes.
    let begin = Digest::default().text(&pod.uid).finish() % (tally.crowded.len().max(1) as u64);
    let (last, first) = tally.crowded.split_at(usize::try_from(begin).unwrap_or(0));
    for node in first.iter().chain(last) {
        let Some(pods) = lesser.remove(node) else {
            failed.add(*node, vec![Reason::NoVictims]);
            continue;
        };
        let budgets = budgets.get_or_insert_with(|| Budget::all(view));
        match choose(cluster, trial, *node, pods, budgets) {
            Ok(victims) => found.push(victims),
            Err(reasons) => failed.add(*node, reasons),
        }
        if found.len() >= enough && found.iter().any(|one| one.violations == 0) {
            break;
        }
    }
    found.into_iter().min_by_key(Victims::harm).ok_or_else(|| {
        failed.add_unseen(all - tally.crowded.len(), Reason::NoHelp);
        Nobody::Because(format!("preemption: {}", failed.message()))
    })
}

impl Victims {
    /// What is compared: the least goes.
    fn harm(&self) -> impl Ord + use<> {
        let highest = self.pods.iter().map(|pod| pod.priority).max();
        let sum: i64 = self.pods.iter().map(|pod| pod.priority + (1 << 31)).sum();
        let most_important = self.pods.iter().filter(|pod| Some(pod.priority) == highest);
        // Whoever has run for a short time has little to lose.
        let oldest = most_important.map(|pod| pod.created).min();
        (
            self.violations,
            highest,
            sum,
            self.pods.len(),
            Reverse(oldest),
            self.node,
        )
    }
}

/// True while pods leave the node that was promised to this one.
fn is_awaiting(cluster: &Cluster, pod: &PodInfo, tally: &Tally) -> bool {
    let promised = pod
        .nominated
        .as_deref()
        .and_then(|name| cluster.index(name));
    promised.is_some_and(|promised| {
        let leaving = |(node, other): &(usize, Arc<PodInfo>)| {
            *node == promised && other.deleting && other.displaced && other.priority < pod.priority
        };
        tally.crowded.contains(&promised) && cluster.pods.iter().any(leaving)
    })
}

/// Less important pods on crowded nodes, by node.
fn lesser(cluster: &Cluster, pod: &PodInfo, tally: &Tally) -> BTreeMap<usize, Vec<Arc<PodInfo>>> {
    let hopeful = |node: &&usize| cluster.rooms[**node].lowest < pod.priority;
    let nodes: Vec<usize> = tally.crowded.iter().filter(hopeful).copied().collect();
    let mut lesser: BTreeMap<usize, Vec<Arc<PodInfo>>> = BTreeMap::new();
    if nodes.is_empty() {
        return lesser;
    }
    for (node, other) in &cluster.pods {
        if other.priority < pod.priority && nodes.binary_search(node).is_ok() {
            lesser.entry(*node).or_default().push(Arc::clone(other));
        }
    }
    lesser
}

/// Who has to leave a node; or what is against it even if all do.
fn choose(
    cluster: &mut Cluster,
    trial: &mut Trial<'_>,
    node: usize,
    mut pods: Vec<Arc<PodInfo>>,
    budgets: &[Budget],
) -> Result<Victims, Vec<Reason>> {
    pods.sort_by_key(|pod| (Reverse(pod.priority), pod.created));
    for pod in &pods {
        cluster.lift(node, pod);
    }
    trial.renew(cluster);
    let against = trial.against(cluster, node);
    if !against.is_empty() {
        for pod in &pods {
            cluster.put_back(node, pod);
        }
        return Err(against);
    }
    let protected = protected(&pods, budgets);
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_key(|ix| !protected[*ix]);
    let mut leaves = vec![false; pods.len()];
    for ix in order {
        cluster.put_back(node, &pods[ix]);
        trial.renew(cluster);
        if !trial.against(cluster, node).is_empty() {
            cluster.lift(node, &pods[ix]);
            leaves[ix] = true;
        }
    }
    let mut victims = Victims {
        node,
        pods: Vec::new(),
        violations: 0,
    };
    for (ix, pod) in pods.into_iter().enumerate().filter(|(ix, _)| leaves[*ix]) {
        cluster.put_back(node, &pod);
        victims.violations += usize::from(protected[ix]);
        victims.pods.push(pod);
    }
    if victims.pods.is_empty() {
        return Err(vec![Reason::NoVictims]);
    }
    Ok(victims)
}

/// A PodDisruptionBudget and how many pods it lets go.
struct Budget {
    namespace: String,
    selector: Selector,
    allowed: i64,
    /// Names of pods that it has let go.
    gone: Vec<String>,
}

impl Budget {
    fn all(view: &View<'_>) -> Vec<Self> {
        let budgets = view.all(BUDGETS).map(|budget| Self::read(budget));
        budgets.filter(|one| !one.selector.is_empty()).collect()
    }

    fn read(budget: &Value) -> Self {
        let status = &budget["status"];
        let gone = status["disruptedPods"].as_object();
        Self {
            namespace: meta::namespace(budget).to_owned(),
            selector: Selector::read(&budget["spec"]["selector"]),
            allowed: status["disruptionsAllowed"].as_i64().unwrap_or(0),
            gone: gone
                .map(|gone| gone.keys().cloned().collect())
                .unwrap_or_default(),
        }
    }

    fn covers(&self, pod: &PodInfo) -> bool {
        self.namespace == pod.key.0
            && self.selector.matches(&pod.labels)
            && !self.gone.contains(&pod.key.1)
    }
}

/// For each pod, whether a budget is against its leaving after all the pods before it.
fn protected(pods: &[Arc<PodInfo>], budgets: &[Budget]) -> Vec<bool> {
    let mut allowed: Vec<i64> = budgets.iter().map(|budget| budget.allowed).collect();
    let protects = |pod: &Arc<PodInfo>| {
        let mut is_protected = false;
        for (budget, left) in budgets.iter().zip(&mut allowed) {
            if budget.covers(pod) {
                *left -= 1;
                is_protected |= *left < 0;
            }
        }
        is_protected
    };
    pods.iter().map(protects).collect()
}
