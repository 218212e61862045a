//! Keys that one object has more than once: kubectl refuses them, and so do we.
//!
//! Which of the values counts depends on who reads the text, so taking any of them would be a guess.
//! Dumps of clusters are large and have no such keys, so there is a quick look at the bytes first;
//! only what it cannot clear is read with care.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::wire::Text;
use crate::wording::TWICE;

/// Objects with more keys than this are rare, and looked up instead of searched.
const SEARCHED_MAX: usize = 32;

/// False when no object in `json`, which must be well-formed, has a key twice. True is a suspicion:
/// the text may also have keys with unusual escapes, or objects with very many keys.
pub(crate) fn suspect(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut keys: Vec<&[u8]> = Vec::new();
    // Where the keys of each open object start; `None` for a list.
    let mut open: Vec<Option<usize>> = Vec::new();
    let (mut at, mut key_next) = (0, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' => open.push(Some(keys.len())),
            b'[' => open.push(None),
            b'}' | b']' => {
                if let Some(Some(start)) = open.pop() {
                    keys.truncate(start);
                }
            }
            b'"' => {
                let start = at;
                let escaped;
                (at, escaped) = string_end(bytes, at);
                if key_next {
                    let first = open.last().copied().flatten().unwrap_or(0);
                    let key = bytes.get(start..at - 1).unwrap_or_default();
                    let known = &keys[first..];
                    let crowded = known.len() >= SEARCHED_MAX;
                    if crowded || (escaped && ambiguous(key)) || known.contains(&key) {
                        return true;
                    }
                    keys.push(key);
                }
            }
            b',' => {}
            b'\n' => {
                // Indentation is most of what people and kubectl print.
                while bytes.get(at..at + 8) == Some(b"        ") {
                    at += 8;
                }
                continue;
            }
            _ => continue,
        }
        // A key comes after the start of an object, and after each comma in it.
        key_next = matches!(byte, b'{' | b',') && matches!(open.last(), Some(Some(_)));
    }
    false
}

/// True for a key that can be written in another way. Other escapes have only one spelling.
fn ambiguous(key: &[u8]) -> bool {
    key.windows(2).any(|pair| matches!(pair, b"\\u" | b"\\/"))
}

/// The position after the quote that ends a string, and whether the string has escapes.
fn string_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let mut escaped = false;
    loop {
        at += plain_prefix(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'\\') => (at, escaped) = (at + 2, true),
            Some(_) => return (at + 1, escaped),
            None => return (bytes.len(), escaped),
        }
    }
}

/// How many bytes come before the first quote or backslash, eight at a time while that goes.
fn plain_prefix(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    // Sets the top bit of the first byte that is `wanted`, and of none before it.
    let hits = |word: u64, wanted: u8| {
        let zero = word ^ u64::from_le_bytes([wanted; 8]);
        zero.wrapping_sub(ONES) & !zero & TOPS
    };
    let (words, _) = bytes.as_chunks::<8>();
    for (ix, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = hits(word, b'"') | hits(word, b'\\');
        if found != 0 {
            return ix * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let rest = words.len() * 8;
    let stop = |byte: &u8| matches!(byte, b'"' | b'\\');
    let tail = bytes[rest..].iter().position(stop);
    tail.map_or(bytes.len(), |at| rest + at)
}

/// Any value, read only to see that no object in it has a key twice. The error is about that key.
pub(crate) struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut keys = Vec::new();
        Walk(&mut keys).deserialize(deserializer)?;
        Ok(Self)
    }
}

/// One value; the keys of the objects around it are on the stack.
struct Walk<'w, 'de>(&'w mut Vec<Text<'de>>);

impl<'de> DeserializeSeed<'de> for Walk<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let start = self.0.len();
        let mut many: HashSet<Text<'de>> = HashSet::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if self.0[start..].contains(&key) || many.contains(&key) {
                return map.next_value_seed(Refuse);
            }
            if self.0.len() - start < SEARCHED_MAX {
                self.0.push(key);
            } else {
                many.insert(key);
            }
            map.next_value_seed(Walk(self.0))?;
        }
        self.0.truncate(start);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Walk(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The value of a key that was there before: refused here, where the path ends with the key.
pub(crate) struct Refuse;

impl<'de> DeserializeSeed<'de> for Refuse {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(D::Error::custom(TWICE))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON text, often with a key twice.
    fn json() -> impl Strategy<Value = String> {
        let scalar = prop_oneof![
            Just("1".to_owned()),
            Just("null".to_owned()),
            "\"[a-c,:{}\\[\\]]{0,4}\"",
            Just("\"\\\\\"".to_owned()),
            Just("\"\\\"\"".to_owned()),
        ];
        scalar.prop_recursive(4, 24, 4, |inner| {
            let key = prop_oneof![
                "[a-f]{1,2}",
                Just("\\\"".to_owned()),
                Just("a\\\\".to_owned())
            ];
            let entry = (key, inner.clone());
            prop_oneof![
                prop::collection::vec(inner, 0..4)
                    .prop_map(|v| format!("[\n            {} ]", v.join(", "))),
                prop::collection::vec(entry, 0..4).prop_map(|v| {
                    let entries: Vec<String> =
                        v.iter().map(|(k, v)| format!("\"{k}\" :{v}")).collect();
                    format!("{{{}}}", entries.join(",\n"))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_quick_look_sees_what_is_there(text in json()) {
            prop_assert_eq!(suspect(&text), path(&text).is_some(), "{}", text);
        }

        #[test]
        fn prefixes_end_at_quotes_and_backslashes(text in "([a-z]|é|\"|\\\\){0,40}") {
            let expected = text.find(['"', '\\']).unwrap_or(text.len());
            prop_assert_eq!(plain_prefix(text.as_bytes()), expected);
        }

        #[test]
        fn the_quick_look_survives_anything(text in "[\"\\\\{}\\[\\],:a ]{0,40}") {
            suspect(&text);
        }
    }

    fn path(text: &str) -> Option<String> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let found = serde_path_to_error::deserialize::<_, UniqueKeys>(&mut deserializer);
        found.err().map(|error| error.path().to_string())
    }

    #[test]
    fn the_path_ends_with_the_key() {
        for (text, expected) in [
            ("{}", None),
            ("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 1}]}", None),
            ("{\"a\": 1, \"b\": 2, \"a\": 3}", Some("a")),
            (
                "{\"a\": [{}, {\"b\": {\"c\": null, \"\\u0063\": true}}]}",
                Some("a[1].b.c"),
            ),
            ("{\"a\": {\"b\": 1}, \"a\": 1}", Some("a")),
        ] {
            assert_eq!(path(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn keys_in_two_spellings_are_suspect() {
        for text in [
            r#"{"a": 1, "\u0061": 2}"#,
            r#"{"a/b": 1, "a\/b": 2}"#,
            r#"{"k:{\"n\"}": 1, "k:{\"n\"}": 2}"#,
        ] {
            assert!(suspect(text) && path(text).is_some(), "{text}");
        }
        assert!(!suspect(r#"{"k:{\"n\":\"a\"}": 1, "k:{\"n\":\"b\"}": 2}"#));
    }

    #[test]
    fn large_objects_are_fast() {
        let entries: Vec<String> = (0..200_000).map(|n| format!("\"k{n}\": {n}")).collect();
        let text = entries.join(", ");
        assert_eq!(path(&format!("{{{text}}}")), None);
        assert_eq!(
            path(&format!("{{{text}, \"k77777\": 0}}")).as_deref(),
            Some("k77777")
        );
    }
}
