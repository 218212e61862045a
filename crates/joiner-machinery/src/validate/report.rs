//! Where something is wrong, and the ways of saying so.

use std::fmt;

use serde_json::Value;

use crate::error::Cause;

/// A place in an object. Built on the stack, rendered only when something is wrong there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A field.
    Field(&'a Path<'a>, &'a str),
    /// An entry of a map.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) const fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Key(above, key) => write!(f, "{above}[{key}]"),
            Self::Index(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// What is wrong so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) causes: Vec<Cause>,
}

impl Report {
    fn add(&mut self, reason: &'static str, path: &Path<'_>, message: String) {
        self.causes.push(Cause {
            reason,
            message,
            field: path.to_string(),
        });
    }

    /// It must be there. `detail` may be empty.
    pub(crate) fn required(&mut self, path: &Path<'_>, detail: &str) {
        let message = detailed("Required value".to_owned(), detail);
        self.add("FieldValueRequired", path, message);
    }

    /// It has no such form.
    pub(crate) fn invalid(&mut self, path: &Path<'_>, value: &Value, detail: &str) {
        let message = detailed(format!("Invalid value: {value}"), detail);
        self.add("FieldValueInvalid", path, message);
    }

    /// The text has no such form, for each complaint.
    pub(crate) fn complain(&mut self, path: &Path<'_>, text: &str, complaints: &[String]) {
        for detail in complaints {
            let message = format!("Invalid value: {text:?}: {detail}");
            self.add("FieldValueInvalid", path, message);
        }
    }

    /// It is none of the words that there are.
    pub(crate) fn unsupported(&mut self, path: &Path<'_>, text: &str, words: &[&str]) {
        let words: Vec<String> = words.iter().map(|w| format!("{w:?}")).collect();
        let words = words.join(", ");
        let message = format!("Unsupported value: {text:?}: supported values: {words}");
        self.add("FieldValueNotSupported", path, message);
    }

    /// Something else has it already.
    pub(crate) fn duplicate(&mut self, path: &Path<'_>, value: &Value) {
        self.add(
            "FieldValueDuplicate",
            path,
            format!("Duplicate value: {value}"),
        );
    }

    /// It names something that is not there.
    pub(crate) fn not_found(&mut self, path: &Path<'_>, text: &str) {
        self.add("FieldValueNotFound", path, format!("Not found: {text:?}"));
    }

    /// A text that must be there and have a form.
    pub(crate) fn name(&mut self, path: &Path<'_>, text: &str, check: fn(&str) -> Vec<String>) {
        if text.is_empty() {
            self.required(path, "");
        } else {
            self.complain(path, text, &check(text));
        }
    }

    /// A port number, 1 to 65535.
    pub(crate) fn port(&mut self, path: &Path<'_>, value: &Value) {
        if !value.as_i64().is_some_and(|n| (1..=65535).contains(&n)) {
            let shown = if value.is_null() {
                &Value::from(0)
            } else {
                value
            };
            self.invalid(path, shown, "must be between 1 and 65535, inclusive");
        }
    }

    /// A port by number or name.
    pub(crate) fn port_or_name(&mut self, path: &Path<'_>, value: &Value) {
        match value.as_str() {
            Some(name) => self.complain(path, name, &super::names::port_name(name)),
            None => self.port(path, value),
        }
    }

    /// A number of pods or a percentage of them.
    pub(crate) fn count_or_percent(&mut self, path: &Path<'_>, value: &Value) {
        let Some(text) = value.as_str() else {
            return self.not_negative(path, value);
        };
        let digits = text.strip_suffix('%').unwrap_or("");
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            self.invalid(
                path,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
                 '1%',  or '93%', regex used for validation is '[0-9]+%')",
            );
        }
    }

    /// The same, and no more than all of them.
    pub(crate) fn at_most_all(&mut self, path: &Path<'_>, value: &Value) {
        let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
        if percent
            .and_then(|p| p.parse::<u64>().ok())
            .is_some_and(|p| p > 100)
        {
            self.invalid(path, value, "must not be greater than 100%");
        }
    }

    /// It must not be there.
    pub(crate) fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        let message = detailed("Forbidden".to_owned(), detail);
        self.add("FieldValueForbidden", path, message);
    }

    /// It has more bytes than that.
    pub(crate) fn too_long(&mut self, path: &Path<'_>, max: usize) {
        let message = format!("Too long: may not be more than {max} bytes");
        self.add("FieldValueTooLong", path, message);
    }

    /// It must be one of the words; an absent one counts as empty.
    pub(crate) fn one_of(&mut self, path: &Path<'_>, value: &Value, words: &[&str]) {
        let text = value.as_str().unwrap_or("");
        if !words.contains(&text) {
            self.unsupported(path, text, words);
        }
    }

    /// A number must not be below zero.
    pub(crate) fn not_negative(&mut self, path: &Path<'_>, value: &Value) {
        if value.as_i64().is_some_and(|n| n < 0) {
            self.invalid(path, value, "must be greater than or equal to 0");
        }
    }

    /// A field must be as it was.
    pub(crate) fn immutable(&mut self, path: &Path<'_>, old: &Value, new: &Value) {
        if old != new {
            self.invalid(path, new, "field is immutable");
        }
    }
}

fn detailed(mut text: String, detail: &str) -> String {
    if !detail.is_empty() {
        text.push_str(": ");
        text.push_str(detail);
    }
    text
}
