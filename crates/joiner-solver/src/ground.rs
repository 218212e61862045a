//! The concrete nodes that could be bought, in dense form.
//!
//! A *kind* is a pool variant, an instance type and a domain: a node of a kind has exactly known
//! labels. A *variant* is a pool with one value chosen for each label key of the pool's own making
//! that somebody asks for. A *domain* is what an offering adds: zone, capacity type, and one value
//! of each key for which types leave a choice. Node selection is a product of a set of variants, a
//! set of types and a set of domains, because each label key belongs to exactly one of the three.

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;
use joiner_model::{
    HostPort, Labels, Name, PodShape, Problem, Requirement, ResourceName, Resources, keys,
    tolerates_all,
};

use crate::company::Company;
use crate::layout::{
    UNNAMED, asked_keys, dims, levels, mentioned_keys, offered_domains, representatives, variants,
};

/// Which part of a kind carries a label key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The node itself: every node is a domain of its own.
    Host,
    /// The pool and the values chosen for its own keys.
    Variant,
    /// The instance type.
    Type,
    /// The offering.
    Domain,
}

/// A pool with its own label keys settled.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Index of the pool.
    pub(crate) pool: usize,
    /// Labels that come from the pool.
    pub(crate) labels: Labels,
}

/// A node that could be bought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Index of the variant.
    pub(crate) variant: u32,
    /// Index of the instance type.
    pub(crate) ty: u32,
    /// Index of the domain.
    pub(crate) domain: u32,
    /// Index of the offering in its type.
    pub(crate) offering: u32,
    /// Nano-dollars an hour.
    pub(crate) price: u64,
    /// Index into [`Ground::rooms`].
    pub(crate) room: u32,
    /// Index into [`Ground::rooms`]: what may be used of the room so that enough other types could
    /// take the node's place where its pool asks for that.
    pub(crate) usable: u32,
    /// The instance type that counts against limits: itself, or the largest that must be able to
    /// take its place.
    pub(crate) charge: u32,
    /// Index into [`Ground::daemon_ports`].
    pub(crate) ports: u32,
}

/// An existing node in dense form.
#[derive(Debug)]
pub(crate) struct Host {
    /// What pods may still use.
    pub(crate) room: Vec<u64>,
    /// Ports taken.
    pub(crate) ports: Vec<HostPort>,
    /// False when nothing new may be placed here.
    pub(crate) open: bool,
}

/// The problem in dense form.
pub(crate) struct Ground<'p> {
    /// What it was made from.
    pub(crate) problem: &'p Problem,
    /// Resources that anybody asks for; every amount vector has this length.
    pub(crate) dims: Vec<ResourceName>,
    /// Pool variants.
    pub(crate) variants: Vec<Variant>,
    /// Label sets of offerings.
    pub(crate) domains: Vec<Labels>,
    /// Everything that could be bought, by pool variant, type, domain.
    pub(crate) kinds: Vec<Kind>,
    /// Distinct rooms of kinds.
    pub(crate) rooms: Vec<Vec<u64>>,
    /// Distinct sets of ports that daemons take.
    pub(crate) daemon_ports: Vec<Vec<HostPort>>,
    /// Existing nodes.
    pub(crate) hosts: Vec<Host>,
    /// What pools ask for by `minValues`.
    pub(crate) companies: Vec<Option<Company>>,
    /// Existing nodes in the order in which they are filled: finished ones first, then by name.
    pub(crate) host_order: Vec<u32>,
    /// For each existing node its place in that order.
    pub(crate) host_place: Vec<u32>,
    /// For each pool the one that stands for it; `None` beyond what one plan can weigh.
    pub(crate) stands_for: Vec<Option<usize>>,
    levels: BTreeMap<Name, Level>,
}

impl<'p> Ground<'p> {
    /// Lays out everything that could be bought.
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let asked = asked_keys(problem);
        let mentioned = mentioned_keys(problem, &asked);
        let stands_for = representatives(problem, &asked);
        let dims = dims(problem);
        let levels = levels(problem, &mentioned);
        let variants = variants(problem, &asked, &levels, &stands_for);
        let mut ground = Self {
            problem,
            dims,
            variants,
            domains: Vec::new(),
            kinds: Vec::new(),
            rooms: Vec::new(),
            daemon_ports: vec![Vec::new()],
            hosts: Vec::new(),
            companies: problem
                .pools
                .iter()
                .map(|p| Company::new(problem, p))
                .collect(),
            host_order: Vec::new(),
            host_place: Vec::new(),
            stands_for,
            levels,
        };
        ground.lay_out_kinds();
        ground.hosts = (0..problem.nodes.len()).map(|n| ground.host(n)).collect();
        ground.subtract_bound_pods();
        let mut order: Vec<u32> = (0u32..).take(problem.nodes.len()).collect();
        order.sort_by_key(|n| {
            let node = &problem.nodes[*n as usize];
            (!node.initialized, node.name.clone())
        });
        ground.host_place = vec![0; order.len()];
        for (place, n) in (0u32..).zip(&order) {
            ground.host_place[*n as usize] = place;
        }
        ground.host_order = order;
        ground
    }

    /// Which part of a kind carries `key`.
    pub(crate) fn level(&self, key: &str) -> Level {
        self.levels.get(key).copied().unwrap_or(Level::Variant)
    }

    /// Amounts in the order of [`Self::dims`].
    pub(crate) fn amounts(&self, resources: &Resources) -> Vec<u64> {
        self.dims.iter().map(|name| resources.get(name)).collect()
    }

    /// The pool of a kind.
    pub(crate) fn pool_of(&self, kind: &Kind) -> usize {
        self.variants[kind.variant as usize].pool
    }

    /// Room of a kind, daemons already taken off.
    pub(crate) fn room_of(&self, kind: &Kind) -> &[u64] {
        &self.rooms[kind.room as usize]
    }

    /// What packing may use of the room.
    pub(crate) fn usable_of(&self, kind: &Kind) -> &[u64] {
        &self.rooms[kind.usable as usize]
    }

    /// The value a kind has for `key`.
    pub(crate) fn value_of(&self, kind: &Kind, key: &str) -> Option<&Name> {
        match self.level(key) {
            Level::Host => None,
            Level::Variant => self.variants[kind.variant as usize].labels.get(key),
            Level::Type => self.type_label(kind.ty as usize, key),
            Level::Domain => self.domains[kind.domain as usize].get(key),
        }
    }

    /// The single value a type has for `key`.
    pub(crate) fn type_label(&self, ty: usize, key: &str) -> Option<&Name> {
        let ty = &self.problem.types[ty];
        if key == keys::INSTANCE_TYPE {
            return Some(&ty.name);
        }
        ty.labels.get(key).and_then(|values| values.first())
    }

    /// The values that kinds passing `test` have for `key`, sorted.
    pub(crate) fn values(&self, key: &str, test: impl Fn(&Kind) -> bool) -> Vec<Name> {
        let level = self.level(key);
        let mut seen: BTreeMap<u32, &Kind> = BTreeMap::new();
        for kind in &self.kinds {
            let part = match level {
                Level::Host => return Vec::new(),
                Level::Variant => kind.variant,
                Level::Type => kind.ty,
                Level::Domain => kind.domain,
            };
            if !seen.contains_key(&part) && test(kind) {
                seen.insert(part, kind);
            }
        }
        let values: BTreeSet<&Name> = seen
            .values()
            .filter_map(|k| self.value_of(k, key))
            .filter(|v| v.as_ref() != UNNAMED)
            .collect();
        values.into_iter().cloned().collect()
    }

    fn lay_out_kinds(&mut self) {
        let domain_keys: Vec<Name> = {
            let mut keys: Vec<Name> = self
                .levels
                .iter()
                .filter(|(_, level)| **level == Level::Domain)
                .map(|(key, _)| key.clone())
                .collect();
            keys.sort();
            keys
        };
        let mut domains = Interner::default();
        let type_domains: Vec<Vec<(u32, u32)>> = (0..self.problem.types.len())
            .map(|ty| offered_domains(self.problem, ty, &domain_keys, &mut domains))
            .collect();
        self.domains = domains.items;
        let mut rooms = Interner::default();
        let mut ports = Interner::default();
        ports.intern(Vec::new());
        for v in 0..self.variants.len() {
            self.lay_out_variant(v, &type_domains, &mut rooms, &mut ports);
        }
        self.rooms = rooms.items;
        self.daemon_ports = ports.items;
        let mut kinds = std::mem::take(&mut self.kinds);
        kinds.sort_by_cached_key(|kind| {
            let pool = &self.problem.pools[self.pool_of(kind)];
            let ty = &self.problem.types[kind.ty as usize];
            let variant = self.variants[kind.variant as usize].labels.clone();
            let domain = self.domains[kind.domain as usize].clone();
            (
                pool.name.clone(),
                ty.name.clone(),
                variant,
                domain,
                kind.price,
            )
        });
        self.kinds = kinds;
    }

    /// Kinds of one variant: types and offerings that its pool's requirements leave.
    fn lay_out_variant(
        &mut self,
        v: usize,
        type_domains: &[Vec<(u32, u32)>],
        rooms: &mut Interner<Vec<u64>>,
        ports: &mut Interner<Vec<HostPort>>,
    ) {
        let pool = &self.problem.pools[self.variants[v].pool];
        if pool.closed.is_some() {
            return;
        }
        let all: Vec<&Requirement> = pool.requirements.iter().collect();
        let own: Vec<Requirement> = pool
            .labels
            .iter()
            .filter(|(key, _)| matches!(self.level(key), Level::Type | Level::Domain))
            .map(|(key, value)| Requirement::is(key, value.clone()))
            .collect();
        let holds = |level: Level, value: &dyn Fn(&str) -> Option<Name>| {
            all.iter()
                .copied()
                .chain(&own)
                .filter(|r| self.level(r.key()) == level)
                .all(|r| r.holds(value(r.key()).as_deref()))
        };
        let domain_ok: Vec<bool> = self
            .domains
            .iter()
            .map(|d| holds(Level::Domain, &|key| d.get(key).cloned()))
            .collect();
        if !holds(Level::Variant, &|key| {
            self.variants[v].labels.get(key).cloned()
        }) {
            return;
        }
        let daemons = DaemonLoads::new(self, v);
        let mut kinds = Vec::new();
        for ty in &pool.types {
            let ty = ty.0 as usize;
            if !holds(Level::Type, &|key| self.type_label(ty, key).cloned()) {
                continue;
            }
            let instance = &self.problem.types[ty];
            let Ok(allocatable) = instance.allocatable() else {
                continue;
            };
            let allocatable = self.amounts(&allocatable);
            for &(domain, offering) in &type_domains[ty] {
                if !domain_ok[domain as usize] {
                    continue;
                }
                let sold = &instance.offerings[offering as usize];
                let mut room = allocatable.clone();
                if !sold.extra_capacity.is_empty() {
                    for (have, more) in room.iter_mut().zip(self.amounts(&sold.extra_capacity)) {
                        *have = have.saturating_add(more);
                    }
                }
                let Some((room, taken)) = daemons.room_left(ty, domain as usize, room) else {
                    continue;
                };
                kinds.push(Kind {
                    variant: u32::try_from(v).unwrap_or(u32::MAX),
                    ty: u32::try_from(ty).unwrap_or(u32::MAX),
                    domain,
                    offering,
                    price: sold.price.get(),
                    room: rooms.intern(room.clone()),
                    usable: rooms.intern(room),
                    charge: u32::try_from(ty).unwrap_or(u32::MAX),
                    ports: ports.intern(taken),
                });
            }
        }
        if let Some(company) = &self.companies[self.variants[v].pool] {
            crate::company::clip(self, company, &mut kinds, rooms);
        }
        self.kinds.extend(kinds);
    }

    fn host(&self, n: usize) -> Host {
        let node = &self.problem.nodes[n];
        Host {
            room: self.amounts(&node.allocatable),
            ports: Vec::new(),
            open: !node.closed,
        }
    }

    /// Takes bound pods, and daemons that are still to come, off the room of existing nodes.
    fn subtract_bound_pods(&mut self) {
        let problem = self.problem;
        let mut running: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); problem.nodes.len()];
        for pod in &problem.pods {
            let Some(node) = pod.node else { continue };
            let shape = &problem[pod.shape];
            let used = self.amounts(&shape.requests);
            let host = &mut self.hosts[node.0 as usize];
            take(&mut host.room, &used, &mut host.open);
            host.ports.extend(shape.ports.iter().cloned());
            if let Some(daemon) = pod.daemon {
                running[node.0 as usize].insert(daemon.0);
            }
        }
        for (n, node) in problem.nodes.iter().enumerate() {
            for (d, daemon) in (0u32..).zip(&problem.daemons) {
                let shape = &daemon.shape;
                let wanted = !running[n].contains(&d)
                    && tolerates_all(&shape.tolerations, &node.taints, true).is_ok()
                    && selects(shape, &node.labels);
                if wanted {
                    let used = self.amounts(&shape.requests);
                    let host = &mut self.hosts[n];
                    take(&mut host.room, &used, &mut host.open);
                }
            }
        }
    }
}

/// Takes `used` off `room`; a node that has too little is closed.
fn take(room: &mut [u64], used: &[u64], open: &mut bool) {
    for (have, need) in room.iter_mut().zip(used) {
        match have.checked_sub(*need) {
            Some(left) => *have = left,
            None => {
                *have = 0;
                *open = false;
            }
        }
    }
}

/// True when node selection of `shape` (selector and one required term) holds for these labels.
pub(crate) fn selects(shape: &PodShape, labels: &Labels) -> bool {
    let holds = |terms: &[Requirement]| {
        terms
            .iter()
            .all(|r| r.holds(labels.get(r.key()).map(AsRef::as_ref)))
    };
    holds(&shape.node_selector)
        && (shape.node_terms.is_empty() || shape.node_terms.iter().any(|t| holds(t)))
}

/// Which daemons come with a node of one variant.
struct DaemonLoads {
    daemons: Vec<DaemonLoad>,
}

/// A daemon that a variant's taints let through.
struct DaemonLoad {
    /// The types and domains it selects, as alternatives.
    selected: Vec<(FixedBitSet, FixedBitSet)>,
    /// What it takes.
    used: Vec<u64>,
    /// Ports it takes.
    ports: Vec<HostPort>,
}

impl DaemonLoads {
    fn new(ground: &Ground<'_>, v: usize) -> Self {
        let variant = &ground.variants[v];
        let taints = &ground.problem.pools[variant.pool].taints;
        let daemons = ground
            .problem
            .daemons
            .iter()
            .filter(|d| tolerates_all(&d.shape.tolerations, taints, true).is_ok())
            .map(|d| {
                let none = vec![Vec::new()];
                let terms = if d.shape.node_terms.is_empty() {
                    &none
                } else {
                    &d.shape.node_terms
                };
                let selected = terms
                    .iter()
                    .filter_map(|t| ground.narrow(v, d.shape.node_selector.iter().chain(t)))
                    .collect();
                DaemonLoad {
                    selected,
                    used: ground.amounts(&d.shape.requests),
                    ports: d.shape.ports.clone(),
                }
            })
            .collect();
        Self { daemons }
    }

    /// Room and ports after the daemons of this type and domain, or `None` when they do not fit.
    fn room_left(
        &self,
        ty: usize,
        domain: usize,
        mut room: Vec<u64>,
    ) -> Option<(Vec<u64>, Vec<HostPort>)> {
        let mut ports = Vec::new();
        for DaemonLoad {
            selected,
            used,
            ports: taken,
        } in &self.daemons
        {
            if selected
                .iter()
                .any(|(types, domains)| types.contains(ty) && domains.contains(domain))
            {
                for (have, need) in room.iter_mut().zip(used) {
                    *have = have.checked_sub(*need)?;
                }
                ports.extend(taken.iter().cloned());
            }
        }
        Some((room, ports))
    }
}

impl Ground<'_> {
    /// Types and domains for which `terms` hold on nodes of variant `v`; `None` when none can.
    pub(crate) fn narrow<'r>(
        &self,
        v: usize,
        terms: impl Iterator<Item = &'r Requirement>,
    ) -> Option<(FixedBitSet, FixedBitSet)> {
        let mut types = FixedBitSet::with_capacity(self.problem.types.len());
        types.insert_range(..);
        let mut domains = FixedBitSet::with_capacity(self.domains.len());
        domains.insert_range(..);
        for r in terms {
            match self.level(r.key()) {
                Level::Host => {
                    if r.members().is_some() {
                        return None;
                    }
                }
                Level::Variant => {
                    let value = self.variants[v].labels.get(r.key());
                    if !r.holds(value.map(AsRef::as_ref)) {
                        return None;
                    }
                }
                Level::Type => keep(&mut types, |t| {
                    r.holds(self.type_label(t, r.key()).map(AsRef::as_ref))
                }),
                Level::Domain => keep(&mut domains, |d| {
                    r.holds(self.domains[d].get(r.key()).map(AsRef::as_ref))
                }),
            }
        }
        Some((types, domains))
    }
}

/// Keeps the members for which `test` is true.
pub(crate) fn keep(set: &mut FixedBitSet, test: impl Fn(usize) -> bool) {
    let gone: Vec<usize> = set.ones().filter(|i| !test(*i)).collect();
    for i in gone {
        set.remove(i);
    }
}

/// Gives equal values equal numbers, in order of first appearance.
pub(crate) struct Interner<T> {
    numbers: BTreeMap<T, u32>,
    /// The values by number.
    pub(crate) items: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            numbers: BTreeMap::new(),
            items: Vec::new(),
        }
    }
}

impl<T: Ord + Clone> Interner<T> {
    /// The number of `item`.
    pub(crate) fn intern(&mut self, item: T) -> u32 {
        if let Some(number) = self.numbers.get(&item) {
            return *number;
        }
        let number = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        number
    }
}
