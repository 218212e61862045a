//! Questions to EC2: what to list.

use serde::{Deserialize, Serialize};

/// Narrows a list down: one of the values must match. Filters of a query must all match.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Filter {
    /// What is compared.
    pub name: String,
    /// With what.
    pub values: Vec<String>,
}

impl Filter {
    /// A filter by several values.
    pub fn new(name: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            name: name.to_owned(),
            values: values.into_iter().map(Into::into).collect(),
        }
    }

    /// The tag has this value, or any if it is `*`.
    #[must_use]
    pub fn tag(key: &str, value: &str) -> Self {
        match value {
            "*" => Self::new("tag-key", [key]),
            value => Self::new(&format!("tag:{key}"), [value]),
        }
    }
}

/// A question with many answers, one page at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Query {
    /// What the answers have in common.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// Images only: whose they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// Instances only: which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_ids: Vec<String>,
    /// Capacity reservations only: which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservation_ids: Vec<String>,
    /// Placement groups only: which, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_ids: Vec<String>,
    /// Placement groups only: which, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_names: Vec<String>,
    /// Launch templates only: which.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launch_template_names: Vec<String>,
    /// Images only: also those whose owner asks people to move on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_deprecated: Option<bool>,
    /// Answers a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results: Option<i32>,
}
