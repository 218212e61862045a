//! What the parsers say, in words that whoever wrote the manifest can use.
//!
//! Parsers speak of their own types: `invalid type: string "three", expected i32`. Here this becomes
//! `must be a whole number, not "three"`.

use serde_path_to_error::Segment;

/// Longest piece of input that is repeated in a message.
const SHOWN_MAX: usize = 60;
/// Longest name of an object or a field in a message: more than any that is valid.
const NAME_MAX: usize = 300;

/// What to say about a key that one object has more than once.
pub(crate) const TWICE: &str = "is there twice in one object; remove one of them";

/// What is wrong, without the position, which is shown elsewhere.
pub(crate) fn problem(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = match message.rfind(" at line ") {
        Some(end) => &message[..end],
        None => &message,
    };
    let mismatch = |prefix: &str| message.strip_prefix(prefix)?.rsplit_once(", expected ");
    if let Some((found, expected)) = mismatch("invalid type: ") {
        return must_be(found, &wanted(expected, false));
    }
    if let Some((found, expected)) = mismatch("invalid value: ") {
        return must_be(found, &wanted(expected, true));
    }
    if let Some(end) = message.strip_prefix("EOF while parsing ") {
        return format!("the text ends in the middle of {end}");
    }
    match message {
        "expected value" => "a value is missing",
        "expected ident" => "expected true, false or null",
        "trailing characters" => "there is more text after the end",
        "trailing comma" => "there is a comma after the last item",
        "key must be a string" => "keys must be in double quotes",
        "recursion limit exceeded" => "it is nested too deeply",
        "number out of range" => "the number is too large",
        other => other,
    }
    .to_owned()
}

/// Text for a message: hostile input can be long.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name without line ends and other control characters, and not without end.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(NAME_MAX));
    for (ix, c) in text.chars().enumerate() {
        if ix == NAME_MAX {
            line.push('…');
            break;
        }
        if c.is_control() {
            line.extend(c.escape_debug());
        } else {
            line.push(c);
        }
    }
    line
}

/// A path as users write it: `spec.containers[0].name`.
pub(crate) fn path<'s>(segments: impl IntoIterator<Item = &'s Segment>) -> String {
    let mut path = String::new();
    for segment in segments {
        if !path.is_empty() && !matches!(segment, Segment::Seq { .. }) {
            path.push('.');
        }
        path.push_str(&segment.to_string());
    }
    path
}

fn must_be(found: &str, wanted: &str) -> String {
    let unquoted = ["integer ", "floating point ", "boolean "];
    let hint = if wanted == "text" && unquoted.iter().any(|kind| found.starts_with(kind)) {
        "; put it in quotes"
    } else {
        ""
    };
    format!("must be {wanted}, not {}{hint}", given(found))
}

/// A value as the parser describes it, as the user wrote it.
fn given(found: &str) -> String {
    let within_ticks = || found.split('`').nth(1);
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" => "null".to_owned(),
        _ => match (found.strip_prefix("string "), within_ticks()) {
            (Some(quoted), _) => match quoted.char_indices().nth(SHOWN_MAX) {
                Some((end, _)) => format!("{}…\"", &quoted[..end]),
                None => quoted.to_owned(),
            },
            (None, Some(scalar)) => shown(scalar),
            (None, None) => shown(found),
        },
    }
}

/// What a field takes. The range of a number matters only when the number is outside of it.
fn wanted(expected: &str, out_of_range: bool) -> String {
    let whole = |range: &str| match out_of_range {
        true => format!("a whole number {range}"),
        false => "a whole number".to_owned(),
    };
    match expected {
        "i32" => whole("from -2147483648 to 2147483647"),
        "u32" => whole("from 0 to 4294967295"),
        "u16" => whole("from 0 to 65535"),
        "i64" | "u64" | "usize" => whole("that 64 bits can hold"),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "a string" => "text".to_owned(),
        other => match other.starts_with("struct ") {
            true => "an object".to_owned(),
            false => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;

    use super::*;

    fn said<T: DeserializeOwned>(text: &str) -> String {
        problem(&serde_json::from_str::<T>(text).err().unwrap())
    }

    #[test]
    fn types_are_called_by_the_names_that_users_know() {
        assert_eq!(
            said::<i32>("\"three\""),
            "must be a whole number, not \"three\""
        );
        assert_eq!(said::<i32>("1.5"), "must be a whole number, not 1.5");
        assert_eq!(
            said::<i32>("99999999999"),
            "must be a whole number from -2147483648 to 2147483647, not 99999999999"
        );
        assert_eq!(
            said::<u16>("-1"),
            "must be a whole number from 0 to 65535, not -1"
        );
        assert_eq!(
            said::<bool>("\"yes\""),
            "must be true or false, not \"yes\""
        );
        assert_eq!(said::<Vec<i32>>("{}"), "must be a list, not an object");
        assert_eq!(
            said::<BTreeMap<String, i32>>("[]"),
            "must be an object, not a list"
        );
        assert_eq!(said::<String>("5"), "must be text, not 5; put it in quotes");
        assert_eq!(said::<String>("null"), "must be text, not null");
        assert_eq!(said::<f64>("[]"), "must be a number, not a list");
    }

    #[test]
    fn text_of_the_input_cannot_disturb_the_message() {
        assert_eq!(
            said::<i32>("\"a, expected b at line 5\""),
            "must be a whole number, not \"a, expected b at line 5\""
        );
        let long = format!("\"{}\"", "x".repeat(10_000));
        assert!(said::<i32>(&long).len() < 120);
        assert!(!said::<i32>("\"\\u001b[31m\"").contains('\u{1b}'));
    }

    #[test]
    fn broken_json_is_described() {
        for (text, expected) in [
            ("[1", "the text ends in the middle of a list"),
            ("[1,]", "there is a comma after the last item"),
            ("[1] 2", "there is more text after the end"),
            ("[1 2]", "expected `,` or `]`"),
            ("[]]", "there is more text after the end"),
            ("", "the text ends in the middle of a value"),
        ] {
            assert_eq!(said::<Vec<i32>>(text), expected, "{text}");
        }
        assert_eq!(said::<f64>("1e400"), "the number is too large");
    }
}
