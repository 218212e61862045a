//! Scenarios of the cluster's controllers, each played until nothing changes any more.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod budgets;
mod cascades;
mod cron_jobs;
mod daemon_sets;
mod deployments;
mod jobs;
mod replica_sets;
mod stateful_sets;
mod world;
