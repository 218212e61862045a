//! What to ask of EC2 as a function of data, and what its answers mean.

pub mod cluster;
pub mod drift;
pub mod family;
pub mod hash;
pub mod user_data;
