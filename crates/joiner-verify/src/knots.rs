//! From rules with pods in common to knots: the pods and domains that an order has to look at.
//!
//! Left out is what no order changes: domains that are never too full, pods near others that were
//! there before, and pods that no rule looks at. What remains often falls apart into several knots,
//! since a domain matters by itself unless its rule compares it with others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_model::PodTerm;

use crate::affinity::may_use;
use crate::classes::Market;
use crate::crowd::{Knot, Law, Slot, Touch, Unit};
use crate::domains::{Counted, Filters};
use crate::ground::Ground;
use crate::order::{Bond, Kind, Sets};
use crate::spread::Tally;
use crate::topology::{Domain, Entry, Spot, Topology};

/// The knots of some rules, each with the rule that every one of its laws stands for.
pub(crate) fn knots<'p>(
    ground: &Ground<'p>,
    market: &mut Market<'p>,
    topology: &Topology<'p>,
    filters: &mut Filters<'p>,
    bonds: &[&Bond<'p>],
) -> Vec<(Knot, Vec<usize>)> {
    let mut tangle = Tangle::default();
    for bond in bonds {
        match &bond.kind {
            Kind::Spread(tally) => tangle.add_spread(topology, bond, tally, |entry| {
                let place = topology.split(entry.place);
                filters.place(ground, market, tally.group.filter, place)
            }),
            Kind::Affinity { term, bound } => {
                tangle.add_affinity(ground, topology, bond, (term, bound));
            }
        }
    }
    let units = tangle.units(topology);
    tangle.split(units)
}

/// All laws and slots of some rules, one law for each.
#[derive(Default)]
struct Tangle {
    laws: Vec<Law>,
    slots: Vec<Slot>,
    /// The domains of the slots of the law added last, ascending.
    domains: Vec<Domain>,
    /// Slots that their rule compares with each other.
    joins: Vec<(usize, usize)>,
    n_reaches: usize,
    /// Touches by entry of the topology.
    touches: Vec<(usize, Touch)>,
}

impl Tangle {
    fn add_law(&mut self, law: Law) {
        self.laws.push(law);
        self.domains.clear();
    }

    /// Adds a slot to the law added last; domains come in order.
    fn add_slot(&mut self, domain: Domain, base: u64, in_floor: bool) -> &mut Slot {
        self.domains.push(domain);
        self.slots.push(Slot {
            law: self.laws.len() - 1,
            base,
            in_floor,
            reaches: Vec::new(),
        });
        let last = self.slots.len() - 1;
        &mut self.slots[last]
    }

    /// The first slot of the law added last.
    fn first_slot(&self) -> usize {
        self.slots.len() - self.domains.len()
    }

    /// The slot of a domain for the law added last.
    fn slot(&self, domain: Domain) -> Option<usize> {
        let found = self.domains.binary_search(&domain).ok();
        found.map(|ix| self.first_slot() + ix)
    }

    /// The slots of the law added last have to do with each other.
    fn join_slots(&mut self) {
        let first = self.first_slot();
        self.joins
            .extend((first..self.slots.len()).map(|slot| (first, slot)));
    }

    fn add_spread<'p>(
        &mut self,
        topology: &Topology<'p>,
        bond: &Bond<'p>,
        tally: &Tally<'p>,
        mut filter: impl FnMut(&Entry) -> Counted,
    ) {
        let binding: BTreeSet<Domain> = tally.binding().collect();
        let floor = tally.floor_before();
        let rises = tally.floor_after() > floor;
        self.add_law(Law::Spread {
            max_skew: u64::from(tally.group.spread.max_skew),
            floor: (!rises).then_some(floor),
        });
        let compared = tally.domains.iter().filter(|_| rises);
        for domain in binding.iter().chain(compared).collect::<BTreeSet<_>>() {
            let base = tally.counts.get(domain).map_or(0, |count| count.base);
            self.add_slot(*domain, base, rises && tally.domains.contains(domain));
        }
        if rises {
            self.join_slots();
        }
        for (shape, owns, counts) in involved(topology, bond) {
            for (entry_ix, entry, domain) in new_in(topology, &tally.group.spread.key, shape) {
                let Some(slot) = self.slot(domain) else {
                    continue;
                };
                let touch = Touch {
                    slot,
                    needs: owns && binding.contains(&domain),
                    counted: match (counts, owns) {
                        (false, _) => Counted::No,
                        (true, true) => Counted::Surely,
                        (true, false) => filter(entry),
                    },
                    first: None,
                };
                self.add_touch(entry_ix, touch);
            }
        }
    }

    fn add_affinity<'p>(
        &mut self,
        ground: &Ground<'p>,
        topology: &Topology<'p>,
        bond: &Bond<'p>,
        (term, bound): (&PodTerm, &BTreeSet<Domain>),
    ) {
        self.add_law(Law::Affinity);
        let involved = involved(topology, bond);
        let key: &str = &term.key;
        let usable =
            |shape: usize, domain: &Domain| may_use(ground, topology, term, shape, *domain);
        let may_be_first = |shape: usize| !bound.iter().any(|domain| usable(shape, domain));
        let mut reaches: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        let mut samples: Vec<usize> = Vec::new();
        for (shape, _, _) in involved.iter().filter(|(_, owns, counts)| *owns && *counts) {
            let selection = ground.demands.shapes[*shape].selection;
            reaches.entry(selection).or_insert_with(|| {
                may_be_first(*shape).then(|| {
                    samples.push(*shape);
                    self.n_reaches + samples.len() - 1
                })
            });
        }
        let mut tracked: BTreeSet<Domain> = BTreeSet::new();
        for (shape, owns, counts) in &involved {
            if *owns || (*counts && !samples.is_empty()) {
                let domains = new_in(topology, key, *shape).map(|(_, _, domain)| domain);
                tracked.extend(domains.filter(|domain| !bound.contains(domain)));
            }
        }
        for domain in tracked {
            let each = (self.n_reaches..).zip(&samples);
            let barring = each.filter(|(_, shape)| usable(**shape, &domain));
            let reaches = barring.map(|(reach, _)| reach).collect();
            self.add_slot(domain, 0, false).reaches = reaches;
        }
        if !samples.is_empty() {
            self.join_slots();
        }
        self.n_reaches += samples.len();
        for (shape, owns, counts) in involved {
            let selection = ground.demands.shapes[shape].selection;
            let reach = reaches.get(&selection).copied().flatten();
            for (entry_ix, _, domain) in new_in(topology, key, shape) {
                if let Some(slot) = self.slot(domain) {
                    let touch = Touch {
                        slot,
                        needs: owns,
                        counted: if counts { Counted::Surely } else { Counted::No },
                        first: reach.filter(|_| owns && counts),
                    };
                    self.add_touch(entry_ix, touch);
                }
            }
        }
    }

    fn add_touch(&mut self, entry: usize, touch: Touch) {
        if touch.needs || touch.counted != Counted::No {
            self.touches.push((entry, touch));
        }
    }

    /// Pods with equal touches together.
    fn units(&mut self, topology: &Topology<'_>) -> Vec<Unit> {
        // Laws were added one by one and places come in order, so this merges a few sorted runs.
        self.touches.sort_by_key(|(entry, _)| *entry);
        let mut ids: HashMap<Vec<Touch>, usize> = HashMap::new();
        let mut units: Vec<Unit> = Vec::new();
        for same in self.touches.chunk_by(|a, b| a.0 == b.0) {
            let entry = same[0].0;
            let touches: Vec<Touch> = same.iter().map(|(_, touch)| *touch).collect();
            let id = *ids.entry(touches).or_insert_with_key(|touches| {
                units.push(Unit {
                    n: 0,
                    touches: touches.clone(),
                    entry,
                });
                units.len() - 1
            });
            units[id].n += topology.entries[entry].n_new;
        }
        units
    }

    /// Pods and slots that have to do with each other together.
    fn split(mut self, units: Vec<Unit>) -> Vec<(Knot, Vec<usize>)> {
        let mut sets = Sets::new(self.slots.len());
        for (a, b) in &self.joins {
            sets.join(*a, *b);
        }
        for unit in &units {
            for touch in &unit.touches {
                sets.join(unit.touches[0].slot, touch.slot);
            }
        }
        let groups = sets.groups();
        let mut knot_of = vec![0; self.slots.len()];
        for (knot, slots) in groups.iter().enumerate() {
            slots.iter().for_each(|slot| knot_of[*slot] = knot);
        }
        let mut by_knot: Vec<Vec<Unit>> = Vec::new();
        by_knot.resize_with(groups.len(), Vec::new);
        for unit in units {
            by_knot[knot_of[unit.touches[0].slot]].push(unit);
        }
        let parts = groups.iter().zip(by_knot);
        let parts: Vec<_> = parts
            .filter(|(_, units)| !units.is_empty())
            .map(|(slots, units)| self.knot(slots, units))
            .collect();
        parts
    }

    /// One knot, with numbers of its own.
    fn knot(&mut self, slots: &[usize], mut units: Vec<Unit>) -> (Knot, Vec<usize>) {
        let mut laws: BTreeMap<usize, usize> = BTreeMap::new();
        let mut reaches: BTreeMap<usize, usize> = BTreeMap::new();
        let number = |ids: &mut BTreeMap<usize, usize>, id: usize| {
            let next = ids.len();
            *ids.entry(id).or_insert(next)
        };
        let mut own = Vec::new();
        for slot in slots {
            let slot = &self.slots[*slot];
            let reached = slot.reaches.iter();
            own.push(Slot {
                law: number(&mut laws, slot.law),
                reaches: reached.map(|r| number(&mut reaches, *r)).collect(),
                ..*slot
            });
        }
        for touch in units.iter_mut().flat_map(|unit| &mut unit.touches) {
            touch.slot = slots.binary_search(&touch.slot).unwrap_or(0);
            touch.first = touch.first.map(|reach| number(&mut reaches, reach));
        }
        let mut rules = vec![0; laws.len()];
        laws.iter().for_each(|(rule, law)| rules[*law] = *rule);
        let knot = Knot {
            laws: rules.iter().map(|rule| self.laws[*rule]).collect(),
            slots: own,
            units,
            n_reaches: reaches.len(),
        };
        (knot, rules)
    }
}

/// Where the plan puts pods of a shape: entries with their domains of a key.
fn new_in<'t>(
    topology: &'t Topology<'_>,
    key: &'t str,
    shape: usize,
) -> impl Iterator<Item = (usize, &'t Entry, Domain)> {
    let new = topology.of_shape(shape).filter(|(_, e)| e.n_new > 0);
    new.filter_map(|(ix, entry)| match topology.spot(key, entry.place) {
        Spot::Fixed(domain) => Some((ix, entry, *domain)),
        Spot::Open(_) | Spot::Absent => None,
    })
}

/// The shapes that a rule binds or counts; whether it binds, and whether it counts their pods.
fn involved(topology: &Topology<'_>, bond: &Bond<'_>) -> Vec<(usize, bool, bool)> {
    let matches = topology.matches(bond.matches);
    let counted: &[usize] = if matches.batch { &matches.shapes } else { &[] };
    let shapes: BTreeSet<usize> = bond.owners.iter().chain(counted).copied().collect();
    let has = |list: &[usize], shape: &usize| list.binary_search(shape).is_ok();
    shapes
        .into_iter()
        .map(|shape| (shape, has(&bond.owners, &shape), has(counted, &shape)))
        .collect()
}
