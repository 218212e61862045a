//! What is wrong with a text that is no JSON, in the words of the reader that upstream uses.

use std::str::Chars;

/// Deepest nesting that is read: enough for any object, and no danger to the stack.
const LEVELS_MAX: usize = 127;

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    After,
}

/// The first fault of a text; nothing when there is none.
pub(crate) fn fault(text: &str) -> Option<String> {
    scan(text).err()
}

fn scan(text: &str) -> Result<(), String> {
    let mut rest = text.chars();
    // For each mapping that is open a brace, for each list a bracket.
    let mut open: Vec<char> = Vec::new();
    let mut next = Next::Value;
    loop {
        let c = rest.find(|c| !matches!(c, ' ' | '\t' | '\r' | '\n'));
        let Some(c) = c else {
            return match (next, open.is_empty()) {
                (Next::After, true) => Ok(()),
                _ => Err(end()),
            };
        };
        next = match (next, c) {
            (Next::KeyOrEnd, '}') | (Next::ValueOrEnd, ']') => {
                open.pop();
                Next::After
            }
            (Next::Key | Next::KeyOrEnd, '"') => {
                string(&mut rest)?;
                Next::Colon
            }
            (Next::Key | Next::KeyOrEnd, c) => {
                return Err(wrong(c, "looking for beginning of object key string"));
            }
            (Next::Colon, ':') => Next::Value,
            (Next::Colon, c) => return Err(wrong(c, "after object key")),
            (Next::Value | Next::ValueOrEnd, '{' | '[') => {
                if open.len() >= LEVELS_MAX {
                    return Err(wrong(c, "exceeded max depth"));
                }
                open.push(c);
                if c == '{' {
                    Next::KeyOrEnd
                } else {
                    Next::ValueOrEnd
                }
            }
            (Next::Value | Next::ValueOrEnd, c) => {
                scalar(c, &mut rest)?;
                Next::After
            }
            (Next::After, c) => after(c, &mut open)?,
        };
    }
}

/// What may come after a value.
fn after(c: char, open: &mut Vec<char>) -> Result<Next, String> {
    match (open.last(), c) {
        (None, c) => Err(wrong(c, "after top-level value")),
        (Some('{'), ',') => Ok(Next::Key),
        (Some(_), ',') => Ok(Next::Value),
        (Some('{'), '}') | (Some('['), ']') => {
            open.pop();
            Ok(Next::After)
        }
        (Some('{'), c) => Err(wrong(c, "after object key:value pair")),
        (Some(_), c) => Err(wrong(c, "after array element")),
    }
}

fn scalar(first: char, rest: &mut Chars<'_>) -> Result<(), String> {
    match first {
        '"' => string(rest),
        't' => literal("true", rest),
        'f' => literal("false", rest),
        'n' => literal("null", rest),
        '-' | '0'..='9' => number(first, rest),
        c => Err(wrong(c, "looking for beginning of value")),
    }
}

fn literal(word: &'static str, rest: &mut Chars<'_>) -> Result<(), String> {
    for expected in word.chars().skip(1) {
        match rest.next() {
            None => return Err(end()),
            Some(c) if c == expected => {}
            Some(c) => {
                let place = format!("in literal {word} (expecting '{expected}')");
                return Err(wrong(c, &place));
            }
        }
    }
    Ok(())
}

fn string(rest: &mut Chars<'_>) -> Result<(), String> {
    loop {
        match rest.next().ok_or_else(end)? {
            '"' => return Ok(()),
            '\\' => match rest.next().ok_or_else(end)? {
                'u' => {
                    for _ in 0..4 {
                        let c = rest.next().ok_or_else(end)?;
                        if !c.is_ascii_hexdigit() {
                            return Err(wrong(c, "in \\u hexadecimal character escape"));
                        }
                    }
                }
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {}
                c => return Err(wrong(c, "in string escape code")),
            },
            c if c < ' ' => return Err(wrong(c, "in string literal")),
            _ => {}
        }
    }
}

fn number(first: char, rest: &mut Chars<'_>) -> Result<(), String> {
    let mut digit = first;
    if first == '-' {
        digit = rest.next().ok_or_else(end)?;
        if !digit.is_ascii_digit() {
            return Err(wrong(digit, "in numeric literal"));
        }
    }
    if digit != '0' {
        skip_digits(rest);
    }
    if take(rest, &['.']) {
        let c = rest.next().ok_or_else(end)?;
        if !c.is_ascii_digit() {
            return Err(wrong(c, "after decimal point in numeric literal"));
        }
        skip_digits(rest);
    }
    if take(rest, &['e', 'E']) {
        take(rest, &['+', '-']);
        let c = rest.next().ok_or_else(end)?;
        if !c.is_ascii_digit() {
            return Err(wrong(c, "in exponent of numeric literal"));
        }
        skip_digits(rest);
    }
    Ok(())
}

fn take(rest: &mut Chars<'_>, wanted: &[char]) -> bool {
    let is_next = rest.as_str().starts_with(wanted);
    if is_next {
        rest.next();
    }
    is_next
}

fn skip_digits(rest: &mut Chars<'_>) {
    while rest.as_str().starts_with(|c: char| c.is_ascii_digit()) {
        rest.next();
    }
}

fn end() -> String {
    "unexpected end of JSON input".to_owned()
}

fn wrong(c: char, place: &str) -> String {
    let shown = match c {
        '"' => "\"".to_owned(),
        c if c.is_control() && !matches!(c, '\n' | '\r' | '\t') => {
            format!("\\x{:02x}", u32::from(c))
        }
        c => c.escape_debug().to_string(),
    };
    format!("invalid character '{shown}' {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\": ", "unexpected end of JSON input"),
            (
                "hello",
                "invalid character 'h' looking for beginning of value",
            ),
            ("{} {}", "invalid character '{' after top-level value"),
            (
                "{a: 1}",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\": 1 2}",
                "invalid character '2' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1, ]",
                "invalid character ']' looking for beginning of value",
            ),
            (
                "trap",
                "invalid character 'a' in literal true (expecting 'u')",
            ),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            (
                "\"\\u12g4\"",
                "invalid character 'g' in \\u hexadecimal character escape",
            ),
            ("-a", "invalid character 'a' in numeric literal"),
            (
                "1.a",
                "invalid character 'a' after decimal point in numeric literal",
            ),
            (
                "1ea",
                "invalid character 'a' in exponent of numeric literal",
            ),
            (
                &"[".repeat(20_000),
                "invalid character '[' exceeded max depth",
            ),
        ] {
            assert_eq!(fault(text).as_deref(), Some(expected), "{text:.40}");
        }
        for text in [
            "{}",
            " [1, -0.5e+3, {\"a\": [], \"b\": {}}, null, true, \"\\u00e4\"] ",
        ] {
            assert_eq!(fault(text), None);
        }
    }
}
