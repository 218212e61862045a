//! What no compiler checks: sizes, doc lines, words, that ARCHITECTURE.md lists our crates, and that there
//! is no more than there was of names that say little and of modules in cycles.

mod base;
mod bindings;
mod counts;
mod identifiers;
mod modules;
mod paths;
mod ratchet;
mod table;
mod tokens;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::{keys, say};
use counts::Source;
use ratchet::Ratchet;

/// Lines of a module, tests not counted.
const LINES_MAX: usize = 600;
/// Folders that hold nothing of ours.
const SKIPPED: [&str; 3] = ["target", ".git", "node_modules"];
/// Endings of files that people read.
const TEXT: [&str; 9] = ["rs", "toml", "md", "yaml", "yml", "sh", "txt", "mod", ""];
const DEPTH_MAX: usize = 16;
/// Put together here, so that this file does not break its own rules.
const MARKERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
/// Paths of the machine that somebody worked on.
const PLACES: [&str; 2] = [concat!("/wo", "rk/"), concat!("sha", "red/")];

/// Everything that is not tidy.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut files = read(root)?;
    for Source { name, text } in &files {
        problems.extend(words(name, text));
        problems.extend(keys::problems(name, text, is_test(name)));
        if is_rust(name) {
            problems.extend(module(name, text));
        }
    }
    files.retain(|file| is_rust(&file.name));
    problems.extend(Ratchet::read(root, files)?.problems(root));
    let architecture = root.join("ARCHITECTURE.md");
    if architecture.is_file() {
        let text = std::fs::read_to_string(&architecture).context("cannot read ARCHITECTURE.md")?;
        problems.extend(listing(&text, &crates(root)?));
    }
    Ok(problems)
}

/// Writes the table of what there is, where that is less than the table says.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let mut files = read(root)?;
    files.retain(|file| is_rust(&file.name));
    let text = Ratchet::read(root, files)?.lowered().text();
    std::fs::write(root.join(table::PATH), text)
        .with_context(|| format!("cannot write {}", table::PATH))?;
    say(&format!("wrote {}", table::PATH))
}

fn is_rust(name: &Path) -> bool {
    name.extension().is_some_and(|ending| ending == "rs")
}

/// All files with text that people read.
fn read(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut paths = Vec::new();
    collect(root, 0, &mut paths)?;
    let mut files = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {path:?}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(Source { name, text });
        }
    }
    Ok(files)
}

/// Files below a folder, in name order.
fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    anyhow::ensure!(
        depth <= DEPTH_MAX,
        "{} is nested too deeply",
        folder.display()
    );
    let context = || format!("cannot read folder {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(context)?;
    let mut entries = entries
        .collect::<Result<Vec<_>, _>>()
        .with_context(context)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().with_context(context)?);
        let skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
        let ending = path.extension().unwrap_or_default();
        if skipped {
            // In a second worktree `.git` is a file.
            continue;
        }
        if kind.is_dir() {
            collect(&path, depth + 1, paths)?;
        } else if kind.is_file() && TEXT.iter().any(|e| ending == *e) {
            paths.push(path);
        }
    }
    Ok(())
}

/// Words that do not belong, wherever they are.
fn words(name: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (ix, line) in text.lines().enumerate() {
        let at = format!("{}:{}", name.display(), ix + 1);
        for marker in MARKERS {
            let numbered = |(at, _): (usize, &str)| line[at + marker.len()..].starts_with("(#");
            if !whole(line, marker).all(numbered) {
                problems.push(format!(
                    "{at}: write {marker}(#123), with the issue's number"
                ));
            }
        }
        for place in PLACES {
            if whole(line, place).next().is_some() {
                problems.push(format!("{at}: names a path of somebody's machine"));
            }
        }
    }
    problems
}

/// Where a word is in a line, not as the end of a longer word.
fn whole<'t>(line: &'t str, word: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    line.match_indices(word).filter(|(at, _)| {
        let before = line[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"_-.}".contains(c))
    })
}

/// Length and first line of a Rust file.
fn module(name: &Path, text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap_or_default();
    let exempt = first.starts_with("//") && {
        let first = first.to_lowercase();
        first.contains("generated") || first.contains("tabular")
    };
    let mut problems = Vec::new();
    let doc = text.lines().find(|line| {
        let comment = line.starts_with("//") && !line.starts_with("//!");
        !line.trim().is_empty() && !comment
    });
    if !doc.is_some_and(|line| line.starts_with("//!")) && !is_test(name) {
        problems.push(format!(
            "{}:1: does not start with a //! doc line",
            name.display()
        ));
    }
    let count = code_lines(text);
    if count > LINES_MAX && !exempt && !is_test(name) {
        let name = name.display();
        problems.push(format!(
            "{name}: {count} lines of code, {LINES_MAX} are allowed"
        ));
    }
    problems
}

/// Files that hold nothing but tests, whose names and test names say enough.
fn is_test(name: &Path) -> bool {
    let stem = name
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    let folder = |part: &std::ffi::OsStr| part == "tests" || part == "benches";
    stem == "tests" || stem.ends_with("_tests") || name.iter().any(folder)
}

/// Lines outside of `#[cfg(test)] mod .. { .. }`.
fn code_lines(text: &str) -> usize {
    let (mut count, mut lines) = (0, text.lines().peekable());
    while let Some(line) = lines.next() {
        let opens = |next: &&str| next.contains("mod ") && next.trim_end().ends_with('{');
        if line.trim() != "#[cfg(test)]" || lines.next_if(opens).is_none() {
            count += 1;
            continue;
        }
        // The formatter puts the closing brace under the attribute.
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        lines.by_ref().find(|line| *line == end);
    }
    count
}

/// Names of the packages of the workspace: folders with a manifest.
fn crates(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut names = BTreeSet::from(["xtask".to_owned()]);
    for entry in std::fs::read_dir(root.join("crates")).context("cannot read crates")? {
        let entry = entry.context("cannot read crates")?;
        if entry.path().join("Cargo.toml").is_file() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Crates that ARCHITECTURE.md forgets or makes up; it writes their names in backticks.
fn listing(text: &str, crates: &BTreeSet<String>) -> Vec<String> {
    let named: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    let missing = crates.iter().filter(|name| !named.contains(name.as_str()));
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let extra = (named.iter())
        .filter(|name| name.starts_with("joiner-") && is_name(name))
        .filter(|name| !crates.contains(**name));
    let missing = missing.map(|name| format!("ARCHITECTURE.md does not list `{name}`"));
    let extra = extra.map(|name| format!("ARCHITECTURE.md lists `{name}`, which is no crate"));
    missing.chain(extra).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_need_a_number() {
        let check = |line: &str| words(Path::new("a.rs"), line).len();
        let [marker, _] = MARKERS;
        assert_eq!(check(&format!("// {marker}: later")), 1);
        assert_eq!(check(&format!("// {marker}(#12): later")), 0);
        assert_eq!(check(&format!("NOT{marker}")), 0);
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let check = |line: &str| words(Path::new("a.md"), line).len();
        assert_eq!(check(&format!("see {}notes.md", PLACES[0])), 1);
        assert_eq!(check(&format!("see {}notes.md", PLACES[1])), 1);
        assert_eq!(check("see src/lib.rs and frame/ and net/"), 0);
    }

    #[test]
    fn tests_are_not_counted() {
        let text =
            "//! Doc.\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(code_lines(text), 3);
        assert_eq!(code_lines("#[cfg(test)]\nmod tests;\n"), 2);
    }

    #[test]
    fn long_and_undocumented_modules_are_found() {
        let long = format!("//! Doc.\n{}", "fn a() {}\n".repeat(LINES_MAX));
        let check = |name: &str, text: &str| module(Path::new(name), text).len();
        assert_eq!(check("src/a.rs", &long), 1);
        assert_eq!(check("tests/a.rs", &long), 0);
        assert_eq!(
            check("src/a.rs", &long.replace("Doc.", "Tabular: figures.")),
            0
        );
        assert_eq!(check("src/a.rs", "fn a() {}\n"), 1);
        assert_eq!(check("src/tests/a.rs", "fn a() {}\n"), 0);
        assert_eq!(check("src/a.rs", "// Copyright.\n\n//! Doc.\n"), 0);
    }

    #[test]
    fn the_architecture_lists_exactly_our_crates() {
        let crates = BTreeSet::from(["joiner".to_owned(), "joiner-model".to_owned()]);
        assert!(
            listing(
                "`joiner` and `joiner-model`, see `joiner-model/src`",
                &crates
            )
            .is_empty()
        );
        let problems = listing("`joiner` and `joiner-magic`", &crates);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
