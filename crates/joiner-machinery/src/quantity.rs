//! Amounts of resources: `500m`, `1.5Gi`, `2e3`, exact, comparable, and written as the API writes
//! them.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

const NANO: i128 = 1_000_000_000;
/// The largest amount that Kubernetes counts.
const NANOS_MAX: i128 = i64::MAX as i128 * NANO;
/// Digits beyond this many only matter for rounding.
const MANTISSA_MAX: i128 = 100_000_000_000_000_000_000;

/// The family of suffixes that an amount was written in, and is written in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `m`, `k`, `M`, ….
    Decimal,
    /// `Ki`, `Mi`, ….
    Binary,
    /// `e3`, `e6`, ….
    Exponent,
}

/// An exact amount. Two amounts are equal when they are the same number, however written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is no amount, in the words that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not read like a number with a suffix.
    Malformed,
    /// The suffix is none that there is.
    Suffix,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for QuantityError {}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::Decimal,
    };

    /// Whole units.
    #[must_use]
    pub fn whole(units: i64) -> Self {
        Self {
            nanos: i128::from(units) * NANO,
            format: Format::Decimal,
        }
    }

    /// Thousandths, as CPU is counted.
    #[must_use]
    pub fn of_millis(millis: i64) -> Self {
        Self {
            nanos: i128::from(millis) * (NANO / 1000),
            format: Format::Decimal,
        }
    }

    /// Bytes, written with binary suffixes.
    #[must_use]
    pub fn of_bytes(bytes: i64) -> Self {
        Self {
            nanos: i128::from(bytes) * NANO,
            format: Format::Binary,
        }
    }

    /// The amount that `text` says. What is finer than a thousand-millionth is rounded up, what is
    /// more than Kubernetes counts becomes the most it counts.
    ///
    /// # Errors
    /// When the text is no amount.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let is_number = |b: u8| b.is_ascii_digit() || b == b'.';
        let end = unsigned.bytes().position(|b| !is_number(b));
        let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(QuantityError::Malformed);
        }
        let (format, twos, tens) = scale(suffix)?;
        let (mut mantissa, mut tens, mut more) = (0i128, 9 + tens, false);
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
        let nanos = scaled(mantissa << twos, tens, more).map_or(NANOS_MAX, |n| n.min(NANOS_MAX));
        Ok(Self {
            nanos: if negative { -nanos } else { nanos },
            format,
        })
    }

    /// The amount in an object: a text, or a JSON number.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// In thousandths, rounded up: millicores of an amount of CPU.
    #[must_use]
    pub fn millis(self) -> i64 {
        let millis = ceil(self.nanos, NANO / 1000);
        i64::try_from(millis).unwrap_or(if millis < 0 { i64::MIN } else { i64::MAX })
    }

    /// In whole units, rounded up: bytes of an amount of memory.
    #[must_use]
    pub fn units(self) -> i64 {
        let units = ceil(self.nanos, NANO);
        i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX })
    }

    /// True below zero.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// True for zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// True without a fraction.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// Both together, in the first one's suffixes; zero takes over the other's.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            format,
        }
    }

    /// What is left, possibly below zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        let format = if self.nanos == 0 {
            other.format
        } else {
            self.format
        };
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
            format,
        }
    }

    /// Rounded up to thousandths, as amounts in resource lists are.
    #[must_use]
    pub fn round_to_millis(self) -> Self {
        Self {
            nanos: ceil(self.nanos, NANO / 1000) * (NANO / 1000),
            format: self.format,
        }
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
        let small = self.nanos.abs() < 1024 * NANO;
        if self.format == Format::Binary && !small {
            let (mut amount, mut suffix) = (ceil(self.nanos, NANO), 0);
            while amount % 1024 == 0 && suffix + 1 < BINARY.len() {
                amount /= 1024;
                suffix += 1;
            }
            return write!(f, "{amount}{}", BINARY[suffix]);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let (mut amount, mut suffix) = (self.nanos, 0);
        while amount % 1000 == 0 && suffix + 1 < DECIMAL.len() {
            amount /= 1000;
            suffix += 1;
        }
        if self.format != Format::Exponent {
            return write!(f, "{amount}{}", DECIMAL[suffix]);
        }
        // There are ten suffixes, so the exponent is small.
        match i64::try_from(suffix).unwrap_or(0) * 3 - 9 {
            0 => write!(f, "{amount}"),
            exponent => write!(f, "{amount}e{exponent}"),
        }
    }
}

/// What a suffix means: its family, a power of two, a power of ten.
fn scale(suffix: &str) -> Result<(Format, u32, i32), QuantityError> {
    let tens = |tens| Ok((Format::Decimal, 0, tens));
    let twos = |twos| Ok((Format::Binary, twos, 0));
    match suffix {
        "n" => tens(-9),
        "u" => tens(-6),
        "m" => tens(-3),
        "" => tens(0),
        "k" => tens(3),
        "M" => tens(6),
        "G" => tens(9),
        "T" => tens(12),
        "P" => tens(15),
        "E" => tens(18),
        "Ki" => twos(10),
        "Mi" => twos(20),
        "Gi" => twos(30),
        "Ti" => twos(40),
        "Pi" => twos(50),
        "Ei" => twos(60),
        _ => exponent(suffix).map(|tens| (Format::Exponent, 0, tens)),
    }
}

fn exponent(suffix: &str) -> Result<i32, QuantityError> {
    // Text of other letters is no quantity at all; text of these letters has a bad suffix.
    let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Malformed);
    }
    let Some(exponent) = suffix.strip_prefix(['e', 'E']) else {
        return Err(QuantityError::Suffix);
    };
    if exponent != letters || digits.is_empty() {
        return Err(QuantityError::Suffix);
    }
    // Anything past a thousand is too large or too small whatever it is.
    let negative = exponent.starts_with('-');
    let parsed = exponent.parse::<i32>();
    Ok(parsed.map_or(if negative { -1000 } else { 1000 }, |e| {
        e.clamp(-1000, 1000)
    }))
}

/// `mantissa` times a power of ten, rounded up; `more` says that nonzero digits were left out.
fn scaled(mantissa: i128, tens: i32, more: bool) -> Option<i128> {
    if mantissa == 0 {
        return Some(i128::from(more));
    }
    let power = 10i128.checked_pow(tens.unsigned_abs());
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
fn ceil(nanos: i128, unit: i128) -> i128 {
    let rest = i128::from(nanos % unit != 0);
    nanos / unit + if nanos < 0 { -rest } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, canonical) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1000Mi", "1000Mi"),
            ("1000", "1k"),
            ("2048", "2048"),
            ("1e3", "1e3"),
            ("100e-3", "100e-3"),
            ("0", "0"),
            ("0Gi", "0"),
            ("0.5Gi", "512Mi"),
            ("512", "512"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("-5", "-5"),
            ("+5", "5"),
            ("100000000000000000000", "9223372036854775807"),
            (".5", "500m"),
            ("5.", "5"),
            ("1500m", "1500m"),
            ("0.1n", "1n"),
            ("12E", "9223372036854775807"),
        ] {
            assert_eq!(
                Quantity::parse(text).unwrap().to_string(),
                canonical,
                "{text}"
            );
        }
    }

    #[test]
    fn no_amounts() {
        for (text, why) in [
            ("", QuantityError::Malformed),
            ("m", QuantityError::Malformed),
            ("1.2.3", QuantityError::Malformed),
            ("1 Gi", QuantityError::Malformed),
            ("1Gb", QuantityError::Malformed),
            ("1K", QuantityError::Suffix),
            ("1mi", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
        ] {
            assert_eq!(Quantity::parse(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn figures() {
        let q = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!(q("100m").millis(), 100);
        assert_eq!(q("1u").millis(), 1);
        assert_eq!(q("1Gi").units(), 1 << 30);
        assert_eq!(q("1.5").units(), 2);
        assert!(q("1Gi") > q("1G"));
        assert_eq!(q("1000m"), q("1"));
        assert_eq!(q("1Gi").plus(q("512Mi")).to_string(), "1536Mi");
        assert_eq!(Quantity::ZERO.plus(q("512Mi")).to_string(), "512Mi");
        assert_eq!(q("1").minus(q("250m")).to_string(), "750m");
        assert_eq!(q("1u").round_to_millis().to_string(), "1m");
        assert!(!q("500m").is_whole());
    }
}
