//! Fleets go in, decisions come out. Every plan of a command is verified on the way.

mod balanced;
mod budgets;
mod candidates;
mod confirming;
mod consolidating;
mod drifting;
mod emptying;
mod properties;
mod spot;
mod stage;
