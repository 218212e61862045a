//! Fields that a schema does not know: remove them, or say what was probably meant.

use super::UnknownField;
use super::node::{Additional, Node};
use super::path::Path;
use serde_json::Value;

/// Fields of the object itself that belong to the server, whatever the schema says.
const OBJECT_FIELDS: &[&str] = &["apiVersion", "kind", "metadata"];

/// No more unknown fields than this are reported for one object.
const REPORT_MAX: usize = 50;

pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    prune_at(root, object, &Path::Root, true, &mut removed);
    removed
}

fn prune_at(node: &Node, value: &mut Value, path: &Path<'_>, whole: bool, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if !keeps_unknown(node) {
                map.retain(|key, _| {
                    let known = is_known(node, key, whole);
                    if !known {
                        out.push(Path::Field(path, key).to_string());
                    }
                    known
                });
            }
            for (key, entry) in map.iter_mut() {
                if let Some(child) = node.entry(key).filter(|child| !is_meta(child, key, whole)) {
                    prune_at(child, entry, &step(node, path, key), child.embedded, out);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for (index, item) in list.iter_mut().enumerate() {
                    prune_at(items, item, &Path::Index(path, index), items.embedded, out);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn report(root: &Node, object: &Value) -> Vec<UnknownField> {
    let mut found = Vec::new();
    let mut walk = Report {
        root,
        found: &mut found,
    };
    walk.at(root, object, &Path::Root, true);
    found
}

struct Report<'a> {
    root: &'a Node,
    found: &'a mut Vec<UnknownField>,
}

impl Report<'_> {
    fn at(&mut self, node: &Node, value: &Value, path: &Path<'_>, whole: bool) {
        match value {
            Value::Object(map) => {
                for (key, entry) in map {
                    if let Some(child) = node.entry(key) {
                        if !is_meta(child, key, whole) {
                            self.at(child, entry, &step(node, path, key), child.embedded);
                        }
                    } else if !keeps_unknown(node)
                        && !is_known(node, key, whole)
                        && self.found.len() < REPORT_MAX
                    {
                        let path = Path::Field(path, key).to_string();
                        let hint = did_you_mean(self.root, node, key);
                        self.found.push(UnknownField { path, hint });
                    }
                }
            }
            Value::Array(list) => {
                if let Some(items) = &node.items {
                    for (index, item) in list.iter().enumerate() {
                        self.at(items, item, &Path::Index(path, index), items.embedded);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn keeps_unknown(node: &Node) -> bool {
    node.preserve_unknown || matches!(node.additional, Additional::Anything)
}

/// Definitions say nothing about metadata: the server knows its fields.
fn is_meta(child: &Node, key: &str, whole: bool) -> bool {
    whole && key == "metadata" && child.properties.is_empty()
}

fn is_known(node: &Node, key: &str, whole: bool) -> bool {
    node.entry(key).is_some() || (whole && OBJECT_FIELDS.contains(&key))
}

fn step<'a>(node: &Node, path: &'a Path<'a>, key: &'a str) -> Path<'a> {
    if node.properties.contains_key(key) {
        Path::Field(path, key)
    } else {
        Path::Key(path, key)
    }
}

/// A neighbor that is spelled alike, else the same name elsewhere in the object.
fn did_you_mean(root: &Node, node: &Node, key: &str) -> Option<String> {
    nearest(key, node.properties.keys().map(String::as_str))
        .map(str::to_owned)
        .or_else(|| find_elsewhere(root, key, &Path::Root))
}

fn find_elsewhere(node: &Node, key: &str, path: &Path<'_>) -> Option<String> {
    if node.properties.contains_key(key) && !matches!(path, Path::Root) {
        return Some(Path::Field(path, key).to_string());
    }
    let below = |(name, child): (&String, &Node)| {
        if name == "status" {
            None
        } else {
            find_elsewhere(child, key, &Path::Field(path, name))
        }
    };
    node.properties.iter().find_map(below)
}

/// The candidate that differs least from `word`, if it is close enough to be a slip.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance, by letters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_recognized() {
        let fields = ["consolidateAfter", "consolidationPolicy", "budgets"];
        let guess = |word| nearest(word, fields.into_iter());
        assert_eq!(guess("consolidateafter"), Some("consolidateAfter"));
        assert_eq!(guess("budget"), Some("budgets"));
        assert_eq!(guess("expireAfter"), None);
    }
}
