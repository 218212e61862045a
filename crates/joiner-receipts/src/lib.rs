//! Receipts: what was decided about pods and nodes, as it is written down, read back and told.
//!
//! One module per question:
//!
//! 1. `decision`: what is one line of the decision log, and which lines are wanted?
//! 2. `details`: what does a line say about pods and nodes, typed by its kind?
//! 3. `log_lines`: what do the lines of a log come to?
//! 4. `kept_nodes`: why does every node stay, and which of it is news?
//! 5. `fate`: what does one decision say about one pod or one node?
//! 6. [`why`]: what is the answer to "why is this pod here, why does this node stay"? `answers` has
//!    its parts.
//! 7. `near`: which name was meant?
//!
//! A controller writes the types of `details` into [`Decision::details`]; `joiner why` reads them
//! back, from a running controller or from a file, with the same functions. Where lines are kept and
//! who may ask for them is up to the callers.

mod answers;
mod decision;
mod details;
mod fate;
mod kept_nodes;
mod log_lines;
mod near;
pub mod why;

pub use decision::{Decision, DecisionQuery, in_dollars};
pub use details::{
    Alternative, DISRUPTION, DisruptionDetails, FunnelStep, Helps, KEPT, Kept, KeptDetails,
    LeftOver, Machine, Move, PROVISIONING, PinnedBy, PlannedNode, PoolFunnel, ProvisioningDetails,
    Seated, UNSCHEDULABLE,
};
pub use fate::{NodeFate, PodFate, Receipt, of_node, of_pod};
pub use kept_nodes::KeptNodes;
pub use log_lines::LogLines;
pub use near::near;
