//! Which zones and instance types are named that there are none of?
//!
//! A zone exists when an offering or a node is in it, a type when the catalog or a node has it. What an
//! `In` names and nothing has is a slip, or the catalog is another one.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Absent, Name, PodShape, Problem, Requirement, keys, nearest};

/// Names that are told of one object.
const TOLD_MAX: usize = 3;
/// Names that may have been meant.
const NEAR_MAX: usize = 3;

/// The zones and types that there are.
pub(crate) struct Known<'p> {
    zones: BTreeSet<&'p str>,
    types: BTreeSet<&'p str>,
}

impl<'p> Known<'p> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let types = problem.types.iter();
        let offerings = types.clone().flat_map(|own| &own.offerings);
        let sold_in = offerings.filter_map(|own| own.labels.get(keys::ZONE));
        let label = |key| {
            let nodes = problem.nodes.iter();
            nodes.filter_map(move |node| node.labels.get(key))
        };
        // A type may come with its zone, and with a label that is not its name.
        let of_types = |key: &'static str| {
            let types = problem.types.iter();
            types.flat_map(move |own| own.labels.get(key).into_iter().flatten())
        };
        let zones = sold_in.chain(label(keys::ZONE)).chain(of_types(keys::ZONE));
        let names = types
            .map(|own| &own.name)
            .chain(label(keys::INSTANCE_TYPE))
            .chain(of_types(keys::INSTANCE_TYPE));
        Self {
            zones: zones.map(AsRef::as_ref).collect(),
            types: names.map(AsRef::as_ref).collect(),
        }
    }

    /// What a requirement names that there is none of.
    pub(crate) fn absent<'r>(
        &self,
        r: &'r Requirement,
    ) -> impl Iterator<Item = Absent> + use<'r, '_, 'p> {
        let known = match r.key().as_ref() {
            keys::ZONE => Some(&self.zones),
            keys::INSTANCE_TYPE => Some(&self.types),
            _ => None,
        };
        // Without a catalog nothing can be said.
        let known = known.filter(|known| !known.is_empty());
        let named = r.members().into_iter().flatten();
        let unknown = named.filter_map(move |name| Some((known?, name)));
        unknown
            .filter(|(known, name)| !known.contains(name.as_ref()))
            .map(|(known, name)| Absent {
                key: r.key().clone(),
                value: name.clone(),
                near: nearest(name, known.iter().copied())
                    .take(NEAR_MAX)
                    .map(Name::from)
                    .collect(),
            })
    }

    /// What a requirement names, if there is none of any of it.
    fn all_absent(&self, r: &Requirement) -> Vec<Absent> {
        let absent: Vec<Absent> = self.absent(r).collect();
        let n_named = r.members().map_or(0, BTreeSet::len);
        match absent.len() == n_named {
            true => absent,
            false => Vec::new(),
        }
    }

    /// What the rules of a pod name that keeps it from every node.
    pub(crate) fn of_shape(&self, shape: &PodShape) -> Vec<Absent> {
        let terms = shape.node_terms.iter().chain(&shape.volume_terms).flatten();
        let all = shape.node_selector.iter().chain(terms);
        let mut told: Vec<Absent> = Vec::new();
        for absent in all.flat_map(|r| self.all_absent(r)) {
            if !told.contains(&absent) {
                told.push(absent);
            }
        }
        told.truncate(TOLD_MAX);
        told
    }

    /// What the requirements of pools name that keeps them from every offering, by pool.
    pub(crate) fn of_pools(&self, problem: &Problem) -> Vec<(Name, Absent)> {
        let of = |pool: &joiner_model::Pool| {
            let all = pool.requirements.iter().flat_map(|r| self.all_absent(r));
            all.map(|absent| (pool.name.clone(), absent))
                .collect::<Vec<_>>()
        };
        problem.pools.iter().flat_map(of).take(TOLD_MAX).collect()
    }
}

/// A zone or type that is named and that there is none of, and who names it: pools as
/// `NodePool NAME`, pods as `pod NAMESPACE/NAME` and how many more. Preferences count, too.
#[must_use]
pub fn absent(problem: &Problem) -> Vec<(Absent, String)> {
    let known = Known::new(problem);
    let mut pools: BTreeMap<(Name, Name), (Absent, Vec<&Name>)> = BTreeMap::new();
    for pool in &problem.pools {
        for absent in pool.requirements.iter().flat_map(|r| known.absent(r)) {
            let key = (absent.key.clone(), absent.value.clone());
            pools
                .entry(key)
                .or_insert((absent, Vec::new()))
                .1
                .push(&pool.name);
        }
    }
    let of_shape = |shape: &PodShape| {
        let preferred = shape.preferred_node_terms.iter().map(|own| &own.term);
        let terms = shape
            .node_terms
            .iter()
            .chain(&shape.volume_terms)
            .chain(preferred);
        let all = shape.node_selector.iter().chain(terms.flatten());
        let found: Vec<Absent> = all.flat_map(|r| known.absent(r)).collect();
        found
    };
    let shapes: Vec<Vec<Absent>> = problem.shapes.iter().map(of_shape).collect();
    let mut pods: BTreeMap<(Name, Name), (Absent, Vec<&Name>)> = BTreeMap::new();
    for pod in problem.pending() {
        let pod = &problem[pod];
        for absent in &shapes[pod.shape.0 as usize] {
            let key = (absent.key.clone(), absent.value.clone());
            let (_, names) = pods.entry(key).or_insert((absent.clone(), Vec::new()));
            if names.last() != Some(&&pod.name) {
                names.push(&pod.name);
            }
        }
    }
    let told = |kind: &'static str| {
        move |(absent, names): (Absent, Vec<&Name>)| {
            let who = match names.as_slice() {
                [] => String::new(),
                [one] => format!("{kind} {one}"),
                [one, others @ ..] => format!("{kind} {one} and {} more", others.len()),
            };
            (absent, who)
        }
    };
    let pools = pools.into_values().map(told("NodePool"));
    pools.chain(pods.into_values().map(told("pod"))).collect()
}
