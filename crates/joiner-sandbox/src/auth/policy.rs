//! The roles and bindings that are stored.

use std::sync::Arc;

use joiner_machinery::rbac::{GROUP, Policy};
use serde_json::Value;

use crate::store::Inner;

/// The objects, while the lock is held.
pub(super) struct Stored<'s>(pub(super) &'s Inner);

impl Stored<'_> {
    fn one(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resource = (GROUP.to_owned(), plural.to_owned());
        let key = (namespace.to_owned(), name.to_owned());
        self.0.get(&resource, &key).cloned()
    }

    fn all(&self, plural: &str, namespace: &str) -> Vec<Arc<Value>> {
        let resource = (GROUP.to_owned(), plural.to_owned());
        let Some(objects) = self.0.objects(&resource) else {
            return Vec::new();
        };
        let first = (namespace.to_owned(), String::new());
        let own = objects.range(first..);
        let own = own.take_while(|((found, _), _)| found == namespace);
        own.map(|(_, object)| Arc::clone(object)).collect()
    }
}

impl Policy for Stored<'_> {
    fn cluster_role(&self, name: &str) -> Option<Arc<Value>> {
        self.one("clusterroles", "", name)
    }

    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.one("roles", namespace, name)
    }

    fn cluster_role_bindings(&self) -> Vec<Arc<Value>> {
        self.all("clusterrolebindings", "")
    }

    fn role_bindings(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.all("rolebindings", namespace)
    }
}
