//! Rows of custom kinds, as their CRD wants them.

use serde_json::{Value, json};

use super::cell::{Shown, items, text};
use super::json_path::JsonPath;
use super::{AGE, Column, NAME, age};
use crate::meta;

/// The columns that a CRD's version defines, or the age alone.
pub(super) struct Columns(Vec<Custom>);

struct Custom {
    header: Value,
    holds: Holds,
    /// None when the CRD's path makes no sense: the cell stays empty.
    path: Option<JsonPath>,
}

enum Holds {
    Text,
    Integer,
    Number,
    Boolean,
    Date,
    Unknown,
}

impl Columns {
    /// From a version's entry of the CRD.
    pub(super) fn new(version: &Value) -> Self {
        match items(&version["additionalPrinterColumns"]) {
            [] => Self(vec![Custom {
                header: Column {
                    holds: "date",
                    ..AGE
                }
                .to_json(),
                holds: Holds::Date,
                path: JsonPath::parse(".metadata.creationTimestamp"),
            }]),
            columns => Self(columns.iter().map(Custom::new).collect()),
        }
    }

    /// The column definitions, the name first.
    pub(super) fn to_json(&self) -> Value {
        let headers = self.0.iter().map(|column| column.header.clone());
        [NAME.to_json()].into_iter().chain(headers).collect()
    }

    /// An object's cells.
    pub(super) fn cells(&self, shown: &Shown<'_>) -> Vec<Value> {
        let cells = self.0.iter().map(|column| column.cell(shown));
        [shown.name()].into_iter().chain(cells).collect()
    }
}

impl Custom {
    fn new(column: &Value) -> Self {
        let path = text(&column["jsonPath"]);
        let description = match text(&column["description"]) {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        let header = json!({
            "name": text(&column["name"]),
            "type": text(&column["type"]),
            "format": text(&column["format"]),
            "description": description,
            "priority": column["priority"].as_i64().unwrap_or(0),
        });
        let holds = match text(&column["type"]) {
            "string" => Holds::Text,
            "integer" => Holds::Integer,
            "number" => Holds::Number,
            "boolean" => Holds::Boolean,
            "date" => Holds::Date,
            _ => Holds::Unknown,
        };
        Self {
            header,
            holds,
            path: JsonPath::parse(path),
        }
    }

    fn cell(&self, shown: &Shown<'_>) -> Value {
        let path = self.path.as_ref();
        let Some(value) = path.and_then(|path| path.first(shown.object)) else {
            return Value::Null;
        };
        match (&self.holds, value) {
            (_, Value::Null) => Value::Null,
            (Holds::Text, Value::String(_)) => value.clone(),
            (Holds::Text, other) => json!(other.to_string()),
            (Holds::Integer, Value::Number(number)) => match number.as_i64() {
                Some(whole) => json!(whole),
                // A fraction is cut off, as a conversion in Go would.
                #[expect(clippy::cast_possible_truncation, reason = "the cell holds an integer")]
                None => json!(number.as_f64().unwrap_or(0.0) as i64),
            },
            (Holds::Number, Value::Number(_)) | (Holds::Boolean, Value::Bool(_)) => value.clone(),
            (Holds::Date, Value::String(time)) => match meta::parse_time(time) {
                Some(then) => json!(age::between(then, shown.now)),
                None if time.is_empty() => json!("<unknown>"),
                None => json!("<invalid>"),
            },
            (_, _) => Value::Null,
        }
    }
}
