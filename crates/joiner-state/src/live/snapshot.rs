//! The cluster at one moment.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use imbl::{OrdMap, OrdSet};
use joiner_model::Name;
use serde_json::Value;

use super::kind::Kind;
use super::meta::Owner;
use super::pool::why_no_pool;
use super::{
    LiveAttachment, LiveBudget, LiveBuffer, LiveClaim, LiveClass, LiveNode, LiveOverlay, LivePod,
    LivePool, LiveScalable, LiveTemplate,
};
use crate::choices::Choices;
use crate::draft::Draft;
use crate::objects::Objects;
use crate::pools::NodeClassRef;
use crate::spread_defaults::SpreadDefaults;

/// Annotation of a workload that has another replica while one of its pods moves: which pod, and how
/// far that has come.
pub use joiner_api::labels::ours::SURGE;

/// Kinds of pods that were turned down, as far as others are compared with them.
const EASIEST_MAX: usize = 16;

/// The cluster at one moment. Cheap to clone; never changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Counts changes.
    pub generation: u64,
    pub(crate) pods: OrdMap<Name, Arc<LivePod>>,
    pub(crate) nodes: OrdMap<Name, Arc<LiveNode>>,
    pub(crate) claims: OrdMap<Name, Arc<LiveClaim>>,
    pub(crate) pools: OrdMap<Name, Arc<LivePool>>,
    pub(crate) classes: OrdMap<Name, Arc<LiveClass>>,
    pub(crate) budgets: OrdMap<Name, Arc<LiveBudget>>,
    pub(crate) attachments: OrdMap<Name, Arc<LiveAttachment>>,
    pub(crate) overlays: OrdMap<Name, Arc<LiveOverlay>>,
    pub(crate) buffers: OrdMap<Name, Arc<LiveBuffer>>,
    pub(crate) templates: OrdMap<Name, Arc<LiveTemplate>>,
    pub(crate) scalables: OrdMap<(Kind, Name), Arc<LiveScalable>>,
    /// What selects pods, when there are default spread constraints.
    pub(crate) choices: Choices,
    /// Spread constraints for pods that declare none.
    pub(crate) spread_defaults: Option<Arc<SpreadDefaults>>,
    /// Objects that only the planner reads, as they came but for what nobody needs.
    pub(crate) others: OrdMap<(Kind, Name), Arc<Value>>,
    /// All of that as the planner reads it, made when first asked for.
    pub(crate) ground: Arc<OnceLock<Arc<Objects>>>,
    /// (node, pod).
    pub(crate) bound: OrdSet<(Name, Name)>,
    /// (provider id, node).
    pub(crate) node_ids: OrdSet<(Name, Name)>,
    /// (provider id, claim).
    pub(crate) claim_ids: OrdSet<(Name, Name)>,
    /// Pods that wait for a node to be bought.
    pub(crate) waiting: OrdSet<Name>,
    /// Pods that the scheduler has not come to yet.
    pub(crate) fresh: OrdSet<Name>,
    /// Kinds whose first list has come.
    pub(crate) listed: OrdSet<(Kind, Name)>,
}

/// The second parts of all pairs that start with `first`.
fn seconds<'s>(
    set: &'s OrdSet<(Name, Name)>,
    first: &'s str,
) -> impl Iterator<Item = &'s Name> + use<'s> {
    let from: (Name, Name) = (first.into(), "".into());
    set.range(from..)
        .take_while(move |(own, _)| &**own == first)
        .map(|(_, second)| second)
}

/// The second part of the one pair that starts with `first`; none when there are several.
fn only<'s>(set: &'s OrdSet<(Name, Name)>, first: &str) -> Option<&'s Name> {
    let from: (Name, Name) = (first.into(), "".into());
    let mut pairs = set.range(from..).take_while(|(own, _)| &**own == first);
    let (_, second) = pairs.next()?;
    pairs.next().is_none().then_some(second)
}

impl Snapshot {
    /// All pods, by name.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<LivePod>> {
        self.pods.values()
    }

    /// How many pods there are.
    #[must_use]
    pub fn n_pods(&self) -> usize {
        self.pods.len()
    }

    /// A pod by `namespace/name`.
    #[must_use]
    pub fn pod(&self, name: &str) -> Option<&Arc<LivePod>> {
        self.pods.get(name)
    }

    /// Pods bound to a node, finished ones too.
    pub fn pods_on<'s>(&'s self, node: &'s str) -> impl Iterator<Item = &'s Arc<LivePod>> {
        seconds(&self.bound, node).filter_map(|name| self.pods.get(name))
    }

    /// Pods for which a node is to be bought.
    pub fn provisionable(&self) -> impl Iterator<Item = &Arc<LivePod>> {
        self.waiting.iter().filter_map(|name| self.pods.get(name))
    }

    /// Pods that the scheduler has not come to yet.
    pub fn fresh(&self) -> impl Iterator<Item = &Arc<LivePod>> {
        self.fresh.iter().filter_map(|name| self.pods.get(name))
    }

    /// Pods that the scheduler has not come to yet, and will turn down: it has turned down others
    /// just like them, or easier ones. Whoever plans for a thousand replicas need not wait until each
    /// was tried.
    #[must_use]
    pub fn doomed(&self) -> Vec<&Arc<LivePod>> {
        if self.fresh.is_empty() || self.waiting.is_empty() {
            return Vec::new();
        }
        let kind = |pod: &LivePod| (Arc::as_ptr(&pod.draft), pod.elsewhere);
        let mut kinds: HashMap<(*const Draft, bool), &Arc<LivePod>> = HashMap::new();
        for pod in self.provisionable() {
            kinds.entry(kind(pod)).or_insert(pod);
        }
        let content = kinds.values().filter(|pod| pod.is_content());
        let mut easiest: Vec<&Arc<LivePod>> = content.copied().collect();
        easiest.sort_by_key(|pod| (pod.precedence(), &pod.name));
        easiest.truncate(EASIEST_MAX);
        let mut known: HashMap<(*const Draft, bool), bool> = HashMap::new();
        let mut is_doomed = |pod: &Arc<LivePod>| {
            let easier = || easiest.iter().any(|own| own.is_easier_than(pod));
            let known = known.entry(kind(pod));
            *known.or_insert_with(|| kinds.contains_key(&kind(pod)) || easier())
        };
        let free = self.fresh().filter(|pod| pod.nominated.is_none());
        free.filter(|pod| is_doomed(pod)).collect()
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<LiveNode>> {
        self.nodes.values()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// A node by name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&Arc<LiveNode>> {
        self.nodes.get(name)
    }

    /// Nodes with a provider id: one, unless something is very wrong.
    pub fn nodes_with_id<'s>(&'s self, id: &'s str) -> impl Iterator<Item = &'s Arc<LiveNode>> {
        seconds(&self.node_ids, id).filter_map(|name| self.nodes.get(name))
    }

    /// All claims, by name.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<LiveClaim>> {
        self.claims.values()
    }

    /// A claim by name.
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<&Arc<LiveClaim>> {
        self.claims.get(name)
    }

    /// Claims with a provider id: one, unless something is very wrong.
    pub fn claims_with_id<'s>(&'s self, id: &'s str) -> impl Iterator<Item = &'s Arc<LiveClaim>> {
        seconds(&self.claim_ids, id).filter_map(|name| self.claims.get(name))
    }

    /// The claim behind a node; none when there are several.
    #[must_use]
    pub fn claim_of(&self, node: &LiveNode) -> Option<&Arc<LiveClaim>> {
        self.claims
            .get(only(&self.claim_ids, node.provider_id.as_deref()?)?)
    }

    /// The node of a claim; none when there are several.
    #[must_use]
    pub fn node_of(&self, claim: &LiveClaim) -> Option<&Arc<LiveNode>> {
        self.nodes
            .get(only(&self.node_ids, claim.provider_id.as_deref()?)?)
    }

    /// Claims of a pool.
    pub fn claims_of_pool<'s>(&'s self, pool: &'s str) -> impl Iterator<Item = &'s Arc<LiveClaim>> {
        self.claims()
            .filter(move |claim| claim.pool() == Some(pool))
    }

    /// All pools, by name.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<LivePool>> {
        self.pools.values()
    }

    /// Why no node can be bought for any pod; None when there is a pool that is ready.
    #[must_use]
    pub fn why_no_pool(&self) -> Option<String> {
        let classes = self.listed.iter();
        let classes: Vec<&str> = (classes.filter(|(kind, _)| *kind == Kind::NodeClass))
            .map(|(_, class)| class.as_ref())
            .collect();
        let known = |class: &NodeClassRef| {
            let own = format!("{}/{}", class.group, class.kind);
            classes.is_empty() || classes.contains(&own.as_str())
        };
        why_no_pool(self.pools.values().map(AsRef::as_ref), known)
    }

    /// All Deployments, ReplicaSets and StatefulSets.
    pub fn scalables(&self) -> impl Iterator<Item = (Kind, &Arc<LiveScalable>)> {
        self.scalables.iter().map(|((kind, _), own)| (*kind, own))
    }

    /// A pool by name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&Arc<LivePool>> {
        self.pools.get(name)
    }

    /// All node classes.
    pub fn classes(&self) -> impl Iterator<Item = &Arc<LiveClass>> {
        self.classes.values()
    }

    /// A node class.
    #[must_use]
    pub fn class(&self, reference: &NodeClassRef) -> Option<&Arc<LiveClass>> {
        self.classes.get(&LiveClass::key(reference))
    }

    /// All pod disruption budgets.
    pub fn budgets(&self) -> impl Iterator<Item = &Arc<LiveBudget>> {
        self.budgets.values()
    }

    /// Budgets that are about a pod.
    pub fn budgets_of<'s>(&'s self, pod: &'s LivePod) -> impl Iterator<Item = &'s Arc<LiveBudget>> {
        self.budgets().filter(|budget| {
            let selector = budget.selector.as_ref();
            budget.meta.namespace() == pod.namespace()
                && selector.is_some_and(|selector| selector.matches(pod.labels()))
        })
    }

    /// Volumes attached to a node.
    pub fn attachments_of<'s>(
        &'s self,
        node: &'s str,
    ) -> impl Iterator<Item = &'s Arc<LiveAttachment>> {
        self.attachments
            .values()
            .filter(move |own| &*own.node == node)
    }

    /// The volume behind a claim for one, `namespace/name`.
    #[must_use]
    pub fn volume_of(&self, claim: &str) -> Option<&str> {
        let key = (Kind::PersistentVolumeClaim, Name::from(claim));
        self.others.get(&key)?["spec"]["volumeName"].as_str()
    }

    /// All overlays.
    pub fn overlays(&self) -> impl Iterator<Item = &Arc<LiveOverlay>> {
        self.overlays.values()
    }

    /// All capacity buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &Arc<LiveBuffer>> {
        self.buffers.values()
    }

    /// A capacity buffer by `namespace/name`.
    #[must_use]
    pub fn buffer(&self, name: &str) -> Option<&Arc<LiveBuffer>> {
        self.buffers.get(name)
    }

    /// A pod template by `namespace/name`.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<&Arc<LiveTemplate>> {
        self.templates.get(name)
    }

    /// A Deployment, ReplicaSet or StatefulSet by `namespace/name`.
    #[must_use]
    pub fn scalable(&self, kind: Kind, name: &str) -> Option<&Arc<LiveScalable>> {
        self.scalables.get(&(kind, name.into()))
    }

    /// All Deployments, ReplicaSets or StatefulSets.
    pub fn workloads(&self, kind: Kind) -> impl Iterator<Item = &Arc<LiveScalable>> {
        let own = self
            .scalables
            .iter()
            .filter(move |((own, _), _)| *own == kind);
        own.map(|(_, workload)| workload)
    }

    /// Its workload has been given another replica, which takes the place of this pod.
    #[must_use]
    pub fn is_surged(&self, pod: &LivePod) -> bool {
        let workload = self.workload_of(pod);
        let text = workload.and_then(|(_, own)| own.meta.annotation(SURGE));
        let surge: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
        surge.is_some_and(|own| own["pod"] == *pod.uid && own["stage"] != "late")
    }

    /// The workload that a pod belongs to: its StatefulSet, the Deployment of its ReplicaSet, or the
    /// ReplicaSet alone. None for pods of their own, and for owners of other kinds.
    #[must_use]
    pub fn workload_of(&self, pod: &LivePod) -> Option<(Kind, &Arc<LiveScalable>)> {
        let owner = pod.owner.as_ref()?;
        let find = |kind: Kind, owner: &Owner| {
            let name = format!("{}/{}", pod.namespace(), owner.name);
            let found = self.scalable(kind, &name)?;
            (found.meta.uid == owner.uid).then_some((kind, found))
        };
        match &*owner.kind {
            "StatefulSet" => find(Kind::StatefulSet, owner),
            "ReplicaSet" => {
                let set = find(Kind::ReplicaSet, owner)?;
                let above = set.1.meta.owner().filter(|own| &*own.kind == "Deployment");
                above
                    .and_then(|own| find(Kind::Deployment, own))
                    .or(Some(set))
            }
            _ => None,
        }
    }

    /// True when the first list of a kind has come. Node classes are told apart by `group/Kind`.
    #[must_use]
    pub fn is_listed(&self, kind: Kind, class: &str) -> bool {
        self.listed.contains(&(kind, class.into()))
    }
}
