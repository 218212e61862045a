//! What to ask of EC2 as a function of data, and what its answers mean.
//!
//! Reading order: [`cluster`] and [`family`] (what nodes rest on), [`request`] and [`answer`] (EC2's own words);
//! then a class: [`ami`], [`selectors`], [`reservations`] (what its terms come to), [`class`] (conditions, dry runs,
//! profiles), [`hash`] and [`drift`]; then what can be bought: [`market`]; then a machine: [`launch`], [`user_data`],
//! [`volumes`], [`tags`], [`machine`]; then what befalls it: [`messages`], [`health`], [`zonal_shift`], [`garbage`],
//! and [`fault`] for whatever goes wrong. [`policies`] is what an account must allow.
//!
//! Nothing here calls anything or waits for anything: times are arguments, and so is every answer. What pods can use
//! of a machine is the business of `joiner-catalog`.

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
