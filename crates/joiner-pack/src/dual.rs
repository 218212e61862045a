//! Dual prices without an LP solver: what each item and each share of a node is worth.
//!
//! For weights `w` per slot that sum to one, an item on slot `k` costs
//! `c = price * sum(w_r * need_r / room_r)`, and its value is the least of that over all slots
//! that can hold it. No node is then worth more than its price, so the values of all items
//! together are a lower bound on any packing. The weights are improved by multiplicative steps
//! (see [`crate::ascent`]): spread the items softly over the slots that are nearly cheapest for
//! them, and raise the weights of the resources that are loaded above the mean. An existing node
//! has a price of its own that rises while it is in demand beyond its room and falls otherwise.
//!
//! Everything here is floating point and only a guide: the bound is certified elsewhere.

use crate::ascent::{Ascent, Pace, Scratch, State, normalize};
use crate::model::Model;

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

const ROUND: usize = 12;

/// Finds dual prices for these costs per kind. `n_rounds` rounds of twelve steps are made, the
/// first half of them `together`: kinds that allow the same labels share their prices per unit.
pub(crate) fn duals(model: &Model, cost: &[f64], n_rounds: usize, together: bool) -> Duals {
    let ascent = Ascent::new(model);
    let state = ascent.run(cost, n_rounds, together);
    ascent.expand(&state)
}

impl Ascent<'_> {
    fn run(&self, cost: &[f64], n_rounds: usize, together: bool) -> State {
        let mut state = self.start(cost);
        let mut scratch = Scratch::default();
        let mut best: (f64, Option<State>) = (f64::MIN, None);
        let n_steps = (n_rounds * ROUND) as f64;
        for round in 0..=n_rounds {
            let near = self.near(&state);
            let value = self.value(&state, &near);
            if value > best.0 {
                best = (value, Some(state.clone()));
            }
            if round == n_rounds {
                break;
            }
            for step in 0..ROUND {
                let done = (round * ROUND + step) as f64 / n_steps;
                // Straight lines in the logarithm, without a logarithm.
                let shrink = (1.0 - done) * (1.0 - done) * (1.0 - done);
                let pace = Pace {
                    tau: 0.004 + 0.2 * shrink,
                    eta: 0.03 + 0.4 * shrink,
                    tied: together && round * 2 < n_rounds,
                };
                self.step(&mut state, &near, pace, &mut scratch);
            }
        }
        best.1.unwrap_or(state)
    }

    fn start(&self, cost: &[f64]) -> State {
        let nd = self.model.n_dims;
        let n_caps = self.n_caps;
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

    /// From points and groups of bins back to classes and slots.
    fn expand(&self, state: &State) -> Duals {
        let (nd, n_caps) = (self.model.n_dims, self.n_caps);
        let mut duals = Duals {
            values: Vec::new(),
            ..Duals::default()
        };
        for &place in &self.slots.place {
            let place = place as usize;
            duals
                .weights
                .extend_from_slice(&state.weights[place * nd..][..nd]);
            let caps = &state.cap_weights[place * n_caps..][..n_caps];
            duals.cap_weights.extend_from_slice(caps);
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
