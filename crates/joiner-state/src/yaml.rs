//! YAML as kubectl reads it.

use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, Options};

/// Why text is not YAML.
pub(crate) struct YamlError {
    pub(crate) message: String,
    pub(crate) line: Option<usize>,
    pub(crate) column: Option<usize>,
}

/// Cuts a stream at lines that start with `---`. Such a line ends a document wherever it stands,
/// even in the middle of quoted text, and cannot occur inside JSON. Each part keeps its line ends.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let current = rest?;
        let mut from = 0;
        loop {
            let Some(found) = current[from..].find("\n---") else {
                rest = None;
                return Some(current);
            };
            let cut = from + found + 1;
            let after = &current[cut + 3..];
            if after.is_empty() || after.starts_with([' ', '\t', '\r', '\n']) {
                let (part, next) = current.split_at(cut);
                rest = Some(next);
                return Some(part);
            }
            from = cut;
        }
    })
}

/// How many lines come before the first one with content.
pub(crate) fn lead(text: &str) -> usize {
    text.lines()
        .take_while(|line| {
            let line = line.trim();
            line.is_empty() || line == "---" || line.starts_with('#')
        })
        .count()
}

/// One document; nothing but comments is `null`.
pub(crate) fn parse(text: &str) -> Result<Value, YamlError> {
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line == "..."
    };
    if text.lines().all(blank) {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str_with_options(text, options(text.len())).map_err(|error| {
        let location = error.location();
        let position = |figure: u64| usize::try_from(figure).unwrap_or(usize::MAX);
        YamlError {
            message: plain(&error.without_snippet().to_string()),
            line: location.map(|l| position(l.line())),
            column: location.map(|l| position(l.column())),
        }
    })
}

/// kubectl's habits: `0644` is octal and the last of equal keys wins. Work is bounded by the
/// length of the text, with aliases counted in what they stand for.
fn options(length: usize) -> Options {
    let bound = length.max(1_000_000);
    let budget = serde_saphyr::budget! {
        max_events: bound,
        max_nodes: bound,
        max_total_scalar_bytes: bound.max(64 << 20),
        max_depth: 64,
        // One anchor may serve many objects: what aliases stand for is bounded elsewhere.
        enforce_alias_anchor_ratio: false,
    };
    serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

/// One line, without the position that is shown elsewhere and without inner names.
fn plain(message: &str) -> String {
    if message.starts_with("budget breached: Depth") {
        return "it is nested too deeply".to_owned();
    }
    if message.starts_with("budget breached") || message.starts_with("alias") {
        return "it is too large once its aliases are written out".to_owned();
    }
    let line = message.lines().next().unwrap_or_default();
    match line.find(" at line ") {
        Some(end) => line[..end].to_owned(),
        None => line.to_owned(),
    }
}
