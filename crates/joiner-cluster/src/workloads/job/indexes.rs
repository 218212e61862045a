//! Sets of completion indexes, as `1,3-5,7`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Indexes of pods that have succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<i64>);

impl Indexes {
    /// Reads the text of a status; what does not parse is left out.
    pub(super) fn read(text: &Value) -> Self {
        let mut all = BTreeSet::new();
        for part in text.as_str().unwrap_or_default().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
                all.extend(first..=last);
            }
        }
        Self(all)
    }

    pub(super) fn insert(&mut self, index: i64) {
        self.0.insert(index);
    }

    pub(super) fn has(&self, index: i64) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn len(&self) -> i64 {
        self.0.len() as i64
    }

    /// How many are in both sets.
    pub(super) fn common(&self, other: &Self) -> i64 {
        self.0.intersection(&other.0).count() as i64
    }

    /// The text, or null when there are none. Two in a row are listed, three or more a range.
    pub(super) fn text(&self) -> Value {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = self.0.iter().copied().peekable();
        while let Some(first) = rest.next() {
            let mut last = first;
            while rest.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            parts.push(match last - first {
                0 => first.to_string(),
                1 => format!("{first},{last}"),
                _ => format!("{first}-{last}"),
            });
        }
        match parts.is_empty() {
            true => Value::Null,
            false => json!(parts.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were() {
        for text in ["0", "0,1", "0-2", "1,3-5,7", "0,2,4"] {
            assert_eq!(Indexes::read(&json!(text)).text(), text);
        }
        assert_eq!(Indexes::read(&json!("3-5")).len(), 3);
        assert_eq!(Indexes::default().text(), Value::Null);
    }
}
