//! What every object has: kind, metadata, and the envelope around spec and status.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An object of one of our kinds: `NodePool` and its siblings are aliases of this type.
///
/// `spec` falls back to its default when absent, for kinds that do not require it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Object<Spec, Status> {
    /// Group and version; empty for the items of a list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind; empty for the items of a list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Name, labels and bookkeeping.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// What the user wants.
    #[serde(default)]
    pub spec: Spec,
    /// What is.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

fn none<T>() -> Option<T> {
    None
}

/// The fixed facts about a kind.
pub trait Resource {
    /// API group.
    const GROUP: &'static str;
    /// Version that is served and stored.
    const VERSION: &'static str;
    /// Kind.
    const KIND: &'static str;
    /// Name in URLs.
    const PLURAL: &'static str;
    /// Whether objects live in a namespace.
    const NAMESPACED: bool;

    /// `group/version`.
    #[must_use]
    fn api_version() -> String {
        format!("{}/{}", Self::GROUP, Self::VERSION)
    }
}

impl<Spec, Status> Object<Spec, Status>
where
    Self: Resource,
{
    /// An object with a name and a spec, and nothing else.
    #[must_use]
    pub fn new(name: &str, spec: Spec) -> Self {
        Self {
            api_version: Self::api_version(),
            kind: Self::KIND.to_owned(),
            metadata: ObjectMeta {
                name: name.to_owned(),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }
}

impl<Spec, Status> Object<Spec, Status> {
    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether deletion was asked for.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// Metadata of an object. Times are RFC 3339 text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name; empty only while [`Self::generate_name`] waits for the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Start of a name that the server completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Namespace, for kinds that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Identity across deletion and recreation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Opaque version for optimistic locking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Grows with every change of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// When the object is to be gone, once deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    /// Seconds granted to a graceful deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Objects that this one goes away with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Keys that hold the object until their owners drop them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Who owns which field, as the server tells it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<serde_json::Value>,
}

/// Names an owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Identity of the owner.
    pub uid: String,
    /// Foreground deletion of the owner waits for this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
    /// The owner manages this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
}
