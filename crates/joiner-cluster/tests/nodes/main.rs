//! Scenarios of scheduler, kubelets, node lifecycle and volumes on a tiny API server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and one that measures should say what"
)]

mod drain;
mod life;
mod placing;
mod preempting;
mod speed;
mod spreading;
mod volumes;
mod world;
