//! Label selectors: as the text that a scale shows, and as the objects that metrics carry.

use std::fmt;

pub use crate::part::Labels;
use crate::part::{FieldError, Part};

/// Longest label value, and longest name in a label's key.
const NAME_MAX: usize = 63;
/// Longest prefix of a label's key.
const PREFIX_MAX: usize = 253;

/// What a label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// Chooses objects by their labels: all of its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<(String, Test)>,
}

/// A text that is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no label selector: {why}")]
pub struct NoSelector {
    text: String,
    why: String,
}

impl Selector {
    /// Reads `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`. An empty text chooses everything.
    ///
    /// # Errors
    /// When the text does not read like that, or has keys or values that no label can have.
    pub fn parse(text: &str) -> Result<Self, NoSelector> {
        let tokens = tokens(text);
        let requirements = Parser { tokens, at: 0 }.all();
        let requirements = requirements.map_err(|why| NoSelector {
            text: text.to_owned(),
            why,
        })?;
        Ok(Self { requirements })
    }

    /// Requires these labels with these values.
    #[must_use]
    pub fn of_labels(labels: &Labels) -> Self {
        let requirement =
            |(key, value): (&String, &String)| (key.clone(), Test::In(vec![value.clone()]));
        Self {
            requirements: labels.iter().map(requirement).collect(),
        }
    }

    /// Reads an object with `matchLabels` and `matchExpressions`; an empty one chooses everything.
    pub(crate) fn read(part: &Part<'_>) -> Result<Self, FieldError> {
        let mut selector = Self::of_labels(&part.field("matchLabels").labels()?);
        for expression in part.field("matchExpressions").items()? {
            let key = expression.field("key").some_text()?.to_owned();
            let field = expression.field("values");
            let values = field.texts()?;
            let operator = expression.field("operator");
            let test = match (operator.some_text()?, values.is_empty()) {
                ("In", false) => Test::In(values),
                ("NotIn", false) => Test::NotIn(values),
                ("Exists", true) => Test::Exists,
                ("DoesNotExist", true) => Test::Absent,
                ("In" | "NotIn", true) => return Err(field.error("must list at least one value")),
                ("Exists" | "DoesNotExist", false) => {
                    return Err(field.error("must be left out for Exists and DoesNotExist"));
                }
                _ => return Err(operator.error("must be In, NotIn, Exists or DoesNotExist")),
            };
            selector.requirements.push((key, test));
        }
        Ok(selector)
    }

    /// Whether labels fulfil all requirements.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        let holds = |(key, test): &(String, Test)| test.holds(labels.get(key).map(String::as_str));
        self.requirements.iter().all(holds)
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Above(bound) => number().is_some_and(|n| n > *bound),
            Self::Below(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

impl fmt::Display for Selector {
    /// The text that [`Selector::parse`] reads, requirements in order of their keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&(String, Test)> = self.requirements.iter().collect();
        sorted.sort_by_key(|(key, _)| key);
        for (ix, (key, test)) in sorted.into_iter().enumerate() {
            let comma = if ix > 0 { "," } else { "" };
            match test {
                Test::In(values) if values.len() == 1 => write!(f, "{comma}{key}={}", values[0])?,
                Test::In(values) => write!(f, "{comma}{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{comma}{key} notin ({})", values.join(","))?,
                Test::Exists => write!(f, "{comma}{key}")?,
                Test::Absent => write!(f, "{comma}!{key}")?,
                Test::Above(bound) => write!(f, "{comma}{key}>{bound}")?,
                Test::Below(bound) => write!(f, "{comma}{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

/// Words and signs of a text; white space only parts them.
fn tokens(text: &str) -> Vec<&str> {
    const SIGNS: &str = "()!=<>,";
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '!' | '=' if rest[1..].starts_with('=') => 2,
            sign if SIGNS.contains(sign) => 1,
            _ => {
                let ends = |c: char| c.is_whitespace() || SIGNS.contains(c);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

struct Parser<'t> {
    tokens: Vec<&'t str>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'t str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn all(mut self) -> Result<Vec<(String, Test)>, String> {
        let mut all = Vec::new();
        if self.tokens.is_empty() {
            return Ok(all);
        }
        loop {
            all.push(self.requirement()?);
            match self.next() {
                "" => return Ok(all),
                "," => {}
                other => return Err(format!("there should be a comma before {other:?}")),
            }
        }
    }

    fn requirement(&mut self) -> Result<(String, Test), String> {
        let absent = self.peek() == "!";
        if absent {
            self.at += 1;
        }
        let key = key(self.next())?;
        let test = match self.peek() {
            "" | "," => return Ok((key, if absent { Test::Absent } else { Test::Exists })),
            _ if absent => return Err(format!("nothing may follow !{key}")),
            "=" | "==" => self.one(Test::In)?,
            "!=" => self.one(Test::NotIn)?,
            "in" => self.list(Test::In)?,
            "notin" => self.list(Test::NotIn)?,
            ">" => Test::Above(self.number()?),
            "<" => Test::Below(self.number()?),
            other => {
                return Err(format!(
                    "{other:?} is none of =, ==, !=, in, notin, < and >"
                ));
            }
        };
        Ok((key, test))
    }

    /// The value after an equals sign, which may be empty.
    fn one(&mut self, test: impl Fn(Vec<String>) -> Test) -> Result<Test, String> {
        self.at += 1;
        let text = match self.peek() {
            "" | "," => "",
            _ => self.next(),
        };
        Ok(test(vec![value(text)?]))
    }

    fn list(&mut self, test: impl Fn(Vec<String>) -> Test) -> Result<Test, String> {
        self.at += 1;
        if self.next() != "(" {
            return Err("values of a list stand in parentheses".to_owned());
        }
        let mut values = Vec::new();
        loop {
            let text = match self.peek() {
                "," | ")" => "",
                _ => self.next(),
            };
            values.push(value(text)?);
            match self.next() {
                ")" => return Ok(test(values)),
                "," => {}
                _ => return Err("the list of values has no end".to_owned()),
            }
        }
    }

    fn number(&mut self) -> Result<i64, String> {
        self.at += 1;
        let text = self.next();
        let number = text.parse();
        number.map_err(|_| format!("{text:?} is no whole number"))
    }
}

fn key(text: &str) -> Result<String, String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    let fine = |prefix: &str| {
        let ends = |part: &str| part.is_empty() || part.starts_with('-') || part.ends_with('-');
        prefix.len() <= PREFIX_MAX && prefix.chars().all(lower) && !prefix.split('.').any(ends)
    };
    if name.is_empty() || !is_label(name) || !prefix.is_none_or(fine) {
        return Err(format!("{text:?} is no key of a label"));
    }
    Ok(text.to_owned())
}

fn value(text: &str) -> Result<String, String> {
    if is_label(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no value of a label"))
    }
}

/// Letters and digits at both ends, dashes, dots and underscores between; or nothing.
fn is_label(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| ends(c) || "-_.".contains(c);
    text.is_empty()
        || (text.len() <= NAME_MAX
            && text.starts_with(ends)
            && text.ends_with(ends)
            && text.chars().all(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn texts_choose_by_labels() {
        for (selector, object, expected) in [
            ("", "", true),
            ("app=web", "app=web,tier=a", true),
            ("app == web", "app=api", false),
            ("app!=web", "", true),
            ("app in (web, api),tier", "app=api,tier=a", true),
            ("app notin (web)", "app=web", false),
            ("!app", "app=web", false),
            ("a.io/n>3", "a.io/n=4", true),
            ("n<3", "n=x", false),
            ("app=", "app=", true),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            assert_eq!(
                parsed.matches(&labels(object)),
                expected,
                "{selector} on {object}"
            );
        }
    }

    #[test]
    fn texts_that_are_no_selectors() {
        for text in [
            "app in web",
            "app=web,",
            "=web",
            "app in (web",
            "app web",
            "!app=web",
            "a_/b=c",
            "app=-web",
            "n>many",
            "cant touch this",
        ] {
            let error = Selector::parse(text).unwrap_err().to_string();
            assert!(error.contains("is no label selector"), "{text}: {error}");
        }
    }

    #[test]
    fn objects_choose_by_labels() {
        let object = serde_json::json!({
            "matchLabels": {"queue": "a"},
            "matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["x"]}],
        });
        let selector = Selector::read(&Part::top(&object)).unwrap();
        assert!(selector.matches(&labels("queue=a")));
        assert!(!selector.matches(&labels("queue=a,zone=x")));
        assert_eq!(selector.to_string(), "queue=a,zone notin (x)");
        let bad = serde_json::json!({"matchExpressions": [{"key": "a", "operator": "Is"}]});
        let error = Selector::read(&Part::top(&bad)).unwrap_err().to_string();
        assert_eq!(
            error,
            "matchExpressions[0].operator: must be In, NotIn, Exists or DoesNotExist"
        );
    }
}
