//! A formula's text in words, numbers, texts and signs.

use super::FormulaError;

/// One piece of the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Int(i64),
    Float(f64),
    Text(String),
    Sign(&'static str),
    End,
}

impl Token {
    /// What messages call it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(name) => format!("{name:?}"),
            Self::Int(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("{text:?}"),
            Self::Sign(sign) => format!("{sign:?}"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Longer signs before those that they begin with.
const SIGNS: [&str; 30] = [
    "??", "**", "==", "!=", "<=", ">=", "&&", "||", "..", "?", ":", "+", "-", "*", "/", "%", "^",
    "<", ">", "!", "(", ")", "[", "]", "{", "}", ",", ";", "=", "|",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, FormulaError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '#' => (Token::Name("#".to_owned()), 1),
            '\'' | '"' => quoted(rest, first)?,
            c if is_letter(c) => {
                let end = rest.find(|c| !is_letter(c) && !char::is_numeric(c));
                let length = end.unwrap_or(rest.len());
                (Token::Name(rest[..length].to_owned()), length)
            }
            c if c.is_ascii_digit() || is_fraction(rest) => number(rest)?,
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| FormulaError(format!("{first:?} means nothing")))?;
                (Token::Sign(sign), sign.len())
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn is_letter(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn is_fraction(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('.') && chars.next().is_some_and(|c| c.is_ascii_digit())
}

fn quoted(rest: &str, quote: char) -> Result<(Token, usize), FormulaError> {
    let (mut text, mut escaped) = (String::new(), false);
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            c if escaped => {
                text.push(match c {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
                escaped = false;
            }
            '\\' => escaped = true,
            c if c == quote => return Ok((Token::Text(text), at + 1)),
            c => text.push(c),
        }
    }
    Err(FormulaError(format!(
        "the text that begins with {rest} has no end"
    )))
}

fn number(rest: &str) -> Result<(Token, usize), FormulaError> {
    let bytes = rest.as_bytes();
    let (mut at, mut is_whole) = (0, true);
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        match byte {
            b'0'..=b'9' | b'_' => {}
            // Two dots are a range.
            b'.' if is_whole && next != b'.' => is_whole = false,
            b'e' | b'E' if next.is_ascii_digit() => is_whole = false,
            b'e' | b'E' if matches!(next, b'+' | b'-') => {
                is_whole = false;
                at += 1;
            }
            _ => break,
        }
        at += 1;
    }
    let digits = rest[..at].replace('_', "");
    let bad = || FormulaError(format!("{} is no number", &rest[..at]));
    let token = if is_whole {
        Token::Int(digits.parse().map_err(|_| bad())?)
    } else {
        Token::Float(digits.parse().map_err(|_| bad())?)
    };
    Ok((token, at))
}
