//! Recorded situations, one JSON object each, and the answers of this crate to them, one JSON object
//! each: for comparing with other programs and for replaying what happened somewhere.

mod cron;
mod hpa;
mod updater;
mod vpa;

use jiff::tz::TimeZoneDatabase;
use serde_json::Value;

use crate::part::{FieldError, Part};

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The status of an HPA after each of many syncs.
    Hpa,
    /// What is recommended for the pods of a VPA, over many passes.
    Vpa,
    /// Which pods of a VPA are worth an update, and what is done with them.
    Updater,
    /// Whether the window of a cron trigger is open, at many times.
    Cron,
}

/// Why a problem has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("problem {id:?}: {error}")]
pub struct ProblemError {
    /// Which problem.
    pub id: String,
    /// What is wrong with it.
    #[source]
    pub error: FieldError,
}

/// Answers one problem, with these time zones.
///
/// # Errors
/// The field of the problem that cannot be read.
pub fn answer(
    subject: Subject,
    problem: &Value,
    zones: &TimeZoneDatabase,
) -> Result<Value, ProblemError> {
    let part = Part::top(problem);
    let answer = match subject {
        Subject::Hpa => hpa::answer(&part),
        Subject::Vpa => vpa::answer(&part),
        Subject::Updater => updater::answer(&part),
        Subject::Cron => cron::answer(&part, zones),
    };
    answer.map_err(|error| ProblemError {
        id: problem["id"].as_str().unwrap_or_default().to_owned(),
        error,
    })
}
