//! Column generation: the best mix of whole-node fillings, in fractions.
//!
//! A column is a filling of a slot. The master programme covers every item at least cost and
//! uses each bin at most once; fillings that would lower its cost are found by relaxing and
//! rounding a knapsack per slot. Floating point and only a guide.

use std::collections::HashSet;

use crate::branch::{Fixed, search};
use crate::crew;
use crate::fill::{Steps, Taste, fill, value};
use crate::knapsack::{Suited, relax, rooms, upper};
use crate::load::Load;
use crate::model::{HOME, Model};
use crate::simplex::{Column, Master};

/// A filling: a slot and what is on it.
pub(crate) type Filling = (u32, Vec<(u32, u32)>);

/// The state of one column generation.
#[derive(Clone)]
pub(crate) struct Columns<'a> {
    model: &'a Model,
    cost: Vec<f64>,
    counts: Vec<u64>,
    most: Vec<u64>,
    /// Per slot the classes that may be on it.
    suited: Vec<Suited>,
    /// Per slot the last resource prices.
    prices: Vec<Vec<f64>>,
    master: Master,
    /// Row of each class, if it has items.
    row: Vec<Option<u32>>,
    n_class_rows: usize,
    /// Row of each bin in use.
    bin_row: Vec<Option<u32>>,
    fillings: Vec<Option<Filling>>,
    known: HashSet<Filling>,
    /// One scratch node per thread.
    loads: Vec<Load>,
    next_slot: usize,
    /// Slots that are priced at all.
    active: Vec<bool>,
    /// Stop after so many rounds with hardly any gain.
    pub(crate) patience: usize,
}

const COLUMNS_A_ROUND: usize = 24;
const FOUND_MAX: usize = 72;
const SETTLED_GAP: f64 = 0.0015;
const FOCUS_MIN: usize = 60;
const FOCUS_RATIO: f64 = 0.995;
const BRANCHES: u64 = 30_000;
const BRANCHES_A_SLOT: u64 = 3_000;
const BRANCH_STEPS: usize = 60;
const BRANCHES_TO_SETTLE: u64 = 20_000;
const SETTLING_ROUNDS: usize = 40;
/// So many slots are looked at before the answers are: then it may be time to stop.
const WINDOW: usize = 48;
/// Steps from which on a second thread pays.
const STEPS_FOR_TWO: usize = 200_000;

impl<'a> Columns<'a> {
    /// Starts with one-class fillings. Bins that are `taken` stay out.
    pub(crate) fn new(model: &'a Model, cost: &[f64], counts: &[u64], taken: &[bool]) -> Self {
        let most: Vec<u64> = counts
            .iter()
            .zip(&model.limit)
            .map(|(&n, &limit)| n.min(limit))
            .collect();
        let mut row = vec![None; model.n_classes];
        let mut rhs = Vec::new();
        for class in (0..model.n_classes).filter(|&c| counts[c] > 0) {
            row[class] = Some(rhs.len() as u32);
            rhs.push(counts[class] as f64);
        }
        let n_class_rows = rhs.len();
        let mut bin_row = vec![None; model.n_bins];
        for bin in (0..model.n_bins).filter(|&b| !taken[b]) {
            bin_row[bin] = Some(rhs.len() as u32);
            rhs.push(-1.0);
        }
        let suited: Vec<Suited> = (0..model.n_slots())
            .map(|slot| Suited::new(model, slot, counts, |_| true))
            .collect();
        let mut load = Load::new(model);
        let mut start = Vec::with_capacity(rhs.len());
        let mut fillings = vec![None; rhs.len()];
        let dear = cost.iter().fold(1.0, |a: f64, &b| a.max(b)) * 100.0;
        for class in (0..model.n_classes).filter(|&c| counts[c] > 0) {
            let (column, filling) = alone(model, cost, counts, class, &mut load).unwrap_or((
                Column {
                    cost: dear,
                    entries: vec![(0, 1.0)],
                },
                None,
            ));
            let entries = vec![(row[class].unwrap_or(0), column.entries[0].1)];
            start.push(Some(Column {
                cost: column.cost,
                entries,
            }));
            fillings.push(filling);
        }
        start.resize(rhs.len(), None);
        Self {
            model,
            cost: cost.to_vec(),
            counts: counts.to_vec(),
            most,
            suited,
            prices: vec![Vec::new(); model.n_slots()],
            master: Master::new(&rhs, start),
            row,
            n_class_rows,
            bin_row,
            known: fillings.iter().flatten().cloned().collect(),
            fillings,
            loads: vec![load; crew::HANDS],
            next_slot: 0,
            active: vec![true; model.n_slots()],
            patience: 16,
        }
    }

    /// Looks only at kinds that seem worth their cost at these values, until those are done with.
    pub(crate) fn focus(&mut self, values: &[f64], steps: &mut Steps) {
        if self.model.n_kinds <= FOCUS_MIN {
            return;
        }
        let mut ratios = Vec::with_capacity(self.model.n_kinds);
        for kind in 0..self.model.n_kinds {
            let relaxed = relax(self.model, kind, &self.suited[kind], values);
            steps.spend(self.relax_steps(kind));
            ratios.push((relaxed.upper / self.cost[kind].max(1.0), kind));
            self.prices[kind] = relaxed.prices;
        }
        ratios.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for (place, &(ratio, kind)) in ratios.iter().enumerate() {
            self.active[kind] = place < FOCUS_MIN || ratio > FOCUS_RATIO;
        }
    }

    fn relax_steps(&self, slot: usize) -> usize {
        self.suited[slot].classes.len() * (self.model.n_dims + self.model.shared_caps.len()) * 30
    }

    /// How many threads to look at these slots with.
    fn hands(&self, slots: impl Iterator<Item = usize>, steps_for_two: usize) -> usize {
        let active = slots.filter(|&slot| self.active[slot]);
        let work: usize = active.map(|slot| self.relax_steps(slot)).sum();
        if work < steps_for_two { 1 } else { crew::HANDS }
    }

    /// Offers a filling to the master programme.
    pub(crate) fn add(&mut self, slot: u32, items: &[(u32, u32)]) {
        let filling = (slot, items.to_vec());
        if self.known.contains(&filling) {
            return;
        }
        let mut entries: Vec<(u32, f64)> = items
            .iter()
            .filter_map(|&(class, n)| Some((self.row[class as usize]?, f64::from(n))))
            .collect();
        let mut cost = 0.0;
        if (slot as usize) < self.model.n_kinds {
            cost = self.cost[slot as usize];
        } else {
            let Some(row) = self.bin_row[slot as usize - self.model.n_kinds] else {
                return;
            };
            entries.push((row, -1.0));
        }
        if entries.is_empty() {
            return;
        }
        self.known.insert(filling.clone());
        self.fillings.push(Some(filling));
        self.master.add(Column { cost, entries });
    }

    /// Generates columns until they no longer help, rounds are used up or steps run out.
    pub(crate) fn run(&mut self, rounds_max: usize, steps: &mut Steps) {
        self.solve(steps);
        let mut marks = vec![self.master.objective()];
        for round in 0..rounds_max {
            let values = self.values();
            let mut n_new = self.price(&values, steps);
            if n_new == 0 && !steps.over() && self.active.contains(&false) {
                self.active.fill(true);
                n_new = self.price(&values, steps);
            }
            if n_new == 0 || steps.over() {
                break;
            }
            self.solve(steps);
            let objective = self.master.objective();
            marks.push(objective);
            if round >= self.patience
                && objective > marks[round - self.patience + 1] * (1.0 - 0.0003)
            {
                break;
            }
        }
    }

    fn solve(&mut self, steps: &mut Steps) {
        self.master.solve(2_000);
        steps.spend(self.master.work as usize);
        self.master.work = 0;
    }

    /// Values that hardly exceed the price of any slot: where neither a filling can be found nor
    /// its absence be proven, a filling in fractions has to do. The flag says whether proofs are
    /// within reach at all; if not, the values are what they were. Spoils the solution.
    pub(crate) fn settled_values(mut self, steps: &mut Steps) -> (Vec<f64>, bool) {
        let mut thorough = false;
        for _ in 0..SETTLING_ROUNDS {
            let values = self.values();
            let n_before = self.master.columns.len();
            if !self.settle(&values, thorough, steps) {
                return (values, false);
            }
            if steps.over() {
                return (values, true);
            }
            if self.master.columns.len() > n_before {
                self.solve(steps);
            } else if thorough {
                break;
            }
            thorough |= self.master.columns.len() == n_before;
        }
        (self.values(), true)
    }

    /// One round over all slots: adds fillings worth more than they cost, in fractions where a
    /// thorough search is at its end. `false` if it nearly always is, slot after slot: then there
    /// is no point in going on.
    fn settle(&mut self, values: &[f64], thorough: bool, steps: &mut Steps) -> bool {
        let duals = self.master.duals();
        let fixed = Fixed::new(self.model, values);
        let nodes_max = if thorough {
            BRANCHES_TO_SETTLE
        } else {
            BRANCHES_A_SLOT
        };
        let n_slots = self.model.n_slots();
        for from in (0..n_slots).step_by(WINDOW) {
            let n = WINDOW.min(n_slots - from);
            // Branching may take long where relaxing does not.
            let hands = self.hands(from..from + n, STEPS_FOR_TWO / 10);
            let mut loads = std::mem::take(&mut self.loads);
            let looks = crew::all(n, &mut loads[..hands], |load, at| {
                let slot = from + at;
                let cost = self.cost_of(slot, &duals)?;
                let mut look = self.price_slot(slot, cost, values, load);
                if let Priced::Maybe(gap) = look.priced {
                    let mut nodes = if gap > SETTLED_GAP { nodes_max } else { 0 };
                    look.spent += nodes * BRANCH_STEPS as u64;
                    let prices = look.prices.as_deref().unwrap_or(&self.prices[slot]);
                    let found = self.branch((&fixed, prices), (slot, cost), &mut nodes, load);
                    look.spent -= nodes * BRANCH_STEPS as u64;
                    look.priced = match found {
                        Some(items) => Priced::Good(0.0, items),
                        None if thorough && nodes == 0 && gap > SETTLED_GAP => Priced::Unsettled,
                        None => Priced::No,
                    };
                }
                Some(look)
            });
            self.loads = loads;
            let is_open = |look: &&Option<Look>| {
                let priced = look.as_ref().map(|look| &look.priced);
                matches!(priced, Some(Priced::Unsettled))
            };
            let n_open = looks.iter().filter(is_open).count();
            if from == 0 && n == WINDOW && n_open * 10 > WINDOW * 8 {
                steps.spend(looks.iter().flatten().map(|look| look.spent as usize).sum());
                return false;
            }
            for (slot, look) in (from..).zip(looks) {
                match self.note(slot, look, steps) {
                    Some(Priced::Good(_, items)) => self.add(slot as u32, &items),
                    Some(Priced::Unsettled) => self.add_fractions(slot, values),
                    Some(Priced::Maybe(_) | Priced::No) | None => {}
                }
                if steps.over() {
                    return true;
                }
            }
        }
        true
    }

    /// Keeps what a look at a slot brought to light beside its answer.
    fn note(&mut self, slot: usize, look: Option<Look>, steps: &mut Steps) -> Option<Priced> {
        let look = look?;
        steps.spend(look.spent as usize);
        if let Some(prices) = look.prices {
            self.prices[slot] = prices;
        }
        Some(look.priced)
    }

    fn add_fractions(&mut self, slot: usize, values: &[f64]) {
        let relaxed = relax(self.model, slot, &self.suited[slot], values);
        let classes = self.suited[slot].classes.iter().zip(&relaxed.amounts);
        let mut entries: Vec<(u32, f64)> = classes
            .filter(|(_, amount)| **amount > 1e-6)
            .filter_map(|(&class, &amount)| Some((self.row[class as usize]?, amount)))
            .collect();
        let mut cost = 0.0;
        if slot < self.model.n_kinds {
            cost = self.cost[slot];
        } else if let Some(row) = self.bin_row[slot - self.model.n_kinds] {
            entries.push((row, -1.0));
        }
        self.fillings.push(None);
        self.master.add(Column { cost, entries });
    }

    /// Changes what new nodes cost; the current solution stays valid.
    pub(crate) fn set_cost(&mut self, cost: &[f64]) {
        self.cost = cost.to_vec();
        for (column, filling) in self.master.columns.iter_mut().zip(&self.fillings) {
            if let Some((slot, _)) = filling
                && (*slot as usize) < self.model.n_kinds
            {
                column.cost = cost[*slot as usize];
            }
        }
    }

    /// The cost of the fractional solution.
    pub(crate) fn objective(&self) -> f64 {
        self.master.objective()
    }

    /// The value of one item, per class.
    pub(crate) fn values(&self) -> Vec<f64> {
        let duals = self.master.duals();
        self.row
            .iter()
            .map(|row| row.map_or(0.0, |r| duals[r as usize].max(0.0)))
            .collect()
    }

    /// Fillings in use with their amounts.
    pub(crate) fn solution(&self) -> Vec<(&Filling, f64)> {
        let used = self.master.solution().into_iter();
        used.filter_map(|(at, x)| Some((self.fillings[at].as_ref()?, x)))
            .collect()
    }

    /// All fillings found so far.
    pub(crate) fn fillings(&self) -> impl Iterator<Item = &Filling> {
        self.fillings.iter().flatten()
    }

    /// Finds fillings worth more than they cost; returns how many were added.
    fn price(&mut self, values: &[f64], steps: &mut Steps) -> usize {
        let duals = self.master.duals();
        let n_slots = self.model.n_slots();
        let mut found: Vec<(f64, Filling)> = Vec::new();
        let mut doubtful: Vec<(f64, u32)> = Vec::new();
        let start = self.next_slot;
        'slots: for from in (0..n_slots).step_by(WINDOW) {
            let slot_at = |at: usize| (start + from + at) % n_slots;
            let n = WINDOW.min(n_slots - from);
            let hands = self.hands((0..n).map(slot_at), STEPS_FOR_TWO);
            let mut loads = std::mem::take(&mut self.loads);
            let looks = crew::all(n, &mut loads[..hands], |load, at| {
                let slot = slot_at(at);
                let cost = self.cost_of(slot, &duals).filter(|_| self.active[slot])?;
                Some(self.price_slot(slot, cost, values, load))
            });
            self.loads = loads;
            for (at, look) in looks.into_iter().enumerate() {
                let slot = slot_at(at);
                match self.note(slot, look, steps) {
                    Some(Priced::Good(gain, items)) => found.push((gain, (slot as u32, items))),
                    Some(Priced::Maybe(gap)) => doubtful.push((gap, slot as u32)),
                    Some(Priced::Unsettled | Priced::No) | None => {}
                }
                if found.len() >= FOUND_MAX {
                    self.next_slot = slot + 1;
                    break 'slots;
                }
            }
        }
        if found.len() < 6 {
            doubtful.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let fixed = Fixed::new(self.model, values);
            let mut nodes = BRANCHES;
            let n_doubtful = doubtful.len() as u64;
            for (done, (_, slot)) in doubtful.into_iter().enumerate() {
                let Some(cost) = self.cost_of(slot as usize, &duals) else {
                    continue;
                };
                let some = (nodes / (n_doubtful - done as u64))
                    .max(BRANCHES_A_SLOT)
                    .min(nodes);
                let mut left = some;
                let mut loads = std::mem::take(&mut self.loads);
                let prices = &self.prices[slot as usize];
                let place = (slot as usize, cost);
                let items = self.branch((&fixed, prices), place, &mut left, &mut loads[0]);
                self.loads = loads;
                nodes -= some - left;
                if let Some(items) = items {
                    found.push((value(values, &items) / cost.max(1.0) - 1.0, (slot, items)));
                }
                if found.len() >= COLUMNS_A_ROUND || nodes == 0 {
                    break;
                }
            }
            steps.spend((BRANCHES - nodes) as usize * BRANCH_STEPS);
        }
        found.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.0.cmp(&b.1.0)));
        let before = self.fillings.len();
        for (_, (slot, items)) in found.into_iter().take(COLUMNS_A_ROUND) {
            self.add(slot, &items);
        }
        self.fillings.len() - before
    }

    /// What the slot costs at these duals; `None` for bins out of the game.
    fn cost_of(&self, slot: usize, duals: &[f64]) -> Option<f64> {
        if slot < self.model.n_kinds {
            return Some(self.cost[slot]);
        }
        let row = self.bin_row[slot - self.model.n_kinds]?;
        debug_assert!(
            row as usize >= self.n_class_rows,
            "a bin's row comes after the classes"
        );
        Some(duals[row as usize].max(0.0))
    }

    /// Looks for a filling of the slot that is worth more than it costs.
    fn price_slot(&self, slot: usize, cost: f64, values: &[f64], load: &mut Load) -> Look {
        let mut steps = Steps::new(u64::MAX);
        let (priced, prices) = self.priced(slot, cost, (values, load), &mut steps);
        Look {
            priced,
            prices,
            spent: u64::MAX - steps.left(),
        }
    }

    fn priced(
        &self,
        slot: usize,
        cost: f64,
        (values, load): (&[f64], &mut Load),
        steps: &mut Steps,
    ) -> (Priced, Option<Vec<f64>>) {
        let model = self.model;
        let goal = cost * (1.0 + 1e-6) + 1e-3;
        let relax_steps = self.relax_steps(slot);
        let suited = &self.suited[slot];
        let classes = &suited.classes[..];
        steps.spend(classes.len() * (model.n_dims + 1));
        let cached = &self.prices[slot];
        if !cached.is_empty() {
            let upper = upper(model, &rooms(model, slot), cached, suited, values);
            if upper <= goal {
                return (Priced::No, None);
            }
        }
        let relaxed = relax(model, slot, suited, values);
        steps.spend(relax_steps);
        if relaxed.upper <= goal {
            return (Priced::No, Some(relaxed.prices));
        }
        load.open(model, slot);
        for (&class, &amount) in classes.iter().zip(&relaxed.amounts) {
            let n = (amount + 1e-6) as u32;
            let n = n.min(load.fit(model, class as usize));
            load.add(model, class as usize, n);
        }
        // Caps have their price: what is left of a value is for the dimensions.
        let nd = model.n_dims;
        let weights: Vec<f64> = model
            .room_f(slot)
            .iter()
            .zip(&relaxed.prices)
            .map(|(r, p)| r * p / relaxed.upper)
            .collect();
        let mut net = values.to_vec();
        for &class in classes {
            for &cap in &model.shared_of[class as usize] {
                net[class as usize] -= relaxed.prices[nd + cap as usize];
            }
        }
        let taste = Taste {
            values: &net,
            weights: &weights,
            cap_weights: &[],
        };
        fill(model, &taste, load, &self.counts, classes, steps);
        if !load.justified(model) {
            return (Priced::No, Some(relaxed.prices));
        }
        let items = load.items();
        let worth = value(values, &items);
        let priced = if worth > goal {
            Priced::Good(worth / cost.max(1.0) - 1.0, items)
        } else {
            Priced::Maybe(relaxed.upper / cost.max(1.0) - 1.0)
        };
        (priced, Some(relaxed.prices))
    }

    /// A filling of a slot that is worth more than its cost, by branch and bound.
    fn branch(
        &self,
        (fixed, prices): (&Fixed<'_>, &[f64]),
        (slot, cost): (usize, f64),
        nodes: &mut u64,
        load: &mut Load,
    ) -> Option<Vec<(u32, u32)>> {
        if *nodes == 0 {
            return None;
        }
        let model = self.model;
        let goal = fixed.of(cost * (1.0 + 1e-6) + 1e-3);
        let classes = &self.suited[slot].classes;
        let knapsack = fixed.knapsack(slot, classes, prices, &self.most);
        let outcome = search(&knapsack, goal, nodes);
        let items = outcome.best?;
        load.open(model, slot);
        for &(class, n) in &items {
            if load.fit(model, class as usize) < n {
                return None;
            }
            load.add(model, class as usize, n);
        }
        load.justified(model).then_some(items)
    }
}

/// What a look at a slot brought to light.
struct Look {
    priced: Priced,
    /// Resource prices, where they are new.
    prices: Option<Vec<f64>>,
    /// Steps it took.
    spent: u64,
}

enum Priced {
    /// A filling with its relative gain.
    Good(f64, Vec<(u32, u32)>),
    /// None found, but the relaxation leaves hope.
    Maybe(f64),
    /// None found by a thorough search, and no proof that there is none.
    Unsettled,
    No,
}

/// The best filling of one class alone.
fn alone(
    model: &Model,
    cost: &[f64],
    counts: &[u64],
    class: usize,
    load: &mut Load,
) -> Option<(Column, Option<Filling>)> {
    let mut best: Option<(f64, usize, u32)> = None;
    for (slot, &cost) in cost.iter().enumerate().take(model.n_kinds) {
        if model.may(slot, class) != HOME || !model.fits(slot, class) {
            continue;
        }
        load.open(model, slot);
        let n = u64::from(load.fit(model, class)).min(counts[class]) as u32;
        if n > 0 && best.is_none_or(|(each, ..)| cost / f64::from(n) < each) {
            best = Some((cost / f64::from(n), slot, n));
        }
    }
    let (each, slot, n) = best?;
    let column = Column {
        cost: each * f64::from(n),
        entries: vec![(0, f64::from(n))],
    };
    Some((column, Some((slot as u32, vec![(class as u32, n)]))))
}
