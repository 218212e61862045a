//! Dual prices without an LP solver: what each item and each share of a node is worth.
//!
//! For weights `w` per slot that sum to one, an item on slot `k` costs
//! `c = price * sum(w_r * need_r / room_r)`, and its value is the least of that over all slots
//! that can hold it. No node is then worth more than its price, so the values of all items
//! together are a lower bound on any packing. The weights are improved by multiplicative steps:
//! spread the items softly over the slots that are nearly cheapest for them, and raise the
//! weights of the resources that are loaded above the mean. An existing node has a price of its
//! own that rises while it is in demand beyond its room and falls otherwise.
//!
//! Everything here is floating point and only a guide: the bound is certified elsewhere.

use std::collections::BTreeMap;

use crate::model::{Model, NO};

/// What items and resources are worth.
#[derive(Clone, Debug, Default)]
pub(crate) struct Duals {
    /// Value of one item, per class.
    pub(crate) values: Vec<f64>,
    /// Share of the price that each dimension carries, per slot; sums to at most one.
    pub(crate) weights: Vec<f64>,
    /// Share of the price that each cap group carries, per slot; empty if there are too many.
    pub(crate) cap_weights: Vec<f64>,
    /// The price of each slot: `cost` for kinds, a shadow price for bins.
    pub(crate) price: Vec<f64>,
}

/// Items or slots that are so similar that they share their weights.
struct Points {
    need: Vec<f64>,
    count: Vec<f64>,
    label: Vec<u32>,
    caps: Vec<Box<[u32]>>,
}

struct Slots {
    room: Vec<f64>,
    sig: Vec<u32>,
    /// How many there are of a bin; zero for kinds.
    copies: Vec<f64>,
    /// Per real slot its place here.
    place: Vec<u32>,
}

struct State {
    weights: Vec<f64>,
    cap_weights: Vec<f64>,
    price: Vec<f64>,
}

/// How boldly to step.
#[derive(Clone, Copy)]
struct Pace {
    /// How soft the choice of the cheapest slot is.
    tau: f64,
    /// How far weights move.
    eta: f64,
    /// Whether kinds that allow the same labels move together.
    tied: bool,
}

struct Ascent<'a> {
    model: &'a Model,
    points: Points,
    slots: Slots,
    with_caps: bool,
    /// How many of the cheapest slots are looked at per point.
    near_max: usize,
    together: bool,
}

const POINTS_MAX: usize = 600;
const BINS_MAX: usize = 300;
const CAP_WEIGHTS_MAX: usize = 4_000_000;
const NEAR_MIN: usize = 24;
const PAIRS_MAX: usize = 16_000;
const ROUND: usize = 12;

/// Finds dual prices for these costs per kind. `n_rounds` rounds of twelve steps are made, the
/// first half of them `together`: kinds that allow the same labels share their prices per unit.
pub(crate) fn duals(model: &Model, cost: &[f64], n_rounds: usize, together: bool) -> Duals {
    let slots = slots(model);
    let points = points(model);
    let with_caps =
        !model.cap_size.is_empty() && model.cap_size.len() * slots.sig.len() <= CAP_WEIGHTS_MAX;
    let near_max = (PAIRS_MAX / points.count.len().max(1)).max(NEAR_MIN);
    let ascent = Ascent {
        model,
        points,
        slots,
        with_caps,
        near_max,
        together,
    };
    let state = ascent.run(cost, n_rounds);
    ascent.expand(&state)
}

impl Ascent<'_> {
    fn run(&self, cost: &[f64], n_rounds: usize) -> State {
        let mut state = self.start(cost);
        let mut best = (f64::MIN, None);
        let n_steps = (n_rounds * ROUND) as f64;
        for round in 0..=n_rounds {
            let near = self.near(&state);
            let value = self.value(&state, &near);
            if value > best.0 {
                best = (
                    value,
                    Some((
                        state.weights.clone(),
                        state.cap_weights.clone(),
                        state.price.clone(),
                    )),
                );
            }
            if round == n_rounds {
                break;
            }
            for step in 0..ROUND {
                let done = (round * ROUND + step) as f64 / n_steps;
                // Straight lines in the logarithm, without a logarithm.
                let shrink = (1.0 - done) * (1.0 - done) * (1.0 - done);
                let tied = self.together && round * 2 < n_rounds;
                let pace = Pace {
                    tau: 0.004 + 0.2 * shrink,
                    eta: 0.03 + 0.4 * shrink,
                    tied,
                };
                self.step(&mut state, &near, pace);
            }
        }
        if let Some((weights, cap_weights, price)) = best.1 {
            state = State {
                weights,
                cap_weights,
                price,
            };
        }
        state
    }

    fn start(&self, cost: &[f64]) -> State {
        let nd = self.model.n_dims;
        let n_caps = if self.with_caps {
            self.model.cap_size.len()
        } else {
            0
        };
        let n_slots = self.slots.sig.len();
        let mut rate = vec![f64::INFINITY; nd];
        for (slot, &cost) in cost.iter().enumerate().take(self.model.n_kinds) {
            for (rate, &room) in rate.iter_mut().zip(self.model.room_f(slot)) {
                if room > 0.0 {
                    *rate = rate.min(cost / room);
                }
            }
        }
        let price = (0..n_slots)
            .map(|slot| {
                if slot < self.model.n_kinds {
                    return cost[slot];
                }
                let room = &self.slots.room[slot * nd..][..nd];
                let worth = rate.iter().zip(room).filter(|(rate, _)| rate.is_finite());
                worth.map(|(rate, room)| rate * room).sum::<f64>() / nd.max(1) as f64
            })
            .collect();
        let mut state = State {
            weights: vec![0.0; n_slots * nd],
            cap_weights: vec![0.0; n_slots * n_caps],
            price,
        };
        // The same prices per unit everywhere, scaled to the price of each slot.
        let middle = if cost.is_empty() {
            1.0
        } else {
            cost[cost.len() / 2]
        };
        for slot in 0..n_slots {
            let weights = &mut state.weights[slot * nd..][..nd];
            for (dim, weight) in weights.iter_mut().enumerate() {
                let rate = if rate[dim].is_finite() {
                    rate[dim]
                } else {
                    0.0
                };
                *weight = rate * self.slots.room[slot * nd + dim] + 1e-6;
            }
            let caps = &mut state.cap_weights[slot * n_caps..][..n_caps];
            for (cap, weight) in caps.iter_mut().enumerate() {
                *weight = 0.02 * middle * f64::from(self.model.cap_size[cap]) + 1e-9;
            }
            normalize(weights, caps);
        }
        state
    }

    /// Prices per unit of each dimension on a slot.
    fn unit_prices(&self, state: &State, slot: usize, out: &mut [f64]) {
        let nd = self.model.n_dims;
        for (dim, out) in out.iter_mut().enumerate() {
            let room = self.slots.room[slot * nd + dim];
            *out = if room > 0.0 {
                state.price[slot] * state.weights[slot * nd + dim] / room
            } else {
                0.0
            };
        }
    }

    fn cap_cost(&self, state: &State, point: usize, slot: usize) -> f64 {
        if !self.with_caps {
            return 0.0;
        }
        let sizes = &self.model.cap_size;
        let at = slot * sizes.len();
        let caps = self.points.caps[point].iter().map(|&cap| cap as usize);
        let share: f64 = caps
            .map(|c| state.cap_weights[at + c] / f64::from(sizes[c]))
            .sum();
        share * state.price[slot]
    }

    /// Per point the slots where it is cheapest, with its cost there, cheapest first.
    fn near(&self, state: &State) -> Vec<Vec<(f64, u32)>> {
        let nd = self.model.n_dims;
        let n_slots = self.slots.sig.len();
        let mut units = vec![0.0; n_slots * nd];
        for slot in 0..n_slots {
            self.unit_prices(state, slot, &mut units[slot * nd..][..nd]);
        }
        (0..self.points.count.len())
            .map(|point| {
                let need = &self.points.need[point * nd..][..nd];
                let label = self.points.label[point] as usize;
                let near_max = self.near_max;
                let mut list: Vec<(f64, u32)> = Vec::new();
                let mut limit = f64::INFINITY;
                for slot in 0..n_slots {
                    let sig = self.slots.sig[slot] as usize;
                    if self.model.allowed[sig * self.model.n_labels + label] == NO {
                        continue;
                    }
                    let room = &self.slots.room[slot * nd..][..nd];
                    if need.iter().zip(room).any(|(n, r)| n > r) {
                        continue;
                    }
                    let unit = &units[slot * nd..][..nd];
                    let mut cost: f64 = need.iter().zip(unit).map(|(n, u)| n * u).sum();
                    if !self.points.caps[point].is_empty() {
                        cost += self.cap_cost(state, point, slot);
                    }
                    if cost < limit {
                        list.push((cost, slot as u32));
                        if list.len() >= near_max * 2 {
                            list.sort_unstable_by(cmp_cost);
                            list.truncate(near_max);
                            limit = list[near_max - 1].0;
                        }
                    }
                }
                list.sort_unstable_by(cmp_cost);
                list.truncate(near_max);
                list
            })
            .collect()
    }

    /// What all items are worth, less what the bins absorb.
    fn value(&self, state: &State, near: &[Vec<(f64, u32)>]) -> f64 {
        let items: f64 = near
            .iter()
            .zip(&self.points.count)
            .map(|(list, n)| n * list.first().map_or(0.0, |&(cost, _)| cost))
            .sum();
        let bins: f64 = (self.model.n_kinds..self.slots.sig.len())
            .map(|slot| state.price[slot] * self.slots.copies[slot])
            .sum();
        items - bins
    }

    fn step(&self, state: &mut State, near: &[Vec<(f64, u32)>], pace: Pace) {
        let nd = self.model.n_dims;
        let n_caps = if self.with_caps {
            self.model.cap_size.len()
        } else {
            0
        };
        let n_slots = self.slots.sig.len();
        let mut units = vec![f64::NAN; n_slots * nd];
        let mut load = vec![0.0; n_slots * nd];
        let mut cap_load = vec![0.0; n_slots * n_caps];
        let mut costs: Vec<f64> = Vec::new();
        for (point, list) in near.iter().enumerate() {
            let need = &self.points.need[point * nd..][..nd];
            costs.clear();
            let mut least = f64::INFINITY;
            for &(_, slot) in list {
                let slot = slot as usize;
                let unit = &mut units[slot * nd..][..nd];
                if unit.first().is_some_and(|u| u.is_nan()) {
                    self.unit_prices(state, slot, unit);
                }
                let mut cost: f64 = need.iter().zip(unit).map(|(n, u)| *n * *u).sum();
                if !self.points.caps[point].is_empty() {
                    cost += self.cap_cost(state, point, slot);
                }
                least = least.min(cost);
                costs.push(cost);
            }
            if !least.is_finite() || least <= 0.0 {
                continue;
            }
            let mut sum = 0.0;
            for cost in &mut costs {
                *cost = exp_minus((*cost / least - 1.0) / pace.tau);
                sum += *cost;
            }
            let share = self.points.count[point] / sum;
            for (&(_, slot), weight) in list.iter().zip(&costs) {
                let n = share * weight;
                if n <= 0.0 {
                    continue;
                }
                let slot = slot as usize;
                for (load, need) in load[slot * nd..][..nd].iter_mut().zip(need) {
                    *load += n * need;
                }
                if n_caps > 0 {
                    for &cap in &self.points.caps[point] {
                        cap_load[slot * n_caps + cap as usize] += n;
                    }
                }
            }
        }
        self.reweigh(state, (&mut load, &mut cap_load), pace);
    }

    /// Raises the weights of what is loaded above the mean, and the prices of bins that are in
    /// demand beyond their room. Kinds that are tied share their means and loads.
    fn reweigh(&self, state: &mut State, (load, cap_load): (&mut [f64], &mut [f64]), pace: Pace) {
        let nd = self.model.n_dims;
        let n_caps = if self.with_caps {
            self.model.cap_size.len()
        } else {
            0
        };
        let n_ties = self.model.allowed.len() / self.model.n_labels.max(1);
        let mut tied = vec![
            0.0;
            if pace.tied {
                n_ties * (1 + nd + n_caps)
            } else {
                0
            }
        ];
        let mut means = vec![0.0; self.slots.sig.len()];
        for (slot, mean) in means.iter_mut().enumerate() {
            let at = slot * nd;
            for dim in 0..nd {
                let room = self.slots.room[at + dim];
                load[at + dim] = if room > 0.0 {
                    load[at + dim] / room
                } else {
                    0.0
                };
                *mean += state.weights[at + dim] * load[at + dim];
            }
            for cap in 0..n_caps {
                let load = &mut cap_load[slot * n_caps + cap];
                *load /= f64::from(self.model.cap_size[cap].max(1));
                *mean += state.cap_weights[slot * n_caps + cap] * *load;
            }
            if pace.tied && slot < self.model.n_kinds && *mean > 0.0 {
                let price = state.price[slot];
                let sums = &mut tied[self.slots.sig[slot] as usize * (1 + nd + n_caps)..];
                sums[0] += price * *mean;
                for dim in 0..nd {
                    sums[1 + dim] += price * load[at + dim];
                }
                for cap in 0..n_caps {
                    sums[1 + nd + cap] += price * cap_load[slot * n_caps + cap];
                }
            }
        }
        for (slot, &mean) in means.iter().enumerate() {
            let copies = self.slots.copies[slot];
            if copies > 0.0 {
                let factor = 1.0 + pace.eta * (mean / copies - 1.0).clamp(-1.0, 1.0);
                state.price[slot] *= factor;
            }
            let weights = &mut state.weights[slot * nd..][..nd];
            let caps = &mut state.cap_weights[slot * n_caps..][..n_caps];
            let (mut mean, mut loads) = (mean, &load[slot * nd..][..nd]);
            let mut cap_loads = &cap_load[slot * n_caps..][..n_caps];
            if pace.tied && slot < self.model.n_kinds {
                let sums = &tied[self.slots.sig[slot] as usize * (1 + nd + n_caps)..];
                mean = sums[0];
                loads = &sums[1..=nd];
                cap_loads = &sums[1 + nd..][..n_caps];
            }
            if mean <= 0.0 {
                continue;
            }
            move_weights((weights, caps), (loads, cap_loads), mean, pace.eta);
        }
    }

    /// From points and groups of bins back to classes and slots.
    fn expand(&self, state: &State) -> Duals {
        let (nd, n_caps) = (self.model.n_dims, self.model.cap_size.len());
        let mut duals = Duals {
            values: Vec::new(),
            ..Duals::default()
        };
        for &place in &self.slots.place {
            let place = place as usize;
            duals
                .weights
                .extend_from_slice(&state.weights[place * nd..][..nd]);
            if self.with_caps {
                let caps = &state.cap_weights[place * n_caps..][..n_caps];
                duals.cap_weights.extend_from_slice(caps);
            }
            duals.price.push(state.price[place]);
        }
        duals.values = class_values(self.model, &duals);
        duals
    }
}

/// The value of every class: its least cost over all slots that can hold it.
pub(crate) fn class_values(model: &Model, duals: &Duals) -> Vec<f64> {
    let nd = model.n_dims;
    let n_caps = model.cap_size.len();
    let mut units = vec![0.0; model.n_slots() * nd];
    for (ix, unit) in units.iter_mut().enumerate() {
        if model.room_f[ix] > 0.0 {
            *unit = duals.price[ix / nd] * duals.weights[ix] / model.room_f[ix];
        }
    }
    (0..model.n_classes)
        .map(|class| {
            let need = model.need_f(class);
            let mut least = f64::INFINITY;
            for slot in (0..model.n_slots()).filter(|&slot| model.fits(slot, class)) {
                let unit = &units[slot * nd..][..nd];
                let mut cost: f64 = need.iter().zip(unit).map(|(n, u)| n * u).sum();
                if !duals.cap_weights.is_empty() {
                    for &cap in &model.caps[class] {
                        let weight = duals.cap_weights[slot * n_caps + cap as usize];
                        let size = f64::from(model.cap_size[cap as usize]);
                        cost += duals.price[slot] * weight / size;
                    }
                }
                least = least.min(cost);
            }
            if least.is_finite() { least } else { 0.0 }
        })
        .collect()
}

/// Moves weights towards what is loaded above the mean.
fn move_weights(
    (weights, caps): (&mut [f64], &mut [f64]),
    (loads, cap_loads): (&[f64], &[f64]),
    mean: f64,
    eta: f64,
) {
    let factor = |load: f64| (1.0 + eta * (load / mean - 1.0).min(3.0)).max(0.3);
    for (weight, &load) in weights.iter_mut().zip(loads) {
        *weight = (*weight * factor(load)).max(1e-9);
    }
    for (weight, &load) in caps.iter_mut().zip(cap_loads) {
        *weight = (*weight * factor(load)).max(1e-12);
    }
    normalize(weights, caps);
}

/// Makes weights sum to one.
fn normalize(weights: &mut [f64], caps: &mut [f64]) {
    let sum: f64 = weights.iter().sum::<f64>() + caps.iter().sum::<f64>();
    for weight in weights.iter_mut().chain(caps) {
        *weight /= sum;
    }
}

fn cmp_cost(a: &(f64, u32), b: &(f64, u32)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// `exp(-x)` for `x >= 0`, from multiplications only, so that it is the same everywhere.
fn exp_minus(x: f64) -> f64 {
    if x > 10.0 {
        return 0.0;
    }
    let mut y = 1.0 / (1.0 + x / 64.0);
    for _ in 0..6 {
        y *= y;
    }
    y
}

/// A place on a logarithmic scale with four marks per doubling.
fn mark(x: u64) -> u32 {
    if x < 4 {
        return x as u32;
    }
    let top = 63 - x.leading_zeros();
    top * 4 + ((x >> (top - 2)) & 3) as u32
}

fn points(model: &Model) -> Points {
    let nd = model.n_dims;
    let mut key_of: BTreeMap<(u32, &[u32], Vec<u32>), usize> = BTreeMap::new();
    let mut points = Points {
        need: Vec::new(),
        count: Vec::new(),
        label: Vec::new(),
        caps: Vec::new(),
    };
    for class in 0..model.n_classes {
        let n = model.count[class] as f64;
        let next = points.count.len();
        let at = if model.n_classes <= POINTS_MAX {
            next
        } else {
            let marks = model.need(class).iter().map(|&x| mark(x)).collect();
            *key_of
                .entry((model.label[class], &model.caps[class], marks))
                .or_insert(next)
        };
        if at == next {
            points.need.resize((next + 1) * nd, 0.0);
            points.count.push(0.0);
            points.label.push(model.label[class]);
            points.caps.push(model.caps[class].clone());
        }
        points.count[at] += n;
        for (sum, need) in points.need[at * nd..][..nd]
            .iter_mut()
            .zip(model.need_f(class))
        {
            *sum += n * need;
        }
    }
    for (ix, need) in points.need.iter_mut().enumerate() {
        *need /= points.count[ix / nd];
    }
    points
}

fn slots(model: &Model) -> Slots {
    let nd = model.n_dims;
    let n_kinds = model.n_kinds;
    let mut slots = Slots {
        room: model.room_f[..n_kinds * nd].to_vec(),
        sig: model.sig[..n_kinds].to_vec(),
        copies: vec![0.0; n_kinds],
        place: (0..n_kinds as u32).collect(),
    };
    let mut key_of: BTreeMap<(u32, Vec<u32>), usize> = BTreeMap::new();
    for slot in n_kinds..model.n_slots() {
        let next = slots.sig.len();
        let at = if model.n_bins <= BINS_MAX {
            next
        } else {
            let marks = model.room(slot).iter().map(|&x| mark(x)).collect();
            *key_of.entry((model.sig[slot], marks)).or_insert(next)
        };
        if at == next {
            slots.room.resize((next + 1) * nd, 0.0);
            slots.sig.push(model.sig[slot]);
            slots.copies.push(0.0);
        }
        slots.copies[at] += 1.0;
        slots.place.push(at as u32);
        for (sum, room) in slots.room[at * nd..][..nd]
            .iter_mut()
            .zip(model.room_f(slot))
        {
            *sum += room;
        }
    }
    for (slot, copies) in slots.copies.iter().enumerate().skip(n_kinds) {
        for room in &mut slots.room[slot * nd..][..nd] {
            *room /= copies;
        }
    }
    slots
}
