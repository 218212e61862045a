//! What a problem speaks of: resources, label keys, pool variants, domains.

use std::collections::{BTreeMap, BTreeSet};

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

/// Every label key that pods, daemons or pools speak of.
pub(crate) fn mentioned_keys(problem: &Problem) -> BTreeMap<Name, BTreeSet<Name>> {
    let mut all: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
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
    for pool in &problem.pools {
        pool.requirements.iter().for_each(&mut note);
    }
    for pool in &problem.pools {
        for key in pool.labels.keys() {
            all.entry(key.clone()).or_default();
        }
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

/// Assigns every key to the part of a kind that carries it.
pub(crate) fn levels(
    problem: &Problem,
    mentioned: &BTreeMap<Name, BTreeSet<Name>>,
) -> BTreeMap<Name, Level> {
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
        for key in ty.offerings.iter().flat_map(|o| o.labels.keys()) {
            let told_apart = matches!(key.as_ref(), keys::ZONE | keys::CAPACITY_TYPE);
            if told_apart || mentioned.contains_key(key) {
                levels.insert(key.clone(), Level::Domain);
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
    mentioned: &BTreeMap<Name, BTreeSet<Name>>,
    levels: &BTreeMap<Name, Level>,
) -> Vec<Variant> {
    let mut all = Vec::new();
    for (p, pool) in problem.pools.iter().enumerate() {
        let mut labels = vec![pool.labels.clone()];
        for r in pool.requirements.iter() {
            let own = !levels.contains_key(r.key()) && !pool.labels.contains_key(r.key());
            let values = if own {
                own_values(r, mentioned)
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

/// The values that a pool's own key can take, as far as anybody can tell them apart.
fn own_values(r: &Requirement, mentioned: &BTreeMap<Name, BTreeSet<Name>>) -> Vec<Name> {
    match r.members() {
        Some(members) => members.iter().cloned().collect(),
        None if !r.holds(None) => {
            let named = mentioned.get(r.key()).cloned().unwrap_or_default();
            let mut values: Vec<Name> = named.into_iter().filter(|v| r.has(v)).collect();
            let unnamed = (0..=i64::MAX)
                .map(|n| Name::from(n.to_string()))
                .take(100_000)
                .find(|v| r.has(v) && !values.contains(v));
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
