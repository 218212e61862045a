//! A tiny API server with a kubelet, in memory, on which controllers run to a fixed point.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use joiner_cluster::{Action, Controller, Objects, Resource, View};
use joiner_machinery::meta;
use serde_json::{Value, json};

pub(crate) const PODS: Resource = ("", "pods");
pub(crate) const NODES: Resource = ("", "nodes");
pub(crate) const NAMESPACES: Resource = ("", "namespaces");
pub(crate) const EVENTS: Resource = ("", "events");
pub(crate) const REPLICA_SETS: Resource = ("apps", "replicasets");
pub(crate) const DEPLOYMENTS: Resource = ("apps", "deployments");
pub(crate) const DAEMON_SETS: Resource = ("apps", "daemonsets");
pub(crate) const REVISIONS: Resource = ("apps", "controllerrevisions");
pub(crate) const BUDGETS: Resource = ("policy", "poddisruptionbudgets");
pub(crate) const STATEFUL_SETS: Resource = ("apps", "statefulsets");
pub(crate) const CLAIMS: Resource = ("", "persistentvolumeclaims");
pub(crate) const JOBS: Resource = ("batch", "jobs");
pub(crate) const CRON_JOBS: Resource = ("batch", "cronjobs");
/// Rounds after which a world that is still busy is in a loop.
const ROUNDS_MAX: usize = 2000;

/// Objects, a clock, and controllers that act on them.
pub(crate) struct World {
    pub(crate) kinds: BTreeMap<(String, String), Objects>,
    pub(crate) now: Timestamp,
    pub(crate) wake: Option<Timestamp>,
    /// Pods whose `stuck` label is set never get ready; nor does any while this is false.
    pub(crate) pods_start: bool,
    /// Pods that are deleted go at once; while false they stay.
    pub(crate) pods_end: bool,
    /// Says why an action is refused.
    pub(crate) refuse: fn(&Action) -> Option<String>,
    controllers: Vec<Box<dyn Controller>>,
    has_refused: bool,
    version: u64,
}

impl World {
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        Self {
            kinds: BTreeMap::new(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            wake: None,
            pods_start: true,
            pods_end: true,
            refuse: |_| None,
            controllers,
            has_refused: false,
            version: 0,
        }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View {
            kinds: &self.kinds,
            now: self.now,
            seed: 7,
        }
    }

    pub(crate) fn get(&self, resource: Resource, name: &str) -> Value {
        self.find(resource, name)
            .unwrap_or_else(|| panic!("no {resource:?} {name}"))
    }

    pub(crate) fn find(&self, resource: Resource, name: &str) -> Option<Value> {
        let found = self.view().get(resource, "default", name);
        let found = found.or_else(|| self.view().get(resource, "", name));
        found.map(|object| Value::clone(object))
    }

    pub(crate) fn list(&self, resource: Resource) -> Vec<Value> {
        self.view()
            .all(resource)
            .map(|object| Value::clone(object))
            .collect()
    }

    pub(crate) fn names(&self, resource: Resource) -> Vec<String> {
        self.list(resource)
            .iter()
            .map(|object| meta::name(object).to_owned())
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

    pub(crate) fn create(&mut self, resource: Resource, mut object: Value) {
        let namespaced = ![NODES, NAMESPACES].contains(&resource);
        if namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        self.apply(&Action::Create(resource, object)).unwrap();
    }

    pub(crate) fn patch(&mut self, resource: Resource, name: &str, patch: Value) {
        self.patch_part(resource, name, None, patch);
    }

    pub(crate) fn patch_status(&mut self, resource: Resource, name: &str, status: Value) {
        self.patch_part(resource, name, Some("status"), json!({"status": status}));
    }

    fn patch_part(
        &mut self,
        resource: Resource,
        name: &str,
        subresource: Option<&'static str>,
        patch: Value,
    ) {
        let object = self.get(resource, name);
        let key = (meta::namespace(&object).to_owned(), name.to_owned());
        let action = Action::Patch {
            resource,
            key,
            subresource,
            patch,
        };
        self.apply(&action).unwrap();
    }

    pub(crate) fn delete(
        &mut self,
        resource: Resource,
        name: &str,
        propagation: Option<&'static str>,
    ) {
        let object = self.get(resource, name);
        let key = (meta::namespace(&object).to_owned(), name.to_owned());
        let uid = meta::uid(&object).to_owned();
        let action = Action::Delete {
            resource,
            key,
            uid,
            grace_secs: None,
            propagation,
        };
        self.apply(&action).unwrap();
    }

    /// Runs controllers and kubelet until nothing changes.
    pub(crate) fn settle(&mut self) {
        self.settle_and(|_| {});
    }

    /// The same, with a look at every state in between.
    pub(crate) fn settle_and(&mut self, mut check: impl FnMut(&Self)) {
        for _ in 0..ROUNDS_MAX {
            let before = self.version;
            self.control(&mut check);
            self.run_pods();
            check(self);
            if self.version == before {
                return;
            }
        }
        panic!("the controllers do not come to rest");
    }

    /// One step of each controller and of the kubelet.
    pub(crate) fn round(&mut self) {
        self.control(&mut |_| {});
        self.run_pods();
    }

    /// One step of each controller.
    fn control(&mut self, check: &mut impl FnMut(&Self)) {
        let mut controllers = std::mem::take(&mut self.controllers);
        self.wake = None;
        for controller in &mut controllers {
            let step = controller.step(&self.view());
            let again = controller.step(&self.view());
            // Back-offs are the one thing that controllers may remember.
            if !self.has_refused {
                assert_eq!(
                    step,
                    again,
                    "{} is not a function of its view",
                    controller.name()
                );
            }
            let mut was_refused = false;
            let mut wake = step.wake;
            for action in &step.actions {
                if action.is_event() && was_refused {
                    continue;
                }
                let outcome = match (self.refuse)(action) {
                    Some(message) => Err(message),
                    None => self.apply(action),
                };
                was_refused = outcome.is_err() && !action.is_event();
                if let Err(message) = outcome {
                    self.has_refused = true;
                    let look = controller.refused(action, &message, self.now);
                    wake = [wake, look].into_iter().flatten().min();
                    if look == Some(self.now) {
                        self.version += 1;
                    }
                }
            }
            self.wake = [self.wake, wake].into_iter().flatten().min();
            check(self);
        }
        self.controllers = controllers;
    }

    /// Jumps to the next time that a controller asked for, and settles there.
    pub(crate) fn wait(&mut self) {
        let wake = self.wake.expect("somebody waits");
        assert!(wake > self.now, "nobody waits for the past");
        self.now = wake;
        self.settle();
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Binds, starts and ends pods.
    pub(crate) fn run_pods(&mut self) {
        for (ix, pod) in self.list(PODS).into_iter().enumerate() {
            let key = (
                meta::namespace(&pod).to_owned(),
                meta::name(&pod).to_owned(),
            );
            let phase = pod["status"]["phase"].as_str().unwrap_or_default();
            if meta::is_deleting(&pod) {
                if self.pods_end && is_released(&pod) {
                    self.objects(PODS).remove(&key);
                    self.version += 1;
                }
            } else if pod["spec"]["nodeName"].is_null() {
                let terms = &pod["spec"]["affinity"]["nodeAffinity"];
                let terms = &terms["requiredDuringSchedulingIgnoredDuringExecution"];
                let pinned = &terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0];
                let node = pinned
                    .as_str()
                    .map_or(format!("node-{}", ix % 3), str::to_owned);
                self.patch_pod(&key, None, json!({"spec": {"nodeName": node}}));
            } else if phase.is_empty() && self.pods_start && meta::label(&pod, "stuck").is_none() {
                let status = self.started(&pod);
                self.patch_pod(&key, Some("status"), json!({"status": status}));
            }
        }
    }

    fn started(&self, pod: &Value) -> Value {
        let at = meta::time(self.now);
        let ready = |status| json!([{"type": "Ready", "status": status, "lastTransitionTime": at}]);
        match meta::label(pod, "ends") {
            Some("well") => json!({"phase": "Succeeded", "conditions": ready("False")}),
            Some("badly") => json!({"phase": "Failed", "conditions": ready("False")}),
            _ => json!({"phase": "Running", "conditions": ready("True")}),
        }
    }

    fn patch_pod(
        &mut self,
        key: &(String, String),
        subresource: Option<&'static str>,
        patch: Value,
    ) {
        let action = Action::Patch {
            resource: PODS,
            key: key.clone(),
            subresource,
            patch,
        };
        self.apply(&action).unwrap();
    }

    fn objects(&mut self, (group, plural): Resource) -> &mut Objects {
        self.kinds
            .entry((group.to_owned(), plural.to_owned()))
            .or_default()
    }

    /// Does what an API server does.
    pub(crate) fn apply(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Create(resource, object) => self.insert(*resource, object.clone()),
            Action::Update(resource, object) => {
                let key = (
                    meta::namespace(object).to_owned(),
                    meta::name(object).to_owned(),
                );
                self.replace(*resource, &key, object.clone())
            }
            Action::Patch {
                resource,
                key,
                subresource,
                patch,
            } => {
                let old = self.objects(*resource).get(key).ok_or("not found")?;
                let mut new = Value::clone(old);
                let mut patch = patch.clone();
                if *subresource == Some("status") {
                    patch = json!({"status": patch["status"]});
                } else if let Some(fields) = patch.as_object_mut() {
                    fields.remove("status");
                }
                merge(&mut new, &patch);
                self.replace(*resource, key, new)
            }
            Action::Delete {
                resource,
                key,
                uid,
                propagation,
                ..
            } => self.remove(*resource, key, uid, *propagation),
            Action::Bind { .. } | Action::Evict(_) => Err("not served here".to_owned()),
        }
    }

    fn insert(&mut self, resource: Resource, mut object: Value) -> Result<(), String> {
        let namespace = meta::namespace(&object).to_owned();
        let key = (namespace.clone(), meta::name(&object).to_owned());
        assert!(!key.1.is_empty(), "an object without a name: {object}");
        if self.objects(resource).contains_key(&key) {
            return Err(format!("{} \"{}\" already exists", resource.1, key.1));
        }
        let home = self.objects(NAMESPACES).get(&(String::new(), namespace));
        if home.is_some_and(|home| meta::is_deleting(home)) {
            return Err("the namespace is being terminated".to_owned());
        }
        self.version += 1;
        object["metadata"]["uid"] = json!(format!("uid-{:06}", self.version));
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object["metadata"]["generation"] = json!(1);
        object["metadata"]["creationTimestamp"] = json!(meta::time(self.now));
        if resource == NAMESPACES {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"]["phase"] = json!("Active");
        }
        self.objects(resource).insert(key, Arc::new(object));
        Ok(())
    }

    fn replace(
        &mut self,
        resource: Resource,
        key: &(String, String),
        mut object: Value,
    ) -> Result<(), String> {
        let old = self
            .objects(resource)
            .get(key)
            .cloned()
            .ok_or("not found")?;
        if *old == object {
            return Ok(());
        }
        self.version += 1;
        if old["spec"] != object["spec"] {
            let generation = old["metadata"]["generation"].as_i64().unwrap();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if meta::is_deleting(&object) && is_released(&object) && resource != PODS {
            self.objects(resource).remove(key);
        } else {
            self.objects(resource).insert(key.clone(), Arc::new(object));
        }
        Ok(())
    }

    fn remove(
        &mut self,
        resource: Resource,
        key: &(String, String),
        uid: &str,
        propagation: Option<&'static str>,
    ) -> Result<(), String> {
        let old = self.objects(resource).get(key).ok_or("not found")?;
        let mut object = Value::clone(old);
        if meta::uid(&object) != uid {
            return Err("another object has the name now".to_owned());
        }
        if meta::is_deleting(&object) {
            return Ok(());
        }
        self.version += 1;
        let finalizer = match propagation {
            Some("Foreground") => Some("foregroundDeletion"),
            Some("Orphan") => Some("orphan"),
            _ => None,
        };
        if let Some(finalizer) = finalizer {
            let finalizers = &mut object["metadata"]["finalizers"];
            match finalizers.as_array_mut() {
                Some(list) => list.push(json!(finalizer)),
                None => *finalizers = json!([finalizer]),
            }
        }
        let is_unbound = object["spec"]["nodeName"].is_null();
        if is_released(&object) && (resource != PODS || is_unbound) {
            self.objects(resource).remove(key);
            return Ok(());
        }
        object["metadata"]["deletionTimestamp"] = json!(meta::time(self.now));
        if resource == NAMESPACES {
            object["status"]["phase"] = json!("Terminating");
        }
        self.objects(resource).insert(key.clone(), Arc::new(object));
        Ok(())
    }
}

fn is_released(object: &Value) -> bool {
    let empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    empty(&object["metadata"]["finalizers"]) && empty(&object["spec"]["finalizers"])
}

fn merge(target: &mut Value, patch: &Value) {
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
