//! Conditions: what an object's status says about itself.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::part::{FieldError, Part};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
    /// Nothing can be said.
    Unknown,
}

impl Truth {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the word of the API; anything else says nothing.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// One statement about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about, such as `AbleToScale`.
    pub kind: String,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when the status is what it is.
    pub since: Option<Timestamp>,
}

/// The conditions of an object, one of each kind, in order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// The one of this kind.
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.kind == kind)
    }

    /// Whether there is one of this kind that holds.
    #[must_use]
    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|c| c.status == Truth::True)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter()
    }

    /// Says this from `now` on; the time of the last change moves only when the status does.
    pub fn set(&mut self, said: Said, now: Timestamp) {
        let since = match self.get(said.kind) {
            Some(condition) if condition.status == said.status => condition.since,
            _ => Some(now),
        };
        let condition = Condition {
            kind: said.kind.to_owned(),
            status: said.status,
            reason: said.reason.to_owned(),
            message: said.message,
            since,
        };
        match self.0.iter_mut().find(|c| c.kind == said.kind) {
            Some(existing) => *existing = condition,
            None => self.0.push(condition),
        }
    }

    /// Says nothing of this kind any more.
    pub fn remove(&mut self, kind: &str) {
        self.0.retain(|condition| condition.kind != kind);
    }

    /// Puts them in order of their kinds.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| a.kind.cmp(&b.kind));
    }

    /// Reads a list of conditions.
    pub(crate) fn read(list: &Part<'_>) -> Result<Self, FieldError> {
        let mut conditions = Vec::new();
        for item in list.items()? {
            let text = |name| {
                let part = item.field(name);
                part.text().map(|text| text.unwrap_or_default().to_owned())
            };
            conditions.push(Condition {
                kind: item.field("type").some_text()?.to_owned(),
                status: Truth::of(&text("status")?),
                reason: text("reason")?,
                message: text("message")?,
                since: item.field("lastTransitionTime").time()?,
            });
        }
        Ok(Self(conditions))
    }

    /// As the API has them.
    #[must_use]
    pub fn to_json(&self) -> Value {
        Value::Array(self.0.iter().map(Condition::to_json).collect())
    }
}

impl Condition {
    fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("type".to_owned(), json!(self.kind));
        map.insert("status".to_owned(), json!(self.status.as_str()));
        for (name, text) in [("reason", &self.reason), ("message", &self.message)] {
            if !text.is_empty() {
                map.insert(name.to_owned(), json!(text));
            }
        }
        if let Some(since) = self.since {
            map.insert("lastTransitionTime".to_owned(), json!(since.to_string()));
        }
        Value::Object(map)
    }
}

/// What to say in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What it is about.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

impl Said {
    /// A statement with its reason.
    #[must_use]
    pub fn new(
        kind: &'static str,
        status: Truth,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status,
            reason,
            message: message.into(),
        }
    }
}

/// An event to emit on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether something is wrong.
    pub warning: bool,
    /// What happened, in one word.
    pub reason: &'static str,
    /// What happened, in a sentence.
    pub message: String,
}

impl Event {
    /// Nothing is wrong.
    #[must_use]
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason,
            message: message.into(),
        }
    }

    /// Something is wrong.
    #[must_use]
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            warning: true,
            reason,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_change_moves_with_the_status_only() {
        let mut conditions = Conditions::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let say = |status, reason| Said::new("Able", status, reason, "");
        conditions.set(say(Truth::True, "A"), at(1));
        conditions.set(say(Truth::True, "B"), at(2));
        let condition = conditions.get("Able").unwrap();
        assert_eq!(
            (condition.reason.as_str(), condition.since),
            ("B", Some(at(1)))
        );
        conditions.set(say(Truth::False, "C"), at(3));
        assert_eq!(conditions.get("Able").unwrap().since, Some(at(3)));
        let json = conditions.to_json();
        assert_eq!(Conditions::read(&Part::top(&json)), Ok(conditions));
    }
}
