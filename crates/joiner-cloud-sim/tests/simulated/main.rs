//! The simulated cloud on both control planes.

mod real;
mod sandbox;
