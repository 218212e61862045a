//! JSON as YAML, laid out and quoted the way that Go's library does it.

use serde_json::Value;

/// The text of a mapping, with sorted keys.
pub(crate) fn render(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// A value that starts on a line of its own.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str(&scalar(key));
                text.push(':');
                field(value, indent, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push_str(&" ".repeat(indent));
                }
                text.push_str("- ");
                block(item, indent + 2, text);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            inline(value, indent, text);
            text.push('\n');
        }
    }
}

/// What stands after the colon. Lists are not indented further than their key.
fn field(value: &Value, indent: usize, text: &mut String) {
    let below = match value {
        Value::Object(fields) if !fields.is_empty() => Some(indent + 2),
        Value::Array(items) if !items.is_empty() => Some(indent),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    };
    match below {
        Some(indent) => {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            block(value, indent, text);
        }
        None => {
            text.push(' ');
            inline(value, indent + 2, text);
            text.push('\n');
        }
    }
}

fn inline(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(_) => text.push_str("{}"),
        Value::Array(_) => text.push_str("[]"),
        Value::String(string) if string.contains('\n') => literal(string, indent, text),
        Value::String(string) => text.push_str(&scalar(string)),
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

/// Several lines, as they are.
fn literal(string: &str, indent: usize, text: &mut String) {
    text.push('|');
    if string.starts_with([' ', '\n']) {
        text.push('2');
    }
    match string.strip_suffix('\n') {
        None => text.push('-'),
        Some(rest) if rest.ends_with('\n') || rest.is_empty() => text.push('+'),
        Some(_) => {}
    }
    let lines = string.strip_suffix('\n').unwrap_or(string).split('\n');
    for line in lines {
        text.push('\n');
        if !line.is_empty() {
            text.push_str(&" ".repeat(indent));
            text.push_str(line);
        }
    }
}

/// One line of text: plain where it can be, else in quotes.
fn scalar(text: &str) -> String {
    if text.chars().any(char::is_control) || means_something_else(text) {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        return format!("\"{}\"", escaped.replace('\t', "\\t"));
    }
    if is_plain(text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether the text without quotes would be read as a number, a flag, a date or nothing.
fn means_something_else(text: &str) -> bool {
    const WORDS: [&str; 27] = [
        "", "~", "null", "Null", "NULL", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE",
        "on", "On", "ON", "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off",
        "OFF",
    ];
    const FLOATS: [&str; 4] = [".nan", ".inf", "+.inf", "-.inf"];
    if WORDS.contains(&text) || FLOATS.contains(&text.to_lowercase().as_str()) || text == "<<" {
        return true;
    }
    let bytes = text.as_bytes();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let starts = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !starts {
        return false;
    }
    let based = ["0x", "0b", "0o"].iter().any(|prefix| {
        let digits = unsigned.strip_prefix(prefix);
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit())
        })
    });
    let by_60 = unsigned.contains(':')
        && unsigned
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | '_'));
    let is_date = bytes.len() >= 10
        && text.chars().take(10).enumerate().all(|(at, c)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        });
    based || by_60 || is_date || unsigned.replace('_', "").parse::<f64>().is_ok()
}

/// Whether the text can stand without quotes.
fn is_plain(text: &str) -> bool {
    let blank_after = |at: usize| text[at..].chars().nth(1).is_none_or(|c| c == ' ');
    let first_is_sign = text.starts_with([
        '#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`',
    ]);
    let first_is_mark = text.starts_with(['-', '?']) && blank_after(0);
    let is_document = text.starts_with("---") || text.starts_with("...");
    let ends = text.starts_with(' ') || text.ends_with(' ');
    let colon = text.match_indices(':').any(|(at, _)| blank_after(at));
    let comment = text.contains(" #");
    !(first_is_sign || first_is_mark || is_document || ends || colon || comment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_quoted_where_they_must() {
        for (text, expected) in [
            ("500Mi", "500Mi"),
            ("5%", "5%"),
            ("1", "\"1\""),
            ("0.5", "\"0.5\""),
            ("1e3", "\"1e3\""),
            ("true", "\"true\""),
            ("", "\"\""),
            ("1m30s", "1m30s"),
            ("8:30", "\"8:30\""),
            ("2026-01-02", "\"2026-01-02\""),
            ("fd00::a", "fd00::a"),
            ("fd00::", "'fd00::'"),
            ("a: b", "'a: b'"),
            ("a #b", "'a #b'"),
            ("*x", "'*x'"),
            ("it's", "it's"),
            ("- x", "'- x'"),
            ("--flag=\"a\"", "--flag=\"a\""),
            ("%x", "'%x'"),
            ("tab\there", "\"tab\\there\""),
        ] {
            assert_eq!(scalar(text), expected, "{text}");
        }
    }

    #[test]
    fn values_are_laid_out_as_go_does() {
        let value = json!({
            "b": [{"y": 1, "x": [true]}, [1, 2], {}],
            "a": {"text": "one\ntwo\n", "none": null, "list": [], "last": "x\ny"},
        });
        assert_eq!(
            render(&value),
            "a:\n  last: |-\n    x\n    y\n  list: []\n  none: null\n  text: |\n    one\n    two\n\
             b:\n- x:\n  - true\n  \"y\": 1\n- - 1\n  - 2\n- {}\n"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let value = json!({"a": [{"k": "1"}, "x: y"], "b": {"c": {"d": "#"}}, "e": "a\n\n b\n\n"});
        let read: Value = serde_saphyr::from_str(&render(&value)).unwrap();
        assert_eq!(read, value);
    }
}
