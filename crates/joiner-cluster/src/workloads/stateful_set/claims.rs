//! How long do the claims of a StatefulSet's pods live?
//!
//! A claim that is to go with the set, or with a pod that is no longer wanted, names it as its owner;
//! the garbage collector does the rest.

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::pod::claim_name;
use super::{CLAIMS, StatefulSet};
use crate::fields;
use crate::view::Action;
use crate::workloads::Child;

impl StatefulSet<'_, '_> {
    /// Gives the claims of all pods the owners that the retention policy wants.
    pub(super) fn own_claims(&mut self) {
        let policy = &self.object["spec"]["persistentVolumeClaimRetentionPolicy"];
        let set = owner("apps/v1", "StatefulSet", self.object);
        let set = (policy["whenDeleted"] == "Delete").then_some(set);
        let goes_with_pod = policy["whenScaled"] == "Delete";
        let wanted = self
            .replicas
            .iter()
            .flatten()
            .map(|pod| (*pod, set.clone()));
        let condemned = self.condemned.iter().map(|pod| {
            let with_pod = goes_with_pod.then(|| owner("v1", "Pod", &pod.object));
            (*pod, with_pod.or_else(|| set.clone()))
        });
        let changes: Vec<Action> = wanted
            .chain(condemned)
            .flat_map(|(pod, owner)| self.claims_of(pod, owner.as_ref()))
            .collect();
        self.actions.extend(changes);
    }

    fn claims_of(&self, pod: &Child, owner: Option<&Value>) -> Vec<Action> {
        let templates = self.object["spec"]["volumeClaimTemplates"].as_array();
        let (namespace, pod) = (meta::namespace(self.object), meta::name(&pod.object));
        let claims = templates.into_iter().flatten().filter_map(|template| {
            let name = claim_name(template, pod);
            self.view.get(CLAIMS, namespace, &name)
        });
        claims
            .filter_map(|claim| self.with_owner(claim, owner))
            .collect()
    }

    /// The change that makes this the only owner among the set and its pods.
    fn with_owner(&self, claim: &Value, owner: Option<&Value>) -> Option<Action> {
        let old = claim["metadata"]["ownerReferences"].as_array();
        let old = old.cloned().unwrap_or_default();
        let is_foreign = |reference: &&Value| {
            let is_set = reference["uid"] == meta::uid(self.object);
            let is_pod = reference["kind"] == "Pod" && reference["apiVersion"] == "v1";
            !is_set && !is_pod
        };
        let mut new: Vec<Value> = old.iter().filter(is_foreign).cloned().collect();
        new.extend(owner.cloned());
        if new == old {
            return None;
        }
        let version = meta::text(claim, "resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": new}});
        Some(fields::patch(CLAIMS, claim, patch))
    }
}

fn owner(api_version: &str, kind: &str, object: &Value) -> Value {
    json!({
        "apiVersion": api_version,
        "blockOwnerDeletion": true,
        "controller": true,
        "kind": kind,
        "name": meta::name(object),
        "uid": meta::uid(object),
    })
}
