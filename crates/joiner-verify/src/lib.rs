//! Independent checker: a plan against the rules, sharing no algorithm with the solver.
//!
//! [`check`] takes a problem and a plan and lists every rule that the plan breaks, each as a
//! [`Violation`] that names the node, the pod and the rule; an empty list means the plan is legal.
//! It never says how a plan could be better, only whether it may be carried out.
//!
//! The idea behind it: a node to buy is not one node but every *world* that it may turn into (a
//! listed type, an offering left, a value of each label left open). A rule about the node must hold
//! in all of them. Rules about many nodes (spread, affinity) are replayed pod by pod: a plan is
//! legal when some order of admission is, one and the same for all of these rules. Where the search
//! for it would take too long, a plan whose rules each have an order passes.
//!
//! Reading order: `check` (the whole), `worlds` and `contexts` (what a node may turn into),
//! `classes` and `launches` (one new node), `existing` (one node there is), `topology` with
//! `spread`, `affinity` and `apart` (many nodes), `order` with `knots`, `crowd` and `search` (one
//! order for all), `limits` and `weights` (pools).

mod affinity;
mod apart;
mod bits;
mod census;
mod check;
mod classes;
mod contexts;
mod crowd;
mod demands;
mod domains;
mod existing;
mod ground;
mod knots;
mod launches;
mod limits;
mod order;
mod ports;
mod search;
mod spread;
mod topology;
mod violation;
mod weights;
mod worlds;

pub use check::{check, price_of};
pub use violation::{Rule, VIOLATIONS_MAX, Violation};
