//! The hash of a structure, as upstream's annotations carry it: FNV-1 with 64 bits over little-endian
//! words, lists as sets, fields without a value left out.
//!
//! What goes in, under which names and in which order, is the business of the one who knows the kind.

use std::collections::BTreeMap;

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// A structure while it is hashed: its name, then field by field.
#[derive(Clone, Copy, Debug)]
pub struct Fields(u64);

impl Fields {
    /// A structure of this type, without fields so far.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self(string(name))
    }

    /// The next field. One without a value leaves no trace.
    #[must_use]
    pub fn with(self, name: &str, value: Option<u64>) -> Self {
        match value {
            Some(value) => Self(numbers(&[self.0 ^ numbers(&[string(name), value])])),
            None => self,
        }
    }

    /// The hash of all that was put in.
    #[must_use]
    pub fn hash(self) -> u64 {
        self.0
    }
}

/// A list counts as a set: its order does not matter. An empty one is not the same as none.
pub fn set(items: impl Iterator<Item = u64>) -> u64 {
    items.fold(0, |all, own| all ^ own)
}

/// A map of texts.
#[must_use]
pub fn map(map: &BTreeMap<String, String>) -> u64 {
    map_with(map.iter().map(|(key, value)| (key, string(value))))
}

/// A map whose values are hashed already.
pub fn map_with<'k>(entries: impl Iterator<Item = (&'k String, u64)>) -> u64 {
    numbers(&[set(
        entries.map(|(key, value)| numbers(&[string(key), value]))
    )])
}

/// Empty text counts as none.
#[must_use]
pub fn text(text: &str) -> Option<u64> {
    (!text.is_empty()).then(|| string(text))
}

/// A text, empty or not.
#[must_use]
pub fn string(text: &str) -> u64 {
    bytes(text.bytes())
}

/// Numbers of 64 bits, one after another.
#[must_use]
pub fn numbers(numbers: &[u64]) -> u64 {
    bytes(numbers.iter().flat_map(|number| number.to_le_bytes()))
}

/// FNV-1: multiply first, then the byte.
pub fn bytes(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(FNV_START, |hash, byte| {
        hash.wrapping_mul(FNV_PRIME) ^ u64::from(byte)
    })
}
