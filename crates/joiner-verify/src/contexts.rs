//! Labels of a pool's own making, and what depends on them.
//!
//! A key that the pool requires and that no type, offering or pool label has becomes a label of the
//! node: any value that pool and launch leave. One choice of such values is a context; the worlds of
//! the pool exist in each context.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use joiner_model::{InstanceType, Name, Operator, Pool, Requirement, Terms, TypeIx, keys};

use crate::bits::Bits;
use crate::demands::{Amounts, Demand};
use crate::ground::Ground;
use crate::worlds::Worlds;

/// The most contexts of one node.
const CONTEXTS_MAX: usize = 4096;

/// Memory that a type sets aside as huge pages, in bytes.
fn huge_pages(it: &InstanceType) -> i128 {
    let pages = it
        .capacity
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("hugepages-"));
    pages.map(|(_, bytes)| i128::from(bytes)).sum()
}

/// A value that nobody has named.
const UNNAMED: &str = "\u{1}";

/// One value, or absence, for each custom key of the pool.
type Choice = Vec<Option<Name>>;

/// A pool with everything its nodes may turn into.
pub(crate) struct PoolView<'p> {
    pub(crate) worlds: Worlds<'p>,
    custom: Vec<&'p Requirement>,
    contexts: Vec<Context>,
    by_choice: HashMap<Choice, usize>,
    rooms: Vec<Room>,
    by_daemons: HashMap<Vec<Bits>, usize>,
    accepted: HashMap<(usize, usize, usize), Bits>,
}

struct Context {
    choice: Choice,
    /// For each daemon, the worlds in which it runs.
    daemons: Vec<Bits>,
    room: usize,
}

/// What is left for pods in each world, daemons taken off.
pub(crate) struct Room {
    n_resources: usize,
    net: Amounts,
    /// For each world, the first of an unbroken run of worlds with the same left.
    run: Vec<usize>,
}

impl Room {
    /// What one world has left, negative where it is short.
    pub(crate) fn of(&self, world: usize) -> &[i128] {
        &self.net[world * self.n_resources..(world + 1) * self.n_resources]
    }
}

impl<'p> PoolView<'p> {
    pub(crate) fn new(ground: &Ground<'p>, pool: &'p Pool, types: &[TypeIx]) -> Self {
        let is_custom = |r: &&Requirement| {
            let key: &str = r.key();
            !ground.type_keys.contains(key) && !pool.labels.contains_key(key)
        };
        let custom: Vec<&Requirement> = pool.requirements.iter().filter(is_custom).collect();
        let custom_keys: Vec<&str> = custom.iter().map(|r| r.key().as_ref()).collect();
        Self {
            worlds: Worlds::new(ground, pool, types, &custom_keys),
            custom,
            contexts: Vec::new(),
            by_choice: HashMap::new(),
            rooms: Vec::new(),
            by_daemons: HashMap::new(),
            accepted: HashMap::new(),
        }
    }

    /// The contexts that pool and launch leave, or `None` when there are too many. Where any value
    /// goes, those that `demands` and daemons name are tried, and one that nobody named.
    pub(crate) fn contexts(
        &mut self,
        ground: &Ground<'p>,
        launch: &[Requirement],
        demands: &[Demand],
    ) -> Option<Vec<usize>> {
        let mut choices: Vec<Choice> = vec![Vec::new()];
        for pool_rule in &self.custom {
            let values = values_left(ground, pool_rule, launch, demands);
            if choices.len() * values.len() > CONTEXTS_MAX {
                return None;
            }
            choices = choices
                .iter()
                .flat_map(|choice| {
                    values.iter().map(move |value| {
                        let mut longer = choice.clone();
                        longer.push(value.clone());
                        longer
                    })
                })
                .collect();
        }
        Some(
            choices
                .into_iter()
                .map(|c| self.context(ground, c))
                .collect(),
        )
    }

    fn context(&mut self, ground: &Ground<'p>, choice: Choice) -> usize {
        if let Some(found) = self.by_choice.get(&choice) {
            return *found;
        }
        let context = self.contexts.len();
        self.contexts.push(Context {
            choice: choice.clone(),
            daemons: Vec::new(),
            room: 0,
        });
        self.by_choice.insert(choice, context);
        let daemons = self.landings(ground, context);
        let room = match self.by_daemons.get(&daemons) {
            Some(room) => *room,
            None => {
                self.rooms.push(self.read_room(ground, &daemons));
                self.by_daemons
                    .insert(daemons.clone(), self.rooms.len() - 1);
                self.rooms.len() - 1
            }
        };
        self.contexts[context].daemons = daemons;
        self.contexts[context].room = room;
        context
    }

    /// For each daemon the worlds in which it runs.
    fn landings(&mut self, ground: &Ground<'p>, context: usize) -> Vec<Bits> {
        let daemons = ground.demands.daemons.iter();
        daemons
            .map(
                |demand| match ground.untolerated(*demand, &self.worlds.pool.taints) {
                    Some(_) => Bits::none(self.worlds.list.len()),
                    None => self.selected(ground, context, demand.selection),
                },
            )
            .collect()
    }

    fn read_room(&self, ground: &Ground<'p>, daemons: &[Bits]) -> Room {
        let n_resources = ground.demands.resources.len();
        let mut net = Vec::with_capacity(self.worlds.list.len() * n_resources);
        let mut run: Vec<usize> = Vec::with_capacity(self.worlds.list.len());
        for (i, world) in self.worlds.list.iter().enumerate() {
            let start = net.len();
            let it = ground.instance_type(world.ty);
            let offering = it.and_then(|it| it.offerings.get(world.offering.0 as usize));
            for name in &ground.demands.resources {
                let has = it.map_or(0, |it| i128::from(it.capacity.get(name)));
                let extra = offering.map_or(0, |o| i128::from(o.extra_capacity.get(name)));
                let kept = it.map_or(0, |it| i128::from(it.overhead.get(name)));
                let huge = if name.as_str() == "memory" {
                    it.map_or(0, huge_pages)
                } else {
                    0
                };
                net.push((has + extra - kept) - huge.min((has + extra - kept).max(0)));
            }
            for (demand, landing) in ground.demands.daemons.iter().zip(daemons) {
                if landing.contains(i) {
                    let load = ground.demands.amounts(demand.amounts);
                    net[start..]
                        .iter_mut()
                        .zip(load)
                        .for_each(|(net, load)| *net -= load);
                }
            }
            let before = start
                .checked_sub(n_resources)
                .map(|before| &net[before..start]);
            let goes_on = before.is_some_and(|before| *before == net[start..]);
            run.push(if goes_on { run[i - 1] } else { i });
        }
        Room {
            n_resources,
            net,
            run,
        }
    }

    /// The worlds that a node selection allows in a context.
    fn selected(&mut self, ground: &Ground<'p>, context: usize, selection: usize) -> Bits {
        let selection = ground.demands.selection(selection);
        let mut worlds = self.all_hold(ground, context, selection.all);
        if !selection.any.is_empty() {
            let terms = selection.any.iter().filter(|terms| !terms.is_empty());
            worlds.keep(&self.one_holds(ground, context, terms));
        }
        worlds
    }

    fn one_holds(
        &mut self,
        ground: &Ground<'p>,
        context: usize,
        any: impl Iterator<Item = &'p Terms>,
    ) -> Bits {
        let mut some = Bits::none(self.worlds.list.len());
        for terms in any {
            some.add(&self.all_hold(ground, context, terms));
        }
        some
    }

    fn all_hold(&mut self, ground: &Ground<'p>, context: usize, all: &'p [Requirement]) -> Bits {
        let n_worlds = self.worlds.list.len();
        let mut worlds = Bits::all(n_worlds);
        for requirement in all {
            match self
                .custom
                .iter()
                .position(|r| r.key() == requirement.key())
            {
                Some(i) => {
                    if !requirement.holds(self.contexts[context].choice[i].as_deref()) {
                        return Bits::none(n_worlds);
                    }
                }
                None => {
                    let mask = self.worlds.mask_of(ground, requirement);
                    worlds.keep(self.worlds.mask(mask));
                }
            }
        }
        worlds
    }

    /// The worlds in which node selection and volumes of a pod are served.
    pub(crate) fn accepted(
        &mut self,
        ground: &Ground<'p>,
        context: usize,
        demand: Demand,
    ) -> &Bits {
        let key = (context, demand.selection, demand.volumes);
        if !self.accepted.contains_key(&key) {
            let mut worlds = self.selected(ground, context, demand.selection);
            let volumes = ground.demands.volumes(demand.volumes);
            if !volumes.is_empty() {
                worlds.keep(&self.one_holds(ground, context, volumes.iter()));
            }
            self.accepted.insert(key, worlds);
        }
        &self.accepted[&key]
    }

    /// The worlds that the launch's requirements leave, custom keys aside: contexts answer those.
    pub(crate) fn left_by(&mut self, ground: &Ground<'p>, launch: &'p [Requirement]) -> Bits {
        let mut left = Bits::all(self.worlds.list.len());
        for requirement in launch {
            let is_host = requirement.key().as_ref() == keys::HOSTNAME;
            if is_host || self.is_custom(requirement.key()) {
                continue;
            }
            let mask = self.worlds.mask_of(ground, requirement);
            left.keep(self.worlds.mask(mask));
        }
        left
    }

    /// True when this label is of the pool's own making.
    pub(crate) fn is_custom(&self, key: &str) -> bool {
        self.custom.iter().any(|r| r.key().as_ref() == key)
    }

    /// The custom label of a context.
    pub(crate) fn custom_value(&self, context: usize, key: &str) -> Option<&Name> {
        let i = self.custom.iter().position(|r| r.key().as_ref() == key)?;
        self.contexts[context].choice[i].as_ref()
    }

    pub(crate) fn room(&self, context: usize) -> &Room {
        &self.rooms[self.contexts[context].room]
    }

    /// For each daemon, the worlds in which it runs.
    pub(crate) fn daemons(&self, context: usize) -> &[Bits] {
        &self.contexts[context].daemons
    }

    /// Lowers `floor` to the least that any world of `left` in `range` has.
    pub(crate) fn lower(
        &self,
        context: usize,
        left: &Bits,
        range: Range<usize>,
        floor: &mut [i128],
    ) {
        let room = self.room(context);
        let mut seen = usize::MAX;
        for world in left.iter_in(range) {
            if room.run[world] == seen {
                continue;
            }
            seen = room.run[world];
            floor
                .iter_mut()
                .zip(room.of(world))
                .for_each(|(f, r)| *f = (*f).min(*r));
        }
    }
}

/// The values that a label of the pool's own making may take on a node.
///
/// When nothing says that the label is there, it is not.
fn values_left(
    ground: &Ground<'_>,
    pool_rule: &Requirement,
    launch: &[Requirement],
    demands: &[Demand],
) -> Vec<Option<Name>> {
    let key = pool_rule.key();
    let on_key = || launch.iter().filter(|r| r.key() == key);
    let rules = || std::iter::once(pool_rule).chain(on_key());
    if rules().all(|r| r.holds(None)) {
        return vec![None];
    }
    let mut candidates: BTreeSet<Name> = BTreeSet::new();
    if let Some(members) = rules().find_map(Requirement::members) {
        candidates.extend(members.iter().cloned());
    } else {
        candidates.insert(UNNAMED.into());
        rules().for_each(|r| name_values(r, &mut candidates));
        for demand in demands.iter().chain(&ground.demands.daemons) {
            let selection = ground.demands.selection(demand.selection).requirements();
            let volumes = ground.demands.volumes(demand.volumes).iter().flatten();
            let asked = selection.chain(volumes).filter(|r| r.key() == key);
            asked.for_each(|r| name_values(r, &mut candidates));
        }
    }
    let mut left = candidates.into_iter().filter(|v| rules().all(|r| r.has(v)));
    if ground.asked.contains(key.as_ref()) {
        left.map(Some).collect()
    } else {
        // Nobody looks at the label: one value stands for all.
        left.next().map(Some).into_iter().collect()
    }
}

/// The values at which a requirement changes its mind.
fn name_values(requirement: &Requirement, names: &mut BTreeSet<Name>) {
    names.extend(requirement.named_values().iter().cloned());
    for (operator, values) in requirement.entries() {
        if !matches!(operator, Operator::Gte | Operator::Lte) {
            continue;
        }
        for bound in values.iter().filter_map(|v| v.parse::<i64>().ok()) {
            let around = [bound.checked_sub(1), Some(bound), bound.checked_add(1)];
            names.extend(
                around
                    .into_iter()
                    .flatten()
                    .map(|n| Name::from(n.to_string())),
            );
        }
    }
}
