//! A StatefulSet's pod with its name and volumes.

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::super::revisions::restored;
use super::{CLAIMS, PODS, REVISION_LABEL, StatefulSet};
use crate::events::Recorder;
use crate::view::Action;
use crate::workloads::pods;

impl<'a> StatefulSet<'a, '_> {
    /// Creates the pod with a number, and first the claims that it lacks.
    pub(super) fn create(&mut self, ordinal: i64, recorder: &mut Recorder<'a>) {
        let (object, set) = (self.object, meta::name(self.object));
        let name = format!("{set}-{ordinal}");
        let templates = object["spec"]["volumeClaimTemplates"].as_array();
        for template in templates.into_iter().flatten() {
            let claim = claim_name(template, &name);
            if self
                .view
                .get(CLAIMS, meta::namespace(object), &claim)
                .is_some()
            {
                continue;
            }
            self.actions
                .push(Action::Create(CLAIMS, self.new_claim(template, &claim)));
            let message = format!("create Claim {claim} Pod {name} in StatefulSet {set} success");
            self.actions
                .push(recorder.normal(object, "SuccessfulCreate", &message));
        }
        self.actions
            .push(Action::Create(PODS, self.new_pod(ordinal, &name)));
        let message = format!("create Pod {name} in StatefulSet {set} successful");
        self.actions
            .push(recorder.normal(object, "SuccessfulCreate", &message));
    }

    fn new_pod(&self, ordinal: i64, name: &str) -> Value {
        let spec = &self.object["spec"];
        let keeps_current =
            spec["updateStrategy"]["type"] != "OnDelete" && ordinal < self.start + self.partition();
        let old = self.history.find(&self.current).filter(|_| keeps_current);
        let (template, revision) = match old {
            Some(old) => (restored(old), &self.current),
            None => (spec["template"].clone(), &self.history.update.name),
        };
        let mut pod = pods::from_template(&template, &self.owner, name.to_owned());
        pod["metadata"]["generateName"] = json!(format!("{}-", meta::name(self.object)));
        pods::label(&mut pod, "statefulset.kubernetes.io/pod-name", name);
        pods::label(
            &mut pod,
            "apps.kubernetes.io/pod-index",
            &ordinal.to_string(),
        );
        pods::label(&mut pod, REVISION_LABEL, revision);
        if !pod["spec"].is_object() {
            pod["spec"] = json!({});
        }
        pod["spec"]["hostname"] = json!(name);
        if let Some(service) = spec["serviceName"].as_str().filter(|name| !name.is_empty()) {
            pod["spec"]["subdomain"] = json!(service);
        }
        let templates = spec["volumeClaimTemplates"]
            .as_array()
            .into_iter()
            .flatten();
        let own: Vec<Value> = templates
            .map(|template| {
                let claim = claim_name(template, name);
                json!({"name": meta::name(template), "persistentVolumeClaim": {"claimName": claim}})
            })
            .collect();
        if !own.is_empty() {
            let volumes = pod["spec"]["volumes"].as_array();
            let mut volumes = volumes.cloned().unwrap_or_default();
            volumes.retain(|volume| own.iter().all(|new| new["name"] != volume["name"]));
            volumes.splice(0..0, own);
            pod["spec"]["volumes"] = Value::Array(volumes);
        }
        pod
    }

    /// Claims have no owner at first: unless the policy says otherwise they outlive the set.
    fn new_claim(&self, template: &Value, name: &str) -> Value {
        let mut claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": meta::namespace(self.object)},
            "spec": template["spec"],
        });
        for field in ["labels", "annotations"] {
            let value = &template["metadata"][field];
            if value.is_object() {
                claim["metadata"][field] = value.clone();
            }
        }
        let selected = self.object["spec"]["selector"]["matchLabels"].as_object();
        for (key, value) in selected.into_iter().flatten() {
            pods::label(&mut claim, key, value.as_str().unwrap_or_default());
        }
        claim
    }
}

/// The name of the claim that a pod gets for a template.
pub(super) fn claim_name(template: &Value, pod: &str) -> String {
    format!("{}-{pod}", meta::name(template))
}
