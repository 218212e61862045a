//! What pods ask of a node, each distinct demand once.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use joiner_model::{
    HostPort, PodShape, Problem, Requirement, ResourceName, Resources, Terms, Toleration,
};

/// Gives equal things equal numbers.
pub(crate) struct Interner<T> {
    ids: HashMap<T, usize>,
    items: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            ids: HashMap::new(),
            items: Vec::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Interner<T> {
    pub(crate) fn id(&mut self, item: T) -> usize {
        *self.ids.entry(item).or_insert_with(|| {
            self.items.push(item);
            self.items.len() - 1
        })
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }
}

/// Node selector and required node affinity of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Selection<'p> {
    /// All of these hold.
    pub(crate) all: &'p [Requirement],
    /// One of these holds, unless there is none; one without requirements selects no node.
    pub(crate) any: &'p [Terms],
}

impl<'p> Selection<'p> {
    /// True when a node with these labels is selected.
    pub(crate) fn holds<'v>(&self, label: impl Fn(&str) -> Option<&'v str>) -> bool {
        let selects = |terms: &Terms| !terms.is_empty() && all_hold(terms, &label);
        all_hold(self.all, &label) && (self.any.is_empty() || self.any.iter().any(selects))
    }

    /// Every requirement, of whatever part.
    pub(crate) fn requirements(self) -> impl Iterator<Item = &'p Requirement> {
        self.all.iter().chain(self.any.iter().flatten())
    }

    /// True when requirements on `key` alone leave `value` possible.
    pub(crate) fn allows(&self, key: &str, value: &str) -> bool {
        let possible = |terms: &[Requirement]| {
            let mut on_key = terms.iter().filter(|r| r.key().as_ref() == key);
            on_key.all(|r| r.has(value))
        };
        let selects = |terms: &Terms| !terms.is_empty() && possible(terms);
        possible(self.all) && (self.any.is_empty() || self.any.iter().any(selects))
    }
}

/// True when one of the alternatives holds, or there is none.
pub(crate) fn one_holds<'v>(any: &[Terms], label: &impl Fn(&str) -> Option<&'v str>) -> bool {
    any.is_empty() || any.iter().any(|terms| all_hold(terms, label))
}

fn all_hold<'v>(all: &[Requirement], label: &impl Fn(&str) -> Option<&'v str>) -> bool {
    all.iter().all(|r| r.holds(label(r.key())))
}

/// What one shape asks, by number; equal numbers are equal demands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Demand {
    pub(crate) selection: usize,
    pub(crate) volumes: usize,
    pub(crate) tolerations: usize,
    pub(crate) ports: usize,
    pub(crate) amounts: usize,
}

/// An amount per resource, in the order of [`Demands::resources`].
pub(crate) type Amounts = Vec<i128>;

/// The distinct demands of a problem.
#[derive(Default)]
pub(crate) struct Demands<'p> {
    /// Demand of each pod shape.
    pub(crate) shapes: Vec<Demand>,
    /// Demand of each daemon.
    pub(crate) daemons: Vec<Demand>,
    /// Every resource that the problem names.
    pub(crate) resources: Vec<&'p ResourceName>,
    selections: Interner<Selection<'p>>,
    volumes: Interner<&'p [Terms]>,
    tolerations: Interner<&'p [Toleration]>,
    ports: Interner<&'p [HostPort]>,
    requests: Interner<&'p Resources>,
    amounts: Vec<Amounts>,
}

impl<'p> Demands<'p> {
    /// The number of "no volumes to reach".
    pub(crate) const NO_VOLUMES: usize = 0;

    pub(crate) fn new(problem: &'p Problem) -> Self {
        let mut all = Self {
            resources: resources_of(problem),
            ..Self::default()
        };
        all.volumes.id(&[]);
        all.shapes = problem.shapes.iter().map(|s| all.demand(s)).collect();
        all.daemons = problem
            .daemons
            .iter()
            .map(|d| all.demand(&d.shape))
            .collect();
        let requests: Vec<&Resources> = all.requests.items().to_vec();
        all.amounts = requests.into_iter().map(|r| all.amounts_of(r)).collect();
        all
    }

    fn demand(&mut self, shape: &'p PodShape) -> Demand {
        Demand {
            selection: self.selections.id(Selection {
                all: &shape.node_selector,
                any: &shape.node_terms,
            }),
            volumes: self.volumes.id(&shape.volume_terms),
            tolerations: self.tolerations.id(&shape.tolerations),
            ports: self.ports.id(&shape.ports),
            amounts: self.requests.id(&shape.requests),
        }
    }

    pub(crate) fn selection(&self, id: usize) -> Selection<'p> {
        self.selections.items()[id]
    }

    pub(crate) fn selections(&self) -> &[Selection<'p>] {
        self.selections.items()
    }

    pub(crate) fn volumes(&self, id: usize) -> &'p [Terms] {
        self.volumes.items()[id]
    }

    pub(crate) fn all_volumes(&self) -> &[&'p [Terms]] {
        self.volumes.items()
    }

    pub(crate) fn tolerations(&self, id: usize) -> &'p [Toleration] {
        self.tolerations.items()[id]
    }

    pub(crate) fn ports(&self, id: usize) -> &'p [HostPort] {
        self.ports.items()[id]
    }

    pub(crate) fn amounts(&self, id: usize) -> &Amounts {
        &self.amounts[id]
    }

    /// `resources` as one amount per named resource.
    pub(crate) fn amounts_of(&self, resources: &Resources) -> Amounts {
        let amount = |name: &&ResourceName| i128::from(resources.get(name));
        self.resources.iter().map(amount).collect()
    }
}

/// Adds `more` to `sum`, resource by resource.
pub(crate) fn add(sum: &mut Amounts, more: &[i128]) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}

/// The first resource, by number, of which `need` is more than `room`.
pub(crate) fn shortage(need: &[i128], room: &[i128]) -> Option<usize> {
    need.iter().zip(room).position(|(need, room)| need > room)
}

fn resources_of(problem: &Problem) -> Vec<&ResourceName> {
    let pods = problem.shapes.iter().map(|s| &s.requests);
    let daemons = problem.daemons.iter().map(|d| &d.shape.requests);
    let nodes = problem.nodes.iter().map(|n| &n.allocatable);
    let limits = problem.pools.iter().filter_map(|p| p.limits.as_ref());
    let types = problem.types.iter().flat_map(|t| {
        let extra = t.offerings.iter().map(|o| &o.extra_capacity);
        [&t.capacity, &t.overhead].into_iter().chain(extra)
    });
    let all = pods.chain(daemons).chain(nodes).chain(limits).chain(types);
    let names: BTreeSet<&ResourceName> = all.flat_map(|r| r.iter().map(|(name, _)| name)).collect();
    names.into_iter().collect()
}
