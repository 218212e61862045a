//! The API's tests, in one program: linking one per file would take most of the build's time and disk.

mod admission;
mod any_object;
mod aws_hardware;
mod aws_selectors;
mod core_disruption;
mod core_others;
mod core_pools_and_claims;
mod core_requirements;
mod crds;
mod legacy;
mod round_trip;
mod runtime_validation;
mod schema_walker;
mod support;
