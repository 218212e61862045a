//! Shared text: equal names are stored once.

use std::collections::HashSet;

use joiner_model::Name;

/// Hands out one [`Name`] per distinct text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    known: HashSet<Name>,
}

impl Names {
    /// Throws away what nobody else has.
    pub(crate) fn drop_unused(&mut self) {
        self.known.retain(|name| Name::strong_count(name) > 1);
    }

    /// The shared copy of `text`.
    pub(crate) fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.known.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        self.known.insert(name.clone());
        name
    }
}
