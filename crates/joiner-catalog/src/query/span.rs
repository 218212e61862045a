//! Ranges as users write them: `4`, `4..16`, `4..`, `..16`.

/// Numbers from one end to the other, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The smallest number.
    pub min: u64,
    /// The largest number.
    pub max: u64,
}

/// The text is not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRange {
    /// Not a number, and not two with dots between them.
    #[error("\"{0}\" is not a number or range; write 4, 4..16 (both ends included), 4.. or ..16")]
    NotARange(String),
    /// Nothing is in it.
    #[error("the range \"{0}\" is empty: it starts after its end")]
    Empty(String),
}

impl Span {
    /// A range of whole numbers.
    ///
    /// # Errors
    /// The text is not a range, or nothing is in it.
    pub fn counts(text: &str) -> Result<Self, BadRange> {
        Self::parse(text, whole)
    }

    /// A range of GiB, as MiB: `0.5..16`, `8Gi`.
    ///
    /// # Errors
    /// The text is not a range, or nothing is in it.
    pub fn gib(text: &str) -> Result<Self, BadRange> {
        Self::parse(text, mib)
    }

    /// True when the number is in the range.
    #[must_use]
    pub const fn contains(self, number: u64) -> bool {
        self.min <= number && number <= self.max
    }

    fn parse(text: &str, number: impl Fn(&str) -> Option<u64>) -> Result<Self, BadRange> {
        let (min, max) = match text.trim().split_once("..") {
            Some(("", "")) => (None, None),
            Some(("", max)) => (Some(0), number(max)),
            Some((min, "")) => (number(min), Some(u64::MAX)),
            Some((min, max)) => (number(min), number(max)),
            None => {
                let only = number(text.trim());
                (only, only)
            }
        };
        match (min, max) {
            (Some(min), Some(max)) if min > max => Err(BadRange::Empty(text.to_owned())),
            (Some(min), Some(max)) => Ok(Self { min, max }),
            (None, _) | (_, None) => Err(BadRange::NotARange(text.to_owned())),
        }
    }
}

fn whole(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// GiB with up to six decimals as MiB, rounded down.
fn mib(text: &str) -> Option<u64> {
    let number = (text.strip_suffix("GiB"))
        .or_else(|| text.strip_suffix("Gi"))
        .unwrap_or(text);
    let (gib, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let unit = 10_u64.pow(u32::try_from(decimals.len()).ok().filter(|n| *n <= 6)?);
    let part = whole(decimals)?.checked_mul(1024)? / unit;
    whole(gib)?.checked_mul(1024)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_as_written() {
        for (text, min, max) in [
            ("4", 4, 4),
            ("4..16", 4, 16),
            ("4..", 4, u64::MAX),
            ("..16", 0, 16),
            ("0", 0, 0),
        ] {
            assert_eq!(Span::counts(text), Ok(Span { min, max }), "{text}");
        }
        for (text, min, max) in [
            ("0.5", 512, 512),
            ("3.75..16Gi", 3840, 16384),
            ("8GiB..", 8192, u64::MAX),
        ] {
            assert_eq!(Span::gib(text), Ok(Span { min, max }), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_range_is_named() {
        for text in ["", "..", "x", "4-16", "-4", "+4", "4...16", "1.5", "4..x"] {
            let error = Span::counts(text).unwrap_err();
            assert!(error.to_string().contains(&format!("\"{text}\"")), "{text}");
        }
        for text in ["1.", ".5", "1.2345678", "Gi"] {
            assert!(Span::gib(text).is_err(), "{text}");
        }
        let empty = Span::counts("16..4").unwrap_err();
        assert_eq!(
            empty.to_string(),
            "the range \"16..4\" is empty: it starts after its end"
        );
    }
}
