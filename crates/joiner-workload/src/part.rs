//! Reading objects: a value that knows where in the object it stands, so that errors name the field.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::quantity::Quantity;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Longest piece of input that an error repeats.
const SHOWN_MAX: usize = 60;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct FieldError {
    /// Where it is, such as `spec.metrics[0].type`.
    pub path: String,
    /// What it must be, or must not.
    pub problem: String,
}

impl FieldError {
    /// About the field at `path`.
    #[must_use]
    pub fn new(path: &str, problem: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

impl FieldError {
    /// About the same field, of an object that is itself a field.
    #[must_use]
    pub(crate) fn below(mut self, path: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => path.to_owned(),
            below => format!("{path}.{below}"),
        };
        self
    }
}

/// How to get to a value from the one above it.
#[derive(Clone, Copy, Debug)]
enum Way<'a> {
    Top,
    Field(&'a Part<'a>, &'a str),
    Index(&'a Part<'a>, usize),
}

/// A value in an object. What is not there reads like null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    value: &'a Value,
    way: Way<'a>,
}

impl<'a> Part<'a> {
    /// The object itself.
    pub(crate) const fn top(value: &'a Value) -> Self {
        let way = Way::Top;
        Self { value, way }
    }

    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self {
            value: &self.value[name],
            way: Way::Field(self, name),
        }
    }

    pub(crate) const fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(crate) fn path(&self) -> String {
        match self.way {
            Way::Top => String::new(),
            Way::Field(above, name) => match above.path() {
                path if path.is_empty() => name.to_owned(),
                path => format!("{path}.{name}"),
            },
            Way::Index(above, ix) => format!("{}[{ix}]", above.path()),
        }
    }

    /// About this field.
    pub(crate) fn error(&self, problem: impl Into<String>) -> FieldError {
        FieldError {
            path: self.path(),
            problem: problem.into(),
        }
    }

    /// About this field, which should be something else.
    pub(crate) fn not(&self, expected: &str) -> FieldError {
        let mut found = self.value.to_string();
        if found.chars().count() > SHOWN_MAX {
            found = found.chars().take(SHOWN_MAX).chain(['…']).collect();
        }
        self.error(format!("must be {expected}, not {found}"))
    }

    /// About this field, which must be there.
    pub(crate) fn missing(&self) -> FieldError {
        self.error("is missing; set it")
    }

    pub(crate) fn text(&self) -> Result<Option<&'a str>, FieldError> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.not("a text"))
            }
        }
    }

    /// A text that must be there.
    pub(crate) fn some_text(&self) -> Result<&'a str, FieldError> {
        self.text()?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.missing())
    }

    pub(crate) fn boolean(&self) -> Result<Option<bool>, FieldError> {
        match self.value {
            Value::Null => Ok(None),
            Value::Bool(value) => Ok(Some(*value)),
            Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.not("true or false"))
            }
        }
    }

    pub(crate) fn int64(&self) -> Result<Option<i64>, FieldError> {
        if !self.is_set() {
            return Ok(None);
        }
        let number = self.value.as_i64();
        number.map(Some).ok_or_else(|| self.not("a whole number"))
    }

    pub(crate) fn int32(&self) -> Result<Option<i32>, FieldError> {
        let Some(number) = self.int64()? else {
            return Ok(None);
        };
        let number = i32::try_from(number);
        number.map(Some).map_err(|_| self.not("a smaller number"))
    }

    pub(crate) fn float(&self) -> Result<Option<f64>, FieldError> {
        if !self.is_set() {
            return Ok(None);
        }
        let number = self.value.as_f64();
        number.map(Some).ok_or_else(|| self.not("a number"))
    }

    pub(crate) fn quantity(&self) -> Result<Option<Quantity>, FieldError> {
        let parsed = match self.value {
            Value::Null => return Ok(None),
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err(self.not("a quantity such as 500m or 2Gi"));
            }
        };
        parsed
            .map(Some)
            .map_err(|_| self.not("a quantity such as 500m or 2Gi"))
    }

    pub(crate) fn time(&self) -> Result<Option<Timestamp>, FieldError> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        let time = text.parse();
        time.map(Some)
            .map_err(|_| self.not("a time such as 2026-01-31T08:00:00Z"))
    }

    /// A time that must be there.
    pub(crate) fn some_time(&self) -> Result<Timestamp, FieldError> {
        self.time()?.ok_or_else(|| self.missing())
    }

    /// A duration such as `90s` or `1h30m`, or a number of seconds.
    pub(crate) fn duration(&self) -> Result<Option<SignedDuration>, FieldError> {
        if let Some(seconds) = self.value.as_f64() {
            let duration = SignedDuration::try_from_secs_f64(seconds);
            return duration.map(Some).map_err(|_| self.not("a shorter time"));
        }
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        let duration = crate::durations::parse(text);
        duration
            .map(Some)
            .ok_or_else(|| self.not("a duration such as 90s or 1h30m"))
    }

    pub(crate) fn items(&'a self) -> Result<Vec<Self>, FieldError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => {
                let part = |(ix, value)| Self {
                    value,
                    way: Way::Index(self, ix),
                };
                Ok(items.iter().enumerate().map(part).collect())
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                Err(self.not("a list"))
            }
        }
    }

    /// The fields of an object, in order of their names.
    pub(crate) fn entries(&'a self) -> Result<Vec<(&'a str, Self)>, FieldError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Object(map) => Ok(map
                .iter()
                .map(|(name, _)| (name.as_str(), self.field(name)))
                .collect()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(self.not("an object"))
            }
        }
    }

    pub(crate) fn texts(&self) -> Result<Vec<String>, FieldError> {
        let mut texts = Vec::new();
        for item in self.items()? {
            texts.push(item.text()?.unwrap_or_default().to_owned());
        }
        Ok(texts)
    }

    pub(crate) fn labels(&self) -> Result<Labels, FieldError> {
        let mut labels = Labels::new();
        for (name, value) in self.entries()? {
            let text = value.text()?.unwrap_or_default();
            labels.insert(name.to_owned(), text.to_owned());
        }
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_name_the_field() {
        let object = json!({"spec": {"metrics": [{"type": 3}], "max": "many", "n": 1e12}});
        let top = Part::top(&object);
        let spec = top.field("spec");
        let metrics = spec.field("metrics");
        let first = metrics.items().unwrap()[0];
        let errors = [
            first.field("type").text().unwrap_err(),
            spec.field("max").int32().unwrap_err(),
            spec.field("n").int32().unwrap_err(),
            spec.field("name").some_text().unwrap_err(),
            spec.field("max").quantity().unwrap_err(),
        ];
        assert_eq!(
            errors.map(|error| error.to_string()),
            [
                "spec.metrics[0].type: must be a text, not 3",
                "spec.max: must be a whole number, not \"many\"",
                "spec.n: must be a whole number, not 1000000000000.0",
                "spec.name: is missing; set it",
                "spec.max: must be a quantity such as 500m or 2Gi, not \"many\"",
            ]
        );
    }

    #[test]
    fn what_is_not_there_reads_like_null() {
        let top = Value::Null;
        let part = Part::top(&top);
        assert_eq!(part.field("a").int32(), Ok(None));
        assert!(part.field("a").items().unwrap().is_empty());
    }
}
