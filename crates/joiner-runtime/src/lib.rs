//! What everything above the pure line shares: the clock, what is known of the cluster, and every
//! way to tell or change something outside.

mod api;
mod clock;
mod condition_metrics;
mod connection_table;
pub mod connections;
mod decision_file;
mod decisions;
mod election;
mod events;
mod http;
mod http_guard;
mod log_line;
mod logging;
pub mod metric_names;
mod metric_text;
mod metrics;
pub mod metrics_source;
mod near;
mod pace;
mod plain;
mod process_metrics;
pub mod receipt;
mod verdicts;
mod watch;
mod watch_pauses;
pub mod why;
mod wire;
mod world;

pub use api::{Api, ApiFailure, ClassPath, Delete, Written};
pub use clock::Clock;
pub use condition_metrics::{Condition, ConditionMetrics, Seen, Transition};
pub use decision_file::read_decisions;
pub use decisions::{Decision, DecisionQuery, DecisionSettings, Decisions};
pub use election::{Election, ElectionSettings, identity};
pub use events::{About, EVERY, Event, EventWriter, Events};
pub use http::{HttpError, HttpSettings, Ready, Receipts, Servers};
pub use logging::{LogError, LogFormat, LogGuard, LogLevel, LogOutput, LogSettings, install};
pub use metrics::{Build, Metrics, Sample, Series};
pub use near::near;
pub use pace::Pace;
pub use plain::PlainObject;
pub use watch::{Followed, follow, resource};
pub use watch_pauses::WatchPauses;
pub use wire::Wire;
pub use world::{News, World};
