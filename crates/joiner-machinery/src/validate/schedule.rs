//! Schedules of CronJobs: five fields, or a word with an `@`.

/// Bounds of a field, and the names of its values.
struct Field {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const fn field(min: u32, max: u32, names: &'static [&'static str]) -> Field {
    Field { min, max, names }
}

const FIELDS: [Field; 5] = [
    field(0, 59, &[]),
    field(0, 23, &[]),
    field(1, 31, &[]),
    field(1, 12, MONTHS),
    field(0, 6, DAYS),
];

/// Why a text is no schedule.
pub(super) fn error(schedule: &str) -> Option<String> {
    if let Some(word) = schedule.strip_prefix('@') {
        return descriptor(word, schedule);
    }
    let parts: Vec<&str> = schedule.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Some(format!(
            "expected exactly 5 fields, found {}: [{}]",
            parts.len(),
            parts.join(" ")
        ));
    }
    let check = |(field, part): (&Field, &&str)| {
        let mut ranges = part.split(',').filter(|range| !range.is_empty());
        ranges.find_map(|range| range_error(field, range))
    };
    FIELDS.iter().zip(&parts).find_map(check)
}

fn descriptor(word: &str, schedule: &str) -> Option<String> {
    let known = [
        "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
    ];
    if known.contains(&word) {
        return None;
    }
    let Some(duration) = word.strip_prefix("every ") else {
        return Some(format!("unrecognized descriptor: {schedule}"));
    };
    let why = duration_error(duration)?;
    Some(format!("failed to parse duration {schedule}: {why}"))
}

/// Why a text is no duration such as `1h30m`.
fn duration_error(text: &str) -> Option<String> {
    let invalid = || Some(format!("time: invalid duration {text:?}"));
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return invalid();
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        if number == 0 {
            return invalid();
        }
        rest = &rest[number..];
        let unit = rest.find(is_number).unwrap_or(rest.len());
        match &rest[..unit] {
            "" => return Some(format!("time: missing unit in duration {text:?}")),
            "ns" | "us" | "µs" | "ms" | "s" | "m" | "h" => {}
            other => {
                return Some(format!("time: unknown unit {other:?} in duration {text:?}"));
            }
        }
        rest = &rest[unit..];
    }
    None
}

fn range_error(field: &Field, text: &str) -> Option<String> {
    let (range, step) = match text.split_once('/') {
        Some((_, step)) if step.contains('/') => return Some(format!("too many slashes: {text}")),
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let (first, last) = match range.split_once('-') {
        _ if matches!(range, "*" | "?") => (Ok(field.min), Ok(field.max)),
        Some((_, last)) if last.contains('-') => return Some(format!("too many hyphens: {text}")),
        Some((first, last)) => (value(field, first), value(field, last)),
        None if step.is_some() => (value(field, range), Ok(field.max)),
        None => (value(field, range), value(field, range)),
    };
    let (first, last) = match (first, last) {
        (Ok(first), Ok(last)) => (first, last),
        (Err(why), _) | (_, Err(why)) => return Some(why),
    };
    let step = match step.map(number).transpose() {
        Ok(step) => step,
        Err(why) => return Some(why),
    };
    let (min, max) = (field.min, field.max);
    if first < min {
        return Some(format!(
            "beginning of range ({first}) below minimum ({min}): {text}"
        ));
    }
    if last > max {
        return Some(format!(
            "end of range ({last}) above maximum ({max}): {text}"
        ));
    }
    if first > last {
        return Some(format!(
            "beginning of range ({first}) beyond end of range ({last}): {text}"
        ));
    }
    (step == Some(0)).then(|| format!("step of range should be a positive number: {text}"))
}

fn value(field: &Field, text: &str) -> Result<u32, String> {
    let lower = text.to_lowercase();
    match field.names.iter().position(|name| *name == lower) {
        Some(index) => Ok(field.min + u32::try_from(index).unwrap_or(0)),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    if text.starts_with('-') && text[1..].parse::<u32>().is_ok() {
        return Err(format!("negative number ({text}) not allowed: {text}"));
    }
    text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}

#[cfg(test)]
mod tests {
    use super::error;

    #[test]
    fn schedules() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-mar MON",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * *",
        ] {
            assert_eq!(error(good), None, "{good}");
        }
        for (bad, why) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("1-80 * * * *", "end of range (80) above maximum (59): 1-80"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-3 * * * *",
                "beginning of range (5) beyond end of range (3): 5-3",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            (
                "@every 1x",
                "failed to parse duration @every 1x: time: unknown unit \"x\" in duration \"1x\"",
            ),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(error(bad).as_deref(), Some(why), "{bad}");
        }
    }
}
