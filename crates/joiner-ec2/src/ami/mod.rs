//! Images: which ones a class selects, and which one a machine boots from.
//!
//! In this order: [`lookups`] says which parameters name images, [`queries`] what to ask for with their values,
//! [`select`] what the answers come to in the status of the class, [`for_type`] which of these a type boots.

mod alias;
mod choose;
mod terms;

pub use alias::{AliasError, Lookup, Variant};
pub use choose::{for_type, select, stale};
pub use terms::{NoParameters, lookups, queries};
