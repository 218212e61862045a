//! Whole stories on a whole cluster: the controllers, the simulated cloud, and a control plane. The
//! same code runs on the embedded one, in virtual time, and on a real one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail as tests do"
)]

/// The allocator of the product: stories allocate a lot.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod annotations;
mod churn;
mod classes;
mod crash;
mod disruption;
mod drain;
mod drift;
mod faults;
mod gates;
mod hooks;
mod interruption;
mod leader;
mod lifecycle;
mod pools;
mod receipts;
mod restart;
mod scale_out;
mod story;
mod surge;
mod trouble;
