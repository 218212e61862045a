//! The CustomResourceDefinitions, written once: what is printed is what [`crate::admission`]
//! enforces.
//!
//! Each kind has a module that builds its schema from the parts in `build` and `common`.

mod build;
mod capacity_buffer;
mod common;
mod ec2_kubelet;
mod ec2_node_class;
mod ec2_selectors;
mod ec2_status;
mod keys;
mod kwok_node_class;
pub(crate) mod legacy;
mod node_claim;
mod node_overlay;
mod node_pool;
mod patterns;

pub(crate) use patterns::pattern_in_words;

use build::Field;
use serde_json::{Value, json};

/// Every definition, ready to apply.
#[must_use]
pub fn crds() -> Vec<Value> {
    definitions().iter().map(Definition::to_crd).collect()
}

/// Every definition, in the order they are printed.
pub(crate) fn definitions() -> Vec<Definition> {
    vec![
        node_pool::definition(),
        node_claim::definition(),
        node_overlay::definition(),
        ec2_node_class::definition(),
        kwok_node_class::definition(),
        capacity_buffer::definition(),
    ]
}

/// What sets one kind apart from the others.
pub(crate) struct Definition {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) category: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) columns: Vec<Column>,
    /// Paths of wanted and actual counts, for kinds that can be scaled.
    pub(crate) scale: Option<(&'static str, &'static str)>,
    pub(crate) schema: Field,
}

/// A column of `kubectl get`.
pub(crate) struct Column {
    name: &'static str,
    kind: &'static str,
    path: &'static str,
    wide: bool,
}

impl Column {
    /// A column that is always shown.
    const fn new(name: &'static str, kind: &'static str, path: &'static str) -> Self {
        Self {
            name,
            kind,
            path,
            wide: false,
        }
    }

    /// A column of `-o wide`.
    const fn wide(name: &'static str, kind: &'static str, path: &'static str) -> Self {
        Self {
            name,
            kind,
            path,
            wide: true,
        }
    }

    const READY: Self = Self::new(
        "Ready",
        "string",
        r#".status.conditions[?(@.type=="Ready")].status"#,
    );
    const AGE: Self = Self::new("Age", "date", ".metadata.creationTimestamp");

    fn to_json(&self) -> Value {
        let mut column = json!({"name": self.name, "type": self.kind, "jsonPath": self.path});
        if self.wide {
            column["priority"] = json!(1);
        }
        column
    }
}

impl Definition {
    /// The schema of the object as a whole.
    pub(crate) fn open_api(&self) -> Value {
        self.schema.to_json()
    }

    fn to_crd(&self) -> Value {
        let mut names = json!({
            "plural": self.plural,
            "singular": self.singular,
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "categories": [self.category],
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        let mut subresources = json!({"status": {}});
        if let Some((spec, status)) = self.scale {
            subresources["scale"] = json!({"specReplicasPath": spec, "statusReplicasPath": status});
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", self.plural, self.group)},
            "spec": {
                "group": self.group,
                "names": names,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [{
                    "name": self.version,
                    "served": true,
                    "storage": true,
                    "additionalPrinterColumns":
                        self.columns.iter().map(Column::to_json).collect::<Vec<_>>(),
                    "schema": {"openAPIV3Schema": self.open_api()},
                    "subresources": subresources,
                }],
            },
        })
    }
}
