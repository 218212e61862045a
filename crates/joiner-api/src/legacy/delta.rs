//! What an object has that its image in another version lacks, and putting it back.
//!
//! A record is a list of places. Each says what the way there and back would leave there, and what the
//! object really has. On the way back, the latter is put in place where the former is found: a field
//! that was overwritten in the other version is left alone.

use serde_json::{Map, Value, json};

/// What restores `full` when `bare` is what is left of it.
pub(super) fn record(bare: &Value, full: &Value) -> Vec<Value> {
    let mut entries = Vec::new();
    compare(Some(bare), Some(full), &mut Vec::new(), &mut entries);
    entries
}

fn compare<'v>(
    bare: Option<&'v Value>,
    full: Option<&'v Value>,
    path: &mut Vec<&'v str>,
    entries: &mut Vec<Value>,
) {
    if bare == full {
        return;
    }
    if let (Some(Value::Object(bare)), Some(Value::Object(full))) = (bare, full) {
        let added = full.keys().filter(|key| !bare.contains_key(*key));
        for key in bare.keys().chain(added) {
            path.push(key);
            compare(bare.get(key), full.get(key), path, entries);
            path.pop();
        }
        return;
    }
    let mut entry = Map::new();
    entry.insert("at".to_owned(), json!(path));
    for (key, value) in [("was", bare), ("is", full)] {
        if let Some(value) = value {
            entry.insert(key.to_owned(), value.clone());
        }
    }
    entries.push(Value::Object(entry));
}

/// A record as text.
pub(super) fn written(entries: Vec<Value>) -> String {
    Value::Array(entries).to_string()
}

/// A record out of its text, if it is one.
pub(super) fn read(text: &str) -> Option<Vec<Value>> {
    let entries: Vec<Value> = serde_json::from_str(text).ok()?;
    let is_entry = |entry: &Value| {
        let path = entry.get("at").and_then(Value::as_array);
        path.is_some_and(|path| !path.is_empty() && path.iter().all(Value::is_string))
    };
    entries.iter().all(is_entry).then_some(entries)
}

/// Puts back what a record holds.
pub(super) fn restore(entries: &[Value], object: &mut Value) {
    for entry in entries {
        let path = entry.get("at").and_then(Value::as_array);
        let path: Vec<&str> = path
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some((last, above)) = path.split_last() {
            restore_at(entry, above, last, object);
        }
    }
}

fn restore_at(entry: &Value, above: &[&str], last: &str, object: &mut Value) {
    let (was, is) = (entry.get("was"), entry.get("is"));
    let found = super::fields::at(object, above).and_then(|map| map.get(last));
    if found == was {
        let mut path = above.to_vec();
        path.push(last);
        match is {
            Some(value) => super::fields::put(object, &path, value.clone()),
            None => drop(super::fields::take(object, &path)),
        }
        return;
    }
    let (Some(Value::Array(was)), Some(Value::Array(is))) = (was, is) else {
        return;
    };
    let list = super::fields::map_at(object, above).and_then(|map| map.get_mut(last));
    if let (Some(Value::Array(list)), true) = (list, was.len() == is.len()) {
        restore_items(was, is, list);
    }
}

/// Items that were not touched get back what they had, wherever they are in the list now.
fn restore_items(was: &[Value], is: &[Value], list: &mut [Value]) {
    let mut left: Vec<(&Value, &Value)> = was.iter().zip(is).collect();
    for item in list {
        if let Some(found) = left.iter().position(|(was, _)| *was == item) {
            let (_, is) = left.remove(found);
            *item = is.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(bare: Value, full: &Value, mut edited: Value) -> Value {
        let text = written(record(&bare, full));
        restore(&read(&text).unwrap(), &mut edited);
        edited
    }

    #[test]
    fn what_was_not_touched_comes_back() {
        let bare = json!({"a": {"b": "0s"}, "c": 1, "d": {}});
        let full = json!({"a": {"b": "30s", "x": [1]}, "d": {}});
        assert_eq!(restored(bare.clone(), &full, bare.clone()), full);
        let edited = json!({"a": {"b": "5s"}, "c": 2});
        let expected = json!({"a": {"b": "5s", "x": [1]}, "c": 2});
        assert_eq!(restored(bare, &full, edited), expected);
    }

    #[test]
    fn items_of_lists_come_back_wherever_they_are() {
        let bare = json!({"list": [{"n": 1}, {"n": 1}, {"n": 2}]});
        let full = json!({"list": [{"n": 1, "r": "a"}, {"n": 1, "r": "b"}, {"n": 2}]});
        assert_eq!(restored(bare.clone(), &full, bare.clone()), full);
        let edited = json!({"list": [{"n": 3}, {"n": 1}]});
        let expected = json!({"list": [{"n": 3}, {"n": 1, "r": "a"}]});
        assert_eq!(restored(bare, &full, edited), expected);
    }

    #[test]
    fn nothing_is_recorded_when_nothing_is_lost() {
        let object = json!({"a": [1, {"b": null}]});
        assert!(record(&object, &object).is_empty());
        assert_eq!(read("nonsense"), None);
        assert_eq!(read("[{\"at\": []}]"), None);
        assert_eq!(read("[{\"at\": [1]}]"), None);
        assert_eq!(read("[]"), Some(Vec::new()));
    }
}
