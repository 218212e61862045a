//! The simulated cloud on the embedded control plane, in virtual time.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod conformance;
mod faults;
mod hooks;
mod interruptions;
mod joining;
mod losing;
mod many;
mod support;
mod taking_over;
