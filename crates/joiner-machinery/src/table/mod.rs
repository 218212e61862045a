//! What `kubectl get` prints: objects as rows of a `Table`, with the columns that upstream shows.

mod age;
mod autoscaling;
mod cell;
mod core;
mod custom;
mod json_path;
mod network;
mod nodes;
mod pods;
mod policy;
mod storage;
mod workloads;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::discovery::clauses;
use crate::kinds::Kind;
use crate::meta;
use cell::Shown;

pub use age::human_duration;

/// How much of each object a row carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata, which `kubectl get -L` reads labels from.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// From the query parameter `includeObject`; none for a word that it does not know.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// What goes around the rows.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How much of each object a row carries.
    pub include: IncludeObject,
    /// The table's own `metadata`: the list's, or the `resourceVersion` of a single object.
    pub metadata: Map<String, Value>,
    /// Leave columns out, as in every event of a watch but the first.
    pub no_headers: bool,
}

/// The objects as a `meta.k8s.io/v1` Table.
#[must_use]
pub fn render<'o>(
    kind: &Kind,
    objects: impl Iterator<Item = &'o Value>,
    options: &Options,
    now: Timestamp,
) -> Value {
    let printer = Printer::of(kind);
    let rows: Vec<Value> = objects
        .map(|object| printer.row(&Shown { object, now }, options.include))
        .collect();
    let columns = if options.no_headers {
        Value::Null
    } else {
        printer.columns()
    };
    object([
        ("kind", Value::from("Table")),
        ("apiVersion", Value::from("meta.k8s.io/v1")),
        ("metadata", Value::Object(options.metadata.clone())),
        ("columnDefinitions", columns),
        ("rows", Value::Array(rows)),
    ])
}

/// An object of values that are moved: the macro would copy each, and tables are large.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter();
    Value::Object(
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// The media type of tables.
pub const MEDIA_TYPE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// True when the client would rather have a table than objects.
#[must_use]
pub fn is_wanted(accept: &str) -> bool {
    for clause in clauses(accept) {
        match (clause.param("as"), clause.param("g"), clause.param("v")) {
            (Some("Table"), Some("meta.k8s.io"), Some("v1" | "v1beta1")) => return true,
            (None, _, _) => return false,
            (Some(_), _, _) => {}
        }
    }
    false
}

/// A column of a kind that is built in.
struct Column {
    name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    holds: &'static str,
    description: &'static str,
    /// 1 for columns of `-o wide`.
    priority: u8,
}

impl Column {
    const fn text(name: &'static str, description: &'static str) -> Self {
        Self::of(name, "string", description)
    }

    const fn integer(name: &'static str, description: &'static str) -> Self {
        Self::of(name, "integer", description)
    }

    const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self::of(name, "boolean", description)
    }

    const fn wide(name: &'static str, description: &'static str) -> Self {
        Self {
            priority: 1,
            ..Self::text(name, description)
        }
    }

    const fn of(name: &'static str, holds: &'static str, description: &'static str) -> Self {
        Self {
            name,
            holds,
            description,
            priority: 0,
        }
    }

    fn to_json(&self) -> Value {
        let format = match self.name {
            "Name" | "Attacher" => "name",
            _ => "",
        };
        json!({
            "name": self.name,
            "type": self.holds,
            "format": format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

const NAME: Column = Column::text("Name", "Name of the object, unique in its namespace.");
const AGE: Column = Column::text("Age", "Time since the object was created.");
const CONTAINERS: Column = Column::wide("Containers", "Names of the template's containers.");
const IMAGES: Column = Column::wide("Images", "Images of the template's containers.");

/// Columns and how to fill them.
struct BuiltIn {
    columns: &'static [Column],
    cells: fn(&Shown<'_>) -> Vec<Value>,
    /// What is said about a row as a whole.
    conditions: fn(&Shown<'_>) -> Option<Value>,
}

impl BuiltIn {
    const fn new(columns: &'static [Column], cells: fn(&Shown<'_>) -> Vec<Value>) -> Self {
        Self {
            columns,
            cells,
            conditions: |_| None,
        }
    }
}

/// Kinds that nobody has made columns for.
static PLAIN: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::of("Created At", "date", "When the object was created."),
    ],
    |shown| {
        vec![
            shown.name(),
            json!(meta::text(shown.object, "creationTimestamp")),
        ]
    },
);

enum Printer {
    BuiltIn(&'static BuiltIn),
    Custom(custom::Columns),
}

impl Printer {
    fn of(kind: &Kind) -> Self {
        if let Some(version) = &kind.custom {
            return Self::Custom(custom::Columns::new(version));
        }
        let found = None
            .or_else(|| core::printer(kind))
            .or_else(|| workloads::printer(kind))
            .or_else(|| storage::printer(kind))
            .or_else(|| policy::printer(kind))
            .or_else(|| network::printer(kind))
            .or_else(|| autoscaling::printer(kind));
        Self::BuiltIn(found.unwrap_or(&PLAIN))
    }

    fn columns(&self) -> Value {
        match self {
            Self::BuiltIn(built_in) => built_in.columns.iter().map(Column::to_json).collect(),
            Self::Custom(columns) => columns.to_json(),
        }
    }

    fn row(&self, shown: &Shown<'_>, include: IncludeObject) -> Value {
        let (cells, conditions) = match self {
            Self::BuiltIn(built_in) => ((built_in.cells)(shown), (built_in.conditions)(shown)),
            Self::Custom(columns) => (columns.cells(shown), None),
        };
        let carried = match include {
            IncludeObject::None => Value::Null,
            IncludeObject::Object => shown.object.clone(),
            IncludeObject::Metadata => object([
                ("kind", Value::from("PartialObjectMetadata")),
                ("apiVersion", Value::from("meta.k8s.io/v1")),
                ("metadata", shown.object["metadata"].clone()),
            ]),
        };
        let mut row = object([("cells", Value::Array(cells)), ("object", carried)]);
        if let Some(conditions) = conditions {
            row["conditions"] = conditions;
        }
        row
    }
}

#[cfg(test)]
mod tests;
