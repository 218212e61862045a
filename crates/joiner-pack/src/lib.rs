//! Buy bins by price: an abstract vector packer with a proven lower bound.
//!
//! A [`Problem`] asks to put counted, identical items onto nodes: nodes that exist already
//! ([`Bin`], free, each once) and nodes that can be bought ([`Kind`], any number of each).
//! [`pack`] returns a legal and cheap [`Packing`]; [`bound`] returns a price that no legal
//! packing can undercut.
//!
//! *Guarantees.* The same problem gives the same answer on every machine: work is bounded by
//! counted steps, never by a clock; no random numbers except from fixed seeds; floating point is
//! limited to operations that IEEE 754 defines exactly. Sizes and money are integers, floats only
//! guide the search, and the bound is certified in integers.
//!
//! *Refuses to.* Know what an item or a dimension means, read clocks, log, or touch the outside.

mod ascent;
mod bound;
mod branch;
mod budget;
mod columns;
mod crew;
mod dual;
mod ffd;
mod fill;
mod greedy;
mod knapsack;
mod load;
mod merge;
mod model;
mod plan;
mod points;
mod problem;
mod retarget;
mod round;
mod search;
mod simplex;
mod solve;

pub use bound::bound;
pub use problem::{Aim, Bin, Group, Kind, Packed, Packing, Place, Problem, Row, Settings};
pub use solve::pack;
