//! The best filling of one node, relaxed to fractions: a bounded linear programme with a handful
//! of rows (dimensions and shared caps), solved by the primal simplex method.
//!
//! Its resource prices give an upper bound on any filling even when the method stops early. All
//! of this is floating point and only a guide.

use crate::model::Model;

/// A relaxed filling.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relaxed {
    /// No filling is worth more (up to rounding).
    pub(crate) upper: f64,
    /// Price per unit of each row: dimensions, then shared caps.
    pub(crate) prices: Vec<f64>,
    /// Amount per class, in the order of the classes given.
    pub(crate) amounts: Vec<f64>,
}

/// The classes that may be on a slot, and how many of each at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suited {
    pub(crate) classes: Vec<u32>,
    most: Vec<f64>,
}

impl Suited {
    /// Classes of `counts` that fit on the slot and are wanted.
    pub(crate) fn new(
        model: &Model,
        slot: usize,
        counts: &[u64],
        wanted: impl Fn(usize) -> bool,
    ) -> Self {
        let mut suited = Self::default();
        let room = model.room(slot);
        for class in (0..model.n_classes).filter(|&c| counts[c] > 0 && wanted(c)) {
            if !model.fits(slot, class) {
                continue;
            }
            let mut most = counts[class].min(model.limit[class]);
            for (&need, &room) in model.need(class).iter().zip(room) {
                if most.checked_mul(need).is_none_or(|all| all > room) {
                    most = room / need;
                }
            }
            suited.classes.push(class as u32);
            suited.most.push(most as f64);
        }
        suited
    }
}

/// The room of a slot in the rows of the relaxation.
pub(crate) fn rooms(model: &Model, slot: usize) -> Vec<f64> {
    let mut rooms = model.room_f(slot).to_vec();
    rooms.extend(
        model
            .shared_caps
            .iter()
            .map(|&cap| f64::from(model.cap_size[cap as usize])),
    );
    for &(cap, used) in model.caps_used(slot) {
        if let Ok(at) = model.shared_caps.binary_search(&cap) {
            let room = &mut rooms[model.n_dims + at];
            *room = (*room - f64::from(used)).max(0.0);
        }
    }
    rooms
}

/// What no filling of these classes can exceed in value, given prices per row.
pub(crate) fn upper(
    model: &Model,
    rooms: &[f64],
    prices: &[f64],
    suited: &Suited,
    values: &[f64],
) -> f64 {
    let mut sum: f64 = rooms.iter().zip(prices).map(|(r, p)| r * p).sum();
    for (&class, most) in suited.classes.iter().zip(&suited.most) {
        let class = class as usize;
        let gain = values[class] - price_of(model, prices, class);
        if gain > 0.0 {
            sum += gain * most;
        }
    }
    sum
}

/// What one item takes at these prices.
pub(crate) fn price_of(model: &Model, prices: &[f64], class: usize) -> f64 {
    let nd = model.n_dims;
    let mut sum: f64 = model
        .need_f(class)
        .iter()
        .zip(prices)
        .map(|(n, p)| n * p)
        .sum();
    for &cap in &model.shared_of[class] {
        sum += prices[nd + cap as usize];
    }
    sum
}

struct Simplex<'a> {
    model: &'a Model,
    classes: &'a [u32],
    values: &'a [f64],
    most: &'a [f64],
    n_rows: usize,
    /// Row to place in `classes`, or `classes.len() + row` for a slack.
    basis: Vec<usize>,
    inverse: Vec<f64>,
    level: Vec<f64>,
    /// Per class and slack: below, at the upper bound, or in the basis.
    status: Vec<u8>,
}

const LOWER: u8 = 0;
const UPPER: u8 = 1;
const BASIC: u8 = 2;

/// Solves the relaxation for one slot. `values` are per class of the model.
pub(crate) fn relax(model: &Model, slot: usize, suited: &Suited, values: &[f64]) -> Relaxed {
    let (classes, most) = (&suited.classes[..], &suited.most[..]);
    let rooms = rooms(model, slot);
    let n_rows = rooms.len();
    let n = classes.len();
    let mut inverse = vec![0.0; n_rows * n_rows];
    for row in 0..n_rows {
        inverse[row * n_rows + row] = 1.0;
    }
    let mut status = vec![LOWER; n + n_rows];
    status[n..].fill(BASIC);
    let mut simplex = Simplex {
        model,
        classes,
        values,
        most,
        n_rows,
        basis: (n..n + n_rows).collect(),
        inverse,
        level: rooms.clone(),
        status,
    };
    let mut prices = vec![0.0; n_rows];
    for _ in 0..30 + 6 * n_rows {
        simplex.prices(&mut prices);
        if !simplex.improve(&prices, &rooms) {
            break;
        }
    }
    simplex.prices(&mut prices);
    for price in &mut prices {
        *price = price.max(0.0);
    }
    let mut amounts = vec![0.0; n];
    for (at, amount) in amounts.iter_mut().enumerate() {
        if simplex.status[at] == UPPER {
            *amount = most[at];
        }
    }
    for (row, &at) in simplex.basis.iter().enumerate() {
        if at < n {
            amounts[at] = simplex.level[row].max(0.0);
        }
    }
    let upper = upper(model, &rooms, &prices, suited, values);
    Relaxed {
        upper,
        prices,
        amounts,
    }
}

impl Simplex<'_> {
    fn prices(&self, prices: &mut [f64]) {
        prices.fill(0.0);
        for (row, &at) in self.basis.iter().enumerate() {
            if at < self.classes.len() {
                let value = self.values[self.classes[at] as usize];
                let inverse = &self.inverse[row * self.n_rows..][..self.n_rows];
                for (price, x) in prices.iter_mut().zip(inverse) {
                    *price += value * x;
                }
            }
        }
    }

    /// Makes all bound flips and at most one pivot; `false` if nothing improves.
    fn improve(&mut self, prices: &[f64], rooms: &[f64]) -> bool {
        let n = self.classes.len();
        let mut entering: Vec<(f64, u32)> = Vec::new();
        for at in 0..n {
            let class = self.classes[at] as usize;
            if self.status[at] == BASIC || self.most[at] <= 0.0 {
                continue;
            }
            let value = self.values[class];
            let gain = value - price_of(self.model, prices, class);
            let gain = if self.status[at] == UPPER {
                -gain
            } else {
                gain
            };
            if gain > 1e-9 * value.abs() + 1e-15 {
                let need = self.model.need_f(class).iter().zip(rooms);
                let takes: f64 = need.map(|(n, r)| if *r > 0.0 { n / r } else { 0.0 }).sum();
                entering.push((gain / (takes + 1e-6), at as u32));
            }
        }
        for (row, &price) in prices.iter().enumerate() {
            if self.status[n + row] == LOWER && price < -1e-12 {
                entering.push((-price * rooms[row].max(1e-12), (n + row) as u32));
            }
        }
        if entering.is_empty() {
            return false;
        }
        entering.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut column = vec![0.0; self.n_rows];
        for (_, at) in entering {
            if self.enter(at as usize, &mut column) {
                break;
            }
        }
        true
    }

    fn column(&self, at: usize, out: &mut [f64]) {
        let n = self.classes.len();
        let nd = self.model.n_dims;
        for (row, out) in out.iter_mut().enumerate() {
            let inverse = &self.inverse[row * self.n_rows..][..self.n_rows];
            *out = if at >= n {
                inverse[at - n]
            } else {
                let class = self.classes[at] as usize;
                let need = self.model.need_f(class);
                let mut sum: f64 = need.iter().zip(inverse).map(|(n, x)| n * x).sum();
                for &cap in &self.model.shared_of[class] {
                    sum += inverse[nd + cap as usize];
                }
                sum
            };
        }
    }

    fn range(&self, at: usize) -> f64 {
        self.most.get(at).copied().unwrap_or(f64::INFINITY)
    }

    /// Moves one variable from its bound as far as possible; `true` if it entered the basis.
    fn enter(&mut self, at: usize, column: &mut [f64]) -> bool {
        self.column(at, column);
        let sign = if self.status[at] == UPPER { -1.0 } else { 1.0 };
        let mut step = self.range(at);
        let mut leaving = None;
        for (row, &x) in column.iter().enumerate() {
            let falls = sign * x;
            let most = if falls > 1e-11 {
                self.level[row].max(0.0) / falls
            } else if falls < -1e-11 {
                (self.range(self.basis[row]) - self.level[row]).max(0.0) / -falls
            } else {
                continue;
            };
            if most < step {
                step = most;
                leaving = Some((row, falls < 0.0));
            }
        }
        for (level, x) in self.level.iter_mut().zip(column.iter()) {
            *level -= sign * step * x;
        }
        let Some((row, at_upper)) = leaving else {
            if step.is_finite() {
                self.status[at] = UPPER - self.status[at];
            }
            return false;
        };
        let start = if sign < 0.0 { self.range(at) } else { 0.0 };
        self.status[self.basis[row]] = if at_upper { UPPER } else { LOWER };
        self.status[at] = BASIC;
        self.basis[row] = at;
        self.level[row] = start + sign * step;
        let n_rows = self.n_rows;
        let pivot = column[row];
        for x in &mut self.inverse[row * n_rows..][..n_rows] {
            *x /= pivot;
        }
        let pivot_row = self.inverse[row * n_rows..][..n_rows].to_vec();
        for (other, &x) in column.iter().enumerate() {
            if other != row && x != 0.0 {
                let inverse = &mut self.inverse[other * n_rows..][..n_rows];
                for (y, p) in inverse.iter_mut().zip(&pivot_row) {
                    *y -= x * p;
                }
            }
        }
        true
    }
}
