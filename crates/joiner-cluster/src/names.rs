//! Names and hashes that look random and are not.
//!
//! Upstream draws the endings of generated names by chance. Here they derive from the seed of the
//! run, the owner's uid and a counter, so that the same run gives the same names.

use std::collections::BTreeSet;

use joiner_machinery::meta;
use serde_json::Value;

use crate::view::{Resource, View};

/// Letters and digits that spell no words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters that a generated name ends in.
const SUFFIX_LENGTH: usize = 5;
/// What a generated name may keep of its base, so that the whole fits into a label.
const BASE_MAX: usize = 63 - SUFFIX_LENGTH;
/// Tries to find a free name before the last one is taken as it is.
const TRIES_MAX: u64 = 64;

/// A hash that is the same on every machine and in every version (FNV-1a, 64 bits).
#[derive(Clone, Copy)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes in a text and where it ends.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).bytes(&[0xff])
    }

    /// Takes in a number.
    #[must_use]
    pub fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Takes in a JSON value; the order of fields does not matter, and null is as good as absent.
    #[must_use]
    pub fn value(self, value: &Value) -> Self {
        self.filtered(value, "")
    }

    /// All that was taken in, stirred so that every bit depends on all of it.
    #[must_use]
    pub fn finish(self) -> u64 {
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// A value without the fields of this name.
    fn filtered(self, value: &Value, skip: &str) -> Self {
        match value {
            Value::Null => self.bytes(b"n"),
            Value::Bool(flag) => self.bytes(if *flag { b"t" } else { b"f" }),
            Value::Number(number) => self.bytes(b"#").text(&number.to_string()),
            Value::String(text) => self.bytes(b"\"").text(text),
            Value::Array(items) => {
                let open = self.bytes(b"[");
                let all = items.iter().fold(open, |d, item| d.filtered(item, skip));
                all.bytes(b"]")
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields
                    .iter()
                    .filter(|(key, value)| !value.is_null() && key.as_str() != skip)
                    .collect();
                fields.sort_by_key(|(key, _)| key.as_str());
                let open = self.bytes(b"{");
                let all = fields
                    .into_iter()
                    .fold(open, |d, (key, value)| d.text(key).filtered(value, skip));
                all.bytes(b"}")
            }
        }
    }
}

/// What a pod template says, apart from the label that carries its hash.
#[must_use]
pub fn template_digest(template: &Value) -> u64 {
    let digest = Digest::default();
    digest.filtered(template, "pod-template-hash").finish()
}

/// The hash of a pod template as it shows in names and labels: 8 to 10 characters. `collisions`
/// moves on to another hash when a name is taken.
#[must_use]
pub fn template_hash(digest: u64, collisions: i64) -> String {
    let mixed = match u64::try_from(collisions) {
        Ok(0) | Err(_) => digest,
        Ok(collisions) => Digest::default().number(digest).number(collisions).finish(),
    };
    // At least eight digits, as nearly every 32-bit hash has.
    let number = 10_000_000 + mixed % (u64::from(u32::MAX) - 10_000_000);
    spell(number.to_string().bytes().map(u64::from))
}

/// Five characters that depend on all three.
#[must_use]
pub fn suffix(seed: u64, uid: &str, counter: u64) -> String {
    let digest = Digest::default().number(seed).text(uid).number(counter);
    let hash = digest.finish();
    let letters = ALPHABET.len() as u64;
    spell((0..SUFFIX_LENGTH as u32).map(|place| hash / letters.pow(place)))
}

/// Sixteen hexadecimal digits.
#[must_use]
pub fn hex(number: u64) -> String {
    format!("{number:016x}")
}

/// Gives out names for new objects of one owner that nobody has yet.
pub struct Fresh<'a> {
    view: View<'a>,
    resource: Resource,
    namespace: String,
    base: String,
    uid: String,
    counter: u64,
    given: BTreeSet<String>,
}

impl<'a> Fresh<'a> {
    /// Names beside an owner that start with `base`. Time and version of the owner are mixed in, so
    /// that a name is not given again as soon as its first bearer is gone.
    #[must_use]
    pub fn new(view: &View<'a>, resource: Resource, owner: &Value, base: &str) -> Self {
        let now = view.now.as_nanosecond() as u64;
        let version = meta::text(owner, "resourceVersion");
        Self {
            view: *view,
            resource,
            namespace: meta::namespace(owner).to_owned(),
            base: base.chars().take(BASE_MAX).collect(),
            uid: meta::uid(owner).to_owned(),
            counter: Digest::default().number(now).text(version).finish(),
            given: BTreeSet::new(),
        }
    }

    /// The next one.
    pub fn name(&mut self) -> String {
        let mut name = String::new();
        for _ in 0..TRIES_MAX {
            let ending = suffix(self.view.seed, &self.uid, self.counter);
            self.counter = self.counter.wrapping_add(1);
            name = format!("{}{ending}", self.base);
            let taken = self.view.get(self.resource, &self.namespace, &name);
            if taken.is_none() && self.given.insert(name.clone()) {
                break;
            }
        }
        name
    }
}

fn spell(numbers: impl Iterator<Item = u64>) -> String {
    let letter = |number: u64| char::from(ALPHABET[(number % ALPHABET.len() as u64) as usize]);
    numbers.map(letter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_label_and_the_order_of_fields_do_not_change_a_template() {
        let plain = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"x": 1, "y": [2]}});
        let labeled = json!({
            "spec": {"y": [2], "x": 1, "z": null},
            "metadata": {"labels": {"pod-template-hash": "abc", "app": "a"}},
        });
        let other = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"x": 2, "y": [2]}});
        assert_eq!(template_digest(&plain), template_digest(&labeled));
        assert_ne!(template_digest(&plain), template_digest(&other));
    }

    #[test]
    fn hashes_have_eight_to_ten_characters_of_the_alphabet() {
        for n in 0..2000_u64 {
            let hash = template_hash(Digest::default().number(n).finish(), 0);
            assert!((8..=10).contains(&hash.len()), "{hash}");
            assert!(hash.bytes().all(|b| ALPHABET.contains(&b)), "{hash}");
        }
        assert_ne!(template_hash(7, 0), template_hash(7, 1));
    }

    #[test]
    fn suffixes_depend_on_seed_owner_and_counter() {
        let one = suffix(1, "a", 0);
        assert_eq!(one.len(), 5);
        assert_eq!(one, suffix(1, "a", 0));
        let all = [suffix(2, "a", 0), suffix(1, "b", 0), suffix(1, "a", 1)];
        assert!(all.iter().all(|other| *other != one), "{all:?} and {one}");
    }
}
