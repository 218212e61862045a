//! Which claims do pods use?

use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::scheduler::labels::items;
use crate::view::ObjectKey;

/// A pod as far as its volumes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodVolumes {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// Where it runs; empty before.
    pub(crate) node: String,
    /// Its containers are gone for good.
    pub(crate) finished: bool,
    /// On its way out.
    pub(crate) deleting: bool,
    /// Claims that it mounts, by name.
    pub(crate) claims: Vec<String>,
    /// Claims that have to be made for it.
    pub(crate) templates: Vec<Value>,
}

impl PodVolumes {
    /// Reads a Pod.
    pub(crate) fn read(pod: &Value) -> Self {
        let phase = pod["status"]["phase"].as_str().unwrap_or("");
        let (mut claims, mut templates) = (Vec::new(), Vec::new());
        for volume in items(&pod["spec"]["volumes"]) {
            if let Some(name) = volume["persistentVolumeClaim"]["claimName"].as_str() {
                claims.push(name.to_owned());
            }
            let template = &volume["ephemeral"]["volumeClaimTemplate"];
            if template.is_object() {
                let name = volume["name"].as_str().unwrap_or("");
                let name = format!("{}-{name}", meta::name(pod));
                templates.push(ephemeral_claim(pod, &name, template));
                claims.push(name);
            }
        }
        Self {
            key: crate::fields::key(pod),
            node: pod["spec"]["nodeName"].as_str().unwrap_or("").to_owned(),
            finished: matches!(phase, "Succeeded" | "Failed"),
            deleting: meta::is_deleting(pod),
            claims,
            templates,
        }
    }

    /// True when it has anything to do with claims.
    pub(crate) fn is_relevant(&self) -> bool {
        !self.claims.is_empty()
    }
}

/// The claim that a pod's ephemeral volume asks for; it goes with the pod.
fn ephemeral_claim(pod: &Value, name: &str, template: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": meta::namespace(pod),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Pod",
                "name": meta::name(pod),
                "uid": meta::uid(pod),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    })
}
