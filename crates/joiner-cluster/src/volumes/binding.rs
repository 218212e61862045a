//! Which volume does a claim get, and what becomes of it afterward?

use std::collections::BTreeSet;

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::uses::PodVolumes;
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, CLAIMS, CLASSES, Mode, SELECTED_NODE, VOLUMES,
    can_provision, candidates, class_of, has_finalizer, is_bound, mode, provisioning, reference_to,
    refers_to, with_finalizer,
};
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{delete, patch};
use crate::scheduler::labels::{Labels, any_matches, node_terms};
use crate::scheduler::{NODES, PODS};
use crate::view::{Action, Controller, Resource, Step, View};

const NAME: &str = "persistentvolume-controller";
const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Binds claims to volumes, makes volumes, reclaims them, and protects both while in use.
#[derive(Default)]
pub struct VolumeBinder {
    pods: Cache<PodVolumes>,
}

impl Controller for VolumeBinder {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reads(&self) -> &'static [Resource] {
        &[CLAIMS, VOLUMES, CLASSES, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.pods.refresh(
            view.objects(PODS),
            PodVolumes::read,
            PodVolumes::is_relevant,
        );
        let mut binder = Binder {
            view: *view,
            recorder: Recorder::new(view, NAME),
            taken: BTreeSet::new(),
            step: Step::default(),
        };
        for pod in self.pods.iter().filter(|pod| !pod.templates.is_empty()) {
            binder.make_claims(pod);
        }
        for claim in view.all(CLAIMS) {
            if meta::is_deleting(claim) {
                let used = || self.pods.iter().any(|pod| uses(pod, claim));
                if has_finalizer(claim, PVC_PROTECTION) && !used() {
                    binder.act(with_finalizer(CLAIMS, claim, PVC_PROTECTION, false));
                }
            } else {
                binder.claim(claim);
            }
        }
        for volume in view.all(VOLUMES) {
            binder.volume(volume);
        }
        binder.step
    }
}

/// A pod that is on a node holds on to its claims.
fn uses(pod: &PodVolumes, claim: &Value) -> bool {
    pod.key.0 == meta::namespace(claim)
        && !pod.node.is_empty()
        && pod.claims.iter().any(|name| name == meta::name(claim))
}

/// The work of one step.
struct Binder<'v> {
    view: View<'v>,
    recorder: Recorder<'v>,
    /// Volumes that this step gave away.
    taken: BTreeSet<String>,
    step: Step,
}

impl Binder<'_> {
    fn act(&mut self, action: Action) {
        self.step.actions.push(action);
    }

    /// Claims of ephemeral volumes.
    fn make_claims(&mut self, pod: &PodVolumes) {
        if pod.finished || pod.deleting {
            return;
        }
        for claim in &pod.templates {
            if self
                .view
                .get(CLAIMS, &pod.key.0, meta::name(claim))
                .is_none()
            {
                self.act(Action::Create(CLAIMS, claim.clone()));
            }
        }
    }

    fn claim(&mut self, claim: &Value) {
        if !has_finalizer(claim, PVC_PROTECTION) {
            self.act(with_finalizer(CLAIMS, claim, PVC_PROTECTION, true));
        }
        if is_bound(claim) {
            self.check_volume(claim);
            return;
        }
        if let Some(class) = self.default_class(claim) {
            let class = json!({"spec": {"storageClassName": class}});
            self.act(patch(CLAIMS, claim, class));
            return;
        }
        let selected = meta::annotation(claim, SELECTED_NODE);
        let own = provisioning::volume_name(claim);
        let made = self
            .view
            .get(VOLUMES, "", &own)
            .filter(|volume| refers_to(volume, claim));
        if let Some(volume) = made {
            self.bind(claim, volume);
            return;
        }
        let named = claim["spec"]["volumeName"]
            .as_str()
            .is_some_and(|name| !name.is_empty());
        let waits = mode(&self.view, claim) == Mode::WaitForFirstConsumer;
        if waits && selected.is_none() && !named {
            self.say_once(
                claim,
                "WaitForFirstConsumer",
                "waiting for first consumer to be created before binding",
            );
            return;
        }
        let node = selected
            .and_then(|name| self.view.get(NODES, "", name))
            .map(AsRef::as_ref);
        let free = |volume: &&Value| {
            !self.taken.contains(meta::name(volume))
                && node.is_none_or(|node| reaches(volume, node))
        };
        let found = candidates(&self.view, claim).find(free);
        if let Some(volume) = found {
            self.taken.insert(meta::name(volume).to_owned());
            self.bind(claim, volume);
        } else if !named {
            self.provision(claim, node, waits);
        }
    }

    fn provision(&mut self, claim: &Value, node: Option<&Value>, waits: bool) {
        match class_of(&self.view, claim).filter(|class| can_provision(class)) {
            // The node that was selected is gone: the scheduler names another.
            Some(_) if waits && node.is_none() => {}
            Some(class) => {
                let volume = provisioning::provision(&self.view, claim, class, node);
                self.act(volume);
                let name = provisioning::volume_name(claim);
                let message = format!("Successfully provisioned volume {name}");
                let event = self
                    .recorder
                    .normal(claim, "ProvisioningSucceeded", &message);
                self.act(event);
            }
            None => self.say_once(
                claim,
                "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set",
            ),
        }
    }

    /// Records an event that has not been recorded yet.
    fn say_once(&mut self, claim: &Value, reason: &str, message: &str) {
        let event = self.recorder.normal(claim, reason, message);
        if matches!(event, Action::Create(..)) {
            self.act(event);
        }
    }

    /// The class for a claim that names none.
    fn default_class(&self, claim: &Value) -> Option<String> {
        let unnamed =
            claim["spec"]["storageClassName"].is_null() && super::class_name(claim).is_empty();
        let is_default = |class: &&Value| meta::annotation(class, DEFAULT_CLASS) == Some("true");
        let mut classes = self
            .view
            .all(CLASSES)
            .map(AsRef::as_ref)
            .filter(is_default)
            .collect::<Vec<_>>();
        // The newest one counts when there are several.
        classes.sort_by_key(|class| meta::text(class, "creationTimestamp").to_owned());
        classes
            .last()
            .filter(|_| unnamed)
            .map(|class| meta::name(class).to_owned())
    }

    fn bind(&mut self, claim: &Value, volume: &Value) {
        if !refers_to(volume, claim) || volume["spec"]["claimRef"]["uid"].is_null() {
            let change = json!({
                "metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}},
                "spec": {"claimRef": reference_to(claim)},
            });
            self.act(patch(VOLUMES, volume, change));
        }
        if volume["status"]["phase"] != "Bound" {
            self.volume_phase(volume, "Bound");
        }
        let annotations = json!({BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"});
        let change = json!({
            "metadata": {"annotations": annotations},
            "spec": {"volumeName": meta::name(volume)},
        });
        self.act(patch(CLAIMS, claim, change));
        self.claim_status(claim, volume);
    }

    fn claim_status(&mut self, claim: &Value, volume: &Value) {
        let status = json!({
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": {"storage": volume["spec"]["capacity"]["storage"]},
        });
        self.status(CLAIMS, claim, status);
    }

    fn volume_phase(&mut self, volume: &Value, phase: &str) {
        self.status(VOLUMES, volume, json!({"phase": phase}));
    }

    fn status(&mut self, resource: Resource, object: &Value, status: Value) {
        self.act(Action::Patch {
            resource,
            key: crate::fields::key(object),
            subresource: Some("status"),
            patch: json!({"status": status}),
        });
    }

    /// A bound claim whose volume is gone is lost.
    fn check_volume(&mut self, claim: &Value) {
        let name = claim["spec"]["volumeName"].as_str().unwrap_or("");
        let phase = claim["status"]["phase"].as_str().unwrap_or("");
        match self.view.get(VOLUMES, "", name) {
            Some(volume) if phase != "Bound" => self.claim_status(claim, volume),
            Some(_) => {}
            None if phase == "Lost" => {}
            None => {
                self.status(CLAIMS, claim, json!({"phase": "Lost"}));
                let message =
                    "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
                let event = self.recorder.warning(claim, "ClaimLost", message);
                self.act(event);
            }
        }
    }

    fn volume(&mut self, volume: &Value) {
        let phase = volume["status"]["phase"].as_str().unwrap_or("");
        if meta::is_deleting(volume) {
            if phase != "Bound" && has_finalizer(volume, PV_PROTECTION) {
                self.act(with_finalizer(VOLUMES, volume, PV_PROTECTION, false));
            } else if phase == "Bound" && self.owner(volume).is_none() {
                self.volume_phase(volume, "Released");
            }
            return;
        }
        if !has_finalizer(volume, PV_PROTECTION) {
            self.act(with_finalizer(VOLUMES, volume, PV_PROTECTION, true));
        }
        let reference = &volume["spec"]["claimRef"];
        let reserved = reference["uid"].as_str().is_none_or(str::is_empty);
        if reserved {
            let free = !self.taken.contains(meta::name(volume));
            if free && phase != "Available" {
                self.volume_phase(volume, "Available");
            }
        } else if self.owner(volume).is_none() {
            if phase != "Released" {
                self.volume_phase(volume, "Released");
            }
            if volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete" {
                self.act(delete(VOLUMES, volume, None));
            }
        }
    }

    /// The claim that a volume is bound to.
    fn owner(&self, volume: &Value) -> Option<&Value> {
        let reference = &volume["spec"]["claimRef"];
        let (namespace, name) = (
            reference["namespace"].as_str()?,
            reference["name"].as_str()?,
        );
        let claim = self.view.get(CLAIMS, namespace, name)?;
        refers_to(volume, claim).then_some(claim)
    }
}

/// True when pods on the node can use the volume.
fn reaches(volume: &Value, node: &Value) -> bool {
    let labels = Labels::read(&node["metadata"]["labels"]);
    node_terms(&volume["spec"]["nodeAffinity"]["required"])
        .is_none_or(|terms| any_matches(&terms, meta::name(node), &labels))
}
