//! Objects for tests: valid from the start, changed by what a test says.

use jiff::Timestamp;
use joiner_state::live::{ClusterState, Kind, Snapshot};
use serde_json::{Value, json};

/// A time, in seconds.
pub(crate) fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(secs).unwrap()
}

/// `object` with `more` on top: objects are merged, everything else is replaced.
pub(crate) fn merged(mut object: Value, more: Value) -> Value {
    match (object.as_object_mut(), more) {
        (Some(fields), Value::Object(more)) => {
            for (key, value) in more {
                let before = fields.remove(&key).unwrap_or_default();
                fields.insert(key, merged(before, value));
            }
            object
        }
        (_, more) => more,
    }
}

fn object(kind: Kind, name: &str, more: Value) -> (Kind, Value) {
    let (group, version, _, word) = kind.api();
    let api_version = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    let (namespace, own_name) = match name.split_once('/') {
        Some((namespace, name)) => (json!(namespace), name),
        None => (Value::Null, name),
    };
    let mut base = json!({
        "apiVersion": api_version, "kind": word,
        "metadata": {"name": own_name, "uid": format!("uid-{own_name}"), "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    if namespace.is_string() {
        base["metadata"]["namespace"] = namespace;
    }
    (kind, merged(base, more))
}

/// An object of any kind.
pub(crate) fn any(kind: Kind, name: &str, more: Value) -> (Kind, Value) {
    object(kind, name, more)
}

/// A pool of the class `c`.
pub(crate) fn pool(name: &str, more: Value) -> (Kind, Value) {
    let base = json!({"spec": {"template": {"spec": {
        "requirements": [],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "c"},
        "expireAfter": "720h",
    }}}});
    object(Kind::NodePool, name, merged(base, more))
}

/// A claim of the pool `p`.
pub(crate) fn claim(name: &str, more: Value) -> (Kind, Value) {
    let base = json!({
        "metadata": {"labels": {"karpenter.sh/nodepool": "p"}},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "c"},
            "expireAfter": "720h",
        },
    });
    object(Kind::NodeClaim, name, merged(base, more))
}

/// A claim of the pool `p` with a machine.
pub(crate) fn launched(name: &str, more: Value) -> (Kind, Value) {
    let base = json!({"status": {"providerID": format!("id-{name}"),
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}});
    claim(name, merged(base, more))
}

/// The node of a claim.
pub(crate) fn node(claim: &str, more: Value) -> (Kind, Value) {
    let base = json!({
        "metadata": {"labels": {"karpenter.sh/nodepool": "p",
            "node.kubernetes.io/instance-type": "t"}},
        "spec": {"providerID": format!("id-{claim}")},
        "status": {"capacity": {"cpu": "3", "memory": "7Gi", "pods": "100"},
            "allocatable": {"cpu": "3", "memory": "7Gi", "pods": "100"}},
    });
    object(Kind::Node, &format!("node-{claim}"), merged(base, more))
}

/// A pod on the node of a claim.
pub(crate) fn pod(name: &str, claim: &str, more: Value) -> (Kind, Value) {
    let base = json!({
        "spec": {"nodeName": format!("node-{claim}"), "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    });
    object(Kind::Pod, &format!("default/{name}"), merged(base, more))
}

/// The class `c`.
pub(crate) fn class(more: Value) -> (Kind, Value) {
    let base = json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
        "metadata": {"name": "c", "uid": "uid-c", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    (Kind::NodeClass, merged(base, more))
}

/// A cluster with these objects.
pub(crate) fn made(objects: Vec<(Kind, Value)>) -> Snapshot {
    let mut state = ClusterState::default().with_templates();
    for (kind, object) in objects {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let applied = state.apply(kind, &object);
        assert!(applied.is_some(), "{name}: {:?}", state.broken(kind, &name));
    }
    state.snapshot()
}
