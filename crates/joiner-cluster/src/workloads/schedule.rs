//! When a CronJob fires.

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::{SignedDuration, Timestamp};

use crate::fields::after;

/// A parsed schedule.
pub(crate) enum Schedule {
    /// By the calendar.
    Calendar(Box<Crontab>),
    /// Again and again after some seconds.
    Every(i64),
}

/// What a schedule says about a span of time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The last firing that is not after now.
    pub(crate) last: Option<Timestamp>,
    /// About how many there were.
    pub(crate) missed: i64,
}

impl Schedule {
    /// Reads five fields, a word like `@daily`, or `@every 90s`, in a time zone (UTC when there is
    /// none).
    pub(crate) fn parse(text: &str, zone: Option<&str>) -> Result<Self, String> {
        if let Some(interval) = text.trim().strip_prefix("@every ") {
            let interval: SignedDuration = interval
                .parse()
                .map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            return Ok(Self::Every(interval.as_secs().max(1)));
        }
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let count = fields.split_whitespace().count();
        if count != 5 {
            return Err(format!(
                "expected exactly 5 fields, found {count}: [{fields}]"
            ));
        }
        // Upstream takes a question mark for an asterisk.
        let mut line = fields.replace('?', "*");
        if let Some(zone) = zone.filter(|zone| !zone.is_empty()) {
            line = format!("{line} {zone}");
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        cronexpr::parse_crontab_with(&line, options)
            .map(|crontab| Self::Calendar(Box::new(crontab)))
            .map_err(|error| error.to_string())
    }

    /// The first firing after `now`, when the last one was at `since`; none within the next years
    /// for a day that never comes.
    pub(crate) fn next(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Calendar(crontab) => next_of(crontab, now),
            Self::Every(interval) => {
                let passed = now.duration_since(since).as_secs() / interval;
                Some(after(since, (passed + 1) * interval))
            }
        }
    }

    /// What was due after one time, up to and including another.
    pub(crate) fn due(&self, since: Timestamp, now: Timestamp) -> Due {
        let none = Due {
            last: None,
            missed: 0,
        };
        let crontab = match self {
            Self::Calendar(crontab) => crontab,
            Self::Every(interval) => {
                let missed = now.duration_since(since).as_secs() / interval;
                let last = (missed > 0).then(|| after(since, missed * interval));
                return Due { last, missed };
            }
        };
        let Some(first) = next_of(crontab, since).filter(|first| *first <= now) else {
            return none;
        };
        let Some(second) = next_of(crontab, first).filter(|second| *second <= now) else {
            return Due {
                last: Some(first),
                missed: 1,
            };
        };
        let interval = second.duration_since(first).as_secs().max(1);
        let missed = now.duration_since(first).as_secs() / interval + 1;
        Due {
            last: Some(last_of(crontab, second, now)),
            missed,
        }
    }
}

fn next_of(crontab: &Crontab, after: Timestamp) -> Option<Timestamp> {
    let next = crontab.find_next(MakeTimestamp(after)).ok()?;
    Some(next.timestamp())
}

/// The last firing that is not after `now`, given one that is not: found by halving, since there
/// may be thousands in between.
fn last_of(crontab: &Crontab, known: Timestamp, now: Timestamp) -> Timestamp {
    let due = |time: Timestamp| next_of(crontab, time).filter(|next| *next <= now);
    let (mut last, mut late) = (known, now);
    while late.duration_since(last).as_secs() > 1 {
        let middle = after(last, late.duration_since(last).as_secs() / 2);
        match due(middle) {
            Some(next) => last = next,
            None => late = middle,
        }
    }
    due(last).unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn schedules_find_their_next_time() {
        for (schedule, zone, after, next) in [
            (
                "*/15 * * * *",
                None,
                "2026-01-01T00:00:00Z",
                "2026-01-01T00:15:00Z",
            ),
            (
                "@hourly",
                None,
                "2026-01-01T00:30:00Z",
                "2026-01-01T01:00:00Z",
            ),
            (
                "@daily",
                Some("America/New_York"),
                "2026-01-01T00:00:00Z",
                "2026-01-01T05:00:00Z",
            ),
            (
                "0 9 ? * MON",
                None,
                "2026-01-01T00:00:00Z",
                "2026-01-05T09:00:00Z",
            ),
            (
                "30 6 29 2 *",
                None,
                "2026-01-01T00:00:00Z",
                "2028-02-29T06:30:00Z",
            ),
        ] {
            let parsed = Schedule::parse(schedule, zone).unwrap();
            let found = parsed.next(at(after), at(after));
            assert_eq!(found, Some(at(next)), "{schedule}");
        }
        for bad in ["", "* * * *", "61 * * * *", "* * * * * *", "@sometimes"] {
            assert!(Schedule::parse(bad, None).is_err(), "{bad}");
        }
        assert!(Schedule::parse("* * * * *", Some("Atlantis/Poseidonis")).is_err());
    }

    #[test]
    fn an_interval_counts_from_the_last_firing() {
        let schedule = Schedule::parse("@every 1h30m", None).unwrap();
        let start = at("2026-01-01T00:10:00Z");
        assert_eq!(schedule.due(start, at("2026-01-01T01:39:00Z")).last, None);
        let now = at("2026-01-01T03:20:00Z");
        let due = schedule.due(start, now);
        assert_eq!(
            (due.last, due.missed),
            (Some(at("2026-01-01T03:10:00Z")), 2)
        );
        assert_eq!(schedule.next(start, now), Some(at("2026-01-01T04:40:00Z")));
        assert!(Schedule::parse("@every now", None).is_err());
    }

    #[test]
    fn the_last_of_many_missed_firings_is_found() {
        let hourly = Schedule::parse("@hourly", None).unwrap();
        let start = at("2026-01-01T00:30:00Z");
        assert_eq!(hourly.due(start, at("2026-01-01T00:59:59Z")).last, None);
        let due = hourly.due(start, at("2026-01-03T10:05:00Z"));
        assert_eq!(due.last, Some(at("2026-01-03T10:00:00Z")));
        assert_eq!(due.missed, 58);
        let workdays = Schedule::parse("30 6-16/4 * * 1-5", None).unwrap();
        let due = workdays.due(at("2026-01-02T00:00:00Z"), at("2026-01-04T12:00:00Z"));
        assert_eq!(due.last, Some(at("2026-01-02T14:30:00Z")));
    }
}
