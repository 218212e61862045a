//! Money as integers.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// A price in thousand-millionths of a dollar an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NanoDollars(u64);

impl NanoDollars {
    /// Nothing to pay.
    pub const ZERO: Self = Self(0);

    /// A price given in nano-dollars an hour.
    #[must_use]
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The figure in nano-dollars an hour.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `count` times this price, saturating.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }
}

impl Add for NanoDollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for NanoDollars {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for NanoDollars {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for NanoDollars {
    /// Dollars with as many decimals as the figure needs, at least two and at most nine.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut decimals = format!("{:09}", self.0 % 1_000_000_000);
        while decimals.len() > 2 && decimals.ends_with('0') {
            decimals.pop();
        }
        write!(f, "{}.{decimals}", self.0 / 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_dollars() {
        assert_eq!(NanoDollars::new(96_000_000).to_string(), "0.096");
        assert_eq!(NanoDollars::new(4_128_000_000).to_string(), "4.128");
        assert_eq!(NanoDollars::new(12_000_000_000).to_string(), "12.00");
        assert_eq!(NanoDollars::new(1).to_string(), "0.000000001");
    }
}
