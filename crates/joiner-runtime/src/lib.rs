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
mod live_answers;
mod log_line;
mod logging;
pub mod metric_names;
mod metric_text;
mod metrics;
pub mod metrics_source;
mod pace;
mod plain;
mod process_metrics;
mod watch;
mod watch_pauses;
mod wire;
mod world;

pub use api::{Api, ApiFailure, ClassPath, Delete, Written};
pub use clock::Clock;
pub use condition_metrics::{Condition, ConditionMetrics, Seen, Transition};
pub use decision_file::read_decisions;
pub use decisions::{DecisionSettings, Decisions};
pub use election::{Election, ElectionSettings, identity};
pub use events::{About, EVERY, Event, EventWriter, Events};
pub use http::{HttpError, HttpSettings, Ready, Receipts, Servers};
pub use live_answers::Now;
pub use logging::{LogError, LogFormat, LogGuard, LogLevel, LogOutput, LogSettings, install};
pub use metrics::{Build, Metrics, Sample, Series};
pub use pace::Pace;
pub use plain::PlainObject;
pub use watch::{Followed, follow, resource};
pub use watch_pauses::WatchPauses;
pub use wire::Wire;
pub use world::{News, World};
