//! The words and signs of a label selector.

/// One word or sign, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// A word, rather than a sign.
    pub(super) is_word: bool,
    /// Its text; empty at the end.
    pub(super) text: &'t str,
}

impl Token<'_> {
    /// What comes after the last token.
    pub(super) const END: Self = Self {
        is_word: false,
        text: "",
    };
}

/// Splits a selector. Signs that stand together are read as the longest sign there is.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_sign = |c: char| "=!(),><".contains(c);
    let is_space = |c: char| " \t\r\n".contains(c);
    let mut all = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let is_word = !is_sign(first);
        let end = if is_word {
            let end = rest.find(|c: char| is_sign(c) || is_space(c));
            end.unwrap_or(rest.len())
        } else if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else {
            1
        };
        let (text, after) = rest.split_at(end);
        all.push(Token { is_word, text });
        rest = after.trim_start_matches(is_space);
    }
    all
}
