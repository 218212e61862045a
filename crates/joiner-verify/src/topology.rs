//! Who is where once the plan is carried out, as topology rules see it.

use std::collections::{BTreeMap, HashMap};

use joiner_model::{Name, PodIx, PodTerm, Selector, keys};

use crate::census::Seats;
use crate::classes::Market;
use crate::ground::{Ground, node_label};

/// A topology domain of some key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Domain {
    /// A value of the label, by number.
    Value(usize),
    /// A new node that is a domain by itself: its hostname, or a key that it leaves open.
    Own(usize),
}

/// Where a node is, for one key.
pub(crate) enum Spot {
    /// It does not have the label.
    Absent,
    /// In one domain, whatever it turns into.
    Fixed(Domain),
    /// In one of several, or perhaps in none.
    Open(Vec<Domain>),
}

/// All pods of one shape on one place; places are first the launches, then the existing nodes.
pub(crate) struct Entry {
    pub(crate) place: usize,
    pub(crate) shape: usize,
    /// Pods that the plan puts there.
    pub(crate) n_new: u32,
    /// Pods that are there and stay.
    pub(crate) n_old: u32,
    /// One of them, to name it; a new one if there is one.
    pub(crate) pod: PodIx,
}

/// The shapes that a selector is about.
pub(crate) struct Matches {
    pub(crate) shapes: Vec<usize>,
    /// Pods of the batch match; with no selector at all, only bound pods do.
    pub(crate) batch: bool,
}

impl Matches {
    pub(crate) fn n_new(&self, entry: &Entry) -> u32 {
        if self.batch { entry.n_new } else { 0 }
    }
}

struct Column {
    spots: Vec<Spot>,
    of_place: Vec<usize>,
}

/// Pods by place and shape, places by domain, shapes by selector.
pub(crate) struct Topology<'p> {
    pub(crate) entries: Vec<Entry>,
    by_shape: Vec<Vec<usize>>,
    n_launches: usize,
    names: Vec<Name>,
    ids: HashMap<Name, usize>,
    columns: HashMap<&'p str, Column>,
    by_label: HashMap<(&'p str, &'p str), Vec<usize>>,
    by_namespace: HashMap<&'p str, Vec<usize>>,
    matches: HashMap<(&'p [Name], Option<&'p Selector>), usize>,
    arena: Vec<Matches>,
}

impl<'p> Topology<'p> {
    pub(crate) fn new(ground: &Ground<'p>, seats: &Seats) -> Self {
        let entries = entries(ground, seats);
        let mut by_shape = vec![Vec::new(); ground.problem.shapes.len()];
        for (i, entry) in entries.iter().enumerate() {
            by_shape[entry.shape].push(i);
        }
        let mut by_label: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
        let mut by_namespace: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, shape) in ground.problem.shapes.iter().enumerate() {
            by_namespace.entry(&shape.namespace).or_default().push(i);
            for (key, value) in &shape.labels {
                by_label.entry((key, value)).or_default().push(i);
            }
        }
        Self {
            entries,
            by_shape,
            n_launches: ground.plan.launches.len(),
            names: Vec::new(),
            ids: HashMap::new(),
            columns: HashMap::new(),
            by_label,
            by_namespace,
            matches: HashMap::new(),
            arena: Vec::new(),
        }
    }

    /// The places that hold a shape.
    pub(crate) fn of_shape(&self, shape: usize) -> impl Iterator<Item = (usize, &Entry)> {
        self.by_shape[shape].iter().map(|i| (*i, &self.entries[*i]))
    }

    /// Shapes with a pod that the plan places, in order.
    pub(crate) fn new_shapes(&self) -> Vec<usize> {
        let has_new = |shape: &usize| self.of_shape(*shape).any(|(_, e)| e.n_new > 0);
        (0..self.by_shape.len()).filter(has_new).collect()
    }

    /// The launch at a place, or the existing node.
    pub(crate) fn split(&self, place: usize) -> Result<usize, usize> {
        place.checked_sub(self.n_launches).map_or(Ok(place), Err)
    }

    /// The domain that a value of a label stands for.
    pub(crate) fn value(&mut self, value: &str) -> Domain {
        if let Some(id) = self.ids.get(value) {
            return Domain::Value(*id);
        }
        self.names.push(value.into());
        self.ids.insert(value.into(), self.names.len() - 1);
        Domain::Value(self.names.len() - 1)
    }

    /// A domain as people call it.
    pub(crate) fn render(&self, ground: &Ground<'p>, domain: Domain) -> String {
        match domain {
            Domain::Value(id) => self.names[id].to_string(),
            Domain::Own(place) => self.place_name(ground, place).to_owned(),
        }
    }

    pub(crate) fn place_name(&self, ground: &Ground<'p>, place: usize) -> &'p str {
        match self.split(place) {
            Ok(launch) => &ground.plan.launches[launch].name,
            Err(node) => &ground.problem.nodes[node].name,
        }
    }

    /// Learns where every place is for a key; needed before asking.
    pub(crate) fn learn(&mut self, ground: &Ground<'p>, market: &mut Market<'p>, key: &'p str) {
        if self.columns.contains_key(key) {
            return;
        }
        let mut spots = Vec::new();
        let mut of_place = Vec::new();
        let mut of_class: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, class) in market.of_launch.clone().into_iter().enumerate() {
            let spot = match class {
                _ if key == keys::HOSTNAME => Spot::Fixed(Domain::Own(place)),
                None => Spot::Absent,
                Some(class) => {
                    if let Some(spot) = of_class.get(&class) {
                        of_place.push(*spot);
                        continue;
                    }
                    of_class.insert(class, spots.len());
                    self.spot_of_class(ground, market, class, key)
                }
            };
            of_place.push(spots.len());
            spots.push(spot);
        }
        for node in &ground.problem.nodes {
            of_place.push(spots.len());
            let value = node_label(node, key);
            spots.push(value.map_or(Spot::Absent, |v| Spot::Fixed(self.value(v))));
        }
        self.columns.insert(key, Column { spots, of_place });
    }

    fn spot_of_class(
        &mut self,
        ground: &Ground<'p>,
        market: &mut Market<'p>,
        class: usize,
        key: &'p str,
    ) -> Spot {
        let class = &market.classes[class];
        let view = &mut market.views[class.pool];
        if class.left.is_empty() {
            return Spot::Absent;
        }
        let mut values: Vec<Option<Domain>> = if view.is_custom(key) {
            let contexts = class.contexts.iter();
            contexts
                .map(|c| view.custom_value(*c, key).map(|v| self.value(v)))
                .collect()
        } else {
            let values = view.worlds.values_in(ground, key, &class.left);
            values
                .into_iter()
                .map(|v| v.map(|v| self.value(v)))
                .collect()
        };
        values.sort();
        values.dedup();
        match values[..] {
            [] | [None] => Spot::Absent,
            [Some(domain)] => Spot::Fixed(domain),
            _ => Spot::Open(values.into_iter().flatten().collect()),
        }
    }

    /// Where a place is, for a key that was learned.
    pub(crate) fn spot(&self, key: &str, place: usize) -> &Spot {
        let column = &self.columns[key];
        &column.spots[column.of_place[place]]
    }

    /// The domain of a place: a node that leaves the key open is one by itself.
    pub(crate) fn domain(&self, key: &str, place: usize) -> Option<Domain> {
        match self.spot(key, place) {
            Spot::Absent => None,
            Spot::Fixed(domain) => Some(*domain),
            Spot::Open(_) => Some(Domain::Own(place)),
        }
    }

    /// The pods that a selector in some namespaces is about, as a number for [`Topology::matches`].
    pub(crate) fn matching(
        &mut self,
        ground: &Ground<'p>,
        namespaces: &'p [Name],
        selector: Option<&'p Selector>,
    ) -> usize {
        if let Some(found) = self.matches.get(&(namespaces, selector)) {
            return *found;
        }
        let shapes = &ground.problem.shapes;
        let mut found: Vec<usize> = match selector.and_then(|s| self.candidates(s)) {
            Some(candidates) => {
                let there = |i: &usize| namespaces.contains(&shapes[*i].namespace);
                candidates.into_iter().filter(there).collect()
            }
            None => {
                let lists = namespaces
                    .iter()
                    .filter_map(|ns| self.by_namespace.get(ns.as_ref()));
                lists.flatten().copied().collect()
            }
        };
        if let Some(selector) = selector {
            found.retain(|i| selector.matches(&shapes[*i].labels));
        }
        found.sort_unstable();
        found.dedup();
        self.arena.push(Matches {
            shapes: found,
            batch: selector.is_some(),
        });
        self.matches
            .insert((namespaces, selector), self.arena.len() - 1);
        self.arena.len() - 1
    }

    /// Shapes that may match, found through the most telling label the selector names.
    fn candidates(&self, selector: &Selector) -> Option<Vec<usize>> {
        let named = selector.exprs().iter();
        let named = named.filter(|e| e.op == joiner_model::SelectorOp::In);
        let lists = named.map(|e| {
            let values = e.values.iter();
            let lists = values.filter_map(|v| self.by_label.get(&(e.key.as_ref(), v.as_ref())));
            lists.collect::<Vec<_>>()
        });
        let best = lists.min_by_key(|lists| lists.iter().map(|l| l.len()).sum::<usize>())?;
        Some(best.into_iter().flatten().copied().collect())
    }

    /// The same for a term of pod affinity or anti-affinity.
    pub(crate) fn matching_term(&mut self, ground: &Ground<'p>, term: &'p PodTerm) -> usize {
        self.matching(ground, &term.namespaces, term.selector.as_ref())
    }

    /// Matches found before.
    pub(crate) fn matches(&self, number: usize) -> &Matches {
        &self.arena[number]
    }
}

fn entries(ground: &Ground<'_>, seats: &Seats) -> Vec<Entry> {
    let mut all: Vec<(usize, usize, bool, PodIx)> = Vec::new();
    for (place, pods) in seats.launches.iter().chain(&seats.nodes).enumerate() {
        all.extend(
            pods.iter()
                .map(|pod| (place, ground.shape_ix(*pod), false, *pod)),
        );
    }
    for (ix, pod) in (0..).map(PodIx).zip(&ground.problem.pods) {
        let node = pod.node.map(|node| node.0 as usize);
        if let Some(node) = node.filter(|node| *node < seats.nodes.len() && !pod.terminating) {
            all.push((seats.launches.len() + node, ground.shape_ix(ix), true, ix));
        }
    }
    all.sort_unstable();
    let mut entries: Vec<Entry> = Vec::new();
    for (place, shape, is_old, pod) in all {
        let last = entries.last().map(|e| (e.place, e.shape));
        if last != Some((place, shape)) {
            entries.push(Entry {
                place,
                shape,
                n_new: 0,
                n_old: 0,
                pod,
            });
        }
        if let Some(entry) = entries.last_mut() {
            entry.n_new += u32::from(!is_old);
            entry.n_old += u32::from(is_old);
        }
    }
    entries
}
