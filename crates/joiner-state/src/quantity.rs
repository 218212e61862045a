//! Kubernetes quantities: `500m`, `1.5Gi`, `2e3`.
//!
//! Text becomes an exact number of thousand-millionths; only then is it rounded to the units of the
//! model, up for what is asked and down for what there is.

use std::fmt;

use joiner_model::{ResourceName, Resources};

use crate::wording::shown;

const NANO: i128 = 1_000_000_000;
/// The largest amount that Kubernetes itself can count.
const NANOS_MAX: i128 = i64::MAX as i128 * NANO;
/// Digits beyond this many only matter for rounding.
const MANTISSA_MAX: i128 = 100_000_000_000_000_000_000;

/// An exact amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// Why text is no amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not read like a quantity.
    Malformed(String),
    /// It is below zero.
    Negative(String),
    /// It is more than can be counted.
    TooLarge(String),
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) => {
                write!(
                    f,
                    "{text:?} is not a quantity (write for example 500m, 2 or 1.5Gi)"
                )
            }
            Self::Negative(text) => write!(f, "{text:?} is negative; write 0 or more"),
            Self::TooLarge(text) => {
                write!(
                    f,
                    "{text:?} is too large; at most 9E can be counted, 9P of cpu"
                )
            }
        }
    }
}

impl std::error::Error for QuantityError {}

/// What follows the number: a power of two and a power of ten.
struct Scale {
    twos: u32,
    tens: i32,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0 };

    /// The amount that `text` says.
    ///
    /// # Errors
    /// When the text is not a quantity, or too large to count.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let malformed = || QuantityError::Malformed(shown(text));
        let too_large = || QuantityError::TooLarge(shown(text));
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(malformed());
        }
        let scale = scale(suffix).ok_or_else(malformed)?;
        let mut mantissa: i128 = 0;
        for digit in whole.bytes() {
            mantissa = mantissa * 10 + i128::from(digit - b'0');
            if mantissa > MANTISSA_MAX {
                return Err(too_large());
            }
        }
        let (mut tens, mut more) = (9 + scale.tens, false);
        for digit in fraction.bytes() {
            if mantissa >= MANTISSA_MAX / 10 {
                more |= digit != b'0';
            } else {
                mantissa = mantissa * 10 + i128::from(digit - b'0');
                tens -= 1;
            }
        }
        let nanos = scaled(mantissa << scale.twos, tens, more)
            .filter(|nanos| *nanos <= NANOS_MAX)
            .ok_or_else(too_large)?;
        Ok(Self {
            nanos: if negative { -nanos } else { nanos },
        })
    }

    /// The amount that `text` says, which may not be below zero.
    ///
    /// # Errors
    /// When the text is not a quantity, too large, or negative.
    pub fn parse_amount(text: &str) -> Result<Self, QuantityError> {
        let quantity = Self::parse(text)?;
        if quantity.nanos < 0 {
            return Err(QuantityError::Negative(shown(text)));
        }
        Ok(quantity)
    }

    /// The amount of this resource that `text` says, which may not be below zero.
    ///
    /// # Errors
    /// When the text is not a quantity, negative, or more than can be counted in the resource's
    /// unit.
    pub fn parse_amount_of(name: &ResourceName, text: &str) -> Result<Self, QuantityError> {
        let quantity = Self::parse_amount(text)?;
        if quantity.nanos / unit(name) > i128::from(i64::MAX) {
            return Err(QuantityError::TooLarge(shown(text)));
        }
        Ok(quantity)
    }

    /// The exact figure in thousand-millionths.
    #[must_use]
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// True for zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
        }
    }

    /// In units of the model (millicores for CPU, whole units otherwise), rounded up; below zero
    /// counts as zero.
    #[must_use]
    pub fn units_up(self, name: &ResourceName) -> u64 {
        let unit = unit(name);
        clamp(self.nanos.saturating_add(unit - 1).max(0) / unit)
    }

    /// In units of the model, rounded down; below zero counts as zero.
    #[must_use]
    pub fn units_down(self, name: &ResourceName) -> u64 {
        clamp(self.nanos.max(0) / unit(name))
    }
}

/// One amount as the model counts it, for something that is asked for.
///
/// # Errors
/// When the text is not a quantity, too large, or negative.
pub fn parse_request(name: &ResourceName, text: &str) -> Result<u64, QuantityError> {
    Ok(Quantity::parse_amount_of(name, text)?.units_up(name))
}

/// Amounts as the model counts them, for something that is there.
///
/// # Errors
/// When a text is not a quantity, too large, or negative.
pub fn parse_capacity<'t>(
    entries: impl IntoIterator<Item = (&'t str, &'t str)>,
) -> Result<Resources, QuantityError> {
    entries
        .into_iter()
        .map(|(name, text)| {
            let name = ResourceName::parse(name);
            let amount = Quantity::parse_amount_of(&name, text)?.units_down(&name);
            Ok((name, amount))
        })
        .collect()
}

fn unit(name: &ResourceName) -> i128 {
    match name {
        ResourceName::Cpu => NANO / 1000,
        ResourceName::Memory
        | ResourceName::Pods
        | ResourceName::EphemeralStorage
        | ResourceName::Other(_) => NANO,
    }
}

fn clamp(units: i128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

fn scale(suffix: &str) -> Option<Scale> {
    let tens = |tens| Some(Scale { twos: 0, tens });
    let twos = |twos| Some(Scale { twos, tens: 0 });
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
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            // Anything past a thousand is too large or too small whatever it is.
            let exponent = exponent.parse::<i32>().unwrap_or_else(|_| {
                if exponent.starts_with('-') {
                    -1000
                } else {
                    1000
                }
            });
            tens(exponent.clamp(-1000, 1000))
        }
    }
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

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
