//! JSON that says something twice: the last word counts, and the client is told.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads a value, and the paths of fields that came twice.
pub(crate) fn read(text: &str) -> Result<(Value, Vec<String>), serde_json::Error> {
    let found = RefCell::new(Vec::new());
    let value = read_noting(text, Note::Twice, &found)?;
    Ok((value, found.into_inner()))
}

/// Puts sentences about fields, such as `unknown field "a.b"`, in the order of a text.
pub(crate) fn sort(text: &str, sentences: &mut [String]) {
    let found = RefCell::new(Vec::new());
    if read_noting(text, Note::All, &found).is_err() {
        return;
    }
    let order = found.into_inner();
    sentences.sort_by_cached_key(|sentence| {
        let field = sentence.split('"').nth(1).unwrap_or("");
        order.iter().position(|known| known == field)
    });
}

/// Which fields are noted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Note {
    All,
    Twice,
}

fn read_noting(
    text: &str,
    note: Note,
    found: &RefCell<Vec<String>>,
) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let seed = Seed {
        path: Path::Root,
        note,
        found,
    };
    let value = seed.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Where the reader is; written out only when there is something to say.
#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Path::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

struct Seed<'p> {
    path: Path<'p>,
    note: Note,
    found: &'p RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let seed = Seed {
                path: Path::Index(&self.path, items.len()),
                note: self.note,
                found: self.found,
            };
            match access.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let path = Path::Key(&self.path, &key);
            if self.note == Note::All {
                self.found.borrow_mut().push(path.to_string());
            } else if map.contains_key(&key) {
                let field = format!("duplicate field \"{path}\"");
                self.found.borrow_mut().push(field);
            }
            let seed = Seed {
                path,
                note: self.note,
                found: self.found,
            };
            let value = access.next_value_seed(seed)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_word_counts() {
        let text = r#"{"a": {"b": 1, "b": 2}, "c": [{"d": null, "d": 1.5}], "e": "x"}"#;
        let (value, twice) = read(text).expect("this is JSON");
        assert_eq!(value, json!({"a": {"b": 2}, "c": [{"d": 1.5}], "e": "x"}));
        assert_eq!(
            twice,
            ["duplicate field \"a.b\"", "duplicate field \"c[0].d\""]
        );
        assert!(read("{} x").is_err());
    }

    #[test]
    fn fields_come_in_the_order_of_the_text() {
        let text = r#"{"z": {"y": [{"b": 1, "a": 2}]}, "c": 3}"#;
        let mut all = ["c", "z.y[0].a", "z.y[0].b"].map(|f| format!("unknown field \"{f}\""));
        sort(text, &mut all);
        let expected = ["z.y[0].b", "z.y[0].a", "c"];
        assert_eq!(all, expected.map(|f| format!("unknown field \"{f}\"")));
    }
}
