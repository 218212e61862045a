//! What a new node of a pool may turn into, apart from labels of the pool's own making.
//!
//! A world is one available offering of one type with one value for each label of the type that is
//! open and matters. Only worlds that the pool's requirements allow are listed, so a set of them is
//! a few words, and a requirement is such a set.

use std::collections::HashMap;
use std::ops::Range;

use joiner_model::{
    InstanceType, NanoDollars, Offering, OfferingIx, Pool, Requirement, TypeIx, keys,
};

use crate::bits::Bits;
use crate::ground::{Ground, label};

/// The hostname of a node that does not exist yet: nobody can have named it.
pub(crate) const NEW_HOST: &str = "\u{0}";

/// The most combinations of open label values of one offering.
const COMBINATIONS_MAX: usize = 4096;

/// One thing that a new node may turn into.
pub(crate) struct World<'p> {
    pub(crate) ty: TypeIx,
    pub(crate) offering: OfferingIx,
    pub(crate) price: NanoDollars,
    /// Values of the type's open labels.
    picks: Vec<(&'p str, &'p str)>,
}

impl World<'_> {
    /// Type, zone and capacity type, for people.
    pub(crate) fn render(&self, ground: &Ground<'_>) -> String {
        render_offering(ground, self.ty, self.offering)
    }
}

/// Type, zone and capacity type of an offering, for people.
pub(crate) fn render_offering(ground: &Ground<'_>, ty: TypeIx, offering: OfferingIx) -> String {
    let Some(it) = ground.instance_type(ty) else {
        return format!("unknown type {}", ty.0);
    };
    let Some(sold) = it.offerings.get(offering.0 as usize) else {
        return format!("unknown offering {} of {}", offering.0, it.name);
    };
    let place = |key| label(&sold.labels, key).unwrap_or("?");
    let (zone, how) = (place(keys::ZONE), place(keys::CAPACITY_TYPE));
    format!("{} in {zone} ({how})", it.name)
}

/// The worlds of one pool, by type, and cheapest first within a type.
pub(crate) struct Worlds<'p> {
    pub(crate) pool: &'p Pool,
    pub(crate) list: Vec<World<'p>>,
    /// Some offering has more open labels than one can look at.
    pub(crate) too_open: bool,
    /// Some offering is a reservation.
    pub(crate) has_reservations: bool,
    /// By type; `None` for a type that the pool cannot buy.
    ranges: Vec<Option<Range<usize>>>,
    columns: HashMap<&'p str, Column<'p>>,
    masks: HashMap<&'p Requirement, usize>,
    arena: Vec<Bits>,
}

/// The worlds by their value of one label.
struct Column<'p> {
    values: Vec<Option<&'p str>>,
    ids: HashMap<Option<&'p str>, usize>,
    worlds: Vec<Bits>,
}

impl<'p> Worlds<'p> {
    /// All worlds of `pool` with these types; requirements on `custom` keys are left to the caller.
    pub(crate) fn new(
        ground: &Ground<'p>,
        pool: &'p Pool,
        types: &[TypeIx],
        custom: &[&str],
    ) -> Self {
        let mut worlds = Self {
            pool,
            list: Vec::new(),
            too_open: false,
            has_reservations: false,
            ranges: vec![
                None;
                if types.is_empty() {
                    0
                } else {
                    ground.problem.types.len()
                }
            ],
            columns: HashMap::new(),
            masks: HashMap::new(),
            arena: Vec::new(),
        };
        for ty in types {
            let Some(instance_type) = ground.instance_type(*ty) else {
                continue;
            };
            if worlds.buys(*ty) {
                continue;
            }
            let start = worlds.list.len();
            if excludes(ground, pool, instance_type) {
                worlds.ranges[ty.0 as usize] = Some(start..start);
                continue;
            }
            worlds.add_type(ground, *ty, instance_type, custom);
            worlds.list[start..].sort_by_key(|w| (w.price, w.offering));
            worlds.ranges[ty.0 as usize] = Some(start..worlds.list.len());
        }
        worlds
    }

    fn add_type(&mut self, ground: &Ground<'p>, ty: TypeIx, it: &'p InstanceType, custom: &[&str]) {
        for (offering_ix, offering) in (0..).map(OfferingIx).zip(&it.offerings) {
            if !offering.available || contradicts(self.pool, it, offering) {
                continue;
            }
            self.has_reservations |= offering.reservation.is_some();
            let Some(combinations) = self.combinations(ground, it, offering) else {
                self.too_open = true;
                continue;
            };
            for picks in combinations {
                let world = World {
                    ty,
                    offering: offering_ix,
                    price: offering.price,
                    picks,
                };
                let mut rules = self.pool.requirements.iter();
                if rules.all(|r| {
                    custom.contains(&r.key().as_ref())
                        || r.holds(self.value(ground, &world, r.key()))
                }) {
                    self.list.push(world);
                }
            }
        }
    }

    /// Every choice of values for the open labels that matter, or `None` when there are too many.
    fn combinations(
        &self,
        ground: &Ground<'p>,
        it: &'p InstanceType,
        offering: &'p Offering,
    ) -> Option<Vec<Vec<(&'p str, &'p str)>>> {
        let mut all = vec![Vec::new()];
        for (key, values) in &it.labels {
            let matters =
                ground.asked.contains(key.as_ref()) || self.pool.requirements.get(key).is_some();
            let fixed = offering.labels.contains_key(key) || self.pool.labels.contains_key(key);
            if values.len() < 2 || fixed || !matters {
                continue;
            }
            if all.len() * values.len() > COMBINATIONS_MAX {
                return None;
            }
            all = all
                .iter()
                .flat_map(|picks| {
                    values.iter().map(move |value| {
                        let mut more: Vec<(&'p str, &'p str)> = picks.clone();
                        more.push((key.as_ref(), value.as_ref()));
                        more
                    })
                })
                .collect();
        }
        Some(all)
    }

    /// The label that a node in this world has.
    fn value(&self, ground: &Ground<'p>, world: &World<'p>, key: &str) -> Option<&'p str> {
        if key == keys::HOSTNAME {
            return Some(NEW_HOST);
        }
        let it = ground.instance_type(world.ty)?;
        let offering = it.offerings.get(world.offering.0 as usize)?;
        let picked = || world.picks.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let of_type = || {
            it.labels
                .get(key)
                .and_then(|v| v.first())
                .map(AsRef::as_ref)
        };
        label(&offering.labels, key)
            .or_else(|| label(&self.pool.labels, key))
            .or_else(picked)
            .or_else(of_type)
            .or_else(|| (key == keys::INSTANCE_TYPE).then_some(it.name.as_ref()))
    }

    /// Where in the list the worlds of a type are.
    pub(crate) fn range(&self, ty: TypeIx) -> Range<usize> {
        let range = self.ranges.get(ty.0 as usize).cloned().flatten();
        range.unwrap_or(0..0)
    }

    /// True when the pool can buy a type.
    pub(crate) fn buys(&self, ty: TypeIx) -> bool {
        self.ranges.get(ty.0 as usize).is_some_and(Option::is_some)
    }

    /// True when a world uses up a reservation.
    pub(crate) fn is_reserved(&self, ground: &Ground<'p>, world: usize) -> bool {
        let world = &self.list[world];
        let it = ground.instance_type(world.ty);
        let offering = it.and_then(|it| it.offerings.get(world.offering.0 as usize));
        offering.is_some_and(|offering| offering.reservation.is_some())
    }

    fn column(&mut self, ground: &Ground<'p>, key: &'p str) -> &Column<'p> {
        if !self.columns.contains_key(key) {
            let column = self.read_column(ground, key);
            self.columns.insert(key, column);
        }
        &self.columns[key]
    }

    fn read_column(&self, ground: &Ground<'p>, key: &str) -> Column<'p> {
        let mut column = Column {
            values: Vec::new(),
            ids: HashMap::new(),
            worlds: Vec::new(),
        };
        for (i, world) in self.list.iter().enumerate() {
            let value = self.value(ground, world, key);
            let next = column.values.len();
            let id = *column.ids.entry(value).or_insert(next);
            if id == next {
                column.values.push(value);
                column.worlds.push(Bits::none(self.list.len()));
            }
            column.worlds[id].insert(i);
        }
        column
    }

    /// The values that a label has in some world of `within`; `None` stands for its absence.
    pub(crate) fn values_in(
        &mut self,
        ground: &Ground<'p>,
        key: &'p str,
        within: &Bits,
    ) -> Vec<Option<&'p str>> {
        let column = self.column(ground, key);
        let each = column.values.iter().zip(&column.worlds);
        each.filter(|(_, worlds)| worlds.meets(within))
            .map(|(value, _)| *value)
            .collect()
    }

    /// The worlds in which a requirement holds, as a number for [`Worlds::mask`].
    pub(crate) fn mask_of(&mut self, ground: &Ground<'p>, requirement: &'p Requirement) -> usize {
        if let Some(found) = self.masks.get(requirement) {
            return *found;
        }
        let mut mask = Bits::none(self.list.len());
        let column = self.column(ground, requirement.key());
        let mut take = |id: usize| {
            if requirement.holds(column.values[id]) {
                mask.add(&column.worlds[id]);
            }
        };
        match requirement.members() {
            // A long list of names is looked up name by name, not value by value.
            Some(members) if !members.is_empty() => members
                .iter()
                .filter_map(|member| column.ids.get(&Some(member.as_ref())))
                .for_each(|id| take(*id)),
            _ => (0..column.values.len()).for_each(take),
        }
        self.arena.push(mask);
        self.masks.insert(requirement, self.arena.len() - 1);
        self.arena.len() - 1
    }

    /// A set found by [`Worlds::mask_of`].
    pub(crate) fn mask(&self, number: usize) -> &Bits {
        &self.arena[number]
    }
}

/// True when the pool's labels say otherwise than the type or the offering.
/// True when the pool requires another value of a label than the one that the type has in all its
/// offerings: none of them needs a look.
pub(crate) fn excludes(ground: &Ground<'_>, pool: &Pool, it: &InstanceType) -> bool {
    pool.requirements.iter().any(|rule| {
        let key: &str = rule.key();
        if ground.offering_keys.contains(key) || pool.labels.contains_key(key) {
            return false;
        }
        match it.labels.get(key).map(Vec::as_slice) {
            Some([value]) => !rule.holds(Some(value)),
            Some(_) => false,
            None => key == keys::INSTANCE_TYPE && !rule.holds(Some(&it.name)),
        }
    })
}

fn contradicts(pool: &Pool, it: &InstanceType, offering: &Offering) -> bool {
    pool.labels.iter().any(|(key, value)| {
        if let Some(theirs) = offering.labels.get(key) {
            return theirs != value;
        }
        match it.labels.get(key) {
            Some(theirs) => !theirs.contains(value),
            None => key.as_ref() == keys::INSTANCE_TYPE && *value != it.name,
        }
    })
}
