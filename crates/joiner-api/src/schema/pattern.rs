//! Regular expressions of schemas: Go's dialect, read by Rust's engine.

use regex::Regex;

/// A compiled pattern and the words for it.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    /// What to tell a user whose value does not match.
    pub(super) wanted: String,
}

impl Pattern {
    pub(super) fn compile(text: &str) -> Result<Self, regex::Error> {
        let wanted = match crate::crd::pattern_in_words(text) {
            Some(words) => words.to_owned(),
            None => format!("must match {text}"),
        };
        Ok(Self {
            regex: compile_go(text)?,
            wanted,
        })
    }
}

/// Compiles a Go expression. Classes such as `\d` are ASCII in Go and Unicode in Rust, so they
/// are spelled out; nothing else differs in the syntax that both share.
pub(super) fn compile_go(text: &str) -> Result<Regex, regex::Error> {
    let mut out = String::with_capacity(text.len());
    let mut in_class = false;
    let mut in_named = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) => out.push_str(&spell_out(escaped, in_class)),
                None => out.push('\\'),
            },
            '[' if in_class => {
                // Go takes a bracket inside a class literally unless it opens a named class.
                in_named = chars.as_str().starts_with(':');
                out.push_str(if in_named { "[" } else { "\\[" });
            }
            '[' => {
                in_class = true;
                out.push('[');
            }
            ']' => {
                in_class = in_named;
                in_named = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    Regex::new(&out)
}

fn spell_out(escaped: char, in_class: bool) -> String {
    let body = match escaped {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => r"\t\n\f\r ",
        _ => return format!("\\{escaped}"),
    };
    if in_class {
        body.to_owned()
    } else {
        format!("[{body}]")
    }
}

#[cfg(test)]
mod tests {
    use super::compile_go;

    #[test]
    fn digits_are_ascii() {
        let digits = compile_go(r"^\d+[\d.]*$").unwrap();
        assert!(digits.is_match("12.5"));
        assert!(!digits.is_match("\u{663}"));
        assert!(compile_go(r"^a\sb$").unwrap().is_match("a b"));
        assert!(compile_go(r"^[a&&b[]+$").unwrap().is_match("a&[b"));
        assert!(compile_go("^[[:alpha:]]+$").unwrap().is_match("ab"));
        assert!(compile_go("^[a-z_,:]*[a-z]$").unwrap().is_match("a:b"));
        assert!(compile_go(r"^(x\/)?y$").unwrap().is_match("x/y"));
    }
}
