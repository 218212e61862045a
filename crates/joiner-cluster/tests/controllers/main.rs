//! Scenarios of the cluster's controllers, each played until nothing changes any more.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and the measurements are to be seen"
)]

mod budgets;
mod cascades;
mod cron_jobs;
mod daemon_sets;
mod deployments;
mod jobs;
mod replica_sets;
mod speed;
mod stateful_sets;
mod world;
