//! A tiny API server in memory, on which controllers run through time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use joiner_cluster::{
    Action, Controller, Kubelets, NodeLifecycle, ObjectKey, Objects, Resource, Scheduler, View,
    VolumeAttacher, VolumeBinder,
};
use joiner_machinery::meta;
use serde_json::{Value, json};

pub(crate) const PODS: Resource = ("", "pods");
pub(crate) const NODES: Resource = ("", "nodes");
pub(crate) const EVENTS: Resource = ("", "events");
pub(crate) const CLAIMS: Resource = ("", "persistentvolumeclaims");
pub(crate) const VOLUMES: Resource = ("", "persistentvolumes");
pub(crate) const CLASSES: Resource = ("storage.k8s.io", "storageclasses");
pub(crate) const CSI_NODES: Resource = ("storage.k8s.io", "csinodes");
pub(crate) const ATTACHMENTS: Resource = ("storage.k8s.io", "volumeattachments");
pub(crate) const LEASES: Resource = ("coordination.k8s.io", "leases");

/// Rounds at one moment after which controllers are in a loop.
const ROUNDS_MAX: usize = 100;

pub(crate) struct World {
    pub(crate) kinds: BTreeMap<(String, String), Objects>,
    pub(crate) now: Timestamp,
    controllers: Vec<Box<dyn Controller>>,
    version: u64,
    wake: Option<Timestamp>,
}

impl World {
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        Self {
            kinds: BTreeMap::new(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            controllers,
            version: 0,
            wake: None,
        }
    }

    /// With everything that this folder is about.
    pub(crate) fn whole() -> Self {
        Self::new(vec![
            Box::new(NodeLifecycle::default()),
            Box::new(VolumeBinder::default()),
            Box::new(Scheduler::default()),
            Box::new(VolumeAttacher::default()),
            Box::new(Kubelets::default()),
        ])
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            kinds: &self.kinds,
            now: self.now,
            seed: 7,
        }
    }

    pub(crate) fn objects(&mut self, (group, plural): Resource) -> &mut Objects {
        self.kinds
            .entry((group.to_owned(), plural.to_owned()))
            .or_default()
    }

    pub(crate) fn find(&self, resource: Resource, name: &str) -> Option<Value> {
        let spaces = ["default", "", "kube-node-lease"];
        let found = spaces
            .iter()
            .find_map(|space| self.view().get(resource, space, name));
        found.map(|object| Value::clone(object))
    }

    pub(crate) fn get(&self, resource: Resource, name: &str) -> Value {
        self.find(resource, name)
            .unwrap_or_else(|| panic!("no {resource:?} {name}"))
    }

    pub(crate) fn list(&self, resource: Resource) -> Vec<Value> {
        self.view()
            .all(resource)
            .map(|object| Value::clone(object))
            .collect()
    }

    /// Messages of events with a reason.
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        let events = self
            .list(EVENTS)
            .into_iter()
            .filter(|event| event["reason"] == reason);
        events
            .map(|event| event["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Where a pod is.
    pub(crate) fn node_of(&self, pod: &str) -> Option<String> {
        self.get(PODS, pod)["spec"]["nodeName"]
            .as_str()
            .map(str::to_owned)
    }

    /// A condition's status, reason and message.
    pub(crate) fn condition(&self, resource: Resource, name: &str, kind: &str) -> [String; 3] {
        let object = self.get(resource, name);
        let conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let found = conditions
            .iter()
            .find(|one| one["type"] == kind)
            .cloned()
            .unwrap_or_default();
        ["status", "reason", "message"].map(|field| found[field].as_str().unwrap_or("").to_owned())
    }

    /// A container's state, by its only word.
    pub(crate) fn phase(&self, pod: &str) -> String {
        self.get(PODS, pod)["status"]["phase"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    }

    pub(crate) fn create(&mut self, resource: Resource, mut object: Value) {
        let wide = [
            NODES,
            VOLUMES,
            CLASSES,
            CSI_NODES,
            ATTACHMENTS,
            ("", "namespaces"),
        ];
        if !wide.contains(&resource) && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        self.apply(&Action::Create(resource, object)).unwrap();
    }

    pub(crate) fn patch(&mut self, resource: Resource, name: &str, patch: Value) {
        let key = key(&self.get(resource, name));
        let action = Action::Patch {
            resource,
            key,
            subresource: None,
            patch,
        };
        self.apply(&action).unwrap();
    }

    pub(crate) fn delete(&mut self, resource: Resource, name: &str) {
        let object = self.get(resource, name);
        let (key, uid) = (key(&object), meta::uid(&object).to_owned());
        let action = Action::Delete {
            resource,
            key,
            uid,
            grace_secs: None,
            propagation: None,
        };
        self.apply(&action).unwrap();
    }

    /// Runs controllers until nothing changes at this moment.
    pub(crate) fn settle(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let before = self.version;
            let mut controllers = std::mem::take(&mut self.controllers);
            self.wake = None;
            for controller in &mut controllers {
                let step = controller.step(&self.view());
                let mut wakes = vec![step.wake];
                let mut was_refused = false;
                for action in &step.actions {
                    if action.is_event() && was_refused {
                        continue;
                    }
                    was_refused = false;
                    if let Err(message) = self.apply(action) {
                        was_refused = true;
                        wakes.push(controller.refused(action, &message, self.now));
                    }
                }
                self.wake = wakes.into_iter().chain([self.wake]).flatten().min();
            }
            self.controllers = controllers;
            if self.version == before {
                assert!(
                    self.wake.is_none_or(|wake| wake > self.now),
                    "waiting for the past"
                );
                return;
            }
        }
        panic!("the controllers do not come to rest");
    }

    /// Lets time pass, with a stop wherever somebody wants to look.
    pub(crate) fn pass(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        self.settle();
        while let Some(wake) = self.wake.filter(|wake| *wake <= end) {
            self.now = wake;
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// Does what an API server does.
    pub(crate) fn apply(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Create(resource, object) => self.insert(*resource, object.clone()),
            Action::Update(resource, object) => self.replace(*resource, object.clone()),
            Action::Patch {
                resource,
                key,
                subresource,
                patch,
            } => {
                let old = self.objects(*resource).get(key).ok_or("not found")?;
                let version = meta::text(patch, "resourceVersion");
                if !version.is_empty() && version != meta::text(old, "resourceVersion") {
                    return Err("the object has been modified".to_owned());
                }
                let mut new = Value::clone(old);
                let mut patch = patch.clone();
                if *subresource == Some("status") {
                    patch = json!({"status": patch["status"]});
                } else if let Some(fields) = patch.as_object_mut() {
                    fields.remove("status");
                }
                merge(&mut new, &patch);
                self.replace(*resource, new)
            }
            Action::Delete {
                resource,
                key,
                uid,
                grace_secs,
                ..
            } => self.remove(*resource, key, uid, *grace_secs),
            Action::Bind { pod, node, .. } => {
                let old = self.objects(PODS).get(pod).ok_or("not found")?;
                let mut new = Value::clone(old);
                if !new["spec"]["nodeName"].is_null() {
                    return Err("bound already".to_owned());
                }
                new["spec"]["nodeName"] = json!(node);
                new["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}]);
                self.replace(PODS, new)
            }
            Action::Evict(_) => Err("not served here".to_owned()),
        }
    }

    fn insert(&mut self, resource: Resource, mut object: Value) -> Result<(), String> {
        let key = key(&object);
        if self.objects(resource).contains_key(&key) {
            return Err("it is there already".to_owned());
        }
        self.version += 1;
        object["metadata"]["uid"] = json!(format!("uid-{:06}", self.version));
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["creationTimestamp"] = json!(meta::time(self.now));
        self.objects(resource).insert(key, Arc::new(object));
        Ok(())
    }

    fn replace(&mut self, resource: Resource, mut object: Value) -> Result<(), String> {
        let key = key(&object);
        let old = self
            .objects(resource)
            .get(&key)
            .cloned()
            .ok_or("not found")?;
        if *old == object {
            return Ok(());
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if meta::is_deleting(&object) && is_released(&object) && resource != PODS {
            self.objects(resource).remove(&key);
        } else {
            self.objects(resource).insert(key, Arc::new(object));
        }
        Ok(())
    }

    fn remove(
        &mut self,
        resource: Resource,
        key: &ObjectKey,
        uid: &str,
        grace: Option<u64>,
    ) -> Result<(), String> {
        let old = self.objects(resource).get(key).ok_or("not found")?;
        let mut object = Value::clone(old);
        if meta::uid(&object) != uid {
            return Err("another object has the name now".to_owned());
        }
        let own = object["spec"]["terminationGracePeriodSeconds"]
            .as_u64()
            .unwrap_or(30);
        let waits = resource == PODS && !object["spec"]["nodeName"].is_null();
        let grace = if waits { grace.unwrap_or(own) } else { 0 };
        self.version += 1;
        if grace == 0 && is_released(&object) {
            self.objects(resource).remove(key);
            return Ok(());
        }
        let seconds = i64::try_from(grace).unwrap();
        let end = self.now + SignedDuration::from_secs(seconds);
        object["metadata"]["deletionTimestamp"] = json!(meta::time(end));
        object["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects(resource).insert(key.clone(), Arc::new(object));
        Ok(())
    }
}

pub(crate) fn key(object: &Value) -> ObjectKey {
    (
        meta::namespace(object).to_owned(),
        meta::name(object).to_owned(),
    )
}

fn is_released(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_none_or(Vec::is_empty)
}

/// Merges a patch as RFC 7396 says.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (field, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut target[field], value);
        }
    }
}

/// A ready node with labels and four cores, 16 GiB, ten pods; `more` is merged in.
pub(crate) fn node(name: &str, more: Value) -> Value {
    let room = json!({"cpu": "4", "memory": "16Gi", "pods": "10"});
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }},
        "spec": {},
        "status": {"capacity": room, "allocatable": room},
    });
    merge(&mut node, &more);
    node
}

/// A pod that asks for some cpu; `more` is merged in.
pub(crate) fn pod(name: &str, cpu: &str, more: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{
                "name": "main",
                "image": "web:1",
                "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
            }],
        },
        "status": {"phase": "Pending"},
    });
    merge(&mut pod, &more);
    pod
}

/// A label for a node in a zone.
pub(crate) fn zone(name: &str) -> Value {
    json!({"metadata": {"labels": {"topology.kubernetes.io/zone": name}}})
}
