//! Which top-level module of a crate names which other one: files and folders right below `src`, each with
//! all that is in it. Tests may name anything and are left out; so are re-exports of the crate root,
//! through which names are looked up instead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::is_test;
use super::paths::{Name, Paths};
use super::tokens::Tokens;

/// How the crate root is called among its modules.
pub(super) const ROOT: &str = "the crate root";

/// A place where one module names another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

/// For each module those that it names, and where it does so first.
pub(super) type Uses = BTreeMap<String, BTreeMap<String, Use>>;

/// All uses among the modules of a crate, from its files: where they are below the crate, and their tokens.
pub(super) fn uses<'t>(files: impl Iterator<Item = (&'t Path, &'t Tokens<'t>)>) -> Uses {
    let files = files.filter_map(|(path, tokens)| Some((path, module(path)?, tokens)));
    let mut files: Vec<(&Path, Paths<'_>)> = files
        .map(|(path, module, tokens)| (path, Paths::of(tokens, module)))
        .collect();
    let tests = files.iter().flat_map(|(_, paths)| paths.tests.clone());
    let tests: BTreeSet<Vec<&str>> = tests.collect();
    files.retain(|(_, paths)| {
        let mut lengths = 1..=paths.module.len();
        !lengths.any(|n| tests.contains(&paths.module[..n]))
    });
    let modules = files.iter().flat_map(|(_, paths)| paths.top_level());
    let modules: BTreeSet<&str> = modules.collect();
    let exports = files.iter().flat_map(|(_, paths)| paths.exports.clone());
    let exports: BTreeMap<&str, &str> = exports.collect();
    let owner = |name: Name<'_>| match name {
        Name::Of(module) => module.to_owned(),
        Name::InRoot(name) => {
            let module = exports.get(name).copied().unwrap_or(name);
            let is_module = modules.contains(module);
            if is_module { module } else { ROOT }.to_owned()
        }
    };
    let mut uses = Uses::new();
    for (path, paths) in &files {
        for (from, name, line) in &paths.names {
            let (from, to) = (from.unwrap_or(ROOT), owner(*name));
            if to != from {
                let first = || Use {
                    path: (*path).to_owned(),
                    line: *line,
                };
                let of_module = uses.entry(from.to_owned()).or_default();
                of_module.entry(to).or_insert_with(first);
            }
        }
    }
    uses
}

/// The names of the modules around the content of a file, outermost first: none for a crate root.
fn module(path: &Path) -> Option<Vec<&str>> {
    if is_test(path) {
        return None;
    }
    let below = path.strip_prefix("src").ok()?.with_extension("");
    // The same parts, with the lifetime of the path.
    let n_parts = below.iter().count();
    let parts = path.iter().skip(1).take(n_parts).map(|part| {
        let part = part.to_str()?;
        Some(part.strip_suffix(".rs").unwrap_or(part))
    });
    let mut parts = parts.collect::<Option<Vec<&str>>>()?;
    if parts.last() == Some(&"mod") || matches!(parts[..], ["lib" | "main"]) {
        parts.pop();
    }
    Some(parts)
}

/// The modules that use themselves by way of others.
pub(super) fn in_cycles(uses: &Uses) -> BTreeSet<&str> {
    let is_in_cycle = |module: &&str| {
        let mut others = uses[*module].keys();
        others.any(|other| way(uses, other, module).is_some())
    };
    let modules = uses.keys().map(String::as_str);
    modules.filter(is_in_cycle).collect()
}

/// The shortest way from one module to another, each of which uses the next, both ends included.
pub(super) fn way<'u>(uses: &'u Uses, from: &'u str, to: &str) -> Option<Vec<&'u str>> {
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::from([(from, vec![from])]);
    let mut open = VecDeque::from([from]);
    while let Some(module) = open.pop_front() {
        let way = ways[module].clone();
        if module == to {
            return Some(way);
        }
        for next in uses.get(module).into_iter().flat_map(BTreeMap::keys) {
            ways.entry(next).or_insert_with(|| {
                open.push_back(next);
                way.iter().copied().chain([next.as_str()]).collect()
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses between modules, and the modules that are in a cycle, of a crate of these files.
    fn look(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let files: Vec<(&Path, Tokens<'_>)> = (files.iter())
            .map(|(path, text)| (Path::new(*path), Tokens::of(text)))
            .collect();
        let uses = uses(files.iter().map(|(path, tokens)| (*path, tokens)));
        let line = |from: &str, to: &str, at: &Use| {
            format!("{from} {to} {}:{}", at.path.display(), at.line)
        };
        let lines = uses.iter().flat_map(|(from, to)| {
            let lines = to.iter().map(move |(to, at)| line(from, to, at));
            lines.collect::<Vec<_>>()
        });
        let cycles = in_cycles(&uses).into_iter().map(str::to_owned);
        (lines.collect(), cycles.collect())
    }

    #[test]
    fn two_modules_that_name_each_other_are_a_cycle() {
        let (uses, cycles) = look(&[
            ("src/lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;"),
            ("src/a.rs", "//! A.\nuse crate::b::B;\nuse crate::b::C;"),
            ("src/b/mod.rs", "mod deep;"),
            ("src/b/deep.rs", "fn f() { super::super::a::f() }"),
            ("src/c.rs", "use super::{a::A, b};"),
        ]);
        let expected = [
            "a b src/a.rs:2",
            "b a src/b/deep.rs:1",
            "c a src/c.rs:1",
            "c b src/c.rs:1",
        ];
        assert_eq!(uses, expected);
        assert_eq!(cycles, ["a", "b"]);
    }

    #[test]
    fn three_modules_in_a_ring_are_a_cycle() {
        let (_, cycles) = look(&[
            ("src/a.rs", "use crate::b::B;"),
            ("src/b.rs", "use crate::c::C;"),
            ("src/c.rs", "use crate::a::A;"),
            ("src/d.rs", "use crate::a::A;"),
            ("src/e.rs", ""),
        ]);
        assert_eq!(cycles, ["a", "b", "c"]);
    }

    #[test]
    fn modules_of_one_folder_may_name_each_other() {
        let (uses, _) = look(&[
            (
                "src/a/mod.rs",
                "mod b; mod c; pub use b::B; use self::c::C;",
            ),
            ("src/a/b.rs", "use super::c::C; use crate::a::B;"),
            (
                "src/a/c.rs",
                "use super::b::B; mod inside { use super::super::b; }",
            ),
        ]);
        assert!(uses.is_empty(), "{uses:?}");
    }

    #[test]
    fn tests_may_name_anything() {
        let (uses, _) = look(&[
            (
                "src/lib.rs",
                "#[cfg(test)]\nmod made;\nmod a; mod b; mod c;",
            ),
            (
                "src/a.rs",
                "#[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(test)] mod checks;",
            ),
            ("src/a/checks.rs", "use crate::b::B;"),
            (
                "src/b.rs",
                "#[cfg(all(test, unix))] pub(crate) fn f() { crate::a::f() }",
            ),
            ("src/b/b_tests.rs", "use crate::a::A;"),
            ("src/b/tests/more.rs", "use crate::a::A;"),
            ("src/c.rs", "#![cfg(test)]\nuse crate::a::A;"),
            ("src/made.rs", "use crate::a::A;"),
            ("tests/all.rs", "mod a; use crate::a::A;"),
        ]);
        assert!(uses.is_empty(), "{uses:?}");
        let (uses, _) = look(&[
            ("src/a.rs", "#[cfg(not(test))] use crate::b::B;"),
            (
                "src/b.rs",
                "#[cfg(test)] use crate::a::A;\nfn f() { crate::a::f() }",
            ),
        ]);
        assert_eq!(uses, ["a b src/a.rs:1", "b a src/b.rs:2"]);
    }

    #[test]
    fn names_are_followed_through_re_exports_of_the_root() {
        let (uses, cycles) = look(&[
            (
                "src/lib.rs",
                "pub use a::{A, b::{C as D}}; pub(crate) use crate::c::F;",
            ),
            ("src/a.rs", "use crate::F;"),
            ("src/b.rs", "use crate::{A, D};"),
            ("src/c.rs", "fn f() -> crate::D {}"),
        ]);
        assert_eq!(uses, ["a c src/a.rs:1", "b a src/b.rs:1", "c a src/c.rs:1"]);
        assert_eq!(cycles, ["a", "c"]);
    }

    #[test]
    fn a_root_with_code_of_which_modules_use_some_is_in_the_cycle() {
        let main = "mod a;\nuse std::fmt;\nfn main() { a::run() }\nfn say() {}";
        let (uses, cycles) = look(&[("src/main.rs", main), ("src/a.rs", "use crate::say;")]);
        assert_eq!(
            uses,
            [
                "a the crate root src/a.rs:1",
                "the crate root a src/main.rs:3"
            ]
        );
        assert_eq!(cycles, ["a", ROOT]);
    }
}
