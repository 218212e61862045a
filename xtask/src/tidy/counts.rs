//! What is counted in a crate, and what it comes to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::modules::{self, uses};
use super::tokens::Tokens;
use super::{bindings, identifiers};

/// A text file of Rust.
pub(super) struct Source {
    /// Below the folder of the workspace.
    pub(super) name: PathBuf,
    pub(super) text: String,
}

/// Something that there should be none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Cycles,
    Own,
    OwnInTests,
    Types,
    TypesInTests,
    Words,
    WordsInTests,
}

/// A thing that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) name: PathBuf,
    pub(super) line: usize,
    /// The line itself, or which module uses which.
    pub(super) what: String,
    /// For a module that uses another, why that is a cycle.
    pub(super) closed_by: Vec<Spot>,
}

/// A number, and what makes it up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) n: usize,
    pub(super) spots: Vec<Spot>,
    /// What is of that kind and not counted.
    pub(super) harmless: Vec<Spot>,
}

/// What was found in a crate; nothing of what there is none of.
pub(super) type Counts = BTreeMap<Counted, Found>;

impl Counted {
    pub(super) const ALL: [Self; 7] = [
        Self::Cycles,
        Self::Own,
        Self::OwnInTests,
        Self::Types,
        Self::TypesInTests,
        Self::Words,
        Self::WordsInTests,
    ];

    /// How the table calls it.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Own => "own",
            Self::OwnInTests => "own-in-tests",
            Self::Types => "types",
            Self::TypesInTests => "types-in-tests",
            Self::Words => "words",
            Self::WordsInTests => "words-in-tests",
        }
    }

    /// What a number of them is a number of.
    pub(super) fn label(self) -> String {
        let variable = identifiers::VARIABLE;
        let types = identifiers::TYPES.join(" or ");
        let words = identifiers::WORDS.join(", ");
        match self {
            Self::Cycles => "modules in cycles".to_owned(),
            Self::Own => format!("variables called `{variable}`"),
            Self::OwnInTests => format!("variables called `{variable}` in tests"),
            Self::Types => format!("types called {types}"),
            Self::TypesInTests => format!("types called {types} in tests"),
            Self::Words => format!("words among {words}"),
            Self::WordsInTests => format!("words among {words} in tests"),
        }
    }

    /// What to write instead.
    pub(super) const fn way_out(self) -> &'static str {
        match self {
            Self::Cycles => {
                "move what both modules need into one that names neither, or pass it in as an argument"
            }
            Self::Own | Self::OwnInTests => {
                "say what the variable holds, as in `labels_of_pod` or `lease`"
            }
            Self::Types | Self::TypesInTests => {
                "put the domain's noun into the name, as in `Placement` or `DrainAction`"
            }
            Self::Words | Self::WordsInTests => {
                "say who it is: the operator, the kubelet, another controller, no client"
            }
        }
    }
}

/// Counts in all files of a crate; `folder` is that of the crate.
pub(super) fn count(folder: &Path, sources: &[Source]) -> Counts {
    let lexed: Vec<(&Source, &Path, Tokens<'_>)> = (sources.iter())
        .filter_map(|source| {
            let below = source.name.strip_prefix(folder).ok()?;
            Some((source, below, Tokens::of(&source.text)))
        })
        .collect();
    let mut counts = Counts::new();
    for (source, below, tokens) in &lexed {
        let is_test = ["tests", "benches", "examples"]
            .iter()
            .any(|f| below.starts_with(f));
        let [own, types, words] = match is_test {
            false => [Counted::Own, Counted::Types, Counted::Words],
            true => [
                Counted::OwnInTests,
                Counted::TypesInTests,
                Counted::WordsInTests,
            ],
        };
        for (counted, lines) in [
            (own, bindings::lines(tokens, identifiers::VARIABLE)),
            (types, identifiers::types(tokens)),
            (words, identifiers::words(&source.text)),
        ] {
            if !lines.is_empty() {
                let found = counts.entry(counted).or_default();
                found.n += lines.len();
                found.spots.extend(spots(source, &lines));
            }
        }
    }
    counts.insert(Counted::Cycles, in_cycles(folder, &lexed));
    counts.retain(|_, found| found.n > 0 || !found.harmless.is_empty());
    counts
}

/// The text of some lines.
fn spots(source: &Source, lines: &[usize]) -> Vec<Spot> {
    let text: Vec<&str> = source.text.lines().collect();
    let spot = |line: &usize| Spot {
        name: source.name.clone(),
        line: *line,
        what: text
            .get(*line - 1)
            .map_or("", |text| text.trim())
            .to_owned(),
        closed_by: Vec::new(),
    };
    lines.iter().map(spot).collect()
}

/// The modules that are in cycles, and the uses that make up these.
fn in_cycles(folder: &Path, lexed: &[(&Source, &Path, Tokens<'_>)]) -> Found {
    let uses = uses(lexed.iter().map(|(_, below, tokens)| (*below, tokens)));
    let mut found = Found {
        n: modules::in_cycles(&uses).len(),
        ..Found::default()
    };
    let spot = |from: &str, to: &str| {
        let at = &uses[from][to];
        Spot {
            name: folder.join(&at.path),
            line: at.line,
            what: format!("{from} uses {to}"),
            closed_by: Vec::new(),
        }
    };
    for (from, of_module) in &uses {
        for to in of_module.keys() {
            let mut spot_here = spot(from, to);
            match modules::way(&uses, to, from) {
                Some(way) => {
                    spot_here.closed_by = way.windows(2).map(|w| spot(w[0], w[1])).collect();
                    found.spots.push(spot_here);
                }
                None => found.harmless.push(spot_here),
            }
        }
    }
    found
}
