//! Where a variable of some name begins: in a `let`, a `for`, an arm of a `match`, a parameter of a
//! function or a closure. Fields, modules and functions of that name are something else.

use std::collections::BTreeSet;

use super::tokens::{LITERAL, Tokens, is_word};

/// Macros with a pattern after the first comma.
const WITH_PATTERN: [&str; 3] = ["matches", "assert_matches", "debug_assert_matches"];
/// Words after which a value begins, so that a bar begins a closure.
const BEFORE_VALUES: [&str; 10] = [
    "move", "return", "else", "in", "break", "static", "async", "match", "if", "while",
];

/// The line of each binding.
pub(super) fn lines(tokens: &Tokens<'_>, name: &str) -> Vec<usize> {
    let mut bindings = Bindings {
        tokens,
        name,
        found: BTreeSet::new(),
    };
    if (0..tokens.len()).any(|at| tokens.text(at) == name) {
        for at in 0..tokens.len() {
            bindings.look(at);
        }
    }
    bindings.found.iter().map(|at| tokens.line(*at)).collect()
}

struct Bindings<'a, 't> {
    tokens: &'a Tokens<'t>,
    name: &'a str,
    /// Patterns may be inside of others that are looked at, too.
    found: BTreeSet<usize>,
}

impl Bindings<'_, '_> {
    /// Looks at the patterns that this token announces.
    fn look(&mut self, at: usize) {
        let tokens = self.tokens;
        match tokens.text(at) {
            "let" => self.mark(at + 1, tokens.find(at + 1, &["=", ";", ":"])),
            "for" => self.look_at_loop(at + 1),
            "fn" => self.look_at_parameters(at + 1),
            "match" => {
                let open = tokens.find(at + 1, &["{"]);
                self.look_at_arms(open + 1, tokens.end(open));
            }
            "|" if self.begins_closure(at) => {
                let end = tokens.find(at + 1, &["|"]);
                if tokens.text(end) == "|" {
                    self.mark(at + 1, end);
                }
            }
            name if WITH_PATTERN.contains(&name) && tokens.text(at + 1) == "!" => {
                let comma = tokens.find(at + 3, &[","]);
                self.mark(comma + 1, tokens.find(comma + 1, &["if", ","]));
            }
            _ => {}
        }
    }

    /// `for` is also a part of `impl .. for .. {}`, which has no `in`.
    fn look_at_loop(&mut self, from: usize) {
        let tokens = self.tokens;
        let mut end = from;
        while !matches!(tokens.text(end), "in" | "" | ";" | "=" | ")" | "]" | "}") {
            let is_braced = tokens.text(end) == "{";
            end = tokens.after(end);
            if is_braced && !matches!(tokens.text(end), "in" | "|") {
                return;
            }
        }
        if tokens.text(end) == "in" {
            self.mark(from, end);
        }
    }

    /// From the name of a function on; types of functions have none.
    fn look_at_parameters(&mut self, from: usize) {
        let tokens = self.tokens;
        let mut open = from;
        if is_word(tokens.text(open)) {
            open += 1;
        }
        if tokens.text(open) == "<" {
            open = self.after_angles(open);
        }
        if tokens.text(open) == "(" {
            self.mark(open + 1, tokens.end(open));
        }
    }

    fn look_at_arms(&mut self, from: usize, to: usize) {
        let tokens = self.tokens;
        let mut at = from;
        while at < to {
            let end = tokens.find(at, &["=>", "if"]);
            self.mark(at, end);
            let arrow = tokens.find(end, &["=>"]);
            if tokens.text(arrow) != "=>" {
                return;
            }
            at = arrow + 1;
            if tokens.text(at) == "{" {
                at = tokens.after(at);
            } else {
                while at < to && tokens.text(at) != "," {
                    at = match (tokens.before(at), tokens.text(at)) {
                        ("::", "<") => self.after_angles(at),
                        _ => tokens.after(at),
                    };
                }
            }
            if tokens.text(at) == "," {
                at += 1;
            }
        }
    }

    /// Where to go on after `<..>`.
    fn after_angles(&self, mut at: usize) -> usize {
        let mut depth = 0_usize;
        loop {
            match self.tokens.text(at) {
                "" | ";" => return at,
                "<" => depth += 1,
                ">" if depth == 1 => return at + 1,
                ">" => depth -= 1,
                _ => {}
            }
            at = self.tokens.after(at);
        }
    }

    /// Elsewhere a bar is between alternatives, or ends the parameters.
    fn begins_closure(&self, at: usize) -> bool {
        match self.tokens.before(at) {
            ")" | "]" | "}" | "?" | ">" | "!" | LITERAL => false,
            word if is_word(word) => BEFORE_VALUES.contains(&word),
            _ => true,
        }
    }

    /// Finds the name in a pattern, or in patterns with types.
    fn mark(&mut self, from: usize, to: usize) {
        let tokens = self.tokens;
        let mut groups = Vec::new();
        for at in from..to {
            let text = tokens.text(at);
            match text {
                "(" | "[" | "{" => groups.push(text),
                ")" | "]" | "}" => drop(groups.pop()),
                _ if text == self.name => {
                    let (before, next) = (tokens.before(at), tokens.text(at + 1));
                    let is_field = next == ":" && groups.last() == Some(&"{");
                    let is_path = before == "::" || matches!(next, "::" | "(");
                    if !is_field && !is_path && !matches!(before, "." | "$") {
                        self.found.insert(at);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        lines(&Tokens::of(text), "own").len()
    }

    #[test]
    fn bindings_are_found_in_every_kind_of_pattern() {
        for text in [
            "let own = 1;",
            "let mut own: Vec<u8>;",
            "let Some(Thing { own, .. }) = x else { return };",
            "if let (Some(own), 0..=5) = x {}",
            "for (ix, own) in x {}",
            "for Thing { own } in x {}",
            "x.map(|own| own.y)",
            "x.map(move |(ix, &own): (usize, &[u8])| own + ix)",
            "let f = |own: Vec<u8>| own;",
            "fn f<F: Fn(u8) -> u8>(f: F, own: &str) -> u8 { own }",
            "trait T { fn f(&self, own: &str); }",
            "match x { None => f::<A, B>(own), Some(own) => own }",
            "match x { A => {} own @ B => {}, C => y }",
            "match x { A if y => |z| z, Thing { inner: [own] } if own.y => {} }",
            "matches!(own, Some(own) if own.y)",
        ] {
            assert_eq!(count(text), 1, "{text}");
        }
        assert_eq!(
            count("match x { (own, 1) => 1, (_, own) => match own { own => own } }"),
            3
        );
    }

    #[test]
    fn everything_else_of_that_name_is_fine() {
        for text in [
            "// let own = 1;\n/* |own| */",
            "\"let own = 1;\"",
            "let x = own;",
            "let Thing { own: x, .. } = y;",
            "let x = Thing { own: 1, ..own };",
            "struct Thing { own: u8 }",
            "x.own.y(own)",
            "let x: own::Y = own::y;",
            "use a::own;",
            "mod own {}",
            "fn own() {}",
            "impl T for X { fn f() { own } }",
            "impl T for X {} fn f() { own; for x in own {} }",
            "a(b | own | c)",
            "x.map(|y| own | y)",
            "match own { A => own, B if own => own, C => { own } }",
            "matches!(own, Some(x) if own)",
            "let own_name = owner;",
        ] {
            assert_eq!(count(text), 0, "{text}");
        }
    }
}
