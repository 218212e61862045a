//! The domains that a spread constraint counts, and the nodes it counts pods on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::{Pool, Requirement, keys};

use crate::bits::Bits;
use crate::classes::Market;
use crate::demands::{Demand, Demands};
use crate::ground::{Ground, node_label};
use crate::topology::{Domain, Topology};

/// Which nodes count: by node selection and taints, each only where the constraint honors it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Filter {
    pub(crate) demand: Demand,
    pub(crate) honor_affinity: bool,
    pub(crate) honor_taints: bool,
}

/// Whether a constraint counts the pods on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Counted {
    /// Whatever the node turns into, it does not.
    No,
    /// In some of the worlds that the node may turn into.
    Perhaps,
    /// In all of them.
    Surely,
}

/// Answers about filters, each found once.
pub(crate) struct Filters<'p> {
    /// Nodes that look alike to every selection that does not name a host.
    group_of: Vec<usize>,
    /// One node of each group.
    samples: Vec<usize>,
    selected: HashMap<(usize, usize), bool>,
    reachable: HashMap<(&'p str, Filter), BTreeSet<Domain>>,
}

impl<'p> Filters<'p> {
    pub(crate) fn new(ground: &Ground<'p>) -> Self {
        let mut groups: BTreeMap<Vec<Option<&str>>, usize> = BTreeMap::new();
        let mut samples = Vec::new();
        let mut group_of = Vec::new();
        for (ix, node) in ground.problem.nodes.iter().enumerate() {
            let keys = ground.asked.iter().filter(|key| **key != keys::HOSTNAME);
            let looks = keys.map(|key| node_label(node, key)).collect();
            let group = *groups.entry(looks).or_insert_with(|| {
                samples.push(ix);
                samples.len() - 1
            });
            group_of.push(group);
        }
        Self {
            group_of,
            samples,
            selected: HashMap::new(),
            reachable: HashMap::new(),
        }
    }

    /// True when pods on this existing node count.
    fn node(&mut self, ground: &Ground<'p>, filter: Filter, node_ix: usize) -> bool {
        let node = &ground.problem.nodes[node_ix];
        if filter.honor_taints && ground.untolerated(filter.demand, &node.taints).is_some() {
            return false;
        }
        if !filter.honor_affinity {
            return true;
        }
        let selection = ground.demands.selection(filter.demand.selection);
        let holds = |ix: usize| {
            let node = &ground.problem.nodes[ix];
            selection.holds(|key| node_label(node, key))
        };
        if names_host(selection.requirements()) {
            return holds(node_ix);
        }
        let group = self.group_of[node_ix];
        let key = (filter.demand.selection, group);
        *self
            .selected
            .entry(key)
            .or_insert_with(|| holds(self.samples[group]))
    }

    /// Whether pods on this place count.
    pub(crate) fn place(
        &mut self,
        ground: &Ground<'p>,
        market: &mut Market<'p>,
        filter: Filter,
        place: Result<usize, usize>,
    ) -> Counted {
        match place {
            Ok(launch) => self.launch(ground, market, filter, launch),
            Err(node) if self.node(ground, filter, node) => Counted::Surely,
            Err(_) => Counted::No,
        }
    }

    /// Whether pods on this new node count.
    fn launch(
        &self,
        ground: &Ground<'p>,
        market: &mut Market<'p>,
        filter: Filter,
        launch: usize,
    ) -> Counted {
        let Some(class) = market.of_launch[launch] else {
            return Counted::No;
        };
        let class = &market.classes[class];
        let view = &mut market.views[class.pool];
        if filter.honor_taints
            && ground
                .untolerated(filter.demand, &view.worlds.pool.taints)
                .is_some()
        {
            return Counted::No;
        }
        if !filter.honor_affinity {
            return Counted::Surely;
        }
        let demand = without_volumes(filter.demand);
        let (mut in_some, mut in_all) = (false, true);
        for context in &class.contexts {
            let accepted = view.accepted(ground, *context, demand);
            in_some |= accepted.meets(&class.left);
            in_all &= class.left.first_outside(accepted).is_none();
        }
        match (in_some, in_all) {
            (false, _) => Counted::No,
            (true, false) => Counted::Perhaps,
            (true, true) => Counted::Surely,
        }
    }

    /// The domains of `key` that a pod could meet on some node there is or could be.
    pub(crate) fn reachable(
        &mut self,
        ground: &Ground<'p>,
        market: &mut Market<'p>,
        topology: &mut Topology<'p>,
        key: &'p str,
        filter: Filter,
    ) -> &BTreeSet<Domain> {
        if !self.reachable.contains_key(&(key, filter)) {
            let mut found = self.on_nodes(ground, topology, key, filter);
            for (ix, pool) in ground.problem.pools.iter().enumerate() {
                for value in pool_values(ground, market, (ix, pool), key, filter) {
                    found.insert(topology.value(&value));
                }
            }
            self.reachable.insert((key, filter), found);
        }
        &self.reachable[&(key, filter)]
    }

    fn on_nodes(
        &mut self,
        ground: &Ground<'p>,
        topology: &mut Topology<'p>,
        key: &str,
        filter: Filter,
    ) -> BTreeSet<Domain> {
        let selection = ground.demands.selection(filter.demand.selection);
        let alike = !filter.honor_taints && !names_host(selection.requirements());
        let nodes: Vec<usize> = if alike {
            self.samples.clone()
        } else {
            (0..ground.problem.nodes.len()).collect()
        };
        let mut found = BTreeSet::new();
        for ix in nodes {
            if self.node(ground, filter, ix)
                && let Some(value) = node_label(&ground.problem.nodes[ix], key)
            {
                found.insert(topology.value(value));
            }
        }
        found
    }
}

fn names_host<'r>(mut requirements: impl Iterator<Item = &'r Requirement>) -> bool {
    requirements.any(|r| r.key().as_ref() == keys::HOSTNAME)
}

/// Volumes never change which domains count.
fn without_volumes(demand: Demand) -> Demand {
    Demand {
        volumes: Demands::NO_VOLUMES,
        ..demand
    }
}

/// The values of a label on nodes that a pool could still buy.
fn pool_values<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    (ix, pool): (usize, &'p Pool),
    key: &'p str,
    filter: Filter,
) -> Vec<String> {
    let untolerated = ground.untolerated(filter.demand, &pool.taints).is_some();
    if pool.closed.is_some() || (filter.honor_taints && untolerated) {
        return Vec::new();
    }
    let view = &mut market.views[ix];
    let demand = without_volumes(filter.demand);
    let contexts = view.contexts(ground, &[], &[demand]).unwrap_or_default();
    let listed = pool.requirements.get(key).and_then(Requirement::members);
    let n_worlds = view.worlds.list.len();
    let mut values = Vec::new();
    let mut met = Bits::none(n_worlds);
    for context in contexts {
        let worlds = if filter.honor_affinity {
            view.accepted(ground, context, demand).clone()
        } else {
            Bits::all(n_worlds)
        };
        if worlds.is_empty() {
            continue;
        }
        // A key whose values the pool does not list has no domains until a node has one.
        if let Some(value) = view.custom_value(context, key)
            && listed.is_some()
        {
            values.push(value.to_string());
        }
        met.add(&worlds);
    }
    if !view.is_custom(key) {
        let found = view.worlds.values_in(ground, key, &met);
        values.extend(found.into_iter().flatten().map(str::to_owned));
    }
    values
}
