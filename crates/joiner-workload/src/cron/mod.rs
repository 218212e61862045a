//! Windows of time in which a number of replicas is wanted: KEDA's cron trigger.
//!
//! 1. `schedule`: what does an expression of five fields say?
//! 2. `firing`: when does it fire next, on the wall clock of a zone?
//! 3. `trigger`: is the window open, and until when?
//! 4. `zone`: which zone is meant by a name?

mod firing;
mod schedule;
mod trigger;
mod zone;

#[cfg(test)]
mod tests;

pub use schedule::{BadSchedule, Schedule};
pub use trigger::{CronTrigger, Window};
pub use zone::{UnknownZone, zone};
