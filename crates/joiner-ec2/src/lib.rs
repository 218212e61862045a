//! What to ask of EC2 as a function of data, and what its answers mean.

pub mod ami;
pub mod answer;
pub mod class;
pub mod cluster;
pub mod drift;
pub mod family;
pub mod fault;
pub mod garbage;
pub mod hash;
pub mod health;
pub mod launch;
pub mod machine;
pub mod market;
pub mod messages;
pub mod policies;
pub mod request;
pub mod reservations;
pub mod selectors;
pub mod tags;
#[cfg(test)]
mod tests;
pub mod user_data;
pub mod volumes;
mod yaml_text;
pub mod zonal_shift;
