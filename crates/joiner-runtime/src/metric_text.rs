//! Labels and numbers in Prometheus' text format.

use crate::metric_names::Family;

/// The labels do not fit the family's row in the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongLabels;

/// Labels as they are written, by name: what tells series apart.
pub(crate) fn label_text(family: &Family, labels: &[(&str, &str)]) -> Result<String, WrongLabels> {
    let missing = family.labels.iter().copied();
    let missing = missing.filter(|name| !labels.iter().any(|(given, _)| given == name));
    let mut all: Vec<(&str, &str)> = missing.map(|name| (name, "")).collect();
    for &(name, value) in labels {
        let fits = family.labels.contains(&name) || (family.open && is_label(name));
        if !fits {
            return Err(WrongLabels);
        }
        all.push((name, value));
    }
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(WrongLabels);
    }
    let mut text = String::with_capacity(all.len() * 24);
    for (name, value) in all {
        if !text.is_empty() {
            text.push(',');
        }
        push_label(&mut text, name, value);
    }
    Ok(text)
}

/// Whether further labels may have this name.
pub(crate) fn is_label(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next();
    first.is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        && bytes.all(|c| c.is_ascii_alphanumeric() || c == b'_')
        && !name.starts_with("__")
        && name != "le"
        && name != "quantile"
}

/// A label as it is written.
pub(crate) fn label(name: &str, value: &str) -> String {
    let mut text = String::new();
    push_label(&mut text, name, value);
    text
}

/// Backslashes, quotes and line ends are escaped; nothing else needs to be.
fn push_label(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str("=\"");
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text.push('"');
}

/// One more label.
pub(crate) fn with(labels: &str, name: &str, value: &str) -> String {
    match labels {
        "" => label(name, value),
        labels => format!("{labels},{}", label(name, value)),
    }
}

/// Labels in braces, if there are any.
pub(crate) fn braced(labels: &str) -> String {
    match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    }
}

/// Appends the line of one series.
pub(crate) fn line(text: &mut String, name: &str, labels: &str, value: f64) {
    text.push_str(name);
    if !labels.is_empty() {
        text.push('{');
        text.push_str(labels);
        text.push('}');
    }
    text.push(' ');
    text.push_str(&number(value));
    text.push('\n');
}

/// A number as Go writes it: `le` is a label, and labels are compared as text.
pub(crate) fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
