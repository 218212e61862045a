//! `solve(&Problem) -> Plan`: place pods, shape new nodes, bound the price.
//!
//! The line a problem takes, one module per question:
//!
//! 1. [`ground`]: which concrete nodes could be bought (pool, type, offering), and what room has each?
//! 2. [`select`]: which of them, and which existing nodes, does a pod's node selection allow?
//! 3. [`wish`]: what counts as a rule for a pod now, and what is given up next?
//! 4. [`classes`]: which pods are alike, and which topology rules bind or count them?
//! 5. [`cells`]: how many pods of a class go to which zone, capacity type or other domain?
//! 6. [`rows`]: the packing problem that is left, for `joiner-pack`.
//! 7. [`rounds`]: pools by weight and limit, preferences given up where nothing else helps.
//! 8. [`finish`]: nodes with their ranked alternatives.
//! 9. [`floor`]: the lower bound on the price.
//! 10. [`refuse`]: why a pod was left over; [`absent`]: what it names that does not exist; [`funnel`]: how
//!     offerings are ruled out for it; [`remedy`]: which single change would give it a place, and for
//!     how much.
//!
//! Everything is a pure function of its arguments; work is bounded by steps, ties go by index.

mod absent;
mod budgets;
mod bundles;
mod cells;
mod classes;
mod company;
mod counts;
mod effort;
mod finish;
mod finished;
mod floor;
mod funnel;
mod ground;
mod groups;
mod homes;
mod layout;
mod ledger;
mod marks;
mod memo;
mod prices;
mod refuse;
mod remedy;
mod remedy_candidates;
mod remedy_changes;
mod rounds;
mod rows;
mod seeds;
mod select;
mod stock;
mod turns;
mod volumes;
mod weights;
mod wish;
mod write;

pub use absent::absent;
pub use funnel::{Funnel, FunnelStep, explain};
pub use remedy::{Place, Remedy, remedies};
pub use remedy_changes::Change;
pub use rounds::solve;
