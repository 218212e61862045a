//! A launch: from what a claim asks for to the requests that buy its machine.
//!
//! In this order: [`filter`] rules types out, [`CapacityType::choose`] says how to pay, [`subnets`] picks one
//! subnet a zone, [`template`] makes one launch template for each distinct need, and [`fleet`] puts all that
//! into one request. [`outcome`] says what the answer means.

pub mod filter;
pub mod fleet;
mod interfaces;
pub mod needs;
mod offer;
pub mod outcome;
pub mod subnets;
pub mod template;

pub use offer::{Ask, CapacityType, Reservation, ReservationKind, Tenancy};
