//! Texts as Go prints them.

use joiner_api::types::{DurationText, Taint};

/// A text in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A taint on one line.
pub(super) fn taint(taint: &Taint) -> String {
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

/// A length of time in hours, minutes and seconds, `2m` as `2m0s`. What is none stays as it is.
pub(super) fn duration(text: &DurationText) -> String {
    const SECOND: u128 = 1_000_000_000;
    const SMALL: [(&str, u128); 3] = [("ms", 1_000_000), ("\u{b5}s", 1000), ("ns", 1)];
    let Some(nanos) = text.parse().ok().flatten().map(|length| length.as_nanos()) else {
        return text.as_str().to_owned();
    };
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < SECOND {
        let mut units = SMALL.iter().filter(|(_, unit)| nanos >= *unit);
        let (name, unit) = units.next().copied().unwrap_or(("ns", 1));
        return format!("{}{name}", decimals(nanos, unit));
    }
    let (minutes, rest) = (nanos / (60 * SECOND), nanos % (60 * SECOND));
    let seconds = decimals(rest, SECOND);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// An amount in a unit, with as many decimals as it needs.
fn decimals(amount: u128, unit: u128) -> String {
    let (whole, mut rest) = (amount / unit, amount % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let mut places = unit.ilog10() as usize;
    while rest.is_multiple_of(10) {
        rest /= 10;
        places -= 1;
    }
    format!("{whole}.{rest:0places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (text, expected) in [
            ("1m30s", "1m30s"),
            ("2m", "2m0s"),
            ("90s", "1m30s"),
            ("1h", "1h0m0s"),
            ("25h61s", "25h1m1s"),
            ("1.50s", "1.5s"),
            ("250ms", "250ms"),
            ("1500us", "1.5ms"),
            ("61.005s", "1m1.005s"),
            ("0", "0s"),
            ("soon", "soon"),
        ] {
            assert_eq!(duration(&DurationText::from(text)), expected);
        }
    }
}
