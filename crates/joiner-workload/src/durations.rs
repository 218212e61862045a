//! Durations as flags and metrics write them: `90s`, `1h30m`, `15.2s`, `500ms`.

use jiff::{SignedDuration, Timestamp};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// Digits of a fraction that can change a nanosecond of the longest unit.
const FRACTION_DIGITS_MAX: usize = 15;

/// The duration that `text` says, or `None` when it is none.
#[must_use]
pub fn parse(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let (unit, tail) = unit(tail)?;
        nanos = nanos.checked_add(scaled(number, unit)?)?;
        rest = tail;
    }
    let nanos = if negative { -nanos } else { nanos };
    let seconds = i64::try_from(nanos / NANOS_PER_SECOND).ok()?;
    let rest = i32::try_from(nanos % NANOS_PER_SECOND).ok()?;
    Some(SignedDuration::new(seconds, rest))
}

/// Nanoseconds of the unit that a text begins with, and what follows it.
fn unit(text: &str) -> Option<(i128, &str)> {
    const UNITS: [(&str, i128); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", NANOS_PER_SECOND),
        ("m", 60 * NANOS_PER_SECOND),
        ("h", 3600 * NANOS_PER_SECOND),
    ];
    let mut units = UNITS.iter();
    units.find_map(|(name, nanos)| Some((*nanos, text.strip_prefix(name)?)))
}

fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS_MAX)];
    let (mut digits, mut power) = (0_i128, 1_i128);
    for digit in fraction.bytes() {
        digits = digits * 10 + i128::from(digit - b'0');
        power *= 10;
    }
    Some(i128::from(whole) * unit + digits * unit / power)
}

/// The time `duration` before `time`, or the earliest there is.
pub(crate) fn before(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_sub(duration).unwrap_or(Timestamp::MIN)
}

/// The time `duration` after `time`, or the latest there is.
pub(crate) fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, millis) in [
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("15.2s", 15_200),
            ("500ms", 500),
            ("-1m", -60_000),
            ("0", 0),
            (".5s", 500),
        ] {
            let duration = parse(text).map(|d| d.as_millis());
            assert_eq!(duration, Some(millis), "{text}");
        }
        for text in ["", "5", "s", "1d", "1.2.3s", "-", "5 s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
