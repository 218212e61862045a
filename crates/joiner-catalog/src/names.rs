//! Shares equal texts while a catalog is built, so that thousands of labels cost few allocations.

use joiner_model::Name;
use rustc_hash::FxHashMap;

/// Texts handed out so far.
#[derive(Default)]
pub(crate) struct Names {
    texts: FxHashMap<Name, Name>,
    numbers: FxHashMap<u64, Name>,
}

impl Names {
    /// The shared form of a text.
    pub(crate) fn text(&mut self, text: &str) -> Name {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let name = Name::from(text);
        self.texts.insert(name.clone(), name.clone());
        name
    }

    /// The shared form of a number in decimal.
    pub(crate) fn number(&mut self, number: u64) -> Name {
        self.numbers
            .entry(number)
            .or_insert_with(|| number.to_string().into())
            .clone()
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, flag: bool) -> Name {
        self.text(if flag { "true" } else { "false" })
    }
}
