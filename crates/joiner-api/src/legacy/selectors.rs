//! Selectors of v1alpha1 as terms of today.
//!
//! A selector was a map that all had to hold of, with alternatives between commas. Terms are
//! alternatives, so there is one for every combination.

use super::fields::put;
use serde_json::{Map, Value};

/// More terms than this are not written: v1 takes 30.
const TERMS_MAX: usize = 1000;

/// The terms of a selector.
pub(super) fn terms(selector: &Map<String, Value>) -> Vec<Value> {
    let mut terms = vec![Value::Object(Map::new())];
    for (key, value) in selector {
        let path = field(key);
        let alternatives = alternatives(value.as_str().unwrap_or_default());
        let with = |term: &Value| {
            let extended = alternatives.iter().map(|alternative| {
                let mut term = term.clone();
                put(&mut term, &path, (*alternative).into());
                term
            });
            extended.collect::<Vec<_>>()
        };
        terms = terms.iter().flat_map(with).take(TERMS_MAX).collect();
    }
    terms
}

/// The field of a term that a key of a selector is about.
fn field(key: &str) -> Vec<&str> {
    match key {
        "aws-ids" | "aws::ids" => vec!["id"],
        "aws::name" | "aws::names" => vec!["name"],
        "aws::owners" | "aws::owner" => vec!["owner"],
        tag => vec!["tags", tag],
    }
}

/// The parts between commas.
fn alternatives(value: &str) -> Vec<&str> {
    let parts: Vec<&str> = value
        .split(',')
        .map(str::trim)
        .filter(|p| !p.is_empty())
        .collect();
    if parts.is_empty() { vec![value] } else { parts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(selector: &Value) -> Value {
        terms(selector.as_object().unwrap()).into()
    }

    #[test]
    fn every_combination_is_a_term() {
        assert_eq!(
            of(&json!({"aws-ids": "subnet-1, subnet-2"})),
            json!([{"id": "subnet-1"}, {"id": "subnet-2"}])
        );
        assert_eq!(
            of(&json!({"Name": "a,b", "team": "x , y", "env": "*"})),
            json!([
                {"tags": {"Name": "a", "env": "*", "team": "x"}},
                {"tags": {"Name": "a", "env": "*", "team": "y"}},
                {"tags": {"Name": "b", "env": "*", "team": "x"}},
                {"tags": {"Name": "b", "env": "*", "team": "y"}},
            ])
        );
        assert_eq!(
            of(&json!({"aws::name": "mine-*", "aws::owners": "self,123456789012"})),
            json!([
                {"name": "mine-*", "owner": "self"},
                {"name": "mine-*", "owner": "123456789012"},
            ])
        );
        assert_eq!(of(&json!({"a": ","})), json!([{"tags": {"a": ","}}]));
    }

    #[test]
    fn combinations_are_bounded() {
        let many = (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let selector = json!({"a": many, "b": many, "c": many});
        assert_eq!(of(&selector).as_array().unwrap().len(), TERMS_MAX);
    }
}
