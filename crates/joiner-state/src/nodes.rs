//! Nodes there are, and nodes that are on their way.

use std::collections::{BTreeMap, HashMap};

use joiner_api::labels::{IN_TURN_TAINT, is_ephemeral_taint};
use joiner_api::types::TaintEffect;
use joiner_model::{Effect, Labels, Name, Node, Operator, Resources, Taint, keys};

use crate::documents::{Document, Header};
use crate::error::{Place, ReadError};
use crate::objects::Objects;
use crate::wire::node::{CsiNode, NodeClaim};
use crate::wire::{self, Expression, text};
use crate::{pod, requests, selection};

const DISRUPTED: &str = "karpenter.sh/disrupted";

/// A node of the input.
#[derive(Clone, Debug)]
pub(crate) struct NodeRecord {
    name: Name,
    labels: Labels,
    taints: Vec<Taint>,
    capacity: Resources,
    allocatable: Resources,
    provider_id: Option<Name>,
    closed: bool,
}

/// A node claim of the input.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRecord {
    name: Name,
    labels: Labels,
    taints: Vec<Taint>,
    startup_taints: Vec<Taint>,
    capacity: Resources,
    allocatable: Resources,
    provider_id: Option<Name>,
    node_name: Option<Name>,
    launched: bool,
    deleting: bool,
}

impl NodeRecord {
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(crate) fn capacity(&self) -> &Resources {
        &self.capacity
    }

    pub(crate) fn allocatable(&self) -> &Resources {
        &self.allocatable
    }
}

impl ClaimRecord {
    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(crate) fn capacity(&self) -> &Resources {
        &self.capacity
    }

    pub(crate) fn taints(&self) -> &[Taint] {
        &self.taints
    }
}

impl Objects {
    pub(crate) fn take_node(
        &mut self,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let node: wire::node::Node<'_> = document.parse(place)?;
        let meta = node.metadata.unwrap_or_default();
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let name = self.register("Node", None, meta.name(), place)?;
        let mut taints = selection::taints(spec.taints.as_ref(), "spec.taints", &mut self.names)
            .map_err(|e| e.of(format!("Node {name}")).at(place.clone()))?;
        // It is lifted within seconds, and pods may be planned for the node already.
        taints.retain(|taint| *taint.key != *IN_TURN_TAINT.key);
        let disrupted = taints.iter().any(|taint| &*taint.key == DISRUPTED);
        let (capacity, allocatable) = figures(status.capacity, status.allocatable);
        let mut labels = canonical(pod::labels(meta.labels.as_ref(), &mut self.names));
        let hostname = self.names.get(keys::HOSTNAME);
        labels.entry(hostname).or_insert_with(|| name.clone());
        self.nodes.push(NodeRecord {
            name,
            labels,
            taints,
            capacity,
            allocatable,
            provider_id: spec.provider_id.as_deref().map(|id| self.names.get(id)),
            closed: spec.unschedulable == Some(true) || meta.deleting() || disrupted,
        });
        Ok(())
    }

    pub(crate) fn take_claim(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let value = self.admitted(header, document, place)?;
        let claim: NodeClaim<'_> = Document::Value(&value).parse(place)?;
        let meta = claim.metadata.unwrap_or_default();
        let spec = claim.spec.unwrap_or_default();
        let status = claim.status.unwrap_or_default();
        let name = self.register("NodeClaim", None, meta.name(), place)?;
        let names = &mut self.names;
        let wrong = |e: ReadError| e.of(format!("NodeClaim {name}")).at(place.clone());
        let taints = selection::taints(spec.taints.as_ref(), "spec.taints", names);
        let startup = spec.startup_taints.as_ref();
        let startup_taints = selection::taints(startup, "spec.startupTaints", names);
        let (taints, startup_taints) = (taints.map_err(wrong)?, startup_taints.map_err(wrong)?);
        let mut labels = canonical(pod::labels(meta.labels.as_ref(), names));
        for expression in spec.requirements.iter().flatten() {
            if let Some(value) = single_value(expression) {
                let key = names.get(keys::canonical(text(&expression.key)));
                labels.entry(key).or_insert_with(|| names.get(value));
            }
        }
        let provider_id = status.provider_id.as_deref().filter(|id| !id.is_empty());
        let node_name = status.node_name.as_deref().filter(|node| !node.is_empty());
        let launched = status.conditions.iter().flatten().any(|condition| {
            text(&condition.kind) == "Launched" && text(&condition.status) == "True"
        });
        let (capacity, allocatable) = figures(status.capacity, status.allocatable);
        let record = ClaimRecord {
            labels,
            taints,
            startup_taints,
            capacity,
            allocatable,
            launched: launched || provider_id.is_some(),
            provider_id: provider_id.map(|id| names.get(id)),
            node_name: node_name.map(|node| names.get(node)),
            deleting: meta.deleting(),
            name,
        };
        self.claims.push(record);
        Ok(())
    }

    pub(crate) fn take_csi_node(
        &mut self,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        let csi_node: CsiNode<'_> = document.parse(place)?;
        let meta = csi_node.metadata.unwrap_or_default();
        let name = self.register("CSINode", None, meta.name(), place)?;
        let mut limits = BTreeMap::new();
        for driver in csi_node.spec.iter().flat_map(|s| &s.drivers).flatten() {
            if let Some(count) = driver.allocatable.as_ref().and_then(|a| a.count) {
                limits.insert(self.names.get(text(&driver.name)), count);
            }
        }
        self.volume_limits.insert(name, limits);
        Ok(())
    }

    /// All nodes of the problem: those that exist in input order, then those on their way. A node
    /// belongs to the claim with its provider id, or else to the one that names it.
    pub(crate) fn model_nodes(&mut self) -> Vec<Node> {
        let nodes = std::mem::take(&mut self.nodes);
        let claims = std::mem::take(&mut self.claims);
        let mut by_id: HashMap<&str, usize> = HashMap::new();
        let mut by_node: HashMap<&str, usize> = HashMap::new();
        for (ix, claim) in claims.iter().enumerate() {
            if let Some(id) = &claim.provider_id {
                by_id.insert(id, ix);
            }
            let node = claim.node_name.as_ref().unwrap_or(&claim.name);
            by_node.insert(node, ix);
        }
        let mut joined = vec![false; claims.len()];
        let mut out = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let by_id = node.provider_id.as_ref().and_then(|id| by_id.get(&**id));
            let claim_ix = by_id.or_else(|| by_node.get(&*node.name)).copied();
            let claim = claim_ix.map(|ix| {
                joined[ix] = true;
                &claims[ix]
            });
            out.push(self.existing(node, claim));
        }
        for (claim, joined) in claims.iter().zip(joined) {
            if joined {
                continue;
            }
            if claim.launched {
                out.push(in_flight(claim));
            } else {
                self.warnings.push(format!(
                    "NodeClaim {} is not launched yet and is not counted",
                    claim.name
                ));
            }
        }
        out
    }

    fn existing(&self, node: &NodeRecord, claim: Option<&ClaimRecord>) -> Node {
        let says = |key: &str| node.labels.get(key).is_some_and(|value| &**value == "true");
        let managed = claim.is_some() || node.labels.contains_key(keys::NODE_POOL);
        let initialized = !managed || says(keys::INITIALIZED);
        let registered = !managed || says(keys::REGISTERED) || initialized;
        let mut labels = node.labels.clone();
        let mut taints = node.taints.clone();
        let (mut capacity, mut allocatable) = (node.capacity.clone(), node.allocatable.clone());
        if let Some(claim) = claim.filter(|_| !registered) {
            for (key, value) in &claim.labels {
                labels.insert(key.clone(), value.clone());
            }
            taints.clone_from(&claim.taints);
        }
        if !initialized {
            let startup = match claim {
                Some(claim) => claim.startup_taints.as_slice(),
                None => self.startup_taints(node),
            };
            taints.retain(|taint| !is_ephemeral(taint) && !startup.iter().any(|s| same(s, taint)));
            if let Some(claim) = claim {
                fill(&mut capacity, &claim.capacity);
                fill(&mut allocatable, &claim.allocatable);
            }
        }
        Node {
            name: node.name.clone(),
            pool: labels.get(keys::NODE_POOL).cloned(),
            labels,
            taints,
            capacity,
            allocatable,
            initialized,
            closed: node.closed || claim.is_some_and(|claim| claim.deleting),
            volume_limits: self
                .volume_limits
                .get(&node.name)
                .cloned()
                .unwrap_or_default(),
        }
    }

    fn startup_taints(&self, node: &NodeRecord) -> &[Taint] {
        let pool = node.labels.get(keys::NODE_POOL);
        let known = self.pools.iter().find(|p| Some(&p.pool.name) == pool);
        known.map_or(&[], |p| &p.pool.startup_taints)
    }
}

fn in_flight(claim: &ClaimRecord) -> Node {
    let name = claim.node_name.as_ref().unwrap_or(&claim.name);
    let mut labels = claim.labels.clone();
    let hostname = labels.entry(keys::HOSTNAME.into());
    hostname.or_insert_with(|| name.clone());
    Node {
        name: name.clone(),
        pool: labels.get(keys::NODE_POOL).cloned(),
        labels,
        taints: claim.taints.clone(),
        capacity: claim.capacity.clone(),
        allocatable: claim.allocatable.clone(),
        initialized: false,
        closed: claim.deleting,
        volume_limits: BTreeMap::new(),
    }
}

/// Capacity and allocatable; each stands in for the other where one is missing.
fn figures(
    capacity: Option<wire::Amounts<'_>>,
    allocatable: Option<wire::Amounts<'_>>,
) -> (Resources, Resources) {
    (
        requests::available(capacity.as_ref().or(allocatable.as_ref())),
        requests::available(allocatable.as_ref().or(capacity.as_ref())),
    )
}

/// Takes from `promised` what a booting node does not report yet.
fn fill(reported: &mut Resources, promised: &Resources) {
    for (name, amount) in promised.iter() {
        if reported.get(name) == 0 {
            reported.set(name.clone(), amount);
        }
    }
}

fn is_ephemeral(taint: &Taint) -> bool {
    let effect = match taint.effect {
        Effect::NoSchedule => TaintEffect::NoSchedule,
        Effect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
        Effect::NoExecute => TaintEffect::NoExecute,
    };
    is_ephemeral_taint(&taint.key, effect)
}

fn same(a: &Taint, b: &Taint) -> bool {
    a.key == b.key && a.effect == b.effect
}

/// Labels with every key in its current spelling. A label in the current spelling wins.
pub(crate) fn canonical(labels: Labels) -> Labels {
    let old = |key: &Name| keys::canonical(key) != &**key;
    if !labels.keys().any(old) {
        return labels;
    }
    let (old, mut current): (Labels, Labels) = labels.into_iter().partition(|(key, _)| old(key));
    for (key, value) in old {
        current.entry(keys::canonical(&key).into()).or_insert(value);
    }
    current
}

fn single_value<'e>(expression: &'e Expression<'_>) -> Option<&'e str> {
    match (
        Operator::parse(text(&expression.operator)),
        expression.values.as_deref(),
    ) {
        (Some(Operator::In), Some([value])) => Some(value),
        _ => None,
    }
}
