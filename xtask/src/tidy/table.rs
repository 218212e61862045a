//! The table of what is left of each thing in each crate.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context;

use super::counts::Counted;

/// Where the table is.
pub(super) const PATH: &str = "xtask/tidy.toml";
const HEADER: &str = "\
# How much is left, in each crate, of what CONTRIBUTING.md asks to write differently. Numbers only fall.
# Written by `cargo xtask tidy --write`. In a conflict of a merge keep the smaller number, then write it again.
";

/// Numbers above zero, for each crate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table(pub(super) BTreeMap<String, BTreeMap<Counted, usize>>);

impl Table {
    /// Reads what [`Table::text`] wrote.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let crates: BTreeMap<String, BTreeMap<String, usize>> = toml::from_str(text)
            .with_context(|| format!("cannot read {PATH}: keep the smaller number of each line, then run cargo xtask tidy --write"))?;
        let mut table = Self::default();
        for (name, numbers) in crates {
            for (key, n) in numbers {
                let counted = Counted::ALL
                    .into_iter()
                    .find(|counted| counted.key() == key);
                let counted = counted.with_context(|| {
                    format!("{PATH}: [{name}] has `{key}`, which is not counted: remove the line")
                })?;
                table.set(&name, counted, n);
            }
        }
        Ok(table)
    }

    /// The table as a file.
    pub(super) fn text(&self) -> String {
        let mut text = String::from(HEADER);
        for (name, numbers) in &self.0 {
            // Writing to a string does not fail.
            let _ = write!(text, "\n[{name}]\n");
            for (counted, n) in numbers {
                let _ = writeln!(text, "{} = {n}", counted.key());
            }
        }
        text
    }

    /// Zero for what is not in the table.
    pub(super) fn get(&self, name: &str, counted: Counted) -> usize {
        let numbers = self.0.get(name);
        numbers.and_then(|n| n.get(&counted)).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, name: &str, counted: Counted, n: usize) {
        if n > 0 {
            let numbers = self.0.entry(name.to_owned()).or_default();
            numbers.insert(counted, n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_reads_back_in_order() {
        let mut table = Table::default();
        table.set("joiner-b", Counted::Words, 7);
        table.set("joiner-b", Counted::Cycles, 2);
        table.set("joiner-b", Counted::Types, 0);
        table.set("joiner-a", Counted::OwnInTests, 1);
        let text = table.text();
        let rows = "\n[joiner-a]\nown-in-tests = 1\n\n[joiner-b]\ncycles = 2\nwords = 7\n";
        assert!(text.ends_with(rows), "{text}");
        assert_eq!(Table::parse(&text).unwrap(), table);
        assert_eq!(table.get("joiner-b", Counted::Words), 7);
        assert_eq!(table.get("joiner-c", Counted::Words), 0);
    }

    #[test]
    fn what_is_no_table_says_what_to_do() {
        for (text, expected) in [
            ("[a]\nmagic = 1\n", "[a] has `magic`"),
            ("[a]\n<<<<<<< main\nown = 1\n", "keep the smaller number"),
            ("[a]\nown = -1\n", "keep the smaller number"),
        ] {
            let error = format!("{:#}", Table::parse(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
