//! Whole stories on a whole cluster: the controllers, the simulated cloud, and a control plane. The
//! same code runs on the embedded one, in virtual time, and on a real one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail as tests do"
)]

mod churn;
mod disruption;
mod drain;
mod gates;
mod hooks;
mod interruption;
mod lifecycle;
mod objects;
mod plane;
mod pools;
mod receipts;
mod restart;
mod scale_out;
mod stage;
mod story;
mod surge;
mod trouble;
