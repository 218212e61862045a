//! Which objects a label selector and a field selector choose.
//!
//! Both are parsed once and then asked about many objects. What does not parse is a bad request, in
//! upstream's words.

mod field;
mod lexer;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::validate::names;
pub use field::FieldSelector;
use lexer::{Token, tokens};

/// One condition on the value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

/// A label selector: all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    /// Set by an absent selector object, which chooses nothing.
    nothing: bool,
}

impl LabelSelector {
    /// Chooses everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Reads the query syntax: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>1`.
    ///
    /// # Errors
    /// 400 with what was found and what was expected.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let requirements = Parser {
            tokens: tokens(text),
            at: 0,
        }
        .all()
        .map_err(ApiError::bad_request)?;
        Ok(Self {
            requirements,
            nothing: false,
        })
    }

    /// Reads a `LabelSelector` object: `matchLabels` and `matchExpressions`. An empty object chooses
    /// everything, an absent one nothing. Expressions that no API server lets in match nothing.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let Some(map) = object.as_object() else {
            return Self {
                requirements: Vec::new(),
                nothing: true,
            };
        };
        let mut all = Self::of_labels(map.get("matchLabels").unwrap_or(&Value::Null));
        let expressions = map.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            match requirement_of(expression) {
                Some(requirement) => all.requirements.push(requirement),
                None => all.nothing = true,
            }
        }
        all
    }

    /// Reads a plain map of labels, as `nodeSelector` and a Service's `selector` are.
    #[must_use]
    pub fn of_labels(labels: &Value) -> Self {
        let entries = labels.as_object().into_iter().flatten();
        let requirement = |(key, value): (&String, &Value)| Requirement {
            key: key.clone(),
            test: Test::In(vec![value.as_str().unwrap_or("").to_owned()]),
        };
        Self {
            requirements: entries.map(requirement).collect(),
            nothing: false,
        }
    }

    /// True when there is no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether an object's labels fulfil all conditions.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        self.matches_labels(&object["metadata"]["labels"])
    }

    /// Whether a map of labels fulfils all conditions.
    #[must_use]
    pub fn matches_labels(&self, labels: &Value) -> bool {
        let labels = labels.as_object();
        !self.nothing && self.requirements.iter().all(|r| r.holds(labels))
    }
}

impl Requirement {
    fn holds(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value = labels
            .and_then(|l| l.get(&self.key))
            .and_then(Value::as_str);
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|v| values.iter().any(|w| w == v)),
            Test::NotIn(values) => value.is_none_or(|v| values.iter().all(|w| w != v)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Above(bound) => number().is_some_and(|n| n > *bound),
            Test::Below(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

fn requirement_of(expression: &Value) -> Option<Requirement> {
    let values = || {
        let list = expression["values"].as_array().into_iter().flatten();
        let values: Vec<String> = list.filter_map(Value::as_str).map(str::to_owned).collect();
        Some(values).filter(|values| !values.is_empty())
    };
    let test = match expression["operator"].as_str()? {
        "In" => Test::In(values()?),
        "NotIn" => Test::NotIn(values()?),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        _ => return None,
    };
    let key = expression["key"].as_str()?.to_owned();
    Some(Requirement { key, test })
}

/// Reads tokens into requirements; errors are the whole message.
struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Token<'t> {
        self.tokens.get(self.at).copied().unwrap_or(Token::END)
    }

    fn next(&mut self) -> Token<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// True where a requirement can start.
    fn at_start(&self) -> bool {
        self.peek().is_word || self.peek().text == "!"
    }

    fn all(mut self) -> Result<Vec<Requirement>, String> {
        let mut all = Vec::new();
        if self.peek() == Token::END {
            return Ok(all);
        }
        if !self.at_start() {
            let expected = "!, identifier, or 'end of string'";
            return Err(unexpected(self.peek(), expected));
        }
        loop {
            let one = self.requirement();
            all.push(one.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.next() {
                Token::END => return Ok(all),
                Token { text: ",", .. } if self.at_start() => {}
                Token { text: ",", .. } => {
                    return Err(unexpected(self.peek(), "identifier after ','"));
                }
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek().text == "!";
        if absent {
            self.next();
        }
        if !self.peek().is_word {
            return Err(unexpected(self.peek(), "identifier"));
        }
        let key = self.next().text;
        check(key, &names::qualified(key), "<nil>")?;
        let test = if absent {
            Test::Absent
        } else if matches!(self.peek().text, "" | ",") {
            Test::Exists
        } else {
            self.test(key)?
        };
        let key = key.to_owned();
        Ok(Requirement { key, test })
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        let operator = self.next();
        let test = match operator.text {
            "in" => Test::In(self.list()?),
            "notin" => Test::NotIn(self.list()?),
            "=" | "==" => Test::In(vec![self.value()?]),
            "!=" => Test::NotIn(vec![self.value()?]),
            ">" => return self.value().and_then(|v| number(&v)).map(Test::Above),
            "<" => return self.value().and_then(|v| number(&v)).map(Test::Below),
            _ => return Err(unexpected(operator, "in, notin, =, ==, !=, gt, lt")),
        };
        if let Test::In(values) | Test::NotIn(values) = &test {
            for (index, value) in values.iter().enumerate() {
                let path = format!("values[{index}][{key}]");
                check(value, &names::label_value(value), &path)?;
            }
        }
        Ok(test)
    }

    /// A value behind an operator; none means the empty one.
    fn value(&mut self) -> Result<String, String> {
        let token = self.peek();
        if token.is_word {
            self.next();
            return Ok(token.text.to_owned());
        }
        match token.text {
            "" | "," => Ok(String::new()),
            _ => Err(unexpected(token, "identifier")),
        }
    }

    /// Values in parentheses, sorted as upstream keeps them. A comma with nothing behind it stands
    /// for the empty value.
    fn list(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open.text != "(" {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        if self.peek().text == ")" {
            self.next();
            return Ok(vec![String::new()]);
        }
        if !self.peek().is_word && self.peek().text != "," {
            return Err(unexpected(self.peek(), "',', ')' or identifier"));
        }
        let mut values = Vec::new();
        loop {
            let token = self.next();
            let after = self.peek();
            let closes = matches!(after.text, "," | ")") && !after.is_word;
            match token.text {
                word if token.is_word && closes => values.push(word.to_owned()),
                _ if token.is_word => return Err(unexpected(after, "',' or ')'")),
                "," if closes => values.push(String::new()),
                "," if after.is_word => {}
                "," => return Err(unexpected(after, "identifier")),
                ")" => break,
                _ => return Err(unexpected(token, "identifier")),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn unexpected(found: Token<'_>, expected: &str) -> String {
    format!("found '{}', expected: {expected}", found.text)
}

fn check(text: &str, complaints: &[String], path: &str) -> Result<(), String> {
    if complaints.is_empty() {
        return Ok(());
    }
    let why = complaints.join("; ");
    Err(format!("{path}: Invalid value: {text:?}: {why}"))
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        format!(
            "values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an \
             integer"
        )
    })
}

/// Whether an object of a list belongs into the answer.
#[must_use]
pub fn chooses(labels: &LabelSelector, fields: &FieldSelector, object: &Value) -> bool {
    labels.matches(object) && fields.matches(object)
}

#[cfg(test)]
#[path = "selector/selector_tests.rs"]
mod tests;
