//! Behaviors of the upstream AWS provider, each named by its number in the compatibility table.

mod amis;
mod classes;
mod fleets;
mod hashes;
mod life;
mod market;
mod outcomes;
mod policies;
mod selectors;
mod templates;
mod user_data;
