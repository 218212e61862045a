//! How long ago, in two or three digits.

use jiff::Timestamp;

use crate::meta;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A duration as upstream's tables print it: the longer, the coarser.
#[must_use]
pub fn human_duration(seconds: i64) -> String {
    // A second of difference between clocks is nothing to worry people with.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let two = |unit: i64, sign: char, rest: i64, rest_sign: char| match seconds % unit / rest {
        0 => format!("{}{sign}", seconds / unit),
        part => format!("{}{sign}{part}{rest_sign}", seconds / unit),
    };
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if seconds < 10 * MINUTE {
        two(MINUTE, 'm', 1, 's')
    } else if seconds < 3 * HOUR {
        format!("{}m", seconds / MINUTE)
    } else if seconds < 8 * HOUR {
        two(HOUR, 'h', MINUTE, 'm')
    } else if seconds < 2 * DAY {
        format!("{}h", seconds / HOUR)
    } else if seconds < 8 * DAY {
        two(DAY, 'd', HOUR, 'h')
    } else if seconds < 2 * YEAR {
        format!("{}d", seconds / DAY)
    } else if seconds < 8 * YEAR {
        two(YEAR, 'y', DAY, 'd')
    } else {
        format!("{}y", seconds / YEAR)
    }
}

/// The time from then to now; a fraction of a second does not count.
pub(super) fn between(then: Timestamp, now: Timestamp) -> String {
    human_duration(now.duration_since(then).as_secs())
}

/// The age of a time on the wire, `<unknown>` when there is none.
pub(super) fn since(text: Option<&str>, now: Timestamp) -> String {
    match text.and_then(meta::parse_time) {
        Some(then) => between(then, now),
        None => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_the_coarser() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE + 59, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + MINUTE, "3h1m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (2 * DAY - 1, "47h"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY + HOUR, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR + DAY, "8y"),
        ] {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
    }
}
