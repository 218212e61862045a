//! Which volumes are attached to which nodes?

use std::collections::BTreeMap;

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::uses::PodVolumes;
use super::{CLAIMS, VOLUMES, csi_of, is_bound};
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{delete, key};
use crate::names::{Digest, hex};
use crate::scheduler::PODS;
use crate::view::{Action, Controller, Resource, Step, View};

const NAME: &str = "attachdetach-controller";
const ATTACHMENTS: Resource = ("storage.k8s.io", "volumeattachments");
const DRIVERS: Resource = ("storage.k8s.io", "csidrivers");

/// Attaches CSI volumes to the nodes whose pods use them, and detaches them after.
#[derive(Default)]
pub struct VolumeAttacher {
    pods: Cache<PodVolumes>,
}

/// A volume that a node needs.
struct Wanted<'v> {
    driver: &'v str,
    volume: &'v str,
    node: &'v str,
    pod: &'v (String, String),
}

impl Controller for VolumeAttacher {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reads(&self) -> &'static [Resource] {
        &[PODS, CLAIMS, VOLUMES, ATTACHMENTS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.pods.refresh(
            view.objects(PODS),
            PodVolumes::read,
            PodVolumes::is_relevant,
        );
        let wanted = self.wanted(view);
        let mut recorder = Recorder::new(view, NAME);
        let mut step = Step::default();
        for attachment in view.all(ATTACHMENTS).filter(|one| !meta::is_deleting(one)) {
            if !wanted.contains_key(meta::name(attachment)) {
                step.actions.push(delete(ATTACHMENTS, attachment, None));
            } else if attachment["status"]["attached"] != true {
                step.actions.push(Action::Patch {
                    resource: ATTACHMENTS,
                    key: key(attachment),
                    subresource: Some("status"),
                    patch: json!({"status": {"attached": true}}),
                });
            }
        }
        for (name, one) in &wanted {
            if view.get(ATTACHMENTS, "", name).is_some() {
                continue;
            }
            step.actions
                .push(Action::Create(ATTACHMENTS, attachment(name, one)));
            if let Some(pod) = view.get(PODS, &one.pod.0, &one.pod.1) {
                let message = format!(
                    "AttachVolume.Attach succeeded for volume \"{}\"",
                    one.volume
                );
                step.actions
                    .push(recorder.normal(pod, "SuccessfulAttachVolume", &message));
            }
        }
        step
    }
}

impl VolumeAttacher {
    fn wanted<'v>(&'v self, view: &View<'v>) -> BTreeMap<String, Wanted<'v>> {
        let mut wanted = BTreeMap::new();
        let running = |pod: &&PodVolumes| !pod.node.is_empty() && !pod.finished;
        for pod in self.pods.iter().map(AsRef::as_ref).filter(running) {
            for claim in pod
                .claims
                .iter()
                .filter_map(|name| view.get(CLAIMS, &pod.key.0, name))
            {
                let volume = claim["spec"]["volumeName"]
                    .as_str()
                    .filter(|_| is_bound(claim));
                let Some(volume) = volume.and_then(|name| view.get(VOLUMES, "", name)) else {
                    continue;
                };
                let Some((driver, handle)) = csi_of(volume).filter(|csi| attaches(view, csi.0))
                else {
                    continue;
                };
                let digest = Digest::default().text(driver).text(handle).text(&pod.node);
                let one = Wanted {
                    driver,
                    volume: meta::name(volume),
                    node: &pod.node,
                    pod: &pod.key,
                };
                wanted
                    .entry(format!("csi-{}", hex(digest.finish())))
                    .or_insert(one);
            }
        }
        wanted
    }
}

/// Drivers may say that there is nothing to attach.
fn attaches(view: &View<'_>, driver: &str) -> bool {
    let driver = view.get(DRIVERS, "", driver);
    driver.is_none_or(|driver| driver["spec"]["attachRequired"] != false)
}

fn attachment(name: &str, wanted: &Wanted<'_>) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {
            "attacher": wanted.driver,
            "nodeName": wanted.node,
            "source": {"persistentVolumeName": wanted.volume},
        },
    })
}
