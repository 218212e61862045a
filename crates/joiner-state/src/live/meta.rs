//! What every object has.

use jiff::Timestamp;
use joiner_api::labels::JOINER_PREFIX;
use joiner_model::{Labels, Name};
use serde_json::Value;

use super::reading::full_name;
use crate::names::Names;

/// Metadata of an object, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `namespace/name`, or the name alone where there are no namespaces.
    pub name: Name,
    /// Uid.
    pub uid: Name,
    /// Version, as a number: larger is later.
    pub version: u64,
    /// Generation.
    pub generation: i64,
    /// When it was created.
    pub created: Timestamp,
    /// When it is to be gone, once somebody asked for its deletion.
    pub deleting: Option<Timestamp>,
    /// Labels.
    pub labels: Labels,
    /// Annotations in use: those of karpenter.sh, joiner.dev and the like.
    pub annotations: Labels,
    /// Finalizers.
    pub finalizers: Vec<Name>,
    /// Owners.
    pub owners: Vec<Owner>,
}

/// An owner of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Group and version.
    pub api_version: Name,
    /// Kind.
    pub kind: Name,
    /// Name.
    pub name: Name,
    /// Uid.
    pub uid: Name,
    /// It is in control.
    pub controller: bool,
}

impl Meta {
    /// Reads the metadata of an object.
    pub(crate) fn read(object: &Value, names: &mut Names) -> Self {
        let meta = &object["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        Self {
            name: full_name(object),
            uid: text("uid").into(),
            version: text("resourceVersion").parse().unwrap_or(0),
            generation: meta["generation"].as_i64().unwrap_or(0),
            created: time(&meta["creationTimestamp"]).unwrap_or(Timestamp::UNIX_EPOCH),
            deleting: time(&meta["deletionTimestamp"]),
            labels: labels_of(&meta["labels"], names),
            annotations: map(&meta["annotations"], names, is_used),
            finalizers: list(&meta["finalizers"])
                .filter_map(Value::as_str)
                .map(|finalizer| names.get(finalizer))
                .collect(),
            owners: list(&meta["ownerReferences"])
                .map(|owner| Owner::read(owner, names))
                .collect(),
        }
    }

    /// Uid and version.
    #[must_use]
    pub fn identity(&self) -> (&Name, u64) {
        (&self.uid, self.version)
    }

    /// The namespace, empty where there are none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.name
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name without the namespace.
    #[must_use]
    pub fn own_name(&self) -> &str {
        self.name
            .split_once('/')
            .map_or(&self.name, |(_, name)| name)
    }

    /// The owner in control, or the first there is.
    #[must_use]
    pub fn owner(&self) -> Option<&Owner> {
        let in_control = self.owners.iter().find(|owner| owner.controller);
        in_control.or(self.owners.first())
    }

    /// A label's value.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(AsRef::as_ref)
    }

    /// An annotation's value.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(AsRef::as_ref)
    }

    /// True when it has this finalizer.
    #[must_use]
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|own| &**own == finalizer)
    }
}

impl Owner {
    pub(super) fn read(owner: &Value, names: &mut Names) -> Self {
        let mut text = |field: &str| names.get(owner[field].as_str().unwrap_or_default());
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: owner["controller"].as_bool().unwrap_or(false),
        }
    }
}

/// Annotations that somebody here reads.
fn is_used(key: &str) -> bool {
    let domain = key.split('/').next().unwrap_or_default();
    domain.ends_with("karpenter.sh")
        || domain.ends_with("karpenter.k8s.aws")
        || key.contains(JOINER_PREFIX)
        || domain.ends_with("kwok.x-k8s.io")
        || key == joiner_api::labels::POD_DELETION_COST
}

/// A time as objects carry it.
#[must_use]
pub fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// A time as objects carry it: whole seconds.
#[must_use]
pub fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Labels as objects carry them.
pub(crate) fn labels_of(value: &Value, names: &mut Names) -> Labels {
    map(value, names, |_| true)
}

pub(crate) fn map(value: &Value, names: &mut Names, keep: impl Fn(&str) -> bool) -> Labels {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter(|(key, _)| keep(key))
        .map(|(key, value)| {
            (
                names.get(key),
                names.get(value.as_str().unwrap_or_default()),
            )
        })
        .collect()
}
