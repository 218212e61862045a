//! Fill one node well: a greedy choice by value for the resources that are scarce on it.

use crate::load::Load;
use crate::model::{HOME, Model, NO};

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
    let mut lineup = std::mem::take(&mut load.lineup);
    lineup.fill(model, taste, candidates, |class| {
        left_of(load, counts, class) > 0
            && model.may(load.slot(), class) != NO
            && load.admits(model, class)
    });
    while !lineup.classes.is_empty() {
        steps.spend(lineup.classes.len() * (model.n_dims + 2) * 2);
        lineup.score(model, taste, &load.left);
        let Some(mut best) = lineup.best() else {
            break;
        };
        let most = |load: &Load, class: usize| {
            load.fit_allowed(model, class)
                .min(left_of(load, counts, class))
        };
        let mut n = most(load, best);
        if n == 0 {
            // The best one does not fit any more: time to let all such go.
            lineup.retain(|class| left_of(load, counts, class) > 0 && load.admits(model, class));
            let Some(next) = lineup.best() else {
                break;
            };
            best = next;
            n = most(load, best);
        }
        load.add(model, best, (n / 4).max(1));
    }
    load.lineup = lineup;
}

/// The classes in question for a node, one array per figure, so that the scores of all are
/// computed in one sweep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lineup {
    classes: Vec<u32>,
    values: Vec<f64>,
    /// What an item takes of the weight of caps.
    caps: Vec<f64>,
    /// Per dimension, then per class, what an item needs.
    needs: Vec<Vec<f64>>,
    takes: Vec<f64>,
    scores: Vec<f64>,
}

impl Lineup {
    /// Takes those of the candidates that are wanted.
    fn fill(
        &mut self,
        model: &Model,
        taste: &Taste<'_>,
        candidates: &[u32],
        wanted: impl Fn(usize) -> bool,
    ) {
        self.classes.clear();
        let wanted = candidates.iter().copied().filter(|&c| wanted(c as usize));
        self.classes.extend(wanted);
        let classes = self.classes.iter().map(|&class| class as usize);
        self.values.clear();
        self.values.extend(classes.clone().map(|c| taste.values[c]));
        self.caps.clear();
        if taste.cap_weights.is_empty() {
            self.caps.resize(self.classes.len(), 0.0);
        } else {
            let weight = |&cap: &u32| taste.cap_weights[cap as usize];
            let sum = |class: usize| model.caps[class].iter().map(weight).sum::<f64>();
            self.caps.extend(classes.clone().map(sum));
        }
        self.needs.resize(model.n_dims, Vec::new());
        for (dim, needs) in self.needs.iter_mut().enumerate() {
            needs.clear();
            needs.extend(classes.clone().map(|class| model.need_f(class)[dim]));
        }
    }

    /// Scores everything by value for what is scarce on the node.
    fn score(&mut self, model: &Model, taste: &Taste<'_>, left: &[u64]) {
        let n = self.classes.len();
        self.takes.clear();
        self.takes.resize(n, 0.0);
        for (dim, needs) in self.needs.iter().enumerate() {
            let weight = taste.weights[dim] + 0.02;
            let scarce = weight * model.scale[dim] / (left[dim].max(1) as f64);
            for (takes, need) in self.takes.iter_mut().zip(needs) {
                *takes += need * scarce;
            }
        }
        self.scores.clear();
        let figures = self.takes.iter().zip(&self.caps).zip(&self.values);
        // Plain comparisons instead of `min` and `max`, which have to think of NaN.
        self.scores.extend(figures.map(|((&dims, &caps), &value)| {
            let takes = dims + caps;
            let small = if takes < 1.0 { takes } else { 1.0 };
            let floor = if takes > 1e-12 { takes } else { 1e-12 };
            value * (1.0 + 0.1 * small) / floor
        }));
    }

    /// The class with the highest score, the first of equals.
    fn best(&self) -> Option<usize> {
        let mut best = (f64::NEG_INFINITY, u32::MAX);
        for (&score, &class) in self.scores.iter().zip(&self.classes) {
            if score > best.0 || (score == best.0 && class < best.1) {
                best = (score, class);
            }
        }
        (best.1 != u32::MAX).then_some(best.1 as usize)
    }

    /// Lets go of all classes but those to keep.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut to = 0;
        for from in 0..self.classes.len() {
            let class = self.classes[from];
            if !keep(class as usize) {
                continue;
            }
            self.classes[to] = class;
            self.values[to] = self.values[from];
            self.caps[to] = self.caps[from];
            self.scores[to] = self.scores[from];
            for needs in &mut self.needs {
                needs[to] = needs[from];
            }
            to += 1;
        }
        self.classes.truncate(to);
        self.values.truncate(to);
        self.caps.truncate(to);
        self.scores.truncate(to);
        for needs in &mut self.needs {
            needs.truncate(to);
        }
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
    let candidates = &candidates[..candidates.len().min(CANDIDATES_MAX)];
    let mut out: Vec<u32> = Vec::new();
    let mut hopeful: Vec<u32> = Vec::new();
    for _ in 0..4 {
        let mut changed = false;
        out.clear();
        out.extend_from_slice(load.classes());
        out.sort_unstable();
        out.dedup();
        let mut stale = true;
        for &a in &out {
            let a = a as usize;
            if load.held(a) == 0 {
                continue;
            }
            steps.spend(candidates.len() * (model.n_dims + 1) * 2 + 50);
            if std::mem::take(&mut stale) {
                find_hopeful(model, taste, load, (counts, candidates), &mut hopeful);
            }
            load.remove(model, a, 1);
            let mut best = (taste.values[a], a);
            for &b in &hopeful {
                let b = b as usize;
                if taste.values[b] > best.0
                    && load.admits(model, b)
                    && (load.justified(model) || model.may(slot, b) == HOME)
                {
                    best = (taste.values[b], b);
                }
            }
            load.add(model, best.1, 1);
            changed |= best.1 != a;
            stale |= best.1 != a;
        }
        if !changed {
            return;
        }
    }
}

/// The candidates that could come in for some item that is on the node, judged by what would be
/// left without the largest need in each dimension, and by the least value.
fn find_hopeful(
    model: &Model,
    taste: &Taste<'_>,
    load: &Load,
    (counts, candidates): (&[u64], &[u32]),
    hopeful: &mut Vec<u32>,
) {
    hopeful.clear();
    let mut largest = vec![0; model.n_dims];
    let mut least = f64::INFINITY;
    let held = load.classes().iter().map(|&class| class as usize);
    for class in held.filter(|&class| load.held(class) > 0) {
        least = least.min(taste.values[class]);
        for (largest, &need) in largest.iter_mut().zip(model.need(class)) {
            *largest = need.max(*largest);
        }
    }
    // An item that is taken away leaves no more than what was there before it came.
    let room: Vec<u64> = load.left.iter().zip(&largest).map(|(a, b)| a + b).collect();
    hopeful.extend(candidates.iter().copied().filter(|&b| {
        let class = b as usize;
        taste.values[class] > least
            && left_of(load, counts, class) > 0
            && model.may(load.slot(), class) != NO
            && model.need(class).iter().zip(&room).all(|(n, r)| n <= r)
    }));
}

/// What the items are worth together.
pub(crate) fn value(values: &[f64], items: &[(u32, u32)]) -> f64 {
    items
        .iter()
        .map(|&(class, n)| values[class as usize] * f64::from(n))
        .sum()
}
