//! Numbers that may fall and never rise: what is counted in each crate against the table of what there was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::base;
use super::counts::{Counted, Counts, Found, Source, Spot, count};
use super::table::{self, Table};

/// Spots that a message lists.
const SPOTS_MAX: usize = 20;
/// Characters of a line that a message shows.
const CHARACTERS_MAX: usize = 90;

/// What there is in each crate.
pub(super) struct Ratchet {
    crates: BTreeMap<String, Counts>,
    /// What there may be, and the file that says so; none before it is written the first time.
    table: Option<(Table, String)>,
}

impl Ratchet {
    /// Counts in all crates of the workspace, and reads the table.
    pub(super) fn read(root: &Path, sources: Vec<Source>) -> anyhow::Result<Self> {
        let mut of_crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
        for source in sources {
            if let Some(name) = crate_of(&source.name) {
                of_crates.entry(name).or_default().push(source);
            }
        }
        let counts = |(name, sources): (String, Vec<Source>)| {
            let counts = count(&folder(&name), &sources);
            (name, counts)
        };
        let crates = of_crates.into_iter().map(counts).collect();
        let path = root.join(table::PATH);
        let table = if path.is_file() {
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", table::PATH))?;
            Some((Table::parse(&text)?, text))
        } else {
            None
        };
        Ok(Self { crates, table })
    }

    /// The table with the numbers that have fallen since; the very first one has all as they are.
    pub(super) fn lowered(&self) -> Table {
        let mut lowered = Table::default();
        for (name, counts) in &self.crates {
            for (counted, found) in counts {
                let allowed = match &self.table {
                    Some((table, _)) => table.get(name, *counted),
                    None => found.n,
                };
                lowered.set(name, *counted, found.n.min(allowed));
            }
        }
        lowered
    }

    /// Every number that is not that of the table.
    pub(super) fn problems(&self, root: &Path) -> Vec<String> {
        let Some((table, text)) = &self.table else {
            let path = table::PATH;
            return vec![format!("{path} is missing: run cargo xtask tidy --write")];
        };
        let mut problems = Vec::new();
        let none = Counts::new();
        let names: BTreeSet<&String> = self.crates.keys().chain(table.0.keys()).collect();
        for name in names {
            let counts = self.crates.get(name).unwrap_or(&none);
            let before = || Some(count(&folder(name), &base::sources(root, &folder(name))?));
            problems.extend(compare(name, counts, table, &before));
        }
        if problems.is_empty() && table.text() != *text {
            let path = table::PATH;
            problems.push(format!(
                "{path} is not as it is written: run cargo xtask tidy --write"
            ));
        }
        problems
    }
}

/// What is wrong with the numbers of a crate. `before` counts in the crate as it was when the table was written.
fn compare(
    name: &str,
    counts: &Counts,
    table: &Table,
    before: &dyn Fn() -> Option<Counts>,
) -> Vec<String> {
    let none = Found::default();
    let found = |counted| counts.get(&counted).unwrap_or(&none);
    let is_higher = |counted: Counted| found(counted).n > table.get(name, counted);
    let is_any_higher = Counted::ALL.into_iter().any(is_higher);
    let before = if is_any_higher { before() } else { None };
    let mut problems = Vec::new();
    for counted in Counted::ALL {
        let (found, allowed) = (found(counted), table.get(name, counted));
        let head = format!("{name}: {} {}", found.n, counted.label());
        if found.n > allowed {
            let old = before.as_ref().map(|before| before.get(&counted));
            let (which, spots) = new_spots(found, old.map(|old| old.unwrap_or(&none)));
            let way_out = counted.way_out();
            let list = list(&spots);
            problems.push(format!(
                "{head}, {allowed} at most: {way_out}; {which}:{list}"
            ));
        } else if found.n < allowed {
            problems.push(format!(
                "{head}, fewer than the {allowed} in {}: run cargo xtask tidy --write",
                table::PATH
            ));
        }
    }
    problems
}

/// The spots that were not there before, wherever in the crate they were; all where that is not known.
fn new_spots<'f>(found: &'f Found, old: Option<&Found>) -> (&'static str, Vec<&'f Spot>) {
    if let Some(old) = old {
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for spot in old.spots.iter().chain(&old.harmless) {
            *known.entry(&spot.what).or_default() += 1;
        }
        let is_new = |spot: &&Spot| match known.get_mut(spot.what.as_str()) {
            Some(n) if *n > 0 => {
                *n -= 1;
                false
            }
            Some(_) | None => true,
        };
        let new: Vec<&Spot> = found.spots.iter().filter(is_new).collect();
        if !new.is_empty() {
            return ("new are", new);
        }
    }
    ("all of them are", found.spots.iter().collect())
}

/// Spots as lines of a message.
fn list(spots: &[&Spot]) -> String {
    let mut list = String::new();
    for spot in spots.iter().take(SPOTS_MAX) {
        write_spot(&mut list, "    ", spot);
        for spot in &spot.closed_by {
            write_spot(&mut list, "      because ", spot);
        }
    }
    if let Some(n) = spots.len().checked_sub(SPOTS_MAX).filter(|n| *n > 0) {
        // Writing to a string does not fail.
        let _ = write!(list, "\n    and {n} more");
    }
    list
}

fn write_spot(list: &mut String, before: &str, spot: &Spot) {
    let what: String = spot.what.chars().take(CHARACTERS_MAX).collect();
    // Writing to a string does not fail.
    let _ = write!(
        list,
        "\n{before}{}:{}: {what}",
        spot.name.display(),
        spot.line
    );
}

/// The crate that a file belongs to.
fn crate_of(name: &Path) -> Option<String> {
    let mut parts = name.iter().map(|part| part.to_string_lossy());
    match &*parts.next()? {
        "crates" => parts.next().map(|name| name.into_owned()),
        "xtask" => Some("xtask".to_owned()),
        _ => None,
    }
}

/// The folder of a crate.
fn folder(name: &str) -> PathBuf {
    match name {
        "xtask" => PathBuf::from(name),
        _ => Path::new("crates").join(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/joiner-a/src/x.rs";

    fn source(name: &str, text: &str) -> Source {
        Source {
            name: name.into(),
            text: text.to_owned(),
        }
    }

    fn counts(files: &[(&str, &str)]) -> Counts {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| source(name, text))
            .collect();
        count(Path::new("crates/joiner-a"), &sources)
    }

    fn table(counted: Counted, n: usize) -> Table {
        let mut table = Table::default();
        table.set("joiner-a", counted, n);
        table
    }

    #[test]
    fn a_number_may_neither_rise_nor_fall_unseen() {
        let counts = counts(&[(FILE, "fn f(own: u8) {}\nfn g() { let own = 1; }")]);
        let check = |n| compare("joiner-a", &counts, &table(Counted::Own, n), &|| None);
        assert!(check(2).is_empty());
        assert_eq!(
            check(1),
            [
                "joiner-a: 2 variables called `own`, 1 at most: say what the variable holds, as in \
              `labels_of_pod` or `lease`; all of them are:\
              \n    crates/joiner-a/src/x.rs:1: fn f(own: u8) {}\
              \n    crates/joiner-a/src/x.rs:2: fn g() { let own = 1; }"
            ]
        );
        assert_eq!(
            check(3),
            [
                "joiner-a: 2 variables called `own`, fewer than the 3 in xtask/tidy.toml: \
              run cargo xtask tidy --write"
            ]
        );
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_may_have_none() {
        let check = |text| {
            compare(
                "joiner-a",
                &counts(&[(FILE, text)]),
                &Table::default(),
                &|| None,
            )
        };
        assert_eq!(check("struct Place;").len(), 1);
        assert!(check("struct Placement;").is_empty());
    }

    #[test]
    fn only_new_spots_are_listed_where_the_old_ones_are_known() {
        let old = counts(&[(FILE, "fn f() {}\nlet own = 1;\nlet own = 1;")]);
        let moved = "crates/joiner-a/src/y.rs";
        let new = counts(&[(moved, "  let own = 1;\nlet own = 2;\nlet own = 1;")]);
        let (_, spots) = new_spots(&new[&Counted::Own], old.get(&Counted::Own));
        let spots: Vec<_> = spots.iter().map(|spot| (spot.line, &*spot.what)).collect();
        assert_eq!(spots, [(2, "let own = 2;")]);
    }

    #[test]
    fn a_new_cycle_is_told_by_what_closes_it() {
        let x = (FILE, "use crate::y::Y;");
        let z = ("crates/joiner-a/src/z.rs", "use crate::x::X;");
        let y = "crates/joiner-a/src/y.rs";
        let before = || Some(counts(&[x, (y, ""), z]));
        let now = counts(&[x, (y, "use crate::z::Z;"), z]);
        let problems = compare("joiner-a", &now, &Table::default(), &before);
        assert_eq!(
            problems,
            [
                "joiner-a: 3 modules in cycles, 0 at most: move what both modules need into one that \
              names neither, or pass it in as an argument; new are:\
              \n    crates/joiner-a/src/y.rs:1: y uses z\
              \n      because crates/joiner-a/src/z.rs:1: z uses x\
              \n      because crates/joiner-a/src/x.rs:1: x uses y"
            ]
        );
    }

    #[test]
    fn tests_are_counted_apart() {
        let counts = counts(&[(
            "crates/joiner-a/tests/x.rs",
            "type Outcome = u8; fn f(own: u8) {}",
        )]);
        let found: Vec<_> = counts
            .iter()
            .map(|(counted, found)| (*counted, found.n))
            .collect();
        assert_eq!(
            found,
            [(Counted::OwnInTests, 1), (Counted::TypesInTests, 1)]
        );
    }

    #[test]
    fn writing_lowers_numbers_and_raises_none() {
        let ratchet = |table: Option<Table>| Ratchet {
            crates: [(
                "joiner-a".to_owned(),
                counts(&[(FILE, "fn f(own: u8) {}\nenum Step {}")]),
            )]
            .into(),
            table: table.map(|table| (table.clone(), table.text())),
        };
        let first = ratchet(None).lowered();
        let numbers =
            |table: &Table| [Counted::Own, Counted::Types].map(|c| table.get("joiner-a", c));
        assert_eq!(numbers(&first), [1, 1]);
        let mut old = table(Counted::Own, 5);
        old.set("joiner-gone", Counted::Words, 1);
        let lowered = ratchet(Some(old)).lowered();
        assert_eq!(numbers(&lowered), [1, 0]);
        assert_eq!(lowered.get("joiner-gone", Counted::Words), 0);
    }

    #[test]
    fn files_belong_to_the_crate_whose_folder_they_are_in() {
        for (name, expected) in [
            (FILE, Some("joiner-a")),
            ("xtask/src/main.rs", Some("xtask")),
            ("examples/x.rs", None),
        ] {
            assert_eq!(crate_of(Path::new(name)).as_deref(), expected);
        }
        assert_eq!(folder("xtask"), Path::new("xtask"));
    }
}
