//! Amounts as Kubernetes writes them, exact to a thousand-millionth, and what scaling takes from them:
//! thousandths, whole units, and floats where upstream has floats.

use std::cmp::Ordering;
use std::fmt;

const NANO: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = NANO / 1000;
/// The largest amount that Kubernetes counts.
const NANOS_MAX: i128 = i64::MAX as i128 * NANO;
/// Beyond this, more digits do not change what is already too much.
const MANTISSA_MAX: i128 = 100_000_000_000_000_000_000;
/// A power of ten past this makes any number too large or too small.
const EXPONENT_MAX: i32 = 40;

/// The family of suffixes that an amount is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffixes {
    /// `m`, `k`, `M`, …, and powers of ten.
    Decimal,
    /// `Ki`, `Mi`, ….
    Binary,
}

/// An exact amount. Two are equal when they are the same number, however written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    suffixes: Suffixes,
}

/// A text that is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no quantity: write a number with or without a suffix, such as 500m, 2 or 1.5Gi")]
pub struct NoQuantity(String);

impl Quantity {
    /// Thousandths.
    #[must_use]
    pub fn of_millis(millis: i64, suffixes: Suffixes) -> Self {
        Self {
            nanos: i128::from(millis) * NANOS_PER_MILLI,
            suffixes,
        }
    }

    /// Whole units.
    #[must_use]
    pub fn of_units(units: i64, suffixes: Suffixes) -> Self {
        Self {
            nanos: i128::from(units) * NANO,
            suffixes,
        }
    }

    /// The amount that `text` says. What is finer than a thousand-millionth is rounded away from zero,
    /// what is more than Kubernetes counts becomes the most that it counts.
    ///
    /// # Errors
    /// When the text is no amount.
    pub fn parse(text: &str) -> Result<Self, NoQuantity> {
        parsed(text).ok_or_else(|| NoQuantity(text.to_owned()))
    }

    /// In thousandths, rounded away from zero.
    #[must_use]
    pub fn millis(self) -> i64 {
        saturated(away(self.nanos, NANOS_PER_MILLI))
    }

    /// In whole units, rounded away from zero.
    #[must_use]
    pub fn units(self) -> i64 {
        saturated(away(self.nanos, NANO))
    }

    /// The family of suffixes that it is written in.
    #[must_use]
    pub const fn suffixes(self) -> Suffixes {
        self.suffixes
    }

    /// Both together, in the first one's suffixes.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            suffixes: self.suffixes,
        }
    }

    /// Whether this is more than nothing.
    #[must_use]
    pub const fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// Whether this is less than nothing.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether this is a whole number of thousandths.
    #[must_use]
    pub const fn is_whole_millis(self) -> bool {
        self.nanos % NANOS_PER_MILLI == 0
    }

    /// Whether this is a whole number of units.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// As a float, by the digits and the power of ten of the canonical form: `50m` is 50 times 0.001.
    #[must_use]
    pub fn approximately(self) -> f64 {
        const POWERS: [f64; 10] = [1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18];
        let (digits, power) = self.thousands();
        match POWERS.get(power) {
            Some(1.0) | None => digits as f64,
            Some(power) => digits as f64 * power,
        }
    }

    /// Digits, and how many steps of a thousand above a thousand-millionth they count.
    fn thousands(self) -> (i128, usize) {
        let (mut digits, mut power) = (self.nanos, 0);
        if digits == 0 {
            return (0, 3);
        }
        while digits % 1000 == 0 && power < 9 {
            digits /= 1000;
            power += 1;
        }
        (digits, power)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: the largest suffix that leaves no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        if self.suffixes == Suffixes::Binary && self.is_whole() && self.nanos.abs() >= 1024 * NANO {
            let (mut digits, mut power) = (self.nanos / NANO, 0);
            while digits % 1024 == 0 && power + 1 < BINARY.len() {
                digits /= 1024;
                power += 1;
            }
            return write!(f, "{digits}{}", BINARY[power]);
        }
        let (digits, power) = self.thousands();
        write!(f, "{digits}{}", DECIMAL[power])
    }
}

fn parsed(text: &str) -> Option<Quantity> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let scale = scale(suffix)?;
    let (mut mantissa, mut tens, mut more) = (0_i128, 9 + scale.tens, false);
    for digit in whole.bytes() {
        mantissa = (mantissa * 10 + i128::from(digit - b'0')).min(MANTISSA_MAX);
    }
    for digit in fraction.bytes() {
        if mantissa >= MANTISSA_MAX / 10 {
            more |= digit != b'0';
        } else {
            mantissa = mantissa * 10 + i128::from(digit - b'0');
            tens -= 1;
        }
    }
    let nanos = shifted(mantissa << scale.twos, tens, more);
    let nanos = nanos.unwrap_or(NANOS_MAX).min(NANOS_MAX);
    Some(Quantity {
        nanos: if negative { -nanos } else { nanos },
        suffixes: scale.suffixes,
    })
}

/// What a suffix means.
struct Scale {
    suffixes: Suffixes,
    twos: u32,
    tens: i32,
}

fn scale(suffix: &str) -> Option<Scale> {
    let decimal = |tens| Scale {
        suffixes: Suffixes::Decimal,
        twos: 0,
        tens,
    };
    let binary = |twos| Scale {
        suffixes: Suffixes::Binary,
        twos,
        tens: 0,
    };
    Some(match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let size = digits
                .parse()
                .map_or(EXPONENT_MAX, |n: i32| n.min(EXPONENT_MAX));
            decimal(if exponent.starts_with('-') {
                -size
            } else {
                size
            })
        }
    })
}

/// `mantissa` times a power of ten, rounded up; `more` says that digits were left out. `None` when it is
/// too much to count.
fn shifted(mantissa: i128, tens: i32, more: bool) -> Option<i128> {
    let power = 10_i128.checked_pow(tens.unsigned_abs());
    if mantissa == 0 {
        return Some(i128::from(more));
    }
    if tens >= 0 {
        return mantissa.checked_mul(power?)?.checked_add(i128::from(more));
    }
    let Some(power) = power else {
        return Some(1);
    };
    let rest = mantissa % power != 0 || more;
    Some(mantissa / power + i128::from(rest))
}

/// Divided and rounded away from zero.
fn away(nanos: i128, unit: i128) -> i128 {
    let rest = i128::from(nanos % unit != 0);
    nanos / unit + if nanos < 0 { -rest } else { rest }
}

fn saturated(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn amounts_are_written_in_canonical_form() {
        for (text, canonical) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1000Mi", "1000Mi"),
            ("1000", "1k"),
            ("2048", "2048"),
            ("2e3", "2k"),
            ("0", "0"),
            ("-5", "-5"),
            (".5", "500m"),
            ("0.1n", "1n"),
            ("1e50", "9223372036854775807"),
            ("12E", "9223372036854775807"),
        ] {
            assert_eq!(q(text).to_string(), canonical, "{text}");
        }
        let bytes = Quantity::of_millis(131_072_000, Suffixes::Binary);
        assert_eq!(bytes.to_string(), "128Ki");
        assert_eq!(
            Quantity::of_millis(1500, Suffixes::Binary).to_string(),
            "1500m"
        );
    }

    #[test]
    fn texts_that_are_no_amounts() {
        for text in [
            "", "m", "1.2.3", "1 Gi", "1Gb", "1K", "1e", "1e+", "-", "one",
        ] {
            let error = Quantity::parse(text).unwrap_err().to_string();
            assert!(error.contains("is no quantity"), "{text}: {error}");
        }
    }

    #[test]
    fn fractions_are_rounded_away_from_zero() {
        assert_eq!(q("1u").millis(), 1);
        assert_eq!(q("-1u").millis(), -1);
        assert_eq!(q("1500m").units(), 2);
        assert_eq!(q("12345678n").millis(), 13);
        assert_eq!(q("12E").millis(), i64::MAX);
    }

    #[test]
    fn floats_come_from_the_canonical_form() {
        assert_eq!(q("0.05").approximately(), 50.0 * 1e-3);
        assert_eq!(q("1.5").approximately(), 1500.0 * 1e-3);
        assert_eq!(q("2").approximately(), 2.0);
        assert_eq!(q("0").approximately(), 0.0);
    }

    #[test]
    fn amounts_are_compared_as_numbers() {
        assert_eq!(q("1000m"), q("1"));
        assert!(q("1Gi") > q("1G") && q("-1") < q("0"));
        assert!(q("1").is_whole() && !q("1m").is_whole() && !q("1u").is_whole_millis());
    }
}
