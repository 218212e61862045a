//! Fleets go in, decisions come out. Every plan of a command is verified on the way.

mod balanced;
mod budgets;
mod bundles;
mod candidates;
mod compat;
mod confirming;
mod consolidating;
mod drifting;
mod emptying;
mod groups;
mod moving;
mod pinning;
mod properties;
mod reserved;
mod settling;
mod spot;
mod stage;
