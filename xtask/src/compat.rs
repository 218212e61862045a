//! docs/compat.md: which test shows which behavior of upstream, by the names of tests.
//!
//! A test for behavior 176 is called `core_176_..`. One test may be about several:
//! `core_189_190_..`, `core_261_and_264_..`, `core_247_to_251_..`. Rules of fields have the section
//! before the number, `core_11_1_05_..` and `aws_28_05_..`. Other names with two small numbers, such
//! as `core_1_5_..`, are about a section as a whole and are not listed.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where the page is.
pub(crate) const PAGE: &str = "docs/compat.md";
/// Folders do not go deeper.
const DEPTH_MAX: usize = 16;
const TOP: &str = "\
# Compatibility with Karpenter

Each row is one behavior of upstream that users can rely on, and the test that shows that we behave the same.

- **Number** names the behavior. Tests carry it in their name: behavior 176 is tested by `core_176_..`.
- **Behavior** says what happens, in our words.
- **Test** is the crate, the file and the name of the test.

A behavior that we leave out on purpose has a dash and a reason instead of a test. Where we decide differently, the row
points to [ADR 8](adr/0008-where-we-part-from-upstream.md).

`cargo xtask gen` makes this page from the names of tests.
";
const HEAD: &str = "| Number | Behavior | Test |\n|---|---|---|\n";
const AWS: &str = "Numbers of the AWS provider. Those that also speak of scheduling are tested for their figures here.";

const DEVICES: &str = "claims for devices (Dynamic Resource Allocation) are alpha upstream and off \
                       by default; pods that have them get an event";

/// Behaviors of the core that are left out on purpose, and why.
const LEFT_OUT: [(u32, &str); 10] = [
    (
        107,
        "a default grace period that a provider sets for all its pools: no provider of ours has one; \
         what a pool says is kept, and what it does not say stays open",
    ),
    (
        195,
        "drivers and topology keys that a provider declares unsupported: no provider of ours has any \
         to declare",
    ),
    (207, DEVICES),
    (208, DEVICES),
    (209, DEVICES),
    (210, DEVICES),
    (211, DEVICES),
    (212, DEVICES),
    (213, DEVICES),
    (214, DEVICES),
];

/// A row: number, behavior, and test or reason.
type Row = (u32, String, String);

/// The page for the crates below this folder.
pub(crate) fn page(root: &Path) -> anyhow::Result<String> {
    let mut files = Vec::new();
    collect(&root.join("crates"), 0, &mut files)?;
    files.sort();
    let mut tests = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let place = place(path.strip_prefix(root).unwrap_or(&path));
        tests.extend(names(&text).map(|name| (place.clone(), name.to_owned())));
    }
    Ok(render(&tests))
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    anyhow::ensure!(depth < DEPTH_MAX, "{} is too deep", folder.display());
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry.context("cannot read a folder")?.path();
        if path.is_dir() {
            collect(&path, depth + 1, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Crate and file, as the page has them.
fn place(path: &Path) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let own = parts.get(1).copied().unwrap_or_default();
    let own = own.strip_prefix("joiner-").unwrap_or(own);
    let file = match parts.as_slice() {
        [.., folder, "mod.rs" | "main.rs" | "tests.rs"] => folder,
        [.., file] => file.trim_end_matches(".rs"),
        [] => "",
    };
    format!("{own} `{file}`")
}

/// Functions of a file that are named like tests of behaviors, in order.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
        let rest = name.strip_prefix("core_").or(name.strip_prefix("aws_"))?;
        rest.starts_with(|c: char| c.is_ascii_digit())
            .then_some(name)
    })
}

/// Numbers and words of a test's name without its first word; no numbers when it is about none.
fn parse(name: &str) -> (Vec<u32>, String) {
    let parts: Vec<&str> = name.split('_').collect();
    let number = |at: usize| parts.get(at).and_then(|part| part.parse::<u32>().ok());
    let words = |from: usize| parts[from.min(parts.len())..].join(" ");
    match parts.as_slice() {
        ["11", "1", ..] => return (number(2).into_iter().collect(), words(3)),
        ["28", ..] => return (number(1).into_iter().collect(), words(2)),
        [first, second, ..] if first.len() < 3 && second.parse::<u32>().is_ok() => {
            return (Vec::new(), words(2));
        }
        _ => {}
    }
    let mut all: Vec<u32> = number(0).into_iter().collect();
    let mut at = all.len();
    loop {
        match (parts.get(at).copied(), number(at), number(at + 1)) {
            (_, Some(next), _) => {
                all.push(next);
                at += 1;
            }
            (Some("and"), _, Some(next)) => {
                all.push(next);
                at += 2;
            }
            (Some("to"), _, Some(last)) => {
                let first = all.last().map_or(last, |own| own + 1);
                all.extend(first..=last);
                at += 2;
            }
            _ => return (all, words(at)),
        }
    }
}

/// The page for these tests: place and name of each.
fn render(tests: &[(String, String)]) -> String {
    let rows = |prefix: &str| -> Vec<Row> {
        let of = |(place, name): &(String, String)| {
            let (numbers, words) = parse(name.strip_prefix(prefix)?);
            let row = move |number| (number, words.clone(), format!("{place}: `{name}`"));
            Some(numbers.into_iter().map(row).collect::<Vec<Row>>())
        };
        tests.iter().filter_map(of).flatten().collect()
    };
    let mut core = rows("core_");
    let left_out = LEFT_OUT.iter();
    core.extend(left_out.map(|(n, why)| (*n, "–".to_owned(), (*why).to_owned())));
    let (core, aws) = (table(core), table(rows("aws_")));
    format!("{TOP}\n## Core\n\n{HEAD}{core}\n## AWS\n\n{AWS}\n\n{HEAD}{aws}")
}

fn table(mut rows: Vec<Row>) -> String {
    rows.sort_by_key(|row| row.0);
    let line = |(n, words, test): Row| format!("| {n} | {words} | {test} |\n");
    rows.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_names() {
        for (name, numbers, words) in [
            ("176_spread_is_kept", &[176][..], "spread is kept"),
            ("32_in_and_not_in", &[32], "in and not in"),
            ("189_190_192_where", &[189, 190, 192], "where"),
            ("261_and_264_who", &[261, 264], "who"),
            ("247_to_250_what", &[247, 248, 249, 250], "what"),
            ("099_at_most_600_types", &[99], "at most 600 types"),
            ("11_1_05_policy", &[5], "policy"),
            ("28_20_tenancies", &[20], "tenancies"),
            ("1_5_claims", &[], "claims"),
            ("12_2_kwok", &[], "kwok"),
        ] {
            let expected = (numbers.to_vec(), words.to_owned());
            assert_eq!(parse(name), expected, "{name}");
        }
    }

    #[test]
    fn tests_are_found_in_files() {
        let text = "fn core_1() {}\n  async fn aws_002_b(x: u8) {}\nfn core_x() {}\nlet core_3;\n";
        assert_eq!(names(text).collect::<Vec<_>>(), ["core_1", "aws_002_b"]);
        for (path, expected) in [
            ("crates/joiner-api/src/a/b.rs", "api `b`"),
            ("crates/joiner/tests/program/run/mod.rs", "joiner `run`"),
            ("crates/joiner-state/src/live/mod.rs", "state `live`"),
            ("crates/joiner-state/src/live/tests.rs", "state `live`"),
        ] {
            assert_eq!(place(Path::new(path)), expected);
        }
    }

    #[test]
    fn rows_are_in_order_of_their_numbers() {
        let test = |place: &str, name: &str| (place.to_owned(), name.to_owned());
        let page = render(&[
            test("b `y`", "core_215_second"),
            test("a `x`", "core_206_first"),
            test("a `x`", "aws_003_third"),
        ]);
        let at = |line: &str| page.lines().position(|own| own == line);
        let [first, left_out, second, third] = [
            "| 206 | first | a `x`: `core_206_first` |",
            &format!("| 207 | – | {DEVICES} |"),
            "| 215 | second | b `y`: `core_215_second` |",
            "| 3 | third | a `x`: `aws_003_third` |",
        ]
        .map(at);
        assert!(first.is_some(), "{page}");
        let order = [first, left_out, second, at("## AWS"), third];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    }

    #[test]
    fn every_behavior_has_tests_or_a_reason_and_not_both() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = page(root).unwrap();
        let core = page.split("## AWS").next().unwrap();
        let n_rows = |number: u32| {
            let start = format!("| {number} | ");
            core.lines().filter(|line| line.starts_with(&start)).count()
        };
        for (number, _) in LEFT_OUT {
            assert_eq!(n_rows(number), 1, "{number} has a test: it is not left out");
        }
        let missing: Vec<u32> = (1..=361).filter(|n| n_rows(*n) == 0).collect();
        assert!(missing.is_empty(), "neither test nor reason: {missing:?}");
    }
}
