//! Requirements, whose operators v1 has more of.

use super::fields::{list_at, text};
use serde_json::{Value, json};

/// Requirements as v1beta1 can say them: `Gte 4` as `Gt 3`, `Lte 4` as `Lt 5`.
pub(super) fn down(object: &mut Value, path: &[&str]) {
    for requirement in list_at(object, path).into_iter().flatten() {
        let value = requirement.get("values").and_then(|values| values.get(0));
        let number = value
            .and_then(Value::as_str)
            .and_then(|v| v.parse::<u64>().ok());
        let (operator, number) = match (text(requirement, "operator"), number) {
            ("Gte", Some(0)) => ("Exists", None),
            ("Gte", Some(number)) => ("Gt", Some(number - 1)),
            ("Lte", Some(number)) => ("Lt", Some(number.saturating_add(1))),
            ("Gte", None) => ("Gt", None),
            ("Lte", None) => ("Lt", None),
            _ => continue,
        };
        if let Some(map) = requirement.as_object_mut() {
            map.insert("operator".to_owned(), operator.into());
            match number {
                Some(number) => {
                    map.insert("values".to_owned(), json!([number.to_string()]));
                }
                None if operator == "Exists" => {
                    map.remove("values");
                }
                None => {}
            }
        }
    }
}
