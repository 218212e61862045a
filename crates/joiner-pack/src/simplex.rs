//! A small linear programme that grows by columns: minimize cost, cover every row.
//!
//! Revised primal simplex with a dense basis inverse, a slightly perturbed right-hand side
//! against cycling, and regular refactorization. Floating point, only a guide.

/// One column: its cost and its nonzero entries.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) cost: f64,
    pub(crate) entries: Vec<(u32, f64)>,
}

/// The programme `min cost·x, A x >= b, x >= 0`; rows of bins are written with negative signs.
#[derive(Clone, Debug)]
pub(crate) struct Master {
    n_rows: usize,
    /// The first `n_rows` columns are the surplus of each row.
    pub(crate) columns: Vec<Column>,
    rhs: Vec<f64>,
    basis: Vec<usize>,
    in_basis: Vec<bool>,
    inverse: Vec<f64>,
    level: Vec<f64>,
    pivots: usize,
    /// Elementary operations spent.
    pub(crate) work: u64,
}

const REFACTOR_EVERY: usize = 120;

impl Master {
    /// A programme with a starting column per row: `start[row]` must be a multiple of the row's
    /// unit vector with a positive entry, or `None` where the surplus itself can start (a row
    /// with a right-hand side of at most zero).
    pub(crate) fn new(rhs: &[f64], start: Vec<Option<Column>>) -> Self {
        let n_rows = rhs.len();
        let mut columns: Vec<Column> = (0..n_rows as u32)
            .map(|row| Column {
                cost: 0.0,
                entries: vec![(row, -1.0)],
            })
            .collect();
        let mut basis = Vec::with_capacity(n_rows);
        let mut inverse = vec![0.0; n_rows * n_rows];
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let rhs: Vec<f64> = rhs
            .iter()
            .map(|&b| {
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let share = (noise >> 40) as f64 / (1_u64 << 24) as f64;
                b + (b.abs() + 1.0) * 1e-5 * (0.5 + share)
            })
            .collect();
        for (row, column) in start.into_iter().enumerate() {
            let entry = match column {
                Some(column) => {
                    basis.push(columns.len());
                    let entry = column.entries[0].1;
                    columns.push(column);
                    entry
                }
                None => {
                    basis.push(row);
                    -1.0
                }
            };
            inverse[row * n_rows + row] = 1.0 / entry;
        }
        let level = (0..n_rows)
            .map(|r| rhs[r] * inverse[r * n_rows + r])
            .collect();
        let mut in_basis = vec![false; columns.len()];
        for &at in &basis {
            in_basis[at] = true;
        }
        Self {
            n_rows,
            columns,
            rhs,
            basis,
            in_basis,
            inverse,
            level,
            pivots: 0,
            work: 0,
        }
    }

    /// Adds a column that may enter.
    pub(crate) fn add(&mut self, column: Column) {
        self.columns.push(column);
        self.in_basis.push(false);
    }

    /// The value of one more of each row.
    pub(crate) fn duals(&self) -> Vec<f64> {
        let mut duals = vec![0.0; self.n_rows];
        for (row, &at) in self.basis.iter().enumerate() {
            let cost = self.columns[at].cost;
            if cost != 0.0 {
                let inverse = &self.inverse[row * self.n_rows..][..self.n_rows];
                for (dual, x) in duals.iter_mut().zip(inverse) {
                    *dual += cost * x;
                }
            }
        }
        duals
    }

    /// The cost of the current solution.
    pub(crate) fn objective(&self) -> f64 {
        self.basis
            .iter()
            .zip(&self.level)
            .map(|(&at, x)| self.columns[at].cost * x)
            .sum()
    }

    /// Columns in use with their amounts.
    pub(crate) fn solution(&self) -> Vec<(usize, f64)> {
        let used = self
            .basis
            .iter()
            .zip(&self.level)
            .filter(|&(&at, _)| at >= self.n_rows);
        used.map(|(&at, &x)| (at, x.max(0.0))).collect()
    }

    /// Optimizes over the columns there are, with at most so many pivots.
    pub(crate) fn solve(&mut self, pivots_max: usize) {
        let mut column = vec![0.0; self.n_rows];
        for _ in 0..pivots_max {
            let duals = self.duals();
            let mean = duals.iter().map(|d| d.abs()).sum::<f64>() / self.n_rows.max(1) as f64;
            let mut best = (-1e-8, usize::MAX);
            for (at, candidate) in self.columns.iter().enumerate() {
                if self.in_basis[at] {
                    continue;
                }
                let worth: f64 = candidate
                    .entries
                    .iter()
                    .map(|&(row, x)| x * duals[row as usize])
                    .sum();
                let score = (candidate.cost - worth) / candidate.cost.max(mean + 1e-9);
                if score < best.0 {
                    best = (score, at);
                }
            }
            let n = self.n_rows as u64;
            self.work += n * n * 2 + self.columns.len() as u64 * 10;
            if best.1 == usize::MAX || !self.pivot(best.1, &mut column) {
                return;
            }
        }
    }

    fn pivot(&mut self, entering: usize, column: &mut [f64]) -> bool {
        let n = self.n_rows;
        for (row, out) in column.iter_mut().enumerate() {
            let inverse = &self.inverse[row * n..][..n];
            *out = self.columns[entering]
                .entries
                .iter()
                .map(|&(r, x)| inverse[r as usize] * x)
                .sum();
        }
        // Two passes: how far may it go if rows may be short by a hair, then the largest pivot
        // among the rows that block before that.
        let size = column.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        let mut far = f64::INFINITY;
        for (row, &x) in column.iter().enumerate() {
            if x > 1e-9 * size {
                far = far.min((self.level[row].max(0.0) + 1e-9) / x);
            }
        }
        let mut best: Option<(f64, usize)> = None;
        for (row, &x) in column.iter().enumerate() {
            if x > 1e-9 * size
                && self.level[row].max(0.0) / x <= far
                && best.is_none_or(|(most, _)| x > most)
            {
                best = Some((x, row));
            }
        }
        let Some((x, row)) = best else { return false };
        let step = self.level[row].max(0.0) / x;
        for (level, x) in self.level.iter_mut().zip(column.iter()) {
            *level -= step * x;
        }
        self.level[row] = step;
        self.in_basis[self.basis[row]] = false;
        self.in_basis[entering] = true;
        self.basis[row] = entering;
        let pivot = column[row];
        for x in &mut self.inverse[row * n..][..n] {
            *x /= pivot;
        }
        let pivot_row = self.inverse[row * n..][..n].to_vec();
        for (other, &x) in column.iter().enumerate() {
            if other != row && x.abs() > 1e-13 {
                for (y, p) in self.inverse[other * n..][..n].iter_mut().zip(&pivot_row) {
                    *y -= x * p;
                }
            }
        }
        self.pivots += 1;
        if self.pivots.is_multiple_of(REFACTOR_EVERY) {
            self.refactor();
        }
        true
    }

    /// Computes the inverse anew by elimination with row pivoting.
    fn refactor(&mut self) {
        let n = self.n_rows;
        let mut a = vec![0.0; n * n];
        for (at, &column) in self.basis.iter().enumerate() {
            for &(row, x) in &self.columns[column].entries {
                a[row as usize * n + at] = x;
            }
        }
        let mut inverse = vec![0.0; n * n];
        for row in 0..n {
            inverse[row * n + row] = 1.0;
        }
        for at in 0..n {
            let size = |row: usize| a[row * n + at].abs();
            let Some(row) = (at..n).max_by(|&x, &y| size(x).total_cmp(&size(y))) else {
                return;
            };
            if size(row) < 1e-11 {
                return;
            }
            for k in 0..n {
                a.swap(at * n + k, row * n + k);
                inverse.swap(at * n + k, row * n + k);
            }
            let pivot = a[at * n + at];
            for k in 0..n {
                a[at * n + k] /= pivot;
                inverse[at * n + k] /= pivot;
            }
            let (pivot_a, pivot_i) = (a[at * n..][..n].to_vec(), inverse[at * n..][..n].to_vec());
            for other in 0..n {
                let factor = a[other * n + at];
                if other != at && factor != 0.0 {
                    for k in at..n {
                        a[other * n + k] -= factor * pivot_a[k];
                    }
                    for (x, p) in inverse[other * n..][..n].iter_mut().zip(&pivot_i) {
                        *x -= factor * p;
                    }
                }
            }
        }
        self.work += (n * n * n) as u64;
        for row in 0..n {
            let inverse = &inverse[row * n..][..n];
            self.level[row] = inverse.iter().zip(&self.rhs).map(|(x, b)| x * b).sum();
        }
        self.inverse = inverse;
    }
}
