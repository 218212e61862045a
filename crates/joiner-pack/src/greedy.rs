//! Buy the node that gives most value for its cost, again and again.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::fill::{Guide, Steps, fill, value};
use crate::load::{Load, holds};
use crate::model::HOME;
use crate::plan::Node;

/// Above this many classes only the most fitting ones are considered for each node.
const ALL_CLASSES_MAX: usize = 1_200;
const CANDIDATES_MAX: usize = 1600;
/// Densities this close to the best are as good as the best.
const BAND: f64 = 0.97;

/// An offer to buy nodes of one kind, best first.
struct Offer {
    ratio: f64,
    kind: u32,
    /// Empty if not filled yet; then `ratio` is an upper guess.
    items: Vec<(u32, u32)>,
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Offer {}
impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio
            .total_cmp(&other.ratio)
            .then(other.kind.cmp(&self.kind))
    }
}

/// Remembers which classes suit a slot, and the scratch node.
pub(crate) struct Greedy<'a> {
    guide: Guide<'a>,
    load: Load,
    /// Per slot, where asked for: density and class, densest first.
    suited: Vec<Option<Vec<(f64, u32)>>>,
    /// Per slot, where asked for: the classes that fit by themselves.
    fitting: Vec<Option<Vec<u32>>>,
    /// What is left of each budget, if budgets are to be kept.
    pub(crate) budget_left: Option<Vec<u64>>,
}

impl<'a> Greedy<'a> {
    /// Prepares to pack by this guide.
    pub(crate) fn new(guide: Guide<'a>) -> Self {
        let load = Load::new(guide.model);
        Self {
            guide,
            load,
            suited: vec![None; guide.model.n_slots()],
            fitting: vec![None; guide.model.n_slots()],
            budget_left: None,
        }
    }

    /// Fills the bins that are not `taken`, most valuable first.
    pub(crate) fn fill_bins(
        &mut self,
        counts: &mut [u64],
        taken: &mut [bool],
        steps: &mut Steps,
    ) -> Vec<Node> {
        let model = self.guide.model;
        let mut nodes = Vec::new();
        for (bin, taken) in taken.iter_mut().enumerate().filter(|(_, taken)| !**taken) {
            let slot = model.n_kinds + bin;
            let items = self.filled(slot, counts, steps);
            if !items.is_empty() {
                *taken = true;
                subtract(counts, &items, 1);
                nodes.push(Node {
                    slot: slot as u32,
                    items,
                    times: 1,
                });
            }
        }
        nodes
    }

    /// Buys nodes for everything in `counts` that some kind can hold.
    pub(crate) fn buy(&mut self, counts: &mut [u64], steps: &mut Steps) -> Vec<Node> {
        let model = self.guide.model;
        let mut nodes = Vec::new();
        let mut offers = self.first_offers(counts);
        let mut n_left = total(counts);
        while n_left > 0
            && let Some(mut offer) = offers.pop()
        {
            let slot = offer.kind as usize;
            let times = offer
                .items
                .iter()
                .map(|&(class, n)| counts[class as usize] / u64::from(n))
                .min()
                .unwrap_or(0);
            let affordable = self.affordable(slot);
            if affordable == 0 {
                continue;
            }
            if times > 0 {
                let times = u32::try_from(times.min(affordable)).unwrap_or(u32::MAX);
                subtract(counts, &offer.items, times);
                n_left = total(counts);
                let slot = self.cheapest(slot, &offer.items) as u32;
                self.pay(slot as usize, times);
                nodes.push(Node {
                    slot,
                    items: offer.items.clone(),
                    times,
                });
                offers.push(offer);
                continue;
            }
            steps.spend(200);
            offer.items = self.filled(slot, counts, steps);
            if offer.items.is_empty() {
                continue;
            }
            offer.ratio = value(self.guide.values, &offer.items) / self.guide.cost[slot].max(1e-9);
            if offer.ratio <= 0.0 {
                // Worthless items need a node too.
                offer.ratio = 1e-9 / self.guide.cost[slot].max(1.0);
            }
            offers.push(offer);
        }
        debug_assert!(
            self.budget_left.is_some()
                || (0..model.n_classes).all(|class| counts[class] == 0
                    || (0..model.n_kinds)
                        .all(|k| !model.fits(k, class) || model.may(k, class) != HOME)),
            "something was left over that a new node could hold"
        );
        nodes
    }

    fn first_offers(&mut self, counts: &[u64]) -> BinaryHeap<Offer> {
        let model = self.guide.model;
        let mut worth = vec![0.0; model.n_labels];
        for class in (0..model.n_classes).filter(|&class| counts[class] > 0) {
            worth[model.label[class] as usize] +=
                self.guide.values[class] * counts[class] as f64 + 1e-9;
        }
        let mut by_sig: Vec<Option<f64>> = vec![None; model.allowed.len() / model.n_labels.max(1)];
        let mut offers = Vec::new();
        for kind in 0..model.n_kinds {
            let sig = model.sig[kind] as usize;
            let sum = *by_sig[sig].get_or_insert_with(|| {
                let may = &model.allowed[sig * model.n_labels..][..model.n_labels];
                may.iter()
                    .zip(&worth)
                    .filter(|(may, _)| **may > 0)
                    .map(|(_, w)| w)
                    .sum()
            });
            if sum > 0.0 {
                let ratio = (sum / self.guide.cost[kind].max(1e-9)).min(2.0);
                offers.push(Offer {
                    ratio,
                    kind: kind as u32,
                    items: Vec::new(),
                });
            }
        }
        offers.into()
    }

    /// What a fresh node of the slot would be filled with.
    pub(crate) fn filled(
        &mut self,
        slot: usize,
        counts: &[u64],
        steps: &mut Steps,
    ) -> Vec<(u32, u32)> {
        let model = self.guide.model;
        self.load.open(model, slot);
        if model.n_classes <= ALL_CLASSES_MAX {
            steps.spend(model.n_classes);
            let fitting = self.fitting[slot].get_or_insert_with(|| {
                let classes = 0..model.n_classes as u32;
                classes.filter(|&c| model.fits(slot, c as usize)).collect()
            });
            let left = fitting.iter().copied();
            let candidates: Vec<u32> = left.filter(|&c| counts[c as usize] > 0).collect();
            fill(
                model,
                &self.guide.taste(slot),
                &mut self.load,
                counts,
                &candidates,
                steps,
            );
        } else {
            let candidates = self.candidates(slot, counts, steps);
            fill(
                model,
                &self.guide.taste(slot),
                &mut self.load,
                counts,
                &candidates,
                steps,
            );
            // What is left of the room is small: look at everything that fits into it.
            let suited = self.suited[slot].iter().flatten().map(|&(_, class)| class);
            let small: Vec<u32> = suited
                .filter(|&class| {
                    u64::from(self.load.held(class as usize)) < counts[class as usize]
                        && self.load.fit_allowed(model, class as usize) > 0
                })
                .collect();
            fill(
                model,
                &self.guide.taste(slot),
                &mut self.load,
                counts,
                &small,
                steps,
            );
        }
        if !self.load.justified(model) {
            return Vec::new();
        }
        self.load.items()
    }

    /// The classes with items left that suit the slot best by value for what they take of it.
    fn candidates(&mut self, slot: usize, counts: &[u64], steps: &mut Steps) -> Vec<u32> {
        let Guide {
            model,
            values,
            weights,
            ..
        } = self.guide;
        let nd = model.n_dims;
        let suited = self.suited[slot].get_or_insert_with(|| {
            let mut list: Vec<(f64, u32)> = (0..model.n_classes)
                .filter(|&class| counts[class] > 0 && model.fits(slot, class))
                .map(|class| {
                    let need = model.need_f(class).iter().zip(model.room_f(slot));
                    let share: f64 = need
                        .zip(&weights[slot * nd..][..nd])
                        .map(|((n, r), w)| if *r > 0.0 { (w + 0.02) * n / r } else { 0.0 })
                        .sum();
                    (values[class] / share.max(1e-12), class as u32)
                })
                .collect();
            list.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            list
        });
        suited.retain(|&(_, class)| counts[class as usize] > 0);
        steps.spend(suited.len());
        // A mix of all that are dense enough: the densest alone would be all of one sort.
        let dense = suited.first().map_or(0.0, |first| first.0 * BAND);
        let band = suited.partition_point(|&(density, _)| density >= dense);
        let band = band.max(CANDIDATES_MAX).min(suited.len());
        let stride = band.div_ceil(CANDIDATES_MAX).max(1);
        let mut some: Vec<u32> = suited[..band]
            .iter()
            .step_by(stride)
            .map(|&(_, class)| class)
            .collect();
        let is_home = |class: u32| model.may(slot, class as usize) == HOME;
        if !some.iter().any(|&class| is_home(class)) {
            some.extend(
                suited
                    .iter()
                    .map(|&(_, class)| class)
                    .find(|&class| is_home(class)),
            );
        }
        some
    }

    /// How many nodes of a kind the budgets still allow.
    fn affordable(&self, slot: usize) -> u64 {
        let Some(left) = &self.budget_left else {
            return u64::MAX;
        };
        let spend = self.guide.model.spend[slot].iter();
        spend
            .map(|&(budget, spend)| left[budget as usize] / spend)
            .min()
            .unwrap_or(u64::MAX)
    }

    fn pay(&mut self, slot: usize, times: u32) {
        if let Some(left) = &mut self.budget_left {
            for &(budget, spend) in &self.guide.model.spend[slot] {
                left[budget as usize] -= spend * u64::from(times);
            }
        }
    }

    /// The cheapest kind that can hold what a node of this kind holds.
    fn cheapest(&mut self, slot: usize, items: &[(u32, u32)]) -> usize {
        if self.budget_left.is_some() {
            // A cheaper kind may spend more of a budget.
            return slot;
        }
        cheapest(&self.guide, &mut self.load, slot, items)
    }
}

/// The cheapest kind that can hold what a node of this kind holds; more options at equal cost.
pub(crate) fn cheapest(
    guide: &Guide<'_>,
    load: &mut Load,
    slot: usize,
    items: &[(u32, u32)],
) -> usize {
    let model = guide.model;
    let mut total = vec![0_u64; model.n_dims];
    for &(class, n) in items {
        for (total, need) in total.iter_mut().zip(model.need(class as usize)) {
            *total += need * u64::from(n);
        }
    }
    let key = |k: usize| (guide.cost[k], std::cmp::Reverse(model.options[k]), k);
    let mut best = slot;
    // No kind up to here has enough of everything. Kinds after this one are no cheaper.
    let first = model.first_reaching(&total);
    let end = if guide.cost_follows_price {
        slot
    } else {
        model.n_kinds
    };
    for kind in first..end {
        if total.iter().zip(model.room(kind)).all(|(t, r)| t <= r)
            && key(kind).partial_cmp(&key(best)) == Some(Ordering::Less)
            && holds(model, load, kind, items)
        {
            best = kind;
            if guide.cost_follows_price {
                break;
            }
        }
    }
    best
}

fn total(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
}

/// Takes items off the counts.
pub(crate) fn subtract(counts: &mut [u64], items: &[(u32, u32)], times: u32) {
    for &(class, n) in items {
        counts[class as usize] -= u64::from(n) * u64::from(times);
    }
}
