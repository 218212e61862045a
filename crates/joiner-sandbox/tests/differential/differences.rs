//! Differences that stay, each with its reason.

/// Where the two servers may differ. An entry that matches nothing fails the test.
pub(crate) struct Kept {
    /// The case; a star at the end stands for anything.
    pub(crate) case: &'static str,
    /// The place, as in `Difference`; a star at the end stands for anything.
    pub(crate) place: &'static str,
    /// Why it stays.
    pub(crate) reason: &'static str,
}

impl Kept {
    /// True when this entry is about that place of that case.
    pub(crate) fn covers(&self, case: &str, place: &str) -> bool {
        fits(self.case, case) && fits(self.place, place)
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    }
}

/// The list.
pub(crate) const KEPT: &[Kept] = &[];
