//! The embedded control plane: store, API server and cluster in one process.
//!
//! It is for laptops, demonstrations and tests, and holds what an autoscaler, its users and its tests
//! touch. What works on it works on a real API server.
//!
//! A request goes through [`route`] and [`server`] to one of the verbs, which read and write the
//! [`store`] under one lock; [`watch`] tells of changes; [`world`] runs controllers, scheduler and
//! kubelets on the same store. [`serve`] has the two doors, [`sandbox`] puts it all together.

mod auth;
pub mod certificates;
pub mod exchange;
pub mod kubeconfig;
mod logs;
pub mod registry;
pub mod route;
mod rules;
pub mod sandbox;
pub mod serve;
pub mod server;
pub mod store;
mod usage;
mod verbs;
pub mod versions;
pub mod watch;
pub mod world;

pub use sandbox::{Sandbox, Settings};
