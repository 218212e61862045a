//! The cluster at one moment.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use imbl::{OrdMap, OrdSet};
use joiner_model::Name;

use super::kind::Kind;
use super::meta::Owner;
use super::pool::why_no_pool;
use super::reading::Live;
use super::rest::LiveObject;
use super::shelf::{AnyShelf, IndexedShelf, Shelf};
use super::surge::{Surge, SurgeStage};
use super::{
    LiveAttachment, LiveBudget, LiveBuffer, LiveClaim, LiveClass, LiveNode, LiveOverlay, LivePod,
    LivePool, LiveScalable, LiveTemplate,
};
use crate::choices::{Choice, Choices};
use crate::draft::Draft;
use crate::objects::Objects;
use crate::pools::NodeClassRef;
use crate::spread_defaults::SpreadDefaults;

/// Kinds of pods that were turned down, as far as others are compared with them.
const EASIEST_MAX: usize = 16;

/// The cluster at one moment. Cheap to clone; never changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Counts changes.
    pub generation: u64,
    pub(super) pods: IndexedShelf<LivePod>,
    pub(super) nodes: IndexedShelf<LiveNode>,
    pub(super) claims: IndexedShelf<LiveClaim>,
    /// Objects of all other kinds that are kept.
    shelves: OrdMap<Kind, Arc<dyn AnyShelf>>,
    /// What selects pods, when there are default spread constraints.
    pub(super) choices: Choices,
    /// Spread constraints for pods that declare none.
    pub(super) spread_defaults: Option<Arc<SpreadDefaults>>,
    /// What the planner reads once for all snapshots that have the same, made when first asked for.
    pub(super) ground: Arc<OnceLock<Arc<Objects>>>,
    /// Kinds whose first list has come.
    pub(super) listed: OrdSet<(Kind, Name)>,
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
    /// From now on, objects of this kind are kept as an `L` each.
    pub(super) fn keep<L: Live>(&mut self, kind: Kind) {
        self.shelves.insert(kind, Arc::new(Shelf::<L>::default()));
    }

    /// The objects of a kind, if they are kept.
    pub(super) fn shelf(&self, kind: Kind) -> Option<&dyn AnyShelf> {
        match kind {
            Kind::Pod => Some(&self.pods),
            Kind::Node => Some(&self.nodes),
            Kind::NodeClaim => Some(&self.claims),
            _ => self.shelves.get(&kind).map(AsRef::as_ref),
        }
    }

    /// The same, to change; earlier snapshots keep what they have.
    pub(super) fn shelf_mut(&mut self, kind: Kind) -> Option<&mut dyn AnyShelf> {
        match kind {
            Kind::Pod => Some(&mut self.pods),
            Kind::Node => Some(&mut self.nodes),
            Kind::NodeClaim => Some(&mut self.claims),
            _ => {
                let shelf = self.shelves.get_mut(&kind)?;
                if Arc::get_mut(shelf).is_none() {
                    *shelf = shelf.copied();
                }
                Arc::get_mut(shelf).map(|shelf| shelf as &mut dyn AnyShelf)
            }
        }
    }

    /// All shelves, by kind.
    fn all_shelves(&self) -> impl Iterator<Item = (Kind, &dyn AnyShelf)> {
        let hot = [Kind::Pod, Kind::Node, Kind::NodeClaim].into_iter();
        let hot = hot.filter_map(|kind| Some((kind, self.shelf(kind)?)));
        let others = self.shelves.iter();
        hot.chain(others.map(|(kind, shelf)| (*kind, shelf.as_ref())))
    }

    /// Shelves of objects that are kept as an `L`.
    fn shelves_of<L: Live>(&self) -> impl Iterator<Item = (Kind, &Shelf<L>)> {
        self.all_shelves()
            .filter_map(|(kind, shelf)| Some((kind, shelf.shelf().downcast_ref()?)))
    }

    /// Which pods an object selects.
    pub(super) fn choose(&mut self, key: (Kind, Name), choice: Option<Choice>) {
        match choice {
            Some(choice) => drop(self.choices.insert(key, Arc::new(choice))),
            // Most objects never were there; looking costs less than taking away.
            None if !self.choices.contains_key(&key) => (),
            None => drop(self.choices.remove(&key)),
        }
    }

    /// Everything but pods, nodes and claims: read once for all snapshots that have the same.
    pub(super) fn ground(&self) -> Arc<Objects> {
        let read = || {
            let mut objects = Objects::trusting();
            let shelves = self.shelves.values();
            for shelf in shelves.filter(|shelf| shelf.is_ground()) {
                shelf.add_to(&mut objects);
            }
            Arc::new(objects)
        };
        self.ground.get_or_init(read).clone()
    }

    /// All objects that are kept as an `L`, by kind and name.
    pub fn all<L: Live>(&self) -> impl Iterator<Item = &Arc<L>> {
        self.shelves_of().flat_map(|(_, shelf)| shelf.values())
    }

    /// The names of all objects that are kept as an `L`.
    #[must_use]
    pub fn names<L: Live>(&self) -> Vec<Name> {
        let names = self.shelves_of::<L>().flat_map(|(_, shelf)| shelf.keys());
        names.cloned().collect()
    }

    /// An object that is kept as an `L`, by its name in snapshots; of several kinds the first that has
    /// one of that name.
    #[must_use]
    pub fn get<L: Live>(&self, name: &str) -> Option<&Arc<L>> {
        self.shelves_of().find_map(|(_, shelf)| shelf.get(name))
    }

    /// All objects of a kind, by name; none when they are not kept as an `L`.
    pub fn of_kind<L: Live>(&self, kind: Kind) -> impl Iterator<Item = &Arc<L>> {
        let shelf = self.shelf(kind).and_then(|own| own.shelf().downcast_ref());
        shelf
            .into_iter()
            .flat_map(|shelf: &Shelf<L>| shelf.values())
    }

    /// An object of a kind, by its name in snapshots.
    #[must_use]
    pub fn find<L: Live>(&self, kind: Kind, name: &str) -> Option<&Arc<L>> {
        let shelf: &Shelf<L> = self.shelf(kind)?.shelf().downcast_ref()?;
        shelf.get(name)
    }

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
        seconds(&self.pods.index.bound, node).filter_map(|name| self.pods.get(name))
    }

    /// Pods for which a node is to be bought.
    pub fn provisionable(&self) -> impl Iterator<Item = &Arc<LivePod>> {
        self.pods
            .index
            .waiting
            .iter()
            .filter_map(|name| self.pods.get(name))
    }

    /// Pods that the scheduler has not come to yet.
    pub fn fresh(&self) -> impl Iterator<Item = &Arc<LivePod>> {
        self.pods
            .index
            .fresh
            .iter()
            .filter_map(|name| self.pods.get(name))
    }

    /// Pods that the scheduler has not come to yet, and will turn down: it has turned down others
    /// just like them, or easier ones. Whoever plans for a thousand replicas need not wait until each
    /// was tried.
    #[must_use]
    pub fn doomed(&self) -> Vec<&Arc<LivePod>> {
        let index = &self.pods.index;
        if index.fresh.is_empty() || index.waiting.is_empty() {
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
        seconds(&self.nodes.index.ids, id).filter_map(|name| self.nodes.get(name))
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
        seconds(&self.claims.index.ids, id).filter_map(|name| self.claims.get(name))
    }

    /// The claim behind a node; none when there are several.
    #[must_use]
    pub fn claim_of(&self, node: &LiveNode) -> Option<&Arc<LiveClaim>> {
        self.claims
            .get(only(&self.claims.index.ids, node.provider_id.as_deref()?)?)
    }

    /// The node of a claim; none when there are several.
    #[must_use]
    pub fn node_of(&self, claim: &LiveClaim) -> Option<&Arc<LiveNode>> {
        self.nodes
            .get(only(&self.nodes.index.ids, claim.provider_id.as_deref()?)?)
    }

    /// Claims of a pool.
    pub fn claims_of_pool<'s>(&'s self, pool: &'s str) -> impl Iterator<Item = &'s Arc<LiveClaim>> {
        self.claims()
            .filter(move |claim| claim.pool() == Some(pool))
    }

    /// All pools, by name.
    pub fn pools(&self) -> impl Iterator<Item = &Arc<LivePool>> {
        self.of_kind(Kind::NodePool)
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
        why_no_pool(self.pools().map(AsRef::as_ref), known)
    }

    /// All Deployments, ReplicaSets and StatefulSets.
    pub fn scalables(&self) -> impl Iterator<Item = (Kind, &Arc<LiveScalable>)> {
        self.shelves_of()
            .flat_map(|(kind, shelf)| shelf.values().map(move |own| (kind, own)))
    }

    /// A pool by name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&Arc<LivePool>> {
        self.find(Kind::NodePool, name)
    }

    /// All node classes.
    pub fn classes(&self) -> impl Iterator<Item = &Arc<LiveClass>> {
        self.of_kind(Kind::NodeClass)
    }

    /// A node class.
    #[must_use]
    pub fn class(&self, reference: &NodeClassRef) -> Option<&Arc<LiveClass>> {
        self.find(Kind::NodeClass, &LiveClass::key(reference))
    }

    /// All pod disruption budgets.
    pub fn budgets(&self) -> impl Iterator<Item = &Arc<LiveBudget>> {
        self.of_kind(Kind::PodDisruptionBudget)
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
        let all = self.of_kind::<LiveAttachment>(Kind::VolumeAttachment);
        all.filter(move |own| &*own.node == node)
    }

    /// The volume behind a claim for one, `namespace/name`.
    #[must_use]
    pub fn volume_of(&self, claim: &str) -> Option<&str> {
        let claim = self.find::<LiveObject>(Kind::PersistentVolumeClaim, claim)?;
        claim.object["spec"]["volumeName"].as_str()
    }

    /// All overlays.
    pub fn overlays(&self) -> impl Iterator<Item = &Arc<LiveOverlay>> {
        self.of_kind(Kind::NodeOverlay)
    }

    /// All capacity buffers.
    pub fn buffers(&self) -> impl Iterator<Item = &Arc<LiveBuffer>> {
        self.of_kind(Kind::CapacityBuffer)
    }

    /// A capacity buffer by `namespace/name`.
    #[must_use]
    pub fn buffer(&self, name: &str) -> Option<&Arc<LiveBuffer>> {
        self.find(Kind::CapacityBuffer, name)
    }

    /// A pod template by `namespace/name`.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<&Arc<LiveTemplate>> {
        self.find(Kind::PodTemplate, name)
    }

    /// A Deployment, ReplicaSet or StatefulSet by `namespace/name`.
    #[must_use]
    pub fn scalable(&self, kind: Kind, name: &str) -> Option<&Arc<LiveScalable>> {
        self.find(kind, name)
    }

    /// All Deployments, ReplicaSets or StatefulSets.
    pub fn workloads(&self, kind: Kind) -> impl Iterator<Item = &Arc<LiveScalable>> {
        self.of_kind(kind)
    }

    /// Its workload has been given another replica, which takes the place of this pod.
    #[must_use]
    pub fn is_surged(&self, pod: &LivePod) -> bool {
        let workload = self.workload_of(pod);
        let surge = workload.and_then(|(_, own)| Surge::of(own));
        surge.is_some_and(|own| own.pod == pod.uid && own.stage != SurgeStage::Late)
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
