//! Which nodes to give back, and why the others stay: pure decisions about a [`Fleet`].
//!
//! [`decide`] looks at everything once and returns a [`Decision`]: commands to carry out (mostly
//! none or one), and for every node either the reason why it stays or the most that its going could
//! save. [`confirm`] asks again, with the same functions on fresh facts, before a command starts.
//!
//! One module per question:
//!
//! 1. [`budget`]: how many nodes of a pool may be disrupted now?
//! 2. [`cost`]: what does it cost to move pods?
//! 3. `candidates`: which nodes may go, and which must stay, because of what?
//! 4. `moves`: which workloads were moved often enough?
//! 5. `whatif`: where would pods go if these nodes were gone?
//! 6. `emptiness`, `drift`, `consolidation`: the methods, in the order in which they are tried.
//! 7. `confirm`: does a command still hold?
//!
//! Nothing here reads a clock, talks to anybody, or remembers: `now` is in the fleet, and what the
//! next pass should know is in the [`Memory`] of the decision.

pub mod budget;
mod candidates;
mod command;
mod confirm;
mod consolidation;
pub mod cost;
mod decide;
mod drift;
mod emptiness;
mod fleet;
mod memory;
mod moves;
mod whatif;
mod why;

pub use budget::{Budget, UNLIMITED, complaints};
pub use command::{Command, Decision, Method, Reason, Verdict};
pub use confirm::{Rejection, confirm};
pub use consolidation::{Judgement, judgements};
pub use cost::EvictionCost;
pub use decide::decide;
pub use fleet::{
    Fleet, GroupNode, Leaver, Member, Moved, NodeOwner, Policy, PoolName, PoolTerms, Settings,
};
pub use memory::Memory;
pub use whatif::question;
pub use why::{Audience, Pin, Why, pins};
