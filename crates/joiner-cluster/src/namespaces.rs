//! What every namespace starts with, and how it ends.
//!
//! A new one gets the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. A terminating
//! one is emptied; then its finalizer is removed through the subresource `finalize`.

use std::collections::BTreeMap;

use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields;
use crate::resources::Resources;
use crate::view::{Action, Controller, Objects, Resource, Step, View};

const NAMESPACES: Resource = ("", "namespaces");
const ACCOUNTS: Resource = ("", "serviceaccounts");
const CONFIG_MAPS: Resource = ("", "configmaps");
const ROOT_CA: &str = "kube-root-ca.crt";

/// The controller of namespaces.
pub struct Namespaces {
    ca: String,
    resources: Resources,
}

impl Namespaces {
    /// With the certificate, in PEM, that clients in every namespace are to trust.
    #[must_use]
    pub fn new(ca: impl Into<String>) -> Self {
        Self {
            ca: ca.into(),
            resources: Resources::default(),
        }
    }

    fn furnish(&self, view: &View<'_>, namespace: &str) -> Vec<Action> {
        let mut actions = Vec::new();
        if view.get(ACCOUNTS, namespace, "default").is_none() {
            let account = json!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": namespace},
            });
            actions.push(Action::Create(ACCOUNTS, account));
        }
        let data = json!({"ca.crt": self.ca});
        match view.get(CONFIG_MAPS, namespace, ROOT_CA) {
            None => {
                let note = "Contains a CA bundle that can be used to verify the kube-apiserver.";
                let map = json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": ROOT_CA,
                        "namespace": namespace,
                        "annotations": {"kubernetes.io/description": note},
                    },
                    "data": data,
                });
                actions.push(Action::Create(CONFIG_MAPS, map));
            }
            Some(map) if map["data"] != data => {
                let change = fields::difference(&map["data"], &data);
                let patch = json!({"data": change});
                actions.push(fields::patch(CONFIG_MAPS, map, patch));
            }
            Some(_) => {}
        }
        actions
    }

    /// Deletes what is left in a namespace, and the namespace when nothing is.
    fn empty(&mut self, view: &View<'_>, namespace: &Value) -> Vec<Action> {
        let mut left = Left::default();
        let mut actions = Vec::new();
        for (kind, objects) in view.kinds {
            for object in within(objects, meta::name(namespace)) {
                left.count(kind, object);
                if !meta::is_deleting(object) {
                    let resource = self.resources.named(kind);
                    actions.push(fields::delete(resource, object, Some("Background")));
                }
            }
        }
        let mut status = namespace["status"].clone();
        status["phase"] = json!("Terminating");
        status["conditions"] = left.conditions(namespace, view);
        actions.extend(fields::patch_status(NAMESPACES, namespace, status));
        let finalizers = namespace["spec"]["finalizers"].as_array();
        let is_ours = finalizers.is_some_and(|all| all.iter().any(|own| own == "kubernetes"));
        if left.kinds.is_empty() && is_ours {
            let mut finalizers = finalizers.cloned().unwrap_or_default();
            finalizers.retain(|own| own != "kubernetes");
            actions.push(Action::Patch {
                resource: NAMESPACES,
                key: fields::key(namespace),
                subresource: Some("finalize"),
                patch: json!({"spec": {"finalizers": finalizers}}),
            });
        }
        actions
    }
}

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "namespace-controller"
    }

    fn reads(&self) -> &'static [Resource] {
        &[]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        let mut actions = Vec::new();
        for namespace in view.all(NAMESPACES) {
            actions.extend(match meta::is_deleting(namespace) {
                true => self.empty(view, namespace),
                false => self.furnish(view, meta::name(namespace)),
            });
        }
        Step {
            actions,
            wake: None,
        }
    }
}

fn within<'a>(objects: &'a Objects, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
    let first = (namespace.to_owned(), String::new());
    let all = objects
        .range(first..)
        .take_while(move |((own, _), _)| own == namespace);
    all.map(|(_, object)| &**object)
}

/// What is left of a namespace's content.
#[derive(Default)]
struct Left {
    /// Objects by kind.
    kinds: BTreeMap<String, usize>,
    /// Objects by the finalizer that they wait for.
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn count(&mut self, (group, plural): &(String, String), object: &Value) {
        // Upstream ends the name of a kind of the core group with a dot, too.
        *self.kinds.entry(format!("{plural}.{group}")).or_default() += 1;
        let finalizers = object["metadata"]["finalizers"].as_array();
        for finalizer in finalizers.into_iter().flatten().filter_map(Value::as_str) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    fn conditions(&self, namespace: &Value, view: &View<'_>) -> Value {
        let old = namespace["status"]["conditions"].as_array();
        let mut conditions = old.cloned().unwrap_or_default();
        let counts = |map: &BTreeMap<String, usize>, how: &str| {
            let parts: Vec<String> = map
                .iter()
                .map(|(what, count)| format!("{what} {how} {count} resource instances"))
                .collect();
            parts.join(", ")
        };
        let remaining = match self.kinds.is_empty() {
            true => (
                "False",
                "ContentRemoved",
                "All content successfully removed".to_owned(),
            ),
            false => {
                let what = counts(&self.kinds, "has");
                (
                    "True",
                    "SomeResourcesRemain",
                    format!("Some resources are remaining: {what}"),
                )
            }
        };
        let held = match self.finalizers.is_empty() {
            true => {
                let message = "All content-preserving finalizers finished".to_owned();
                ("False", "ContentHasNoFinalizers", message)
            }
            false => {
                let what = counts(&self.finalizers, "in");
                let message =
                    format!("Some content in the namespace has finalizers remaining: {what}");
                ("True", "SomeFinalizersRemain", message)
            }
        };
        let fine = |reason, message: &str| ("False", reason, message.to_owned());
        let discovered = fine(
            "ResourcesDiscovered",
            "All resources successfully discovered",
        );
        let parsed = fine(
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        );
        let message = "All content successfully deleted, may be waiting on finalization";
        let deleted = fine("ContentDeleted", message);
        for (kind, (status, reason, message)) in [
            ("NamespaceDeletionDiscoveryFailure", discovered),
            ("NamespaceDeletionGroupVersionParsingFailure", parsed),
            ("NamespaceDeletionContentFailure", deleted),
            ("NamespaceContentRemaining", remaining),
            ("NamespaceFinalizersRemaining", held),
        ] {
            let condition = json!({
                "type": kind,
                "status": status,
                "lastTransitionTime": meta::time(view.now),
                "reason": reason,
                "message": message,
            });
            fields::set_condition(&mut conditions, condition);
        }
        // Always in the same order, or a message that changes would move its condition around.
        conditions.sort_by_cached_key(|condition| condition["type"].as_str().map(str::to_owned));
        Value::Array(conditions)
    }
}
