//! Objects for tests: plain JSON, changed by the patches that were decided, as a server would.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud::ClassKind;
use joiner_state::live::{ClusterState, Kind, Snapshot, rfc3339};
use serde_json::{Value, json};

use super::Terms;

/// The class that the cloud of the tests knows.
const CLASSES: &[ClassKind] = &[ClassKind {
    group: "karpenter.kwok.sh",
    version: "v1alpha1",
    kind: "KWOKNodeClass",
    plural: "kwoknodeclasses",
    finalizer: None,
}];

/// What the cloud of the tests says of itself.
pub(crate) fn terms() -> Terms {
    Terms {
        classes: CLASSES,
        launch_timeout: Duration::from_secs(300),
        has_registration_hooks: false,
    }
}

/// A time, in seconds after all objects were created.
pub(crate) fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + secs).unwrap()
}

/// The same as text.
pub(crate) fn text(secs: i64) -> String {
    rfc3339(at(secs))
}

/// Merges a patch into an object (RFC 7396).
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut object[key], value);
        }
    }
}

fn made(base: Value, more: &Value) -> Value {
    let mut object = base;
    merge(&mut object, more);
    object
}

/// A claim called `c` of the pool `p`, not touched yet.
pub(crate) fn claim(more: &Value) -> Value {
    let base = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": "c", "uid": "uid-c", "generation": 1, "creationTimestamp": text(0),
            "labels": {"karpenter.sh/nodepool": "p"},
            "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
                "name": "p", "uid": "uid-p", "blockOwnerDeletion": true}],
        },
        "spec": {
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In",
                 "values": ["m-2x", "c-2x", "a-1x"]},
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            ],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "k"},
        },
    });
    made(base, more)
}

/// The same, launched as `kwok://n`, with these conditions true since second 10.
pub(crate) fn launched(conditions: &[&str], more: &Value) -> Value {
    let mut claim = claim(&json!({
        "metadata": {"finalizers": ["karpenter.sh/termination"]},
        "status": {"providerID": "kwok://n"},
    }));
    let one = |kind: &&str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
            "lastTransitionTime": text(10), "observedGeneration": 1})
    };
    let conditions: Vec<Value> = conditions.iter().map(one).collect();
    claim["status"]["conditions"] = Value::Array(conditions);
    made(claim, more)
}

/// A Node called `n` that has just joined: ready, with the unregistered taint.
pub(crate) fn node(more: &Value) -> Value {
    let base = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n", "uid": "uid-n", "creationTimestamp": text(0),
            "labels": {"karpenter.kwok.sh/kwoknodeclass": "k"}},
        "spec": {"providerID": "kwok://n",
            "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
        "status": {
            "capacity": {"cpu": "2", "memory": "4Gi", "pods": "110"},
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": text(0)}],
        },
    });
    made(base, more)
}

/// A Node of ours that is being deleted since second 100.
pub(crate) fn going_node(more: &Value) -> Value {
    let node = node(&json!({
        "metadata": {"deletionTimestamp": text(100), "finalizers": ["karpenter.sh/termination"]},
        "spec": {"taints": []},
    }));
    made(node, more)
}

/// A pod that runs on the Node `n` since second 20.
pub(crate) fn pod(name: &str, more: &Value) -> Value {
    let base = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "web", "uid": format!("uid-{name}"),
            "creationTimestamp": text(20)},
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "startTime": text(20)},
    });
    made(base, more)
}

/// A pool called `p`, with this uid.
pub(crate) fn pool(uid: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "p", "uid": uid, "creationTimestamp": text(0)},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": {
            "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "k"}}}},
    })
}

/// A few objects, as a server keeps them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    objects: BTreeMap<(Kind, String), Value>,
    version: u64,
}

impl Cluster {
    /// Stores an object.
    pub(crate) fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.objects.insert((kind, name), object);
    }

    /// The same, in passing.
    pub(crate) fn with(mut self, kind: Kind, object: Value) -> Self {
        self.put(kind, object);
        self
    }

    /// An object by its own name.
    pub(crate) fn get(&self, kind: Kind, name: &str) -> &Value {
        &self.objects[&(kind, name.to_owned())]
    }

    /// Changes an object by a patch. Whole lists are replaced by it, so one that has any must say
    /// of which version it is.
    pub(crate) fn change(&mut self, kind: Kind, name: &str, patch: &Value) {
        let mut object = self.get(kind, name).clone();
        let version = &patch["metadata"]["resourceVersion"];
        assert!(
            !version.is_null() || !has_list(patch),
            "a list without a version: {patch}"
        );
        if !version.is_null() {
            assert_eq!(version, &object["metadata"]["resourceVersion"], "conflict");
        }
        merge(&mut object, patch);
        self.put(kind, object);
    }

    /// Asks for the deletion of an object.
    pub(crate) fn delete(&mut self, kind: Kind, name: &str, now: Timestamp) {
        let mut object = self.get(kind, name).clone();
        object["metadata"]["deletionTimestamp"] = json!(rfc3339(now));
        self.put(kind, object);
    }

    /// Forgets an object.
    pub(crate) fn remove(&mut self, kind: Kind, name: &str) {
        self.objects.remove(&(kind, name.to_owned()));
    }

    /// All of it as controllers see it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut state = ClusterState::default();
        for ((kind, name), object) in &self.objects {
            state.apply(*kind, object);
            let name = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("{namespace}/{name}"),
                None => name.clone(),
            };
            assert_eq!(state.broken(*kind, &name), None, "{name}");
        }
        state.snapshot()
    }

    /// A condition of the claim `c`: status, reason and message.
    pub(crate) fn condition(&self, kind: &str) -> String {
        let claim = self.get(Kind::NodeClaim, "c");
        let conditions = claim["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let Some(own) = conditions.find(|own| own["type"] == kind) else {
            return String::new();
        };
        let text = |field: &str| own[field].as_str().unwrap_or_default().to_owned();
        let (status, reason, message) = (text("status"), text("reason"), text("message"));
        let words = [status, reason, message];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.join(" ").trim().to_owned()
    }
}

fn has_list(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(has_list),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
