//! Behaviors of the upstream AWS provider, each named by its number in the compatibility table.

mod hashes;
mod user_data;
