//! HPAs as the API has them: two versions, defaults, rules, and reading what holds.
//!
//! An object goes through here in this order: [`to_v2`], [`fill_in`], [`complaints`], and only then is
//! it read. [`Hpa::read`] does all four.

mod convert;
mod defaults;
mod metrics;
mod read;
mod rules;
#[cfg(test)]
mod tests;

pub use convert::{to_v1, to_v2};
pub use defaults::fill_in;
pub use rules::complaints;

#[cfg(doc)]
use super::spec::Hpa;
