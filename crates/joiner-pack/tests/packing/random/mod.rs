//! Seeded random problems of many styles.
#![allow(dead_code, reason = "each test uses a part of it")]

use fixedbitset::FixedBitSet;
use joiner_pack::{Bin, Group, Kind, Problem, Row};

/// A tiny generator of pseudo-random numbers.
pub(crate) struct Random(u64);

impl Random {
    /// A sequence of its own for every seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + (self.next() >> 11) % (high - low + 1)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.within(1, n) == 1
    }

    /// A random order of `0..n`.
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for at in (1..n).rev() {
            order.swap(at, self.within(0, at as u64) as usize);
        }
        order
    }
}

/// What a random problem has in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Style {
    pub(crate) n_rows: u64,
    pub(crate) count_max: u64,
    pub(crate) n_kinds: u64,
    pub(crate) n_bins: u64,
    pub(crate) selective: bool,
    pub(crate) fillers: bool,
    pub(crate) caps: bool,
    pub(crate) tokens: bool,
    pub(crate) budgets: bool,
}

/// A random problem of this style.
pub(crate) fn problem(seed: u64, style: Style) -> Problem {
    let r = &mut Random::new(seed);
    let n_dims = r.within(1, 4) as usize;
    let mut problem = Problem {
        n_dims,
        ..Problem::default()
    };
    let n_groups = if style.selective { 5 } else { 1 };
    let mut kinds = Vec::new();
    for _ in 0..style.n_kinds {
        let size = r.within(2, 30);
        let room: Box<[u64]> = (0..n_dims).map(|_| size * r.within(2, 6)).collect();
        let price = size * 1_000_000 * r.within(80, 120);
        let spend = if style.budgets && r.once_in(2) {
            vec![(0, size)]
        } else {
            Vec::new()
        };
        kinds.push(Kind {
            room,
            price,
            spend,
            options: r.within(1, 4) as u32,
        });
    }
    problem.kinds = kinds.into();
    if style.caps {
        problem.caps = (0..3).map(|_| r.within(1, 3) as u32).collect();
    }
    for _ in 0..style.n_bins {
        let room = (0..n_dims).map(|_| r.within(0, 40)).collect();
        let mut bin = Bin {
            room,
            ..Bin::default()
        };
        if style.caps && r.once_in(2) {
            bin.caps_used
                .push((r.within(0, 2) as u32, r.within(0, 3) as u32));
        }
        if style.tokens && r.once_in(3) {
            bin.emits.push(r.within(0, 3) as u32);
            bin.repels.push(r.within(0, 3) as u32);
        }
        problem.bins.push(bin);
    }
    for group in 0..n_groups {
        let mut member = |n: u64| -> FixedBitSet {
            (0..n as usize)
                .filter(|_| group == 0 || !r.once_in(3))
                .collect()
        };
        problem.groups.push(Group {
            kinds: member(style.n_kinds),
            bins: member(style.n_bins),
        });
    }
    for _ in 0..style.n_rows {
        let home = r.within(0, n_groups - 1) as u32;
        let mut row = Row {
            need: (0..n_dims).map(|_| r.within(0, 20)).collect(),
            count: r.within(1, style.count_max) as u32,
            home,
            priority: if r.once_in(4) { 10 } else { 0 },
            ..Row::default()
        };
        if style.fillers && r.once_in(2) {
            row.also = Some(r.within(0, n_groups - 1) as u32);
        }
        if style.caps && r.once_in(2) {
            row.caps.push(r.within(0, 2) as u32);
        }
        if style.tokens && r.once_in(2) {
            row.emits.push(r.within(0, 3) as u32);
        }
        if style.tokens && r.once_in(2) {
            row.repels.push(r.within(0, 3) as u32);
        }
        problem.rows.push(row);
    }
    if style.budgets {
        problem.budgets = vec![r.within(0, 60)];
    }
    problem
}

/// Every style that the tests go through, small to medium.
pub(crate) fn styles() -> Vec<Style> {
    let mut styles = Vec::new();
    for bits in 0..64_u64 {
        let on = |bit: u64| bits >> bit & 1 == 1;
        styles.push(Style {
            n_rows: 1 + bits % 13 * 2,
            count_max: [1, 4, 30][(bits % 3) as usize],
            n_kinds: 1 + bits * 7 % 23,
            n_bins: if on(0) { bits % 9 } else { 0 },
            selective: on(1),
            fillers: on(2),
            caps: on(3),
            tokens: on(4),
            budgets: on(5),
        });
    }
    styles
}
