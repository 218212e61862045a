//! What a problem speaks of: resources, label keys, pool variants, domains.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::{Labels, Name, Problem, Requirement, ResourceName, keys};

use crate::ground::{Interner, Level, Variant};

/// Every resource that a pod or daemon asks for.
pub(crate) fn dims(problem: &Problem) -> Vec<ResourceName> {
    let mut all: BTreeSet<ResourceName> =
        [ResourceName::Cpu, ResourceName::Memory, ResourceName::Pods].into();
    let shapes = problem
        .shapes
        .iter()
        .chain(problem.daemons.iter().map(|d| &d.shape));
    for shape in shapes {
        all.extend(
            shape
                .requests
                .iter()
                .filter(|(_, n)| *n > 0)
                .map(|(name, _)| name.clone()),
        );
    }
    all.into_iter().collect()
}

/// Label keys, each with the values that are named for it.
pub(crate) type Mentions = BTreeMap<Name, BTreeSet<Name>>;

/// Every label key that pods and daemons speak of.
pub(crate) fn asked_keys(problem: &Problem) -> Mentions {
    let mut all = Mentions::new();
    let mut note = |r: &Requirement| {
        all.entry(r.key().clone())
            .or_default()
            .extend(r.named_values().iter().cloned());
    };
    let shapes = problem
        .shapes
        .iter()
        .chain(problem.daemons.iter().map(|d| &d.shape));
    for shape in shapes.clone() {
        shape.node_selector.iter().for_each(&mut note);
        shape.node_terms.iter().flatten().for_each(&mut note);
        shape
            .preferred_node_terms
            .iter()
            .flat_map(|p| &p.term)
            .for_each(&mut note);
        shape.volume_terms.iter().flatten().for_each(&mut note);
    }
    for shape in shapes {
        let terms = shape.affinity.iter().chain(&shape.anti_affinity);
        let preferred = shape
            .preferred_affinity
            .iter()
            .chain(&shape.preferred_anti_affinity)
            .map(|p| &p.term);
        let topology = terms
            .chain(preferred)
            .map(|t| &t.key)
            .chain(shape.spreads.iter().map(|s| &s.key));
        for key in topology {
            all.entry(key.clone()).or_default();
        }
    }
    all
}

/// The same, and what pools speak of.
pub(crate) fn mentioned_keys(problem: &Problem, asked: &Mentions) -> Mentions {
    let mut all = asked.clone();
    for pool in &problem.pools {
        for r in pool.requirements.iter() {
            all.entry(r.key().clone())
                .or_default()
                .extend(r.named_values().iter().cloned());
        }
        for key in pool.labels.keys() {
            all.entry(key.clone()).or_default();
        }
    }
    all
}

/// For each pool the one that stands for it: itself, or one that nobody can tell from it. `None`
/// for pools beyond what one plan can weigh.
pub(crate) fn representatives(problem: &Problem, asked: &Mentions) -> Vec<Option<usize>> {
    let mut order: Vec<usize> = (0..problem.pools.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&problem.pools[*a], &problem.pools[*b]);
        b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name))
    });
    let mut known: HashMap<_, usize> = HashMap::new();
    let mut all = vec![None; problem.pools.len()];
    let mut n_kinds = 0;
    for p in order {
        let pool = &problem.pools[p];
        let labels: Vec<_> = pool
            .labels
            .iter()
            .filter(|(key, _)| asked.contains_key(*key))
            .collect();
        let told_apart = pool.limits.is_some() || pool.closed.is_some();
        let sameness = (
            pool.weight,
            labels,
            &pool.taints,
            &pool.requirements,
            &pool.types,
        );
        if let Some(like) = known.get(&sameness).filter(|_| !told_apart) {
            all[p] = Some(*like);
            continue;
        }
        let types = pool.types.iter().map(|t| &problem[*t]);
        n_kinds += types.map(|t| t.offerings.len()).sum::<usize>();
        if n_kinds <= KINDS_MAX {
            all[p] = Some(p);
            if !told_apart {
                known.insert(sameness, p);
            }
        }
    }
    all
}

/// Most offerings, over all pools, that one plan weighs; lighter pools beyond that are left out.
const KINDS_MAX: usize = 3_000_000;

/// Assigns every key to the part of a kind that carries it.
pub(crate) fn levels(problem: &Problem, mentioned: &Mentions) -> BTreeMap<Name, Level> {
    let mut levels = BTreeMap::new();
    for ty in &problem.types {
        for (key, values) in &ty.labels {
            if values.len() > 1 && mentioned.contains_key(key) {
                levels.insert(key.clone(), Level::Domain);
            } else {
                levels.entry(key.clone()).or_insert(Level::Type);
            }
        }
    }
    for ty in &problem.types {
        for offering in &ty.offerings {
            for key in offering.labels.keys() {
                let told_apart = matches!(key.as_ref(), keys::ZONE | keys::CAPACITY_TYPE)
                    || offering.reservation.is_some();
                if told_apart || mentioned.contains_key(key) {
                    levels.insert(key.clone(), Level::Domain);
                }
            }
        }
    }
    levels.insert(keys::INSTANCE_TYPE.into(), Level::Type);
    levels.insert(keys::HOSTNAME.into(), Level::Host);
    levels
}

/// Most variants one pool is unfolded into.
const VARIANTS_MAX: usize = 512;

/// Pools with one value chosen for each key of their own that somebody asks for.
pub(crate) fn variants(
    problem: &Problem,
    asked: &Mentions,
    levels: &BTreeMap<Name, Level>,
    stands_for: &[Option<usize>],
) -> Vec<Variant> {
    let mut all = Vec::new();
    for (p, pool) in problem.pools.iter().enumerate() {
        if stands_for[p] != Some(p) {
            continue;
        }
        let mut labels = vec![pool.labels.clone()];
        for r in pool.requirements.iter() {
            let own = !levels.contains_key(r.key()) && !pool.labels.contains_key(r.key());
            let values = if own {
                own_values(r, asked)
            } else {
                Vec::new()
            };
            if values.is_empty() || labels.len() * values.len() > VARIANTS_MAX {
                if let (true, Some(value)) = (own, values.first()) {
                    labels
                        .iter_mut()
                        .for_each(|l| drop(l.insert(r.key().clone(), value.clone())));
                }
                continue;
            }
            labels = labels
                .iter()
                .flat_map(|l| {
                    values.iter().map(move |value| {
                        let mut l = l.clone();
                        l.insert(r.key().clone(), value.clone());
                        l
                    })
                })
                .collect();
        }
        all.extend(labels.into_iter().map(|labels| Variant { pool: p, labels }));
    }
    all
}

/// A value of a pool's own key that nobody has named: a label, but no domain of a spread.
pub(crate) const UNNAMED: &str = "\u{1}";

/// The values that a pool's own key can take, as far as anybody can tell them apart.
fn own_values(r: &Requirement, asked: &Mentions) -> Vec<Name> {
    match r.members() {
        Some(members) if asked.contains_key(r.key()) => members.iter().cloned().collect(),
        Some(members) => members.first().cloned().into_iter().collect(),
        None if !r.holds(None) => {
            let named = asked.get(r.key()).cloned().unwrap_or_default();
            let mut values: Vec<Name> = named.into_iter().filter(|v| r.has(v)).collect();
            let number = || {
                let mut all = (0..=i64::MAX)
                    .map(|n| Name::from(n.to_string()))
                    .take(100_000);
                all.find(|v| r.has(v) && !values.contains(v))
            };
            let unnamed = if r.has(UNNAMED) {
                Some(UNNAMED.into())
            } else {
                number()
            };
            values.extend(unnamed);
            values
        }
        None => Vec::new(),
    }
}

/// Domains in which a type is for sale, with the offering of each.
pub(crate) fn offered_domains(
    problem: &Problem,
    ty: usize,
    domain_keys: &[Name],
    domains: &mut Interner<Labels>,
) -> Vec<(u32, u32)> {
    let ty = &problem.types[ty];
    let mut all: Vec<(u32, u32)> = Vec::new();
    for (o, offering) in (0u32..).zip(&ty.offerings) {
        if !offering.available
            || offering
                .reservation
                .as_ref()
                .is_some_and(|(_, left)| *left == 0)
        {
            continue;
        }
        let mut worlds: Vec<Labels> = vec![Labels::new()];
        for key in domain_keys {
            let own = offering.labels.get(key).map(std::slice::from_ref);
            let Some(values) = own.or_else(|| ty.labels.get(key).map(Vec::as_slice)) else {
                continue;
            };
            worlds = worlds
                .iter()
                .flat_map(|w| {
                    values.iter().map(move |value| {
                        let mut w = w.clone();
                        w.insert(key.clone(), value.clone());
                        w
                    })
                })
                .collect();
        }
        for world in worlds {
            all.push((domains.intern(world), o));
        }
    }
    all
}
