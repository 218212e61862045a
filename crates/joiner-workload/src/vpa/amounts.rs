//! Amounts of resources as upstream's recommender has them: whole millicores and bytes, cut off wherever a
//! float comes in.

use std::collections::BTreeMap;

use crate::floats::to_i64;
use crate::quantity::{Quantity, Suffixes};

/// The most that is ever recommended.
pub const AMOUNT_MAX: i64 = 100_000_000_000_000;

/// A resource that is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// In millicores.
    Cpu,
    /// In bytes.
    Memory,
}

impl Resource {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Cpu, Self::Memory];

    /// Its name in objects.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    /// The resource of this name, if it is one of both.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|resource| resource.as_str() == name)
    }

    /// An amount as objects have it.
    #[must_use]
    pub fn quantity(self, amount: i64) -> Quantity {
        match self {
            Self::Cpu => Quantity::of_millis(amount, Suffixes::Decimal),
            Self::Memory => Quantity::of_units(amount, Suffixes::Binary),
        }
    }
}

/// Amounts of resources.
pub type Resources<T> = BTreeMap<Resource, T>;

/// Cut off, never less than nothing, and never more than the most.
pub(crate) fn amount(float: f64) -> i64 {
    if float < 0.0 {
        0
    } else if float > AMOUNT_MAX as f64 {
        AMOUNT_MAX
    } else {
        to_i64(float)
    }
}

/// So many times an amount.
pub(crate) fn scaled(original: i64, factor: f64) -> i64 {
    amount(original as f64 * factor)
}
