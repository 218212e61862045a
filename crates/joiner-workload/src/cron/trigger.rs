//! A trigger with a window: when it is open, and what it asks for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

use super::schedule::Schedule;
use super::zone::{UnknownZone, zone};
use crate::part::FieldError;

/// KEDA's trigger of type `cron`.
#[derive(Clone, Debug, PartialEq)]
pub struct CronTrigger {
    /// The zone on whose clock the schedules are; whether there is one is seen when it is looked at.
    pub zone: String,
    /// The schedule of the beginnings of windows, as it was written.
    pub start: String,
    /// The schedule of their ends, as it was written.
    pub end: String,
    /// How many replicas are wanted in a window.
    pub desired_replicas: i64,
    starts: Schedule,
    ends: Schedule,
}

/// A window at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Whether that time is in a window.
    pub is_open: bool,
    /// When one begins next, after that time.
    pub next_start: Option<Timestamp>,
    /// When one ends next, after that time.
    pub next_end: Option<Timestamp>,
}

impl Window {
    /// When the answer changes at the earliest.
    #[must_use]
    pub fn next_change(&self) -> Option<Timestamp> {
        if self.is_open {
            self.next_end
        } else {
            self.next_start
        }
    }
}

impl CronTrigger {
    /// Reads the metadata of a trigger.
    ///
    /// # Errors
    /// The field that is missing or says nothing.
    pub fn read(
        metadata: &BTreeMap<String, String>,
        zones: &TimeZoneDatabase,
    ) -> Result<Self, FieldError> {
        let text = |name: &str| {
            let text = metadata.get(name).filter(|text| !text.is_empty());
            let text = text.map(|text| text.trim().to_owned());
            text.ok_or_else(|| FieldError::new(name, "is missing; set it"))
        };
        let (start, end) = (text("start")?, text("end")?);
        let schedule = |name, text| {
            Schedule::parse(text, zones).map_err(|error| FieldError::new(name, error.to_string()))
        };
        let (starts, ends) = (schedule("start", &start)?, schedule("end", &end)?);
        if start == end {
            return Err(FieldError::new(
                "end",
                "must be another schedule than start",
            ));
        }
        let desired = text("desiredReplicas")?;
        let desired_replicas = serde_json::from_str::<i64>(&desired);
        let desired_replicas = desired_replicas.ok().filter(|n| *n != 0).ok_or_else(|| {
            let problem = format!("must be a whole number other than 0, not {desired:?}");
            FieldError::new("desiredReplicas", problem)
        })?;
        Ok(Self {
            zone: text("timezone")?,
            start,
            end,
            desired_replicas,
            starts,
            ends,
        })
    }

    /// Whether `now` is in a window, and when that changes.
    ///
    /// # Errors
    /// When there is no such time zone.
    pub fn window(&self, now: Timestamp, zones: &TimeZoneDatabase) -> Result<Window, UnknownZone> {
        let zone = zone(&self.zone, zones)?;
        let next_start = self.starts.next_after(now, &zone);
        let next_end = self.ends.next_after(now, &zone);
        // What never comes counts as long past, and so does what upstream's search finds before now where
        // clocks change.
        let start = next_start.unwrap_or(Timestamp::MIN);
        let end = next_end.unwrap_or(Timestamp::MIN);
        let is_open = if start < end {
            start < now && now < end
        } else {
            start < now || now < end
        };
        Ok(Window {
            is_open,
            next_start: next_start.filter(|time| *time > now),
            next_end: next_end.filter(|time| *time > now),
        })
    }

    /// How many replicas it asks for.
    #[must_use]
    pub fn value(&self, window: &Window) -> i64 {
        if window.is_open {
            self.desired_replicas.max(0)
        } else {
            0
        }
    }

    /// What is behind the index in the name of its metric.
    #[must_use]
    pub fn scaler_name(&self) -> String {
        let spelled = |schedule: &str| {
            let words = [(" ", ""), ("*", "x"), ("/", "Sl"), ("?", "Qm"), (",", "Cm")];
            let spell = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
            words.iter().fold(schedule.to_owned(), spell)
        };
        let (start, end) = (spelled(&self.start), spelled(&self.end));
        format!("cron-{}-{start}-{end}", self.zone)
    }
}
