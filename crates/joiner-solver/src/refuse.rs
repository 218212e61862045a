//! Why a pod was left over.

use std::collections::BTreeMap;

use joiner_model::{
    Incompatible, InstanceType, Labels, Name, Offering, PodIx, PodShape, Pool, PoolRefusal,
    Refusal, Requirement, Requirements, ResourceName, Resources, Ruling, keys, tolerates_all,
};

use crate::absent::Known;
use crate::classes::{Classes, Demand};
use crate::funnel::Narrowing;
use crate::ground::{Ground, Level};
use crate::select::{Asks, Choices};
use crate::wish;

/// Finds reasons, once per shape.
pub(crate) struct Refuser<'a, 'p> {
    ground: &'a Ground<'p>,
    choices: &'a mut Choices,
    classes: &'a Classes,
    /// Capacity that the plan buys, by pool.
    bought: Vec<Resources>,
    /// Zones and types that there are.
    there: Known<'p>,
    /// What pools name that there is none of.
    absent_of_pools: Vec<Refusal>,
    known: BTreeMap<u32, Vec<Refusal>>,
}

impl<'a, 'p> Refuser<'a, 'p> {
    pub(crate) fn new(
        ground: &'a Ground<'p>,
        choices: &'a mut Choices,
        classes: &'a Classes,
        bought: Vec<Resources>,
    ) -> Self {
        let there = Known::new(ground.problem);
        let of_pools = there.of_pools(ground.problem).into_iter();
        let of_pools = of_pools.map(|(pool, absent)| Refusal::Absent {
            pool: Some(pool),
            absent,
        });
        Self {
            ground,
            choices,
            classes,
            bought,
            absent_of_pools: of_pools.collect(),
            there,
            known: BTreeMap::new(),
        }
    }

    /// Why this pod is left over: what is named and does not exist, one reason per pool, heaviest first,
    /// then the existing nodes.
    pub(crate) fn refusals(&mut self, pod: PodIx) -> Vec<Refusal> {
        let s = self.ground.problem[pod].shape.0;
        if let Some(known) = self.known.get(&s) {
            return known.clone();
        }
        let refusals = self.find(s);
        self.known.insert(s, refusals.clone());
        refusals
    }

    fn find(&mut self, s: u32) -> Vec<Refusal> {
        let problem = self.ground.problem;
        let shape = &problem.shapes[s as usize];
        let mut pools: Vec<usize> = (0..problem.pools.len()).collect();
        pools.sort_by(|a, b| {
            let (a, b) = (&problem.pools[*a], &problem.pools[*b]);
            b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name))
        });
        let mut rulings: Vec<PoolRefusal> = Vec::new();
        let mut of_pool: BTreeMap<usize, usize> = BTreeMap::new();
        for p in pools {
            let pool = &problem.pools[p];
            let alike = match self.ground.stands_for[p] {
                Some(like) if like != p => of_pool.get(&like).copied(),
                _ => None,
            };
            let alike = alike.or_else(|| {
                let ruling = match self.ground.stands_for[p] {
                    Some(_) => self.pool_ruling(s, shape, pool),
                    None => Ruling::Closed("there are more pools than one plan can weigh".into()),
                };
                let same = rulings.iter().position(|known| known.ruling == ruling);
                if same.is_none() {
                    rulings.push(PoolRefusal {
                        pool: pool.name.clone(),
                        ruling,
                        n_alike: 0,
                    });
                    of_pool.insert(p, rulings.len() - 1);
                }
                same
            });
            if let Some(same) = alike {
                rulings[same].n_alike += 1;
                of_pool.insert(p, same);
            }
        }
        let absent = self.there.of_shape(shape).into_iter();
        let absent = absent.map(|absent| Refusal::Absent { pool: None, absent });
        let mut all: Vec<Refusal> = absent.chain(self.absent_of_pools.clone()).collect();
        if rulings.is_empty() {
            all.push(Refusal::NoPools);
        }
        all.extend(rulings.into_iter().map(Refusal::Pool));
        if !problem.nodes.is_empty() {
            let ruling = self.node_ruling(s, shape);
            all.push(Refusal::Nodes {
                n_nodes: problem.nodes.len(),
                ruling,
            });
        }
        all
    }

    fn pool_ruling(&mut self, s: u32, shape: &PodShape, pool: &Pool) -> Ruling {
        if let Some(ruling) = static_ruling(self.ground, shape, pool) {
            return ruling;
        }
        if let Some(ruling) = self.limit_ruling(s, pool) {
            return ruling;
        }
        self.topology_ruling(s).unwrap_or(Ruling::Full)
    }

    /// A limit that leaves no room for any type that could hold the pod.
    fn limit_ruling(&mut self, s: u32, pool: &Pool) -> Option<Ruling> {
        let limits = pool.limits.as_ref()?;
        let problem = self.ground.problem;
        let shape = &problem.shapes[s as usize];
        let level = wish::levels(problem, shape);
        let choice = self
            .choices
            .of(self.ground, Asks::new(shape, None, level > 0));
        let choice = &self.choices.all[choice as usize];
        let need = self.ground.amounts(&shape.requests);
        let mut smallest: BTreeMap<&ResourceName, u64> = BTreeMap::new();
        for kind in &self.ground.kinds {
            let usable = problem.pools[self.ground.pool_of(kind)].name == pool.name
                && choice.alternatives.iter().any(|sel| sel.has(kind))
                && need
                    .iter()
                    .zip(self.ground.room_of(kind))
                    .all(|(q, r)| q <= r);
            if usable {
                for (name, _) in limits.iter() {
                    let has = match name.as_str() {
                        "nodes" => 1,
                        _ => problem.types[kind.ty as usize].capacity.get(name),
                    };
                    let slot = smallest.entry(name).or_insert(u64::MAX);
                    *slot = (*slot).min(has);
                }
            }
        }
        limits.iter().find_map(|(name, limit)| {
            let used: u64 = problem
                .nodes
                .iter()
                .filter(|n| n.pool.as_ref() == Some(&pool.name))
                .map(|n| {
                    if name.as_str() == "nodes" {
                        1
                    } else {
                        n.capacity.get(name)
                    }
                })
                .sum();
            let ours = problem.pools.iter().position(|p| p.name == pool.name);
            let bought = ours.map_or(0, |p| self.bought[p].get(name));
            let left = limit.saturating_sub(used).saturating_sub(bought);
            let wanted = smallest.get(name).copied()?;
            (wanted > left).then(|| Ruling::Limit {
                resource: name.clone(),
                limit,
                left,
            })
        })
    }

    /// The first rule over topology that the pod is under.
    fn topology_ruling(&self, s: u32) -> Option<Ruling> {
        let class = self
            .classes
            .all
            .iter()
            .filter(|c| c.shape == s)
            .max_by_key(|c| c.level)?;
        let rulings = class.owned.iter().map(|r| {
            let rule = &self.classes.book.rules[*r as usize];
            let key = rule.key.clone();
            match rule.demand {
                Demand::Spread { max_skew, .. } => Ruling::Spread { key, max_skew },
                Demand::Affinity => Ruling::Affinity { key },
                Demand::Anti { .. } => Ruling::AntiAffinity { key },
            }
        });
        let kept_off = class.counted.iter().filter_map(|r| {
            let rule = &self.classes.book.rules[*r as usize];
            matches!(rule.demand, Demand::Anti { both: true }).then(|| Ruling::AntiAffinity {
                key: rule.key.clone(),
            })
        });
        rulings.chain(kept_off).next()
    }

    fn node_ruling(&mut self, s: u32, shape: &PodShape) -> Ruling {
        let problem = self.ground.problem;
        let choice = self.choices.of(self.ground, Asks::new(shape, None, true));
        let choice = &self.choices.all[choice as usize];
        if choice.strict_hosts.is_clear() {
            return Ruling::NotSelected {
                asks: asks_text(shape),
            };
        }
        let untolerated = problem
            .nodes
            .iter()
            .find_map(|n| tolerates_all(&shape.tolerations, &n.taints, true).err());
        match untolerated {
            Some(taint) if choice.hosts.is_clear() => Ruling::Taint(taint.clone()),
            _ => {
                let need = self.ground.amounts(&shape.requests);
                let fits = choice.hosts.ones().any(|n| {
                    need.iter()
                        .zip(&self.ground.hosts[n].room)
                        .all(|(q, r)| q <= r)
                });
                let topology = if fits { self.topology_ruling(s) } else { None };
                topology.unwrap_or(Ruling::Full)
            }
        }
    }
}

/// What rules a pool out for a pod by itself on an empty node, before limits and topology.
fn static_ruling(ground: &Ground<'_>, shape: &PodShape, pool: &Pool) -> Option<Ruling> {
    let problem = ground.problem;
    if let Some(why) = &pool.closed {
        return Some(Ruling::Closed(why.clone()));
    }
    if let Err(taint) = tolerates_all(&shape.tolerations, &pool.taints, true) {
        return Some(Ruling::Taint(taint.clone()));
    }
    let mut template = pool.requirements.clone();
    let labels: Labels = pool.labels.clone();
    Requirements::from_labels(&labels)
        .iter()
        .for_each(|r| template.add(r.clone()));
    let known: Vec<Name> = problem.well_known.iter().cloned().collect();
    let open = |key: &str| {
        key != keys::HOSTNAME
            && (keys::WELL_KNOWN.contains(&key)
                || problem.well_known.contains(key)
                || matches!(ground.level(key), Level::Type | Level::Domain))
    };
    let mut incompatible: Option<Incompatible> = None;
    let compatible = terms_of(shape).into_iter().any(|asks| {
        template
            .compatible(&asks, open, &known)
            .map_err(|e| incompatible.get_or_insert(e).clone())
            .is_ok()
    });
    if !compatible {
        return incompatible.map(Ruling::Labels);
    }
    let funnel = Narrowing::new(ground, shape, pool);
    funnel.ruling(shape, pool)
}

/// Node selection as alternatives: selector with each required term.
fn terms_of(shape: &PodShape) -> Vec<Requirements> {
    let base: Vec<Requirement> = shape.node_selector.clone();
    if shape.node_terms.is_empty() {
        return vec![base.into_iter().collect()];
    }
    shape
        .node_terms
        .iter()
        .map(|t| base.iter().chain(t).cloned().collect())
        .collect()
}

/// Why a pool has no offering at all for a pod: by labels, because all are sold, or because its
/// daemons fill every type.
pub(crate) fn nothing_left(ground: &Ground<'_>, shape: &PodShape, pool: &Pool) -> Ruling {
    let problem = ground.problem;
    let n_types = pool.types.len();
    let mut sold = pool.types.iter().flat_map(|t| &problem[*t].offerings);
    if sold.next().is_none() {
        return Ruling::Closed("its catalog has no offerings".into());
    }
    let holds = |r: &Requirement, ty: &InstanceType, offering: &Offering| {
        let own = offering
            .labels
            .get(r.key())
            .or_else(|| pool.labels.get(r.key()));
        if let Some(value) = own {
            return r.holds(Some(value));
        }
        match ty.labels.get(r.key()) {
            Some(values) => values.iter().any(|v| r.holds(Some(v))),
            None if r.key().as_ref() == keys::INSTANCE_TYPE => r.holds(Some(&ty.name)),
            None => r.holds(None) || !pool.requirements.iter().all(|p| p.key() != r.key()),
        }
    };
    let (mut n_allowed, mut n_matching, mut n_sold) = (0, 0, 0);
    for ty in pool.types.iter().map(|t| &problem[*t]) {
        for offering in &ty.offerings {
            let allowed = pool.requirements.iter().all(|r| holds(r, ty, offering));
            let mut terms = terms_of(shape).into_iter();
            let wanted = terms.any(|asks| asks.iter().all(|r| holds(r, ty, offering)));
            n_allowed += usize::from(allowed);
            n_matching += usize::from(allowed && wanted);
            n_sold += usize::from(allowed && wanted && !offering.available);
        }
    }
    if n_allowed == 0 {
        Ruling::NoTypes {
            n_types,
            requirements: pool.requirements.to_string(),
        }
    } else if n_matching == 0 {
        Ruling::NoOffering {
            asks: asks_text(shape),
            n_types,
        }
    } else if n_sold == n_matching {
        Ruling::SoldOut
    } else {
        daemons_in_the_way(ground, shape, pool)
    }
}

/// The resource of which daemons leave too little on every type.
fn daemons_in_the_way(ground: &Ground<'_>, shape: &PodShape, pool: &Pool) -> Ruling {
    let problem = ground.problem;
    let mut need = shape.requests.clone();
    for daemon in &problem.daemons {
        if tolerates_all(&daemon.shape.tolerations, &pool.taints, true).is_ok() {
            need.add(&daemon.shape.requests);
        }
    }
    let most = |name: &ResourceName| {
        let types = pool.types.iter().map(|t| &problem[*t]);
        types
            .filter_map(|t| t.allocatable().ok())
            .map(|a| a.get(name))
            .max()
            .unwrap_or(0)
    };
    let short = need.iter().find(|(name, amount)| *amount > most(name));
    match short {
        Some((name, needed)) => Ruling::TooLarge {
            resource: name.clone(),
            needed,
            most: most(name),
        },
        None => Ruling::NotTogether(need.iter().map(|(name, _)| name.clone()).collect()),
    }
}

/// Node selection as the user wrote it, clause by clause.
fn asks_text(shape: &PodShape) -> String {
    let first = shape.node_terms.first().into_iter().flatten();
    let clauses: Vec<String> = shape
        .node_selector
        .iter()
        .chain(first)
        .map(ToString::to_string)
        .collect();
    clauses.join(" and ")
}
