//! Which words and signs a Rust file consists of: comments and lifetimes are gone, literals are all the same.

/// What stands for a string, a character or a number.
pub(super) const LITERAL: &str = "\"";

/// Tokens in their order, and which brackets belong together.
pub(super) struct Tokens<'t> {
    all: Vec<Token<'t>>,
    /// For a token that opens a group, the one that closes it; for others the token itself.
    ends: Vec<usize>,
}

struct Token<'t> {
    text: &'t str,
    line: usize,
}

impl<'t> Tokens<'t> {
    /// The tokens of a file that compiles; of one that does not, something like them.
    pub(super) fn of(text: &'t str) -> Self {
        let mut lexer = Lexer {
            text,
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
            all: Vec::new(),
        };
        while lexer.at < text.len() {
            lexer.advance();
        }
        let all = lexer.all;
        let mut ends: Vec<usize> = (0..all.len()).collect();
        let mut open = Vec::new();
        for (at, token) in all.iter().enumerate() {
            match token.text {
                "(" | "[" | "{" => open.push(at),
                ")" | "]" | "}" => {
                    if let Some(opened) = open.pop() {
                        ends[opened] = at;
                    }
                }
                _ => {}
            }
        }
        for opened in open {
            ends[opened] = all.len();
        }
        Self { all, ends }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// A token, empty past the last one.
    pub(super) fn text(&self, at: usize) -> &'t str {
        self.all.get(at).map_or("", |token| token.text)
    }

    /// The token before this one, empty before the first one.
    pub(super) fn before(&self, at: usize) -> &'t str {
        at.checked_sub(1).map_or("", |at| self.text(at))
    }

    /// Lines count from one.
    pub(super) fn line(&self, at: usize) -> usize {
        self.all.get(at).map_or(0, |token| token.line)
    }

    /// Where the group ends that opens here; right here when none does.
    pub(super) fn end(&self, at: usize) -> usize {
        self.ends.get(at).copied().unwrap_or(at)
    }

    /// Where to go on after this token and the group that it may open.
    pub(super) fn after(&self, at: usize) -> usize {
        self.end(at) + 1
    }

    /// The first of some tokens, from here on and outside of groups that open on the way; where this
    /// group ends when there is none.
    pub(super) fn find(&self, mut at: usize, wanted: &[&str]) -> usize {
        loop {
            let text = self.text(at);
            if matches!(text, "" | ")" | "]" | "}") || wanted.contains(&text) {
                return at;
            }
            at = self.after(at);
        }
    }

    /// Where the parts begin that commas separate in the group that opens here.
    pub(super) fn parts(&self, open: usize) -> Vec<usize> {
        let mut parts = Vec::new();
        let mut at = open + 1;
        while at < self.end(open) {
            parts.push(at);
            at = self.find(at, &[","]) + 1;
        }
        parts
    }
}

/// True for a token that is a name or a keyword.
pub(super) fn is_word(text: &str) -> bool {
    text.bytes().next().is_some_and(in_word)
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line: usize,
    all: Vec<Token<'t>>,
}

impl<'t> Lexer<'t> {
    /// The byte so many after this one, zero past the end.
    fn peek(&self, n: usize) -> u8 {
        self.bytes.get(self.at + n).copied().unwrap_or(0)
    }

    /// Takes a token, a comment or a blank.
    fn advance(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (b'\n', _) => {
                self.line += 1;
                self.at += 1;
            }
            (b' ' | b'\t' | b'\r', _) => self.at += 1,
            (b'/', b'/') => {
                while !matches!(self.peek(0), b'\n' | 0) {
                    self.at += 1;
                }
            }
            (b'/', b'*') => self.comment(),
            (b'"', _) => self.string(),
            (b'\'', _) => self.quote(),
            (b'0'..=b'9', _) => self.number(),
            (first, _) if in_word(first) => self.word(),
            (first, second) => self.sign(first, second),
        }
    }

    fn push(&mut self, text: &'t str) {
        let line = self.line;
        self.all.push(Token { text, line });
    }

    fn comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            let n = match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    2
                }
                (b'*', b'/') => {
                    depth -= 1;
                    2
                }
                (b'\n', _) => {
                    self.line += 1;
                    1
                }
                _ => 1,
            };
            self.at += n;
            if depth == 0 {
                return;
            }
        }
    }

    /// From the quotation mark to the one that ends it.
    fn string(&mut self) {
        self.push(LITERAL);
        self.at += 1;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'"', _) => {
                    self.at += 1;
                    return;
                }
                // A line that goes on.
                (b'\\', b'\n') => {
                    self.line += 1;
                    self.at += 2;
                }
                (b'\\', _) => self.at += 2,
                (b'\n', _) => {
                    self.line += 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    /// The same for strings that end with as many hashes as they began with.
    fn raw_string(&mut self, n_hashes: usize) {
        self.push(LITERAL);
        self.at += n_hashes + 1;
        while self.at < self.bytes.len() {
            let ends = || (1..=n_hashes).all(|n| self.peek(n) == b'#');
            match self.peek(0) {
                b'"' if ends() => {
                    self.at += n_hashes + 1;
                    return;
                }
                b'\n' => self.line += 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// A character or a lifetime.
    fn quote(&mut self) {
        let n_bytes = match self.peek(1) {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        if self.peek(1) == b'\\' {
            self.push(LITERAL);
            self.at += 3;
            while !matches!(self.peek(0), b'\'' | 0) {
                self.at += 1;
            }
            self.at += 1;
        } else if self.peek(1 + n_bytes) == b'\'' {
            self.push(LITERAL);
            self.at += n_bytes + 2;
        } else {
            self.at += 1;
            self.skip_word();
        }
    }

    fn number(&mut self) {
        self.push(LITERAL);
        self.skip_word();
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.skip_word();
        }
    }

    fn skip_word(&mut self) {
        while in_word(self.peek(0)) {
            self.at += 1;
        }
    }

    /// A name, a keyword, or what begins a literal.
    fn word(&mut self) {
        let from = self.at;
        self.skip_word();
        let word = &self.text[from..self.at];
        match (word, self.peek(0)) {
            ("b" | "c", b'"') => self.string(),
            ("b", b'\'') => self.quote(),
            ("r" | "br" | "cr", b'"' | b'#') => {
                let hashes = self.bytes[self.at..].iter().take_while(|b| **b == b'#');
                let n_hashes = hashes.count();
                if self.peek(n_hashes) == b'"' {
                    self.raw_string(n_hashes);
                } else {
                    // A name that would be a keyword.
                    self.at += n_hashes;
                    self.skip_word();
                    self.push(&self.text[from..self.at]);
                }
            }
            _ => self.push(word),
        }
    }

    /// Signs are as long as telling patterns, types and values apart takes.
    fn sign(&mut self, first: u8, second: u8) {
        let n_bytes = match (first, second) {
            (b'.', b'.') if matches!(self.peek(2), b'=' | b'.') => 3,
            (b'.', b'.')
            | (b':', b':')
            | (b'-' | b'=', b'>')
            | (b'=' | b'<' | b'>' | b'!', b'=')
            | (b'&', b'&')
            | (b'|', b'|') => 2,
            _ => 1,
        };
        self.push(&self.text[self.at..self.at + n_bytes]);
        self.at += n_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let tokens = Tokens::of(text);
        (0..tokens.len()).map(|at| tokens.text(at)).collect()
    }

    #[test]
    fn comments_and_lifetimes_are_gone() {
        assert_eq!(texts("a // b\n/* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(texts("&'a str, 'b: {}"), ["&", "str", ",", ":", "{", "}"]);
    }

    #[test]
    fn literals_say_nothing() {
        for literal in [
            r#""a \" b""#,
            r##"r#"a " b"#"##,
            r#"br"\""#,
            "b\"a\"",
            "'a'",
            "'\"'",
            r"'\''",
            r"b'\\'",
            "'\u{e9}'",
            r"'\u{1f}'",
            "1_000u64",
            "1.5",
        ] {
            assert_eq!(
                texts(&format!("x({literal})y")),
                ["x", "(", LITERAL, ")", "y"]
            );
        }
        assert_eq!(texts("1..2"), [LITERAL, "..", LITERAL]);
        assert_eq!(texts("r#type"), ["r#type"]);
    }

    #[test]
    fn lines_count_on_in_literals_and_comments() {
        let tokens = Tokens::of("a\n\"b\nc \\\n d\" e /*\n*/ f r\"\n\" g");
        let lines: Vec<usize> = (0..tokens.len()).map(|at| tokens.line(at)).collect();
        assert_eq!(lines, [1, 2, 4, 5, 5, 6]);
    }

    #[test]
    fn groups_end_where_they_end() {
        let tokens = Tokens::of("a(b, [c, d], e) => f");
        assert_eq!(tokens.text(tokens.after(1)), "=>");
        assert_eq!(tokens.find(0, &["=>"]), tokens.after(1));
        let parts = tokens.parts(1).into_iter().map(|at| tokens.text(at));
        assert_eq!(parts.collect::<Vec<_>>(), ["b", "[", "e"]);
        assert_eq!(Tokens::of("a(b").find(0, &["c"]), 4);
    }
}
