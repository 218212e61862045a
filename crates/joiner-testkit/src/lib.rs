//! Builders and seeded generators for tests and benches.
//!
//! Two ways to a problem, both through the real parsers:
//!
//! - [`World`] collects objects from builders that start valid and say only what matters, solves,
//!   and returns an [`Outcome`] to make assertions about. Every plan is verified on the way.
//! - [`families`] makes large problems of a kind from a seed.
//!
//! ```
//! use joiner_testkit::{World, instance_type, pod, pool};
//!
//! World::new()
//!     .add(pool("general"))
//!     .add(instance_type("m.large").cpu("2").zone_price("a", "on-demand", 0.08))
//!     .add(instance_type("m.large-b").cpu("2").zone_price("b", "on-demand", 0.09))
//!     .add(pod("web").replicas(2).cpu("1500m").spread_over_zones(1))
//!     .solve()
//!     .assert_price(0.17)
//!     .assert_plan(
//!         "launch general m.large@a on-demand 0.08: web-0
//!          launch general m.large-b@b on-demand 0.09: web-1",
//!     );
//! ```
//!
//! A generated problem is checked in the same way:
//!
//! ```
//! use joiner_testkit::{Family, Outcome, generate};
//!
//! let problem = generate(Family::Bench, 1, 10).problem();
//! Outcome::of(problem).assert_all_placed();
//! ```
//!
//! With the feature `control-plane` there is also a real control plane to test on: see the module
//! of that name. With the feature `stage` there is a cluster with an autoscaler on it, for stories.
//!
//! Crates that this one is built on (model, state, solver, verify, catalog) use it from their
//! `tests/` folder only: inside `src` the compiler would see two copies of the same crate.
//!
//! This crate is for tests: what cannot be is a panic, with the reason in its message.
#![expect(
    clippy::panic,
    reason = "the crate is for tests: a panic is how they fail"
)]

mod builders;
#[cfg(feature = "control-plane")]
pub mod control_plane;
pub mod families;
mod outcome;
mod random;
#[cfg(feature = "stage")]
pub mod stage;
pub mod story;
mod world;

pub use builders::{
    InstanceTypeBuilder, NodeBuilder, PodBuilder, PoolBuilder, daemon, deployment, instance_type,
    node, node_claim, pod, pool, stateful_set,
};
pub use families::{Case, Family, Growth, generate, small};
pub use joiner_model::keys::{ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, OS, ZONE};
pub use outcome::{Outcome, Seat};
pub use random::{Random, seed};
pub use world::{Item, World};
