//! Which kinds there are, under which names, with which subresources.

mod builtin;
pub mod convert;
pub mod fields;

use std::sync::Arc;

use serde_json::Value;

pub use builtin::builtin;

/// Something under an object with a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    /// `status`.
    Status,
    /// `scale`.
    Scale,
    /// `binding` of a pod.
    Binding,
    /// `eviction` of a pod.
    Eviction,
    /// `log` of a pod.
    Log,
    /// `finalize` of a namespace.
    Finalize,
    /// `token` of a service account.
    Token,
    /// `approval`, `proxy` and others that are named but not served.
    Unserved,
}

impl Subresource {
    /// The last word of its path; none for those that are not served.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Self::Status => Some("status"),
            Self::Scale => Some("scale"),
            Self::Binding => Some("binding"),
            Self::Eviction => Some("eviction"),
            Self::Log => Some("log"),
            Self::Finalize => Some("finalize"),
            Self::Token => Some("token"),
            Self::Unserved => None,
        }
    }
}

/// A kind of object, as discovery shows it.
#[derive(Clone, Debug)]
pub struct Kind {
    /// API group, empty for the core one.
    pub group: String,
    /// Version.
    pub version: String,
    /// `Pod`.
    pub kind: String,
    /// `pods`.
    pub plural: String,
    /// `pod`.
    pub singular: String,
    /// `po`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// Lives in a namespace.
    pub namespaced: bool,
    /// What is served under it.
    pub subresources: Vec<Subresource>,
    /// For kinds that a CRD defines: the version's entry of the CRD (`schema`, `subresources`,
    /// `additionalPrinterColumns`).
    pub custom: Option<Arc<Value>>,
}

impl Kind {
    /// `deployments.apps`, or `pods` in the core group.
    #[must_use]
    pub fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `apps/v1`, or `v1` in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `/apis/apps/v1/namespaces/NS/deployments`, or without the namespace where there is none.
    #[must_use]
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{root}/namespaces/{namespace}/{}", self.plural)
            }
            Some(_) | None => format!("{root}/{}", self.plural),
        }
    }

    /// What clients may do with objects of the kind, in discovery's order.
    #[must_use]
    pub fn verbs(&self) -> &'static [&'static str] {
        const ALL: &[&str] = &[
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ];
        // A namespace takes everything in it along: nobody deletes all of them at once.
        const NO_COLLECTION: &[&str] = &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ];
        match (self.group.as_str(), self.plural.as_str()) {
            ("authorization.k8s.io" | "authentication.k8s.io", _) => &["create"],
            ("metrics.k8s.io", _) => &["get", "list"],
            ("", "namespaces") => NO_COLLECTION,
            _ => ALL,
        }
    }

    /// True when objects of the kind are kept, rather than computed or answered.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.verbs().contains(&"watch")
    }

    /// Group and plural under which objects are kept. Both groups of Event share one place.
    #[must_use]
    pub fn storage(&self) -> (&str, &str) {
        match (self.group.as_str(), self.plural.as_str()) {
            ("events.k8s.io", plural) => ("", plural),
            (group, plural) => (group, plural),
        }
    }

    /// True for one of the kinds of Kubernetes itself, by group and kind.
    #[must_use]
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.custom.is_none() && self.group == group && self.kind == kind
    }

    /// True when the subresource is served.
    #[must_use]
    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }
}
