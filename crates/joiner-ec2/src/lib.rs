//! What to ask of EC2 as a function of data, and what its answers mean.

pub mod drift;
pub mod family;
pub mod hash;
