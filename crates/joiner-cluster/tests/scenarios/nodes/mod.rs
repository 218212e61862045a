//! Scenarios of scheduler, kubelets, node lifecycle and volumes on a tiny API server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod drain;
mod life;
mod placing;
mod preempting;
mod spreading;
mod volumes;
mod world;
