//! The controllers of workloads: who makes pods, how many, and in which order they are replaced.

mod backoff;
mod cron_job;
mod daemon_set;
mod deployment;
mod job;
mod owned;
mod pods;
mod replica_set;
mod rests;
mod revisions;
mod schedule;
mod stateful_set;

pub use cron_job::CronJobs;
pub use daemon_set::DaemonSets;
pub use deployment::Deployments;
pub use job::Jobs;
pub use replica_set::ReplicaSets;
pub use stateful_set::StatefulSets;

pub(crate) use owned::{Child, Takes};
pub(crate) use pods::{Facts, PODS};
pub(crate) use rests::Rests;
