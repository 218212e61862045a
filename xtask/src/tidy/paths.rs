//! Which names of its crate the code of one file uses: paths that begin with `crate`, `super` or `self`,
//! in the crate root also with a module. What is compiled for tests only is not looked at.

use super::tokens::{Tokens, is_word};

/// Words that begin an item, after its attributes and who may see it.
const ITEMS: [&str; 14] = [
    "mod",
    "use",
    "fn",
    "impl",
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "const",
    "static",
    "async",
    "extern",
    "macro_rules",
];

/// A name that a path begins with.
#[derive(Clone, Copy)]
pub(super) enum Name<'t> {
    /// Something in this top-level module.
    Of(&'t str),
    /// Of a top-level module, or of something that the crate root declares or exports.
    InRoot(&'t str),
}

/// What the paths of a file tell.
pub(super) struct Paths<'t> {
    /// The modules around the content of the file, outermost first.
    pub(super) module: Vec<&'t str>,
    /// The top-level module with the path, none for the crate root, what the path begins with, and its line.
    pub(super) names: Vec<(Option<&'t str>, Name<'t>, usize)>,
    /// What the crate root exports, and the first name of the path that it exports.
    pub(super) exports: Vec<(&'t str, &'t str)>,
    /// Modules that are compiled for tests only.
    pub(super) tests: Vec<Vec<&'t str>>,
    /// Modules declared or written out in the crate root.
    declared: Vec<&'t str>,
}

impl<'t> Paths<'t> {
    /// The paths in a file of a module.
    pub(super) fn of(tokens: &Tokens<'t>, module: Vec<&'t str>) -> Self {
        let mut reader = Reader {
            tokens,
            module: module.clone(),
            paths: Self {
                module,
                names: Vec::new(),
                exports: Vec::new(),
                tests: Vec::new(),
                declared: Vec::new(),
            },
        };
        reader.read(0, tokens.len());
        reader.paths
    }

    /// Top-level modules that this file is in or declares.
    pub(super) fn top_level(&self) -> impl Iterator<Item = &'t str> {
        let around = self.module.first().copied();
        around.into_iter().chain(self.declared.iter().copied())
    }
}

struct Reader<'a, 't> {
    tokens: &'a Tokens<'t>,
    /// The modules around the token that is being read.
    module: Vec<&'t str>,
    paths: Paths<'t>,
}

impl<'t> Reader<'_, 't> {
    fn read(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to {
            at = self.read_one(at, to);
        }
    }

    /// Reads what begins here; returns where to go on.
    fn read_one(&mut self, at: usize, to: usize) -> usize {
        let tokens = self.tokens;
        let [text, next, third] = [0, 1, 2].map(|n| tokens.text(at + n));
        let begins_path = next == "::" && !matches!(tokens.before(at), "::" | ".");
        match text {
            "#" if next == "!" && self.is_for_tests(at + 2) => to,
            "#" if self.is_for_tests(at + 1) => self.after_test(tokens.after(at + 1)),
            "mod" if third == "{" => {
                self.declare(next);
                self.module.push(next);
                self.read(at + 3, tokens.end(at + 2));
                self.module.pop();
                tokens.after(at + 2)
            }
            "mod" if third == ";" => {
                self.declare(next);
                at + 3
            }
            "pub" if self.module.is_empty() && tokens.text(self.after_pub(at)) == "use" => {
                let from = self.after_pub(at) + 1;
                self.read_exports(from, None);
                tokens.find(from, &[";"])
            }
            "crate" | "self" | "super" if begins_path => self.read_path(at),
            _ if begins_path && is_word(text) && self.module.is_empty() => {
                self.add(&[], text, at);
                at + 1
            }
            _ => at + 1,
        }
    }

    fn declare(&mut self, module: &'t str) {
        if self.module.is_empty() {
            self.paths.declared.push(module);
        }
    }

    /// A path, or the paths of a `use` with one beginning.
    fn read_path(&mut self, from: usize) -> usize {
        let tokens = self.tokens;
        let mut module = match tokens.text(from) {
            "crate" => Vec::new(),
            _ => self.module.clone(),
        };
        let mut at = from;
        while matches!(tokens.text(at), "crate" | "self" | "super") && tokens.text(at + 1) == "::" {
            if tokens.text(at) == "super" {
                module.pop();
            }
            at += 2;
        }
        if tokens.text(at) == "{" {
            for part in tokens.parts(at) {
                self.add(&module, tokens.text(part), part);
            }
        } else {
            self.add(&module, tokens.text(at), at);
        }
        at
    }

    /// Notes the use of a name in a module.
    fn add(&mut self, module: &[&'t str], name: &'t str, at: usize) {
        let name = match module {
            [] => Name::InRoot(name),
            [first, ..] => Name::Of(first),
        };
        let from = self.module.first().copied();
        let line = self.tokens.line(at);
        self.paths.names.push((from, name, line));
    }

    /// The names that one `use` of the crate root exports, and the first name of the path of each.
    fn read_exports(&mut self, from: usize, mut first: Option<&'t str>) {
        let tokens = self.tokens;
        let mut at = from;
        while tokens.text(at + 1) == "::" {
            if !matches!(tokens.text(at), "crate" | "self") {
                first = first.or(Some(tokens.text(at)));
            }
            at += 2;
        }
        if tokens.text(at) == "{" {
            for part in tokens.parts(at) {
                self.read_exports(part, first);
            }
            return;
        }
        let name = match tokens.text(at + 1) {
            "as" => tokens.text(at + 2),
            _ => tokens.text(at),
        };
        let first = first.unwrap_or(tokens.text(at));
        self.paths.exports.push((name, first));
    }

    /// True when what is in these brackets is `cfg(test)`, or is that among others.
    fn is_for_tests(&self, open: usize) -> bool {
        let tokens = self.tokens;
        let [bracket, cfg, group, word] = [0, 1, 2, 3].map(|n| tokens.text(open + n));
        if (bracket, cfg, group) != ("[", "cfg", "(") {
            return false;
        }
        let is_test = |at: &usize| tokens.text(*at) == "test";
        match word {
            "test" => true,
            "all" => tokens.parts(open + 4).iter().any(is_test),
            _ => false,
        }
    }

    /// Where to go on after an item for tests, from behind the attribute that says so.
    fn after_test(&mut self, from: usize) -> usize {
        let tokens = self.tokens;
        let mut at = from;
        while tokens.text(at) == "#" {
            at = tokens.after(at + 1);
        }
        if tokens.text(at) == "pub" {
            at = self.after_pub(at);
        }
        let item = tokens.text(at);
        if item == "mod" {
            let module = self.module.iter().copied();
            let module = module.chain([tokens.text(at + 1)]).collect();
            self.paths.tests.push(module);
        }
        match item {
            "use" => tokens.find(at, &[";"]) + 1,
            "{" => tokens.after(at),
            _ if ITEMS.contains(&item) => tokens.after(tokens.find(at, &["{", ";"])),
            // A field, an arm or a statement: as much as there is before the next comma.
            _ => tokens.find(at, &[",", ";"]),
        }
    }

    /// The token after `pub` or `pub(..)`.
    fn after_pub(&self, at: usize) -> usize {
        match self.tokens.text(at + 1) {
            "(" => self.tokens.after(at + 1),
            _ => at + 1,
        }
    }
}
