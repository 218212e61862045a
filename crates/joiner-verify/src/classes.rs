//! New nodes that may turn into the same things, each distinct class looked at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use joiner_model::{Launch, NanoDollars, Requirement, TypeIx, keys};

use crate::bits::Bits;
use crate::contexts::PoolView;
use crate::demands::{Amounts, Demand};
use crate::ground::{Ground, label};
use crate::violation::Rule;
use crate::worlds::excludes;

/// The most types that a launch may list.
const TYPES_MAX: usize = 600;

/// Everything about a new node that does not depend on its pods.
pub(crate) struct Class<'p> {
    pub(crate) pool: usize,
    /// Choices of custom labels that are left.
    pub(crate) contexts: Vec<usize>,
    /// Worlds that are left, in every context.
    pub(crate) left: Bits,
    /// Price of the cheapest of them.
    pub(crate) cheapest: Option<NanoDollars>,
    /// The least that any of them has for pods.
    pub(crate) floor: Amounts,
    /// The most that any of them has in all.
    pub(crate) ceiling: Amounts,
    /// Daemons that run in some of them.
    pub(crate) daemons: Vec<usize>,
    /// Reservations that some of them use.
    pub(crate) reservations: BTreeSet<&'p str>,
    /// Keys with too few values, and whether the pool asks or the launch itself.
    pub(crate) few_values: Vec<FewValues<'p>>,
    /// What is wrong whatever the pods.
    pub(crate) faults: Vec<(Rule, String)>,
    verdicts: HashMap<(usize, usize), Option<usize>>,
}

/// A `minValues` that the listed types do not meet.
pub(crate) struct FewValues<'p> {
    pub(crate) key: &'p str,
    pub(crate) needed: u32,
    pub(crate) found: usize,
    /// Asked by the pool, so that the policy may lower it.
    pub(crate) by_pool: bool,
}

type Key<'p> = (usize, &'p [Requirement], &'p [TypeIx], Vec<usize>);

/// The pools, and the classes of nodes that the plan buys from them.
pub(crate) struct Market<'p> {
    pub(crate) views: Vec<PoolView<'p>>,
    pub(crate) classes: Vec<Class<'p>>,
    /// Class of each launch; `None` when it makes no sense.
    pub(crate) of_launch: Vec<Option<usize>>,
    by_key: HashMap<Key<'p>, usize>,
    /// For each label that matters to `minValues`, the values that each type contributes.
    contributed: HashMap<&'p str, Vec<Vec<usize>>>,
}

/// Most offerings that are looked at in pools from which nothing is bought.
const IDLE_OFFERINGS_MAX: usize = 1_000_000;

/// What nodes of each pool may turn into. With absurdly many pools those from which nothing is
/// bought are looked at as if they were empty: checks of the others lose nothing by that.
fn views<'p>(ground: &Ground<'p>) -> Vec<PoolView<'p>> {
    let used: HashSet<usize> = ground
        .plan
        .launches
        .iter()
        .filter_map(|l| ground.pool_of(l))
        .map(|(ix, _)| ix)
        .collect();
    let mut n_idle = 0;
    let pools = ground.problem.pools.iter().enumerate();
    pools
        .map(|(ix, pool)| {
            if used.contains(&ix) {
                return PoolView::new(ground, pool, &pool.types);
            }
            let types = pool.types.iter().filter_map(|ty| ground.instance_type(*ty));
            let types = types.filter(|ty| !excludes(ground, pool, ty));
            n_idle += types.map(|ty| ty.offerings.len()).sum::<usize>();
            let types = if n_idle <= IDLE_OFFERINGS_MAX {
                &pool.types[..]
            } else {
                &[]
            };
            PoolView::new(ground, pool, types)
        })
        .collect()
}

impl<'p> Market<'p> {
    /// The market of a problem with the launches of a plan.
    pub(crate) fn new(ground: &Ground<'p>) -> Self {
        let mut market = Self {
            views: views(ground),
            classes: Vec::new(),
            of_launch: Vec::new(),
            by_key: HashMap::new(),
            contributed: HashMap::new(),
        };
        let launches = ground.plan.launches.iter();
        market.of_launch = launches.map(|l| market.class_of(ground, l)).collect();
        market
    }

    fn class_of(&mut self, ground: &Ground<'p>, launch: &'p Launch) -> Option<usize> {
        let (pool, _) = ground.pool_of(launch)?;
        let known = launch
            .pods
            .iter()
            .filter(|p| (p.0 as usize) < ground.problem.pods.len());
        let demands: Vec<Demand> = known.map(|pod| ground.demand(*pod)).collect();
        let contexts = self.views[pool].contexts(ground, &launch.requirements, &demands);
        let too_open = contexts.is_none() || self.views[pool].worlds.too_open;
        let contexts = contexts.unwrap_or_default();
        let key = (pool, &launch.requirements[..], &launch.types[..], contexts);
        if let Some(class) = self.by_key.get(&key) {
            return Some(*class);
        }
        let mut class = self.views[pool].read_class(ground, launch, key.3.clone());
        class.pool = pool;
        class.few_values = self.few_values(ground, launch);
        if too_open {
            let text = "leaves more label values open than can be checked".to_owned();
            class.faults.push((Rule::Types, text));
        }
        self.classes.push(class);
        self.by_key.insert(key, self.classes.len() - 1);
        Some(self.classes.len() - 1)
    }

    /// The keys of which the listed types have fewer distinct values than asked.
    fn few_values(&mut self, ground: &Ground<'p>, launch: &'p Launch) -> Vec<FewValues<'p>> {
        let pool = ground.pool_of(launch).map(|(_, pool)| pool);
        let by_pool = pool
            .iter()
            .flat_map(|p| p.requirements.iter())
            .map(|r| (r, true));
        let by_launch = launch.requirements.iter().map(|r| (r, false));
        let mut needs: BTreeMap<(&'p str, bool), u32> = BTreeMap::new();
        for (requirement, by_pool) in by_pool.chain(by_launch) {
            if let Some(needed) = requirement.min_values() {
                let most = needs.entry((requirement.key(), by_pool)).or_insert(0);
                *most = (*most).max(needed);
            }
        }
        let mut few = Vec::new();
        for ((key, by_pool), needed) in needs {
            let by_type = self
                .contributed
                .entry(key)
                .or_insert_with(|| contributions(ground, key));
            let listed = launch
                .types
                .iter()
                .filter_map(|ty| by_type.get(ty.0 as usize));
            let values: HashSet<usize> = listed.flatten().copied().collect();
            if values.len() < needed as usize {
                few.push(FewValues {
                    key,
                    needed,
                    found: values.len(),
                    by_pool,
                });
            }
        }
        few
    }

    /// A world that is left in which node selection or volumes of a pod are not served.
    pub(crate) fn unserved(
        &mut self,
        ground: &Ground<'p>,
        class: usize,
        demand: Demand,
    ) -> Option<usize> {
        let class = &mut self.classes[class];
        let view = &mut self.views[class.pool];
        let key = (demand.selection, demand.volumes);
        *class.verdicts.entry(key).or_insert_with(|| {
            let mut contexts = class.contexts.iter();
            contexts.find_map(|context| {
                let accepted = view.accepted(ground, *context, demand);
                class.left.first_outside(accepted)
            })
        })
    }
}

impl<'p> PoolView<'p> {
    fn read_class(
        &mut self,
        ground: &Ground<'p>,
        launch: &'p Launch,
        contexts: Vec<usize>,
    ) -> Class<'p> {
        let n_worlds = self.worlds.list.len();
        let mut left = Bits::none(n_worlds);
        if !contexts.is_empty() {
            launch
                .types
                .iter()
                .for_each(|ty| left.insert_range(self.worlds.range(*ty)));
            left.keep(&self.left_by(ground, &launch.requirements));
        }
        let n_resources = ground.demands.resources.len();
        let mut class = Class {
            pool: 0,
            left,
            cheapest: None,
            floor: vec![i128::MAX; n_resources],
            ceiling: vec![0; n_resources],
            daemons: Vec::new(),
            reservations: BTreeSet::new(),
            few_values: Vec::new(),
            faults: Vec::new(),
            verdicts: HashMap::new(),
            contexts,
        };
        self.read_types(ground, launch, &mut class);
        for context in &class.contexts {
            self.lower(*context, &class.left, 0..n_worlds, &mut class.floor);
        }
        class.daemons = (0..ground.demands.daemons.len())
            .filter(|d| {
                let mut contexts = class.contexts.iter();
                contexts.any(|c| self.daemons(*c)[*d].meets(&class.left))
            })
            .collect();
        self.read_offerings(ground, &mut class);
        class
    }

    /// Number, membership, order and cheapest offering of the listed types.
    fn read_types(&self, ground: &Ground<'p>, launch: &Launch, class: &mut Class<'p>) {
        let mut fault = |rule, text| class.faults.push((rule, text));
        if launch.types.is_empty() || launch.types.len() > TYPES_MAX {
            let text = format!("lists {} types, not 1 to {TYPES_MAX}", launch.types.len());
            fault(Rule::Types, text);
        }
        let mut seen = Bits::none(ground.problem.types.len());
        let mut last = NanoDollars::ZERO;
        for ty in &launch.types {
            let Some(it) = ground.instance_type(*ty) else {
                fault(
                    Rule::Reference,
                    format!("lists type {}, which is not there", ty.0),
                );
                continue;
            };
            let pool = &self.worlds.pool.name;
            if seen.contains(ty.0 as usize) {
                fault(Rule::Types, format!("lists type {} twice", it.name));
                continue;
            }
            seen.insert(ty.0 as usize);
            if !self.worlds.buys(*ty) {
                fault(
                    Rule::Types,
                    format!("type {} is not one of pool {pool:?}", it.name),
                );
                continue;
            }
            let Some(best) = class.left.iter_in(self.worlds.range(*ty)).next() else {
                let text = format!(
                    "requirements leave no available offering of type {}",
                    it.name
                );
                fault(Rule::Types, text);
                continue;
            };
            let price = self.worlds.list[best].price;
            if price < last {
                let text = format!("type {} at {price} is listed after a dearer one", it.name);
                fault(Rule::Order, text);
            }
            last = last.max(price);
            class.cheapest = Some(class.cheapest.map_or(price, |low| low.min(price)));
        }
    }

    /// Capacity and reservations of what is left.
    fn read_offerings(&self, ground: &Ground<'p>, class: &mut Class<'p>) {
        let limited = self.worlds.pool.limits.is_some();
        if !limited && !self.worlds.has_reservations {
            return;
        }
        let mut last = None;
        for world in class.left.iter_in(0..self.worlds.list.len()) {
            let world = &self.worlds.list[world];
            let Some(it) = ground.instance_type(world.ty) else {
                continue;
            };
            let offering = &it.offerings[world.offering.0 as usize];
            if let Some((id, _)) = &offering.reservation {
                class.reservations.insert(id);
            }
            let again = last == Some(world.ty) && offering.extra_capacity.is_empty();
            if !limited || again {
                continue;
            }
            last = Some(world.ty);
            for (most, name) in class.ceiling.iter_mut().zip(&ground.demands.resources) {
                let has = it
                    .capacity
                    .get(name)
                    .saturating_add(offering.extra_capacity.get(name));
                *most = (*most).max(i128::from(has));
            }
        }
    }
}

/// For each type the values of a label that it contributes, by number.
fn contributions(ground: &Ground<'_>, key: &str) -> Vec<Vec<usize>> {
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let types = ground.problem.types.iter();
    types
        .map(|it| {
            let own = it.labels.get(key).into_iter().flatten().map(AsRef::as_ref);
            let named = (key == keys::INSTANCE_TYPE).then_some(it.name.as_ref());
            let sold = it.offerings.iter().filter(|o| o.available);
            let sold = sold.filter_map(|o| label(&o.labels, key));
            let values: BTreeSet<&str> = own.chain(named).chain(sold).collect();
            let number = |value| {
                let next = ids.len();
                *ids.entry(value).or_insert(next)
            };
            values.into_iter().map(number).collect()
        })
        .collect()
}
