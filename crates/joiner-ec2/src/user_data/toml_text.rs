//! TOML laid out and quoted the way that Go's library does it.

use std::fmt::Write as _;

use toml::Value;

/// A table whose entries are in the order in which they are to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered(pub(super) Vec<(String, Entry)>);

/// What stands behind a key.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A value on the key's line, or tables of it.
    Value(Value),
    /// A table with a headline.
    Table(Ordered),
}

impl Ordered {
    /// A table in the order of its keys.
    pub(super) fn by_name(table: toml::Table) -> Self {
        let mut entries: Vec<(String, Value)> = table.into_iter().collect();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let entry = |(key, value)| (key, Entry::of(value));
        Self(entries.into_iter().map(entry).collect())
    }

    /// The same with these keys first, in this order.
    pub(super) fn with_first(mut self, keys: &[&str]) -> Self {
        let place = |key: &str| {
            keys.iter()
                .position(|first| *first == key)
                .unwrap_or(keys.len())
        };
        self.0.sort_by_key(|(key, _)| place(key));
        self
    }
}

impl Entry {
    /// A value, in the order of its keys where it is a table.
    pub(super) fn of(value: Value) -> Self {
        if let Value::Table(table) = value {
            return Self::Table(Ordered::by_name(table));
        }
        Self::Value(value)
    }
}

/// The text of a whole file.
pub(super) fn render(root: &Ordered) -> String {
    let mut text = String::new();
    table(root, &mut Vec::new(), &mut text);
    text
}

/// Values first, then tables; an empty line before each table but the first of a headline without values.
fn table(entries: &Ordered, path: &mut Vec<String>, text: &mut String) {
    let mut has_lines = false;
    let mut tables = Vec::new();
    for (key, entry) in &entries.0 {
        match entry {
            Entry::Table(below) => tables.push((key, vec![below.clone()], false)),
            Entry::Value(value) => match tables_of(value) {
                Some(all) => tables.push((key, all, true)),
                None => {
                    // Writing to a string does not fail.
                    let _ = writeln!(text, "{} = {}", name(key), inline(value));
                    has_lines = true;
                }
            },
        }
    }
    for (at, (key, all, is_list)) in tables.into_iter().enumerate() {
        if at > 0 || has_lines {
            text.push('\n');
        }
        path.push(name(key));
        for (at, below) in all.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            let path_text = path.join(".");
            let _ = match is_list {
                true => writeln!(text, "[[{path_text}]]"),
                false => writeln!(text, "[{path_text}]"),
            };
            table(below, path, text);
        }
        path.pop();
    }
}

/// The tables of a list that consists of nothing else.
fn tables_of(value: &Value) -> Option<Vec<Ordered>> {
    let items = value.as_array().filter(|items| !items.is_empty())?;
    let tables = items.iter().map(|item| {
        let table = item.as_table()?;
        Some(Ordered::by_name(table.clone()))
    });
    tables.collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) if number.is_nan() => "nan".to_owned(),
        Value::Float(number) if number.is_infinite() && *number < 0.0 => "-inf".to_owned(),
        Value::Float(number) if number.is_infinite() => "inf".to_owned(),
        Value::Float(number) if number.fract() == 0.0 => format!("{number:.1}"),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let Ordered(entries) = Ordered::by_name(table.clone());
            let text = |(key, _): &(String, Entry)| {
                let value = table.get(key).map_or_else(String::new, inline);
                format!("{} = {value}", name(key))
            };
            let entries: Vec<String> = entries.iter().map(text).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

fn name(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => quoted(key),
    }
}

fn quoted(text: &str) -> String {
    let is_odd = |c: char| c == '\'' || (c.is_ascii_control() && c != '\t');
    if !text.chars().any(is_odd) {
        return format!("'{text}'");
    }
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            other if other.is_ascii_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(other));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
b = 1
c = [{x = 1}, 'y']
'k.v' = \"it's\\n\"

[a]
[a.'d/e']
f = 1.5
g = 2.0

[[h]]
i = true

[[h]]
i = false
";

    #[test]
    fn what_was_laid_out_stays() {
        let table: toml::Table = toml::from_str(TEXT).unwrap();
        assert_eq!(render(&Ordered::by_name(table)), TEXT);
    }

    #[test]
    fn an_order_can_be_given() {
        let table: toml::Table = toml::from_str("a = 1\nb = 2\nc = 3\n").unwrap();
        let ordered = Ordered::by_name(table).with_first(&["c", "x", "b"]);
        assert_eq!(render(&ordered), "c = 3\nb = 2\na = 1\n");
    }
}
