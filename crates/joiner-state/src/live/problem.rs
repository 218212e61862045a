//! From a snapshot to a problem for the solver.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_api::labels::UNREGISTERED_TAINT;
use joiner_model::{InstanceType, Labels, Name, Node, NodeIx, Policy, Problem, TypeIx, keys};
use serde_json::Value;

use super::claim::Conditions as _;
use super::reading::accept;
use super::snapshot::Snapshot;
use super::{LiveClaim, LiveNode, LivePod};
use crate::draft::DraftIx;
use crate::error::ReadError;
use crate::objects::{Objects, Stage};
use crate::pools::NodeClassRef;
use crate::problem::Catalog;

/// A pod that does not exist: headroom.
#[derive(Clone, Debug)]
pub struct VirtualPod {
    /// The pod as an object, with namespace and name.
    pub object: Arc<Value>,
}

/// What is asked of the planner.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Types on sale, by class. Pools of other classes cannot buy.
    pub catalogs: &'a BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>,
    /// Settings.
    pub policy: Policy,
    /// The time.
    pub now: Timestamp,
    /// Nodes on their way out whose pods have a plan already: nobody looks for a place for them.
    pub planned: &'a BTreeSet<Name>,
    /// Headroom, placed after everything else.
    pub headroom: &'a [VirtualPod],
}

/// A problem, and what its nodes are called outside.
#[derive(Debug, Default)]
pub struct Asked {
    /// The problem. Pods are called `namespace/name`.
    pub problem: Problem,
    /// Pods that are headroom, by name.
    pub headroom: BTreeSet<Name>,
    /// Nodes of the problem that are claims without a Node yet.
    pub in_flight: BTreeMap<NodeIx, Name>,
    /// Pods of the batch that were left out, and why.
    pub ignored: Vec<(Name, Name)>,
}

impl Snapshot {
    /// True when a node is on its way out.
    #[must_use]
    pub fn is_leaving(&self, node: &LiveNode) -> bool {
        match self.claim_of(node) {
            Some(claim) => claim.is_going(),
            None => node.meta.deleting.is_some(),
        }
    }

    /// Nodes on their way out, some of them twice. Looks at few nodes closely: with thousands of
    /// them, asking each for its claim would take longer than everything else.
    pub fn leaving_nodes(&self) -> impl Iterator<Item = &Arc<LiveNode>> {
        let deleted = self.nodes().filter(|node| node.meta.deleting.is_some());
        let going = self.claims().filter(|claim| claim.is_going());
        let ids = going.filter_map(|claim| claim.provider_id.as_deref());
        let nodes = deleted.chain(ids.flat_map(|id| self.nodes_with_id(id)));
        nodes.filter(|node| self.is_leaving(node))
    }

    /// Pods of a node that need a place elsewhere now: those that can move, unless another pod is
    /// there for that.
    pub fn movable_pods<'s>(
        &'s self,
        node: &'s str,
        now: Timestamp,
    ) -> impl Iterator<Item = &'s Arc<LivePod>> {
        self.pods_on(node).filter(move |pod| {
            pod.is_reschedulable()
                && !pod.is_protected(now)
                && !self.is_fully_blocked(pod)
                && !self.is_surged(pod)
        })
    }

    /// Some budget never lets the pod go, or several are about it, which the API refuses.
    #[must_use]
    pub fn is_fully_blocked(&self, pod: &LivePod) -> bool {
        let mut budgets = self.budgets_of(pod);
        let Some(first) = budgets.next() else {
            return false;
        };
        (first.blocks_always && !first.lets_go(pod)) || budgets.next().is_some()
    }

    /// The problem of finding a place for every pod that waits for one.
    ///
    /// # Errors
    /// When there are more pods than can be planned for.
    pub fn problem(&self, ask: &Ask<'_>) -> Result<Asked, ReadError> {
        let mut objects = (*self.ground()).clone();
        objects.spread_defaults.clone_from(&self.spread_defaults);
        objects.choices.clone_from(&self.choices);
        let leaving = self.leaving();
        self.add_nodes(&mut objects, &leaving);
        let unplanned: Vec<&Name> = leaving.difference(ask.planned).collect();
        self.add_pods(&mut objects, &unplanned, ask.now);
        let headroom = add_headroom(&mut objects, ask.headroom);
        let mut catalog = Catalog::default();
        for (class, types) in ask.catalogs {
            catalog = catalog.with_class(class.clone(), Arc::clone(types));
        }
        let mut problem = objects.problem(catalog)?.problem;
        problem.policy = ask.policy;
        for node in &mut problem.nodes {
            if leaving.contains(&node.name) {
                node.closed = true;
                // What is on its way out no longer counts against a limit.
                node.pool = None;
            }
        }
        self.close_pools(&mut problem, ask.catalogs);
        let mut asked = Asked {
            in_flight: self.in_flight(&problem),
            headroom,
            ..Asked::default()
        };
        self.add_planned(&mut problem, &mut asked.in_flight);
        for pod in &problem.pods {
            if let (None, Some(why)) = (pod.node, &pod.ignored) {
                asked.ignored.push((pod.name.clone(), why.clone()));
            }
        }
        asked.problem = problem;
        Ok(asked)
    }

    fn leaving(&self) -> BTreeSet<Name> {
        let going = self.leaving_nodes();
        going.map(|node| node.name().clone()).collect()
    }

    fn add_nodes(&self, objects: &mut Objects, leaving: &BTreeSet<Name>) {
        let mut claims = self.claims.values();
        let launching = claims.any(|claim| claim.provider_id.is_none());
        for node in self.nodes.values() {
            // Whose node this is shows with the id of a claim's machine; that claim counts already.
            if launching && self.claim_of(node).is_none() && is_unregistered(node) {
                continue;
            }
            // A node of ours without a type yet cannot be judged; its claim stands for it.
            let unknown = node.meta.label(keys::INSTANCE_TYPE).is_none();
            if unknown && self.claim_of(node).is_some() && !node.says(keys::INITIALIZED) {
                continue;
            }
            objects.nodes.push(node.record.clone());
        }
        for claim in self.claims.values() {
            let node = self.node_of(claim);
            let gone = claim.is_going() && node.is_none_or(|node| leaving.contains(node.name()));
            if claim.provider_id.is_some() && !(gone && node.is_none()) {
                objects.claims.push(claim.record.clone());
            }
        }
    }

    fn add_pods(&self, objects: &mut Objects, leaving: &[&Name], now: Timestamp) {
        let mut drafts: HashMap<*const crate::draft::Draft, DraftIx> = HashMap::new();
        let moving: BTreeSet<&Name> = leaving
            .iter()
            .flat_map(|node| self.movable_pods(node, now))
            .map(|pod| &pod.name)
            .collect();
        let doomed: BTreeSet<&Name> = self.doomed().iter().map(|pod| &pod.name).collect();
        for pod in self.pods.values() {
            let waits = self.pods.index.waiting.contains(&pod.name) || doomed.contains(&pod.name);
            if !waits && pod.node.is_none() {
                continue;
            }
            let ix = *drafts
                .entry(Arc::as_ptr(&pod.draft))
                .or_insert_with(|| objects.drafts.push(Arc::clone(&pod.draft)));
            let mut record = pod.record(ix);
            if moving.contains(&pod.name) {
                record.node = None;
                record.stage = Stage::Live;
            }
            objects.pods.push(record);
        }
    }

    /// Pools that cannot buy now.
    fn close_pools(
        &self,
        problem: &mut Problem,
        catalogs: &BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>,
    ) {
        for pool in &mut problem.pools {
            let Some(live) = self.pool(&pool.name) else {
                continue;
            };
            if !catalogs.contains_key(&live.class) {
                let why = "the instance types of its node class are not known";
                pool.closed.get_or_insert(why.into());
            }
            if !live.is_true("Ready") {
                pool.closed.get_or_insert("it is not ready".into());
            }
        }
    }

    /// Which nodes of the problem are claims.
    fn in_flight(&self, problem: &Problem) -> BTreeMap<NodeIx, Name> {
        let nodes = (0u32..).zip(&problem.nodes);
        nodes
            .filter(|(_, node)| !self.nodes.contains_key(&node.name))
            .map(|(ix, node)| (NodeIx(ix), node.name.clone()))
            .collect()
    }

    /// Claims that are not launched yet count as what the plan meant them to be.
    fn add_planned(&self, problem: &mut Problem, in_flight: &mut BTreeMap<NodeIx, Name>) {
        for claim in self.claims.values() {
            if claim.provider_id.is_some() || claim.is_going() {
                continue;
            }
            let Some(node) = planned(claim, problem) else {
                continue;
            };
            let ix = NodeIx(u32::try_from(problem.nodes.len()).unwrap_or(u32::MAX));
            in_flight.insert(ix, claim.name().clone());
            problem.nodes.push(node);
        }
    }
}

/// A node that was bought, and that nobody has taken in yet.
fn is_unregistered(node: &LiveNode) -> bool {
    let bought = node.pool().is_some() || node.has_taint(&UNREGISTERED_TAINT);
    bought && !node.says(keys::REGISTERED)
}

/// The node that a claim is meant to become.
fn planned(claim: &LiveClaim, problem: &Problem) -> Option<Node> {
    let planned = claim.planned.as_deref()?;
    let pool = problem
        .pools
        .iter()
        .find(|pool| Some(&*pool.name) == claim.pool())?;
    let is_named = |ix: &&TypeIx| problem[**ix].name == planned.instance_type;
    let instance_type = &problem[*pool.types.iter().find(is_named)?];
    let offering = instance_type.offerings.iter().find(|own| planned.is(own))?;
    let single = |(key, values): (&Name, &Vec<Name>)| match values.as_slice() {
        [value] => Some((key.clone(), value.clone())),
        _ => None,
    };
    let mut labels: Labels = instance_type.labels.iter().filter_map(single).collect();
    labels.extend(offering.labels.clone());
    labels.extend(claim.record.labels().clone());
    labels.insert(keys::HOSTNAME.into(), claim.name().clone());
    let mut allocatable = instance_type.allocatable().ok()?;
    allocatable.add(&offering.extra_capacity);
    let mut capacity = instance_type.capacity.clone();
    capacity.add(&offering.extra_capacity);
    Some(Node {
        name: claim.name().clone(),
        pool: Some(pool.name.clone()),
        labels,
        taints: claim.record.taints().to_vec(),
        capacity,
        allocatable,
        initialized: false,
        closed: false,
        volume_limits: BTreeMap::new(),
    })
}

fn add_headroom(objects: &mut Objects, pods: &[VirtualPod]) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    for pod in pods {
        let before = objects.pods.len();
        // The server has admitted it; what is odd about it all the same is left out.
        let _ = accept(objects, &pod.object);
        if let Some(record) = objects.pods.get(before) {
            names.insert(record.name.clone());
        }
    }
    names
}
