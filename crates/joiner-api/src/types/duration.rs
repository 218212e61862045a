//! Durations, kept as the text the user wrote.

use std::fmt;
use std::time::Duration;

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: {why}")]
pub struct DurationError {
    /// The text that was read.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A duration such as `30s` or `1h30m`, or the word `Never`.
///
/// The text survives reading and writing unchanged, so that `720h` does not turn into `720h0m0s`
/// and back into a difference.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(transparent)]
pub struct DurationText(pub String);

impl DurationText {
    /// The word for "no end".
    pub const NEVER: &'static str = "Never";

    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the text is `Never`.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.0 == Self::NEVER
    }

    /// The length of time, or `None` for `Never`.
    pub fn parse(&self) -> Result<Option<Duration>, DurationError> {
        if self.is_never() {
            Ok(None)
        } else {
            parse_go_duration(&self.0).map(Some)
        }
    }
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Longest duration that Go can hold: its durations are 64-bit signed nanoseconds.
const NANOS_MAX: u128 = i64::MAX as u128;

const UNITS: &[(&str, u128)] = &[
    // Longer names first, so that `ms` is not read as `m`.
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a Go duration: numbers with units, in any order, repeated at will. Not negative.
pub fn parse_go_duration(text: &str) -> Result<Duration, DurationError> {
    let fail = |why| DurationError {
        text: text.to_owned(),
        why,
    };
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.starts_with('-') {
        return Err(fail("it is negative"));
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(fail("it is empty"));
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (nanos, tail) = one_term(rest).map_err(fail)?;
        total += nanos;
        if total > NANOS_MAX {
            return Err(fail("it is longer than 292 years"));
        }
        rest = tail;
    }
    let nanos = u64::try_from(total).map_err(|_| fail("it is longer than 292 years"))?;
    Ok(Duration::from_nanos(nanos))
}

/// Reads `<number><unit>` off the front.
fn one_term(text: &str) -> Result<(u128, &str), &'static str> {
    const TOO_LONG: &str = "it is longer than 292 years";
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err("a number is missing before the unit");
    }
    let Some((unit, nanos)) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit)) else {
        return Err("units are h, m, s, ms, us and ns");
    };
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| TOO_LONG)?
    };
    let mut value = whole
        .checked_mul(*nanos)
        .filter(|v| *v <= NANOS_MAX)
        .ok_or(TOO_LONG)?;
    let mut scale = *nanos;
    for digit in fraction.bytes() {
        scale /= 10;
        value += u128::from(digit - b'0') * scale;
    }
    Ok((value, &rest[unit.len()..]))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples() {
        for (text, seconds) in [
            ("30s", 30),
            ("1h30m5s", 5405),
            ("720h", 2_592_000),
            ("1m1h", 3660),
            ("0s", 0),
            ("0", 0),
        ] {
            assert_eq!(
                parse_go_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        assert_eq!(parse_go_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_go_duration("250ms"), Ok(Duration::from_millis(250)));
        for text in [
            "",
            "-1h",
            "30d",
            "s",
            "30",
            "1h ",
            "Never",
            "9999999999h",
            "1..5s",
            ".",
        ] {
            assert!(parse_go_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn never_is_no_length() {
        assert_eq!(DurationText::from("Never").parse(), Ok(None));
        assert!(DurationText::from("never").parse().is_err());
    }

    proptest! {
        #[test]
        fn the_sum_of_its_terms(terms in prop::collection::vec((0_u64..10_000, 0_usize..3), 1..6)) {
            let units = [("s", 1), ("m", 60), ("h", 3600)];
            let mut text = String::new();
            let mut seconds = 0;
            for (count, unit) in terms {
                let (name, scale) = units[unit];
                text += &format!("{count}{name}");
                seconds += count * scale;
            }
            prop_assert_eq!(parse_go_duration(&text), Ok(Duration::from_secs(seconds)));
        }

        #[test]
        fn any_text_is_read_without_panic_and_kept(text in "\\PC{0,20}") {
            let duration = DurationText(text.clone());
            let _ = duration.parse();
            let json = serde_json::to_string(&duration).unwrap();
            prop_assert_eq!(serde_json::from_str::<DurationText>(&json).unwrap().0, text);
        }

        #[test]
        fn near_misses(text in "[0-9hmsNever.+-]{0,12}") {
            let by_pattern = !text.is_empty()
                && regex::Regex::new("^([0-9]+(s|m|h))+$").unwrap().is_match(&text);
            if by_pattern {
                let parsed = parse_go_duration(&text);
                let fits = !matches!(&parsed, Err(e) if e.why != "it is longer than 292 years");
                prop_assert!(fits);
            }
        }
    }
}
