//! One step of the ascent to dual prices, and what it looks at.
//!
//! Most of the time is spent here, on pairs of points and slots that are nearly cheapest for
//! them. So figures of slots are kept in groups of four, which processors add and multiply
//! quickly, and divisions are made once, beforehand.

use crate::model::Model;
use crate::points::{Points, Slots, points, slots};

/// Figures per dimension, four at a time, the last group filled up with zeros.
type Quad = [f64; 4];

/// What does not change from step to step.
pub(crate) struct Ascent<'a> {
    pub(crate) model: &'a Model,
    pub(crate) points: Points,
    pub(crate) slots: Slots,
    /// The number of cap groups that have weights: all or none.
    pub(crate) n_caps: usize,
    /// Per cap group, one divided by its size.
    cap_inverse: Vec<f64>,
    /// Groups of four dimensions.
    n_quads: usize,
    /// Needs per point.
    needs: Vec<Quad>,
    /// One divided by the room, or zero where there is none, per slot.
    room_inverse: Vec<Quad>,
    /// Per point the slots that can hold it.
    fitting: Vec<Vec<u32>>,
    /// How many of the cheapest slots are looked at per point.
    near_max: usize,
}

/// What the steps improve, per slot.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) weights: Vec<f64>,
    pub(crate) cap_weights: Vec<f64>,
    pub(crate) price: Vec<f64>,
}

/// How boldly to step.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// How soft the choice of the cheapest slot is.
    pub(crate) tau: f64,
    /// How far weights move.
    pub(crate) eta: f64,
    /// Whether kinds that allow the same labels move together.
    pub(crate) tied: bool,
}

/// Per point the slots where it is cheapest, by slot.
pub(crate) struct Near {
    slots: Vec<u32>,
    /// Where the slots of each point end.
    ends: Vec<usize>,
    /// The least cost of each point, zero where no slot can hold it.
    least: Vec<f64>,
}

/// Arrays that are kept from step to step to save allocations.
#[derive(Default)]
pub(crate) struct Scratch {
    units: Vec<Quad>,
    /// Per slot and cap group the price of one item.
    cap_units: Vec<f64>,
    load: Vec<Quad>,
    cap_load: Vec<f64>,
    costs: Vec<f64>,
    means: Vec<f64>,
    tied: Vec<f64>,
}

const CAP_WEIGHTS_MAX: usize = 4_000_000;
const NEAR_MIN: usize = 24;
const PAIRS_MAX: usize = 16_000;

impl<'a> Ascent<'a> {
    /// Prepares for a model.
    pub(crate) fn new(model: &'a Model) -> Self {
        let (points, slots) = (points(model), slots(model));
        let n_slots = slots.sig.len();
        let n_caps = if model.cap_size.len() * n_slots <= CAP_WEIGHTS_MAX {
            model.cap_size.len()
        } else {
            0
        };
        let inverse = |&x: &f64| if x > 0.0 { 1.0 / x } else { 0.0 };
        let rooms: Vec<f64> = slots.room.iter().map(inverse).collect();
        let n_points = points.count.len();
        Self {
            model,
            n_caps,
            cap_inverse: model
                .cap_size
                .iter()
                .map(|&size| 1.0 / f64::from(size.max(1)))
                .collect(),
            n_quads: model.n_dims.div_ceil(4),
            needs: quads(&points.need, model.n_dims),
            room_inverse: quads(&rooms, model.n_dims),
            fitting: (0..n_points)
                .map(|point| points.fitting(model, &slots, point))
                .collect(),
            near_max: (PAIRS_MAX / n_points.max(1)).max(NEAR_MIN),
            points,
            slots,
        }
    }

    /// Prices per unit of each dimension and per item of each cap group, for all slots.
    fn unit_prices(&self, state: &State, units: &mut Vec<Quad>, cap_units: &mut Vec<f64>) {
        let (nd, n_caps) = (self.model.n_dims, self.n_caps);
        units.clear();
        units.resize(self.room_inverse.len(), [0.0; 4]);
        cap_units.clear();
        for (slot, &price) in state.price.iter().enumerate() {
            let at = slot * self.n_quads;
            for dim in 0..nd {
                units[at + dim / 4][dim % 4] = price
                    * state.weights[slot * nd + dim]
                    * self.room_inverse[at + dim / 4][dim % 4];
            }
            let weights = &state.cap_weights[slot * n_caps..][..n_caps];
            let each = weights.iter().zip(&self.cap_inverse);
            cap_units.extend(each.map(|(weight, inverse)| price * weight * inverse));
        }
    }

    /// What an item of the point costs on each of these slots.
    fn costs(
        &self,
        point: usize,
        slots: &[u32],
        (units, cap_units): (&[Quad], &[f64]),
        costs: &mut Vec<f64>,
    ) {
        let n_quads = self.n_quads;
        let slots = slots.iter().map(|&slot| slot as usize);
        costs.clear();
        match &self.needs[point * n_quads..][..n_quads] {
            // Nearly always there are no more than four dimensions.
            [need] => costs.extend(slots.clone().map(|slot| product(need, &units[slot]))),
            needs => costs.extend(slots.clone().map(|slot| {
                let units = &units[slot * n_quads..][..n_quads];
                let parts = needs.iter().zip(units).map(|(n, u)| product(n, u));
                parts.sum::<f64>()
            })),
        }
        if self.n_caps > 0 {
            for &cap in &self.points.caps[point] {
                for (cost, slot) in costs.iter_mut().zip(slots.clone()) {
                    *cost += cap_units[slot * self.n_caps + cap as usize];
                }
            }
        }
    }

    /// Per point the slots where it is cheapest.
    pub(crate) fn near(&self, state: &State) -> Near {
        let (mut units, mut cap_units) = (Vec::new(), Vec::new());
        self.unit_prices(state, &mut units, &mut cap_units);
        let mut near = Near {
            slots: Vec::new(),
            ends: Vec::new(),
            least: Vec::new(),
        };
        let (mut costs, mut sorted) = (Vec::new(), Vec::new());
        for (point, fitting) in self.fitting.iter().enumerate() {
            self.costs(point, fitting, (&units, &cap_units), &mut costs);
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            near.least.push(if least.is_finite() { least } else { 0.0 });
            if costs.len() <= self.near_max {
                near.slots.extend_from_slice(fitting);
            } else {
                sorted.clone_from(&costs);
                let (_, &mut limit, _) =
                    sorted.select_nth_unstable_by(self.near_max - 1, f64::total_cmp);
                // Of those that cost as much as the last one, the first few.
                let mut equal = self.near_max - costs.iter().filter(|&&c| c < limit).count();
                for (&slot, &cost) in fitting.iter().zip(&costs) {
                    let tie = cost == limit && equal > 0;
                    equal -= usize::from(tie);
                    if cost < limit || tie {
                        near.slots.push(slot);
                    }
                }
            }
            near.ends.push(near.slots.len());
        }
        near
    }

    /// What all items are worth, less what the bins absorb.
    pub(crate) fn value(&self, state: &State, near: &Near) -> f64 {
        let items = near.least.iter().zip(&self.points.count);
        let bins = (self.model.n_kinds..self.slots.sig.len())
            .map(|slot| state.price[slot] * self.slots.copies[slot]);
        items.map(|(least, n)| n * least).sum::<f64>() - bins.sum::<f64>()
    }

    /// Spreads the items over the slots that are nearly cheapest for them, and moves the weights.
    pub(crate) fn step(&self, state: &mut State, near: &Near, pace: Pace, scratch: &mut Scratch) {
        self.unit_prices(state, &mut scratch.units, &mut scratch.cap_units);
        scratch.load.clear();
        scratch.load.resize(self.room_inverse.len(), [0.0; 4]);
        scratch.cap_load.clear();
        scratch
            .cap_load
            .resize(self.slots.sig.len() * self.n_caps, 0.0);
        let mut from = 0;
        for (point, &end) in near.ends.iter().enumerate() {
            let slots = &near.slots[from..end];
            from = end;
            self.spread(point, slots, pace.tau, scratch);
        }
        self.reweigh(state, pace, scratch);
    }

    /// Loads the slots with the items of one point.
    fn spread(&self, point: usize, slots: &[u32], tau: f64, scratch: &mut Scratch) {
        let Scratch {
            units,
            cap_units,
            load,
            cap_load,
            costs,
            ..
        } = scratch;
        self.costs(point, slots, (units, cap_units), costs);
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        if !least.is_finite() || least <= 0.0 {
            return;
        }
        let (steep, offset) = (1.0 / (least * tau), 1.0 / tau);
        for cost in costs.iter_mut() {
            *cost = exp_minus(*cost * steep - offset);
        }
        let share = self.points.count[point] / costs.iter().sum::<f64>();
        let need = &self.needs[point * self.n_quads..][..self.n_quads];
        let caps = &self.points.caps[point];
        for (&slot, &weight) in slots.iter().zip(costs.iter()) {
            if weight <= 0.0 {
                continue;
            }
            let n = share * weight;
            let slot = slot as usize;
            for (quad, need) in need.iter().enumerate() {
                let load = &mut load[slot * self.n_quads + quad];
                for (load, need) in load.iter_mut().zip(need) {
                    *load += n * need;
                }
            }
            if self.n_caps > 0 {
                for &cap in caps {
                    cap_load[slot * self.n_caps + cap as usize] += n;
                }
            }
        }
    }

    /// Raises the weights of what is loaded above the mean, and the prices of bins that are in
    /// demand beyond their room. Kinds that are tied share their means and loads.
    fn reweigh(&self, state: &mut State, pace: Pace, scratch: &mut Scratch) {
        let (nd, n_caps) = (self.model.n_dims, self.n_caps);
        let n_sums = 1 + nd + n_caps;
        self.weigh_loads(state, pace.tied, scratch);
        for (slot, &mean) in scratch.means.iter().enumerate() {
            let copies = self.slots.copies[slot];
            if copies > 0.0 {
                let factor = 1.0 + pace.eta * (mean / copies - 1.0).clamp(-1.0, 1.0);
                state.price[slot] *= factor;
            }
            let weights = &mut state.weights[slot * nd..][..nd];
            let caps = &mut state.cap_weights[slot * n_caps..][..n_caps];
            if pace.tied && slot < self.model.n_kinds {
                let sums = &scratch.tied[self.slots.sig[slot] as usize * n_sums..][..n_sums];
                if sums[0] > 0.0 {
                    let (loads, cap_loads) = sums[1..].split_at(nd);
                    move_weights((weights, caps), (loads, cap_loads), sums[0], pace.eta);
                }
            } else if mean > 0.0 {
                let loads = scratch.load[slot * self.n_quads..][..self.n_quads].as_flattened();
                let cap_loads = &scratch.cap_load[slot * n_caps..][..n_caps];
                move_weights((weights, caps), (loads, cap_loads), mean, pace.eta);
            }
        }
    }

    /// Divides loads by rooms, and takes their means by weight per slot; where kinds are tied,
    /// sums them up per signature.
    fn weigh_loads(&self, state: &State, is_tied: bool, scratch: &mut Scratch) {
        let (nd, n_caps) = (self.model.n_dims, self.n_caps);
        let n_sums = 1 + nd + n_caps;
        let n_ties = self.model.allowed.len() / self.model.n_labels.max(1);
        scratch.tied.clear();
        scratch
            .tied
            .resize(if is_tied { n_ties * n_sums } else { 0 }, 0.0);
        scratch.means.clear();
        for slot in 0..self.slots.sig.len() {
            let quads = slot * self.n_quads..(slot + 1) * self.n_quads;
            let loads = scratch.load[quads.clone()].as_flattened_mut();
            let inverse = self.room_inverse[quads].as_flattened();
            let mut mean = 0.0;
            let weights = &state.weights[slot * nd..][..nd];
            for ((load, inverse), weight) in loads.iter_mut().zip(inverse).zip(weights) {
                *load *= inverse;
                mean += weight * *load;
            }
            let cap_loads = &mut scratch.cap_load[slot * n_caps..][..n_caps];
            let cap_weights = &state.cap_weights[slot * n_caps..][..n_caps];
            let each = cap_loads.iter_mut().zip(&self.cap_inverse);
            for ((load, inverse), weight) in each.zip(cap_weights) {
                *load *= inverse;
                mean += weight * *load;
            }
            scratch.means.push(mean);
            if is_tied && slot < self.model.n_kinds && mean > 0.0 {
                let price = state.price[slot];
                let sums = &mut scratch.tied[self.slots.sig[slot] as usize * n_sums..][..n_sums];
                sums[0] += price * mean;
                let all = loads[..nd].iter().chain(cap_loads.iter());
                for (sum, load) in sums[1..].iter_mut().zip(all) {
                    *sum += price * load;
                }
            }
        }
    }
}

/// The sum of the products, added in pairs.
fn product(a: &Quad, b: &Quad) -> f64 {
    (a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3])
}

/// Rows of `n` figures, each in groups of four.
fn quads(figures: &[f64], n: usize) -> Vec<Quad> {
    let n_quads = n.div_ceil(4);
    let mut quads = vec![[0.0; 4]; figures.len() / n.max(1) * n_quads];
    for (ix, &x) in figures.iter().enumerate() {
        quads[ix / n * n_quads + ix % n / 4][ix % n % 4] = x;
    }
    quads
}

/// Moves weights towards what is loaded above the mean.
fn move_weights(
    (weights, caps): (&mut [f64], &mut [f64]),
    (loads, cap_loads): (&[f64], &[f64]),
    mean: f64,
    eta: f64,
) {
    let inverse = 1.0 / mean;
    let factor = |load: f64| (1.0 + eta * (load * inverse - 1.0).min(3.0)).max(0.3);
    for (weight, &load) in weights.iter_mut().zip(loads) {
        *weight = (*weight * factor(load)).max(1e-9);
    }
    for (weight, &load) in caps.iter_mut().zip(cap_loads) {
        *weight = (*weight * factor(load)).max(1e-12);
    }
    normalize(weights, caps);
}

/// Makes weights sum to one.
pub(crate) fn normalize(weights: &mut [f64], caps: &mut [f64]) {
    let sum: f64 = weights.iter().sum::<f64>() + caps.iter().sum::<f64>();
    let inverse = 1.0 / sum;
    for weight in weights.iter_mut().chain(caps) {
        *weight *= inverse;
    }
}

/// `exp(-x)` for `x >= 0`, from plain arithmetic only, so that it is the same everywhere; zero
/// where it hardly matters. No branches: the processor takes several at a time.
fn exp_minus(x: f64) -> f64 {
    let mut y = 1.0 / (1.0 + x * (1.0 / 64.0));
    for _ in 0..6 {
        y *= y;
    }
    if x > 10.0 { 0.0 } else { y }
}
