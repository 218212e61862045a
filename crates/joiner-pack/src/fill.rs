//! Fill one node well: a greedy choice by value for the resources that are scarce on it.

use crate::load::Load;
use crate::model::{HOME, Model};

/// What guides the filling. Values are per class, weights per slot and dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guide<'a> {
    pub(crate) model: &'a Model,
    pub(crate) values: &'a [f64],
    pub(crate) weights: &'a [f64],
    pub(crate) cap_weights: &'a [f64],
    /// What a new node costs in the search, per kind.
    pub(crate) cost: &'a [f64],
    /// Whether costs are in the same order as prices.
    pub(crate) cost_follows_price: bool,
}

/// What guides the filling of one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taste<'a> {
    /// Per class.
    pub(crate) values: &'a [f64],
    /// Per dimension.
    pub(crate) weights: &'a [f64],
    /// Per cap group, or empty.
    pub(crate) cap_weights: &'a [f64],
}

impl<'a> Guide<'a> {
    /// The part that matters for one slot.
    pub(crate) fn taste(&self, slot: usize) -> Taste<'a> {
        let n_caps = if self.cap_weights.is_empty() {
            0
        } else {
            self.model.cap_size.len()
        };
        Taste {
            values: self.values,
            weights: &self.weights[slot * self.model.n_dims..][..self.model.n_dims],
            cap_weights: &self.cap_weights[slot * n_caps..][..n_caps],
        }
    }
}

/// Counts elementary operations down to zero.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    left: u64,
}

impl Steps {
    /// This many steps may be made.
    pub(crate) fn new(left: u64) -> Self {
        Self { left }
    }

    /// Spends some steps.
    pub(crate) fn spend(&mut self, n: usize) {
        self.left = self.left.saturating_sub(n as u64);
    }

    /// Whether none are left.
    pub(crate) fn over(&self) -> bool {
        self.left == 0
    }

    /// Steps left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// A share of what is left, to be given to one part of the work.
    pub(crate) fn share(&mut self, most: u64) -> Self {
        let some = most.min(self.left);
        self.left -= some;
        Self { left: some }
    }

    /// Takes back what a part did not need.
    pub(crate) fn back(&mut self, rest: Self) {
        self.left += rest.left;
    }
}

/// Fills the node that `load` holds (possibly not empty) from `candidates` as far as `counts`
/// allow.
pub(crate) fn fill(
    model: &Model,
    taste: &Taste<'_>,
    load: &mut Load,
    counts: &[u64],
    candidates: &[u32],
    steps: &mut Steps,
) {
    let slot = load.slot();
    add_by_density(model, taste, load, counts, candidates, steps);
    if !load.justified(model) {
        // Fillers alone do not justify a node: begin again with one item that does.
        let home = candidates
            .iter()
            .copied()
            .filter(|&c| {
                model.may(slot, c as usize) == HOME
                    && counts[c as usize] > 0
                    && model.fits(slot, c as usize)
            })
            .max_by(|&a, &b| {
                taste.values[a as usize]
                    .total_cmp(&taste.values[b as usize])
                    .then(b.cmp(&a))
            });
        load.open(model, slot);
        let Some(home) = home else { return };
        if load.fit(model, home as usize) == 0 {
            return;
        }
        load.add(model, home as usize, 1);
        add_by_density(model, taste, load, counts, candidates, steps);
    }
    swap_up(model, taste, load, counts, candidates, steps);
}

fn left_of(load: &Load, counts: &[u64], class: usize) -> u32 {
    let left = counts[class].saturating_sub(u64::from(load.held(class)));
    u32::try_from(left).unwrap_or(u32::MAX)
}

fn add_by_density(
    model: &Model,
    taste: &Taste<'_>,
    load: &mut Load,
    counts: &[u64],
    candidates: &[u32],
    steps: &mut Steps,
) {
    let nd = model.n_dims;
    let mut active: Vec<u32> = candidates
        .iter()
        .copied()
        .filter(|&c| left_of(load, counts, c as usize) > 0 && load.fit(model, c as usize) > 0)
        .collect();
    let mut scarce = vec![0.0; nd];
    while !active.is_empty() {
        steps.spend(active.len() * (nd + 2) * 2);
        for (dim, scarce) in scarce.iter_mut().enumerate() {
            let weight = taste.weights[dim] + 0.02;
            *scarce = weight * model.scale[dim] / (load.left[dim].max(1) as f64);
        }
        let mut best = (f64::NEG_INFINITY, usize::MAX);
        let mut at = 0;
        while at < active.len() {
            let class = active[at] as usize;
            if left_of(load, counts, class) == 0 || load.fit_allowed(model, class) == 0 {
                active.swap_remove(at);
                continue;
            }
            let need = model.need_f(class);
            let mut takes: f64 = need.iter().zip(&scarce).map(|(n, s)| n * s).sum();
            if !taste.cap_weights.is_empty() {
                for &cap in &model.caps[class] {
                    takes += taste.cap_weights[cap as usize];
                }
            }
            let score = taste.values[class] * (1.0 + 0.1 * takes.min(1.0)) / takes.max(1e-12);
            if score > best.0 || (score == best.0 && class < best.1) {
                best = (score, class);
            }
            at += 1;
        }
        if best.1 == usize::MAX {
            return;
        }
        let most = load
            .fit_allowed(model, best.1)
            .min(left_of(load, counts, best.1));
        load.add(model, best.1, (most / 4).max(1));
    }
}

/// Exchanges single items for more valuable ones while that is possible.
fn swap_up(
    model: &Model,
    taste: &Taste<'_>,
    load: &mut Load,
    counts: &[u64],
    candidates: &[u32],
    steps: &mut Steps,
) {
    const CANDIDATES_MAX: usize = 400;
    let slot = load.slot();
    for _ in 0..4 {
        let mut changed = false;
        let mut out: Vec<u32> = load.classes().to_vec();
        out.sort_unstable();
        out.dedup();
        for &a in &out {
            let a = a as usize;
            if load.held(a) == 0 {
                continue;
            }
            steps.spend(candidates.len().min(CANDIDATES_MAX) * (model.n_dims + 1) * 2 + 50);
            load.remove(model, a, 1);
            let mut best = (taste.values[a], a);
            for &b in candidates.iter().take(CANDIDATES_MAX) {
                let b = b as usize;
                if taste.values[b] > best.0
                    && left_of(load, counts, b) > 0
                    && load.fit(model, b) > 0
                    && (load.justified(model) || model.may(slot, b) == HOME)
                {
                    best = (taste.values[b], b);
                }
            }
            load.add(model, best.1, 1);
            changed |= best.1 != a;
        }
        if !changed {
            return;
        }
    }
}

/// What the items are worth together.
pub(crate) fn value(values: &[f64], items: &[(u32, u32)]) -> f64 {
    items
        .iter()
        .map(|&(class, n)| values[class as usize] * f64::from(n))
        .sum()
}
