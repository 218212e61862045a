//! Nodes with their ranked alternatives.
//!
//! The packer settles on one kind per node; here everything that the pods on it leave open is
//! opened again, and the cheapest offering of what is left is the one to launch.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{
    Launch, MinValuesPolicy, Name, NanoDollars, OfferingIx, PodIx, PoolIx, Problem, Requirement,
    Resources, TypeIx, keys,
};

use crate::cells::{Limits, Part};
use crate::classes::Classes;
use crate::ground::{Ground, Interner, Kind, Level};
use crate::layout::UNNAMED;
use crate::rows::Opened;
use crate::select::{Choices, Sel};

/// Most types that a node may list.
pub(crate) const TYPES_MAX: usize = 600;

/// A node before its pods have names.
#[derive(Clone, Debug)]
pub(crate) struct Shaped {
    /// Its pool.
    pub(crate) pool: usize,
    /// What is left open.
    pub(crate) requirements: Vec<Requirement>,
    /// Types, cheapest first.
    pub(crate) types: Vec<TypeIx>,
    /// What to launch.
    pub(crate) offering: (TypeIx, OfferingIx),
    /// At which price.
    pub(crate) price: u64,
    /// `minValues` were lowered.
    pub(crate) min_values_relaxed: bool,
}

/// Shapes nodes, remembering the answer for equal ones.
pub(crate) struct Finisher<'a, 'p> {
    ground: &'a Ground<'p>,
    choices: &'a Choices,
    classes: &'a Classes,
    parts: &'a [Part],
    by_pool: Vec<Vec<u32>>,
    /// By pool: what each node may take of the limits on top of what was planned for it.
    allowances: Vec<Resources>,
    /// Distinct limits and pins of parts, and which each part has.
    bounds: Vec<(Limits, Vec<Name>)>,
    bounds_of_part: Vec<u32>,
    starts: BTreeMap<StartKey, Option<Start>>,
    known: BTreeMap<Key, Option<Shaped>>,
}

/// What pods on a node leave open before their sizes are looked at.
struct Start {
    sel: Sel,
    /// Keys that must have one value.
    pins: BTreeSet<Name>,
    /// Kinds that are left.
    mine: Vec<u32>,
}

/// Kind and selections (class choice, number of limits and pins).
type StartKey = (u32, Vec<(u32, u32)>);

/// The same, and load.
type Key = (u32, Vec<(u32, u32)>, Vec<u64>);

impl<'a, 'p> Finisher<'a, 'p> {
    pub(crate) fn new(
        ground: &'a Ground<'p>,
        choices: &'a Choices,
        classes: &'a Classes,
        parts: &'a [Part],
        opened: &[Opened],
    ) -> Self {
        let mut bounds: Interner<(Limits, Vec<Name>)> = Interner::default();
        let bounds_of_part = parts
            .iter()
            .map(|p| bounds.intern((p.limits.clone(), p.pins.clone())))
            .collect();
        let mut by_pool = vec![Vec::new(); ground.problem.pools.len()];
        for (k, kind) in (0u32..).zip(&ground.kinds) {
            by_pool[ground.pool_of(kind)].push(k);
        }
        Self {
            ground,
            choices,
            classes,
            parts,
            by_pool,
            allowances: allowances(ground, opened),
            bounds: bounds.items,
            bounds_of_part,
            starts: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// The final shape of a node, or `None` when `minValues` cannot be met.
    pub(crate) fn shape(&mut self, node: &Opened) -> Option<Shaped> {
        let mut asks: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut load = vec![0u64; self.ground.dims.len()];
        for (p, n) in &node.parts {
            let part = &self.parts[*p as usize];
            for (c, m) in &part.item.members {
                let class = &self.classes.all[*c as usize];
                asks.insert((class.choice, self.bounds_of_part[*p as usize]));
                for (sum, q) in load.iter_mut().zip(&class.need) {
                    *sum += q * u64::from(*n) * u64::from(*m);
                }
            }
        }
        let ports = node.parts.iter().any(|(p, _)| self.has_ports(*p));
        let key = (node.kind, asks.into_iter().collect::<Vec<_>>(), load);
        if !ports && let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let start = (key.0, key.1.clone());
        if !self.starts.contains_key(&start) {
            let made = self.start(&start);
            self.starts.insert(start.clone(), made);
        }
        let shaped = self.starts[&start]
            .as_ref()
            .and_then(|s| self.make(node, &key, s));
        if !ports {
            self.known.insert(key, shaped.clone());
        }
        shaped
    }

    fn has_ports(&self, p: u32) -> bool {
        self.parts[p as usize].item.members.iter().any(|(c, _)| {
            let shape = self.classes.all[*c as usize].shape;
            !self.ground.problem.shapes[shape as usize].ports.is_empty()
        })
    }

    /// What the pods on a node leave open whatever their size, and the kinds that are left.
    fn start(&self, (kind, asks): &StartKey) -> Option<Start> {
        let ground = self.ground;
        let planned = &ground.kinds[*kind as usize];
        let pool = ground.pool_of(planned);
        let mut sel = Sel::all(ground);
        let mut pins: BTreeSet<Name> = BTreeSet::new();
        for (choice, bounds) in asks {
            let alternatives = &self.choices.all[*choice as usize].alternatives;
            sel.and(alternatives.iter().find(|a| a.has(planned))?);
            let (limits, own_pins) = &self.bounds[*bounds as usize];
            limits
                .iter()
                .for_each(|(key, values)| sel.limit(ground, key, values));
            pins.extend(own_pins.iter().cloned());
        }
        let mut mine: Vec<u32> = self.by_pool[pool].clone();
        mine.retain(|k| {
            let kind = &ground.kinds[*k as usize];
            sel.has(kind)
                && self.within_limits(pool, kind, planned)
                && self.reservation(kind) == self.reservation(planned)
        });
        Some(Start { sel, pins, mine })
    }

    fn make(&self, node: &Opened, (kind, _, load): &Key, start: &Start) -> Option<Shaped> {
        let ground = self.ground;
        let pool = ground.pool_of(&ground.kinds[*kind as usize]);
        let mut sel = start.sel.clone();
        let fits = |k: &Kind| {
            load.iter().zip(ground.room_of(k)).all(|(q, r)| q <= r) && self.ports_free(node, k)
        };
        let mine: Vec<&Kind> = start
            .mine
            .iter()
            .map(|k| &ground.kinds[*k as usize])
            .collect();
        let best = *mine
            .iter()
            .filter(|k| fits(k))
            .min_by_key(|k| (k.price, &ground.problem.types[k.ty as usize].name, k.domain))?;
        for key in &start.pins {
            if let Some(value) = ground.value_of(best, key) {
                sel.limit(ground, key, std::slice::from_ref(value));
            }
        }
        self.close_reservations(best, &mut sel);
        self.close_misfits(&mine, best, &mut sel, &fits);
        let mut types = self.ranked_types(&mine, &sel, &fits);
        let relaxed = self.settle_min_values(pool, &mut types)?;
        Some(Shaped {
            pool,
            requirements: self.requirements(pool, &mine, &sel, &types),
            types: types.into_iter().map(TypeIx).collect(),
            offering: (TypeIx(best.ty), OfferingIx(best.offering)),
            price: best.price,
            min_values_relaxed: relaxed,
        })
    }

    fn ports_free(&self, node: &Opened, kind: &Kind) -> bool {
        let taken = &self.ground.daemon_ports[kind.ports as usize];
        taken.is_empty()
            || node.parts.iter().all(|(p, _)| {
                self.parts[*p as usize].item.members.iter().all(|(c, _)| {
                    let shape = self.classes.all[*c as usize].shape as usize;
                    let ports = &self.ground.problem.shapes[shape].ports;
                    ports
                        .iter()
                        .all(|port| taken.iter().all(|t| !t.conflicts(port)))
                })
            })
    }

    /// In a limited pool an alternative may not be larger than what was budgeted and what every
    /// node may have of the rest.
    fn within_limits(&self, pool: usize, kind: &Kind, planned: &Kind) -> bool {
        let problem = self.ground.problem;
        let Some(limits) = &problem.pools[pool].limits else {
            return true;
        };
        let capacity = |k: &Kind| &problem.types[k.ty as usize].capacity;
        limits.iter().all(|(name, _)| {
            let most = problem.types[planned.charge as usize]
                .capacity
                .get(name)
                .saturating_add(self.allowances[pool].get(name));
            capacity(kind).get(name) <= most
        })
    }

    /// The reservation that a kind uses up.
    fn reservation(&self, kind: &Kind) -> Option<&Name> {
        let ty = &self.ground.problem.types[kind.ty as usize];
        ty.offerings[kind.offering as usize]
            .reservation
            .as_ref()
            .map(|(id, _)| id)
    }

    /// A node that takes reserved capacity takes nothing else, and others leave it alone.
    fn close_reservations(&self, best: &Kind, sel: &mut Sel) {
        if self.reservation(best).is_some() {
            crate::ground::keep(&mut sel.domains, |d| d == best.domain as usize);
            crate::ground::keep(&mut sel.types, |t| t == best.ty as usize);
            return;
        }
        let pool = &self.by_pool[self.ground.pool_of(best)];
        for k in pool.iter().map(|k| &self.ground.kinds[*k as usize]) {
            if self.reservation(k).is_some() && k.domain != best.domain {
                sel.domains.set(k.domain as usize, false);
            }
        }
    }

    /// Closes offerings of the chosen type that could not hold the load: by the values of one key
    /// where that is enough, else everything but the chosen offering.
    fn close_misfits(
        &self,
        mine: &[&Kind],
        best: &Kind,
        sel: &mut Sel,
        fits: &dyn Fn(&Kind) -> bool,
    ) {
        let ground = self.ground;
        let misfits = |sel: &Sel| -> Vec<&Kind> {
            let of_type = mine
                .iter()
                .filter(|k| k.ty == best.ty && sel.has(k) && !fits(k));
            of_type.copied().collect()
        };
        let bad = misfits(sel);
        if bad.is_empty() {
            return;
        }
        let mut keys: BTreeSet<Name> = ground
            .domains
            .iter()
            .flat_map(|d| d.keys().cloned())
            .collect();
        keys.extend(
            ground.variants[best.variant as usize]
                .labels
                .keys()
                .cloned(),
        );
        for key in &keys {
            let bad_values: Vec<Option<&Name>> =
                bad.iter().map(|k| ground.value_of(k, key)).collect();
            let open = mine
                .iter()
                .filter(|k| sel.has(k))
                .filter_map(|k| ground.value_of(k, key));
            let mut good: Vec<Name> = open
                .filter(|v| !bad_values.contains(&Some(*v)))
                .cloned()
                .collect();
            good.sort();
            good.dedup();
            if ground.value_of(best, key).is_some_and(|v| good.contains(v)) {
                let mut narrower = sel.clone();
                narrower.limit(ground, key, &good);
                if misfits(&narrower).is_empty() {
                    *sel = narrower;
                    return;
                }
            }
        }
        crate::ground::keep(&mut sel.domains, |d| d == best.domain as usize);
        crate::ground::keep(&mut sel.variants, |v| v == best.variant as usize);
    }

    /// Types of which every offering that is left can hold the load, cheapest first.
    fn ranked_types(&self, mine: &[&Kind], sel: &Sel, fits: &dyn Fn(&Kind) -> bool) -> Vec<u32> {
        let mut prices: BTreeMap<u32, Option<u64>> = BTreeMap::new();
        for kind in mine.iter().filter(|k| sel.has(k)) {
            let entry = prices.entry(kind.ty).or_insert(Some(u64::MAX));
            *entry = match *entry {
                Some(price) if fits(kind) => Some(price.min(kind.price)),
                _ => None,
            };
        }
        let mut ranked: Vec<(u64, &Name, u32)> = prices
            .into_iter()
            .filter_map(|(ty, price)| {
                Some((price?, &self.ground.problem.types[ty as usize].name, ty))
            })
            .collect();
        ranked.sort();
        ranked.into_iter().map(|(_, _, ty)| ty).collect()
    }

    /// Cuts the list to its maximum and checks `minValues`: `Some(true)` when they were lowered.
    fn settle_min_values(&self, pool: usize, types: &mut Vec<u32>) -> Option<bool> {
        types.truncate(TYPES_MAX);
        let met = self.ground.problem.pools[pool]
            .requirements
            .iter()
            .all(|r| {
                r.min_values()
                    .is_none_or(|needed| self.distinct(types.iter().copied(), r) >= needed)
            });
        match (met, self.ground.problem.policy.min_values) {
            (true, _) => Some(false),
            (false, MinValuesPolicy::BestEffort) => Some(true),
            (false, MinValuesPolicy::Strict) => None,
        }
    }

    fn distinct(&self, types: impl Iterator<Item = u32>, r: &Requirement) -> u32 {
        distinct_values(self.ground, types, r)
    }

    /// What is left open, in requirement form: keys on which the node is narrower than its pool.
    fn requirements(
        &self,
        pool: usize,
        mine: &[&Kind],
        sel: &Sel,
        types: &[u32],
    ) -> Vec<Requirement> {
        let ground = self.ground;
        let listed: BTreeSet<u32> = types.iter().copied().collect();
        let left: Vec<&&Kind> = mine
            .iter()
            .filter(|k| sel.has(k) && listed.contains(&k.ty))
            .collect();
        let domains: BTreeSet<u32> = left.iter().map(|k| k.domain).collect();
        let variants: BTreeSet<u32> = left.iter().map(|k| k.variant).collect();
        let all_variants: Vec<usize> = (0..ground.variants.len())
            .filter(|v| ground.variants[*v].pool == pool)
            .collect();
        let mut keys: BTreeSet<&Name> = ground.domains.iter().flat_map(|d| d.keys()).collect();
        if all_variants.len() > 1 {
            keys.extend(
                ground.problem.pools[pool]
                    .requirements
                    .iter()
                    .map(Requirement::key),
            );
        }
        let mut all = Vec::new();
        for key in keys {
            let values: Option<BTreeSet<Name>> = match ground.level(key) {
                Level::Domain => domains
                    .iter()
                    .map(|d| ground.domains[*d as usize].get(key).cloned())
                    .collect(),
                Level::Variant if variants.len() < all_variants.len() => variants
                    .iter()
                    .map(|v| ground.variants[*v as usize].labels.get(key).cloned())
                    .collect(),
                Level::Variant | Level::Type | Level::Host => None,
            };
            let own_label = ground.problem.pools[pool].labels.contains_key(key);
            let named = |values: &BTreeSet<Name>| values.iter().all(|v| v.as_ref() != UNNAMED);
            if let Some(values) = values.filter(|v| !own_label && named(v)) {
                all.push(Requirement::one_of(key, values));
            }
        }
        debug_assert!(all.iter().all(|r| r.key().as_ref() != keys::HOSTNAME));
        all
    }
}

/// What is left of each pool's limits after its planned nodes, shared out evenly among them.
fn allowances(ground: &Ground<'_>, opened: &[Opened]) -> Vec<Resources> {
    let problem = ground.problem;
    let mut planned = vec![Resources::new(); problem.pools.len()];
    let mut n_nodes = vec![0u64; problem.pools.len()];
    for node in opened {
        let kind = &ground.kinds[node.kind as usize];
        let pool = ground.pool_of(kind);
        planned[pool].add(&problem.types[kind.charge as usize].capacity);
        n_nodes[pool] += 1;
    }
    let share = |p: usize| -> Resources {
        let pool = &problem.pools[p];
        let limits = pool.limits.iter().flat_map(Resources::iter);
        limits
            .map(|(name, limit)| {
                let own = problem
                    .nodes
                    .iter()
                    .filter(|n| n.pool.as_ref() == Some(&pool.name));
                let used: u64 = own.map(|n| n.capacity.get(name)).sum();
                let left = limit
                    .saturating_sub(used)
                    .saturating_sub(planned[p].get(name));
                (name.clone(), left / n_nodes[p].max(1))
            })
            .collect()
    };
    (0..problem.pools.len()).map(share).collect()
}

/// How many different values of the requirement's key these types have.
pub(crate) fn distinct_values(
    ground: &Ground<'_>,
    types: impl Iterator<Item = u32>,
    r: &Requirement,
) -> u32 {
    let values: BTreeSet<&str> = types
        .flat_map(|ty| values_of_type(ground.problem, ty, r))
        .collect();
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

/// The values that a type, or an offering of it that is for sale, has for a requirement's key.
pub(crate) fn values_of_type<'p>(problem: &'p Problem, ty: u32, r: &Requirement) -> Vec<&'p str> {
    let ty = &problem.types[ty as usize];
    let mut values: Vec<&str> = if r.key().as_ref() == keys::INSTANCE_TYPE {
        vec![&ty.name]
    } else {
        let own = ty.labels.get(r.key()).into_iter().flatten();
        let sold = ty.offerings.iter().filter(|o| o.available);
        own.chain(sold.filter_map(|o| o.labels.get(r.key())))
            .map(AsRef::as_ref)
            .collect()
    };
    values.retain(|v| r.has(v));
    values.sort_unstable();
    values.dedup();
    values
}

impl Shaped {
    /// The launch with its name and pods.
    pub(crate) fn launch(self, name: Name, pods: Vec<PodIx>, requests: Resources) -> Launch {
        Launch {
            name,
            pool: PoolIx(u32::try_from(self.pool).unwrap_or(u32::MAX)),
            requirements: self.requirements,
            types: self.types,
            offering: self.offering,
            price: NanoDollars::new(self.price),
            pods,
            requests,
            min_values_relaxed: self.min_values_relaxed,
        }
    }
}
