//! The pods that stand for headroom in a plan. They are never created.

use std::collections::BTreeSet;
use std::sync::Arc;

use joiner_api::labels::{BUFFER_NAME, BUFFER_NAMESPACE, BUFFER_POD};
use joiner_state::live::{LiveBuffer, Snapshot, VirtualPod};
use serde_json::{Value, json};

use super::resolve::resolve;

/// Pods of one buffer that are planned for; a buffer that asks for more gets this much room.
const PODS_MAX: i32 = 10_000;

/// The pods that stand for all headroom that buffers ask for, buffer by buffer. Those that cannot
/// be resolved, and those on their way out, ask for none.
#[must_use]
pub fn virtual_pods(now: &Snapshot) -> Vec<VirtualPod> {
    let mut pods = Vec::new();
    for buffer in now.buffers() {
        if buffer.meta.deleting.is_some() {
            continue;
        }
        let Ok(resolved) = resolve(now, buffer) else {
            continue;
        };
        for n in 1..=resolved.replicas.min(PODS_MAX) {
            pods.push(VirtualPod {
                object: Arc::new(pod(buffer, &resolved.template, n)),
            });
        }
    }
    pods
}

/// A pod that stands for one unit of headroom. Of its volumes only those stay that need no storage:
/// none is claimed for it.
pub(super) fn pod(buffer: &LiveBuffer, template: &Value, n: i32) -> Value {
    let (namespace, name) = (buffer.meta.namespace(), buffer.meta.own_name());
    let labels = template["metadata"]["labels"].as_object();
    let labels = labels.cloned().unwrap_or_default();
    let mut spec = template["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("nodeName");
        // A class would bring its own priority back.
        fields.remove("priorityClassName");
        fields.insert("priority".to_owned(), json!(i32::MIN));
        strip_storage(fields);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("capacity-buffer-{name}-{n}"),
            "namespace": namespace,
            "uid": format!("{}-{n}", buffer.meta.uid),
            "labels": labels,
            "annotations": {
                BUFFER_POD: "true",
                BUFFER_NAME: name,
                BUFFER_NAMESPACE: namespace,
            },
        },
        "spec": spec,
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    })
}

fn strip_storage(spec: &mut serde_json::Map<String, Value>) {
    let mut gone: BTreeSet<String> = BTreeSet::new();
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| {
            let storage =
                volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object();
            if storage {
                gone.insert(volume["name"].as_str().unwrap_or_default().to_owned());
            }
            !storage
        });
    }
    if gone.is_empty() {
        return;
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for mounts in ["volumeMounts", "volumeDevices"] {
                let mounts = container.get_mut(mounts).and_then(Value::as_array_mut);
                if let Some(mounts) = mounts {
                    mounts
                        .retain(|mount| !gone.contains(mount["name"].as_str().unwrap_or_default()));
                }
            }
        }
    }
}
