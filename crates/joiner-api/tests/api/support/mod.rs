//! Example objects and the one question that tables ask of them.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod full;

use joiner_api::{FieldError, admit};
use serde_json::{Value, json};

/// Sets the value at a JSON pointer, making objects on the way; `Null` removes it.
pub(crate) fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    let steps: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|s| s.replace("~1", "/").replace("~0", "~"))
        .collect();
    let (last, above) = steps.split_last().expect("a pointer has steps");
    for step in above {
        at = if at.is_array() {
            &mut at[step.parse::<usize>().expect("an index")]
        } else {
            &mut at[step.as_str()]
        };
    }
    match (at, value) {
        (Value::Object(map), Value::Null) => {
            map.remove(last);
        }
        (Value::Array(list), value) => list[last.parse::<usize>().expect("an index")] = value,
        (at, value) => at[last.as_str()] = value,
    }
}

/// The object with one thing changed.
pub(crate) fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    set(&mut object, pointer, value);
    object
}

/// Every mistake in an object.
pub(crate) fn mistakes(mut object: Value) -> Vec<FieldError> {
    match admit(&mut object) {
        Ok(_) => Vec::new(),
        Err(rejection) => {
            assert!(!rejection.errors().is_empty(), "{rejection}");
            rejection.errors().to_vec()
        }
    }
}

/// The object passes.
#[track_caller]
pub(crate) fn accepted(object: Value) {
    let found = mistakes(object.clone());
    assert!(found.is_empty(), "{found:#?}\nin {object:#}");
}

/// The object is refused at this path, with these words somewhere in the message.
#[track_caller]
pub(crate) fn refused(object: Value, path: &str, words: &str) {
    let found = mistakes(object.clone());
    let hit = found
        .iter()
        .any(|e| e.path == path && e.message.contains(words));
    assert!(hit, "want {path}: {words}\ngot {found:#?}\nin {object:#}");
}

/// One field of an object, tried with values that pass and values that do not.
pub(crate) struct Probe {
    pub(crate) base: Value,
    pub(crate) pointer: &'static str,
    pub(crate) path: &'static str,
}

impl Probe {
    #[track_caller]
    pub(crate) fn accepts(&self, values: impl IntoIterator<Item = Value>) -> &Self {
        for value in values {
            accepted(with(self.base.clone(), self.pointer, value));
        }
        self
    }

    #[track_caller]
    pub(crate) fn refuses(&self, words: &str, values: impl IntoIterator<Item = Value>) -> &Self {
        for value in values {
            refused(
                with(self.base.clone(), self.pointer, value),
                self.path,
                words,
            );
        }
        self
    }
}

/// A probe of one field.
pub(crate) fn probe(base: Value, pointer: &'static str, path: &'static str) -> Probe {
    Probe {
        base,
        pointer,
        path,
    }
}

/// The least that is a NodePool.
pub(crate) fn node_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
    })
}

/// A NodePool with one requirement.
pub(crate) fn pool_with(requirement: Value) -> Value {
    with(
        node_pool(),
        "/spec/template/spec/requirements",
        json!([requirement]),
    )
}

/// The least that is a NodeClaim.
pub(crate) fn node_claim() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "default-x7k2p"},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        },
    })
}

/// The least that is a NodeOverlay.
pub(crate) fn node_overlay() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "discount"},
        "spec": {"requirements": []},
    })
}

/// The least that is an EC2NodeClass.
pub(crate) fn ec2_node_class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "default"},
        "spec": {
            "role": "nodes",
            "subnetSelectorTerms": [{"tags": {"discovery": "cluster"}}],
            "securityGroupSelectorTerms": [{"tags": {"discovery": "cluster"}}],
            "amiSelectorTerms": [{"alias": "al2023@latest"}],
        },
    })
}

/// The least that is a KWOKNodeClass.
pub(crate) fn kwok_node_class() -> Value {
    json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
    })
}

/// The least that is a useful CapacityBuffer.
pub(crate) fn capacity_buffer() -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "headroom", "namespace": "web"},
        "spec": {"scalableRef": {"kind": "Deployment", "name": "web"}},
    })
}

/// Metadata with every field in use.
pub(crate) fn full_metadata(name: &str) -> Value {
    json!({
        "name": name,
        "generateName": "x-",
        "labels": {"team": "a"},
        "annotations": {"example.com/Note": "any text: at all"},
        "uid": "5f3c",
        "resourceVersion": "12",
        "generation": 3,
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "deletionTimestamp": "2026-02-01T12:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "ownerReferences": [{
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "5f3b",
            "blockOwnerDeletion": true, "controller": false,
        }],
        "finalizers": ["karpenter.sh/termination"],
        "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
    })
}

/// One condition with every field in use.
pub(crate) fn full_condition() -> Value {
    json!({
        "type": "Ready", "status": "False", "reason": "NodeClassNotFound", "message": "gone",
        "lastTransitionTime": "2026-01-31T12:00:00.123Z", "observedGeneration": 3,
    })
}

/// A NodePool with every field in use.
pub(crate) fn full_node_pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": full_metadata("default"),
        "spec": {
            "template": {
                "metadata": {
                    "labels": {"team": "a", "example.com/tier": "gold"},
                    "annotations": {"example.com/owner": "a@b.c"},
                },
                "spec": {
                    "taints": [{
                        "key": "example.com/dedicated", "value": "web", "effect": "NoSchedule",
                        "timeAdded": "2026-01-31T12:00:00Z",
                    }],
                    "startupTaints": [{
                        "key": "cilium", "value": "starting", "effect": "NoExecute",
                        "timeAdded": "2026-01-31T12:00:00Z",
                    }],
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In",
                         "values": ["spot", "on-demand"], "minValues": 2},
                        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt",
                         "values": ["2"]},
                        {"key": "karpenter.k8s.aws/instance-category", "operator": "In",
                         "values": ["c", "m", "r"]},
                        {"key": "kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"]},
                        {"key": "example.com/gpu", "operator": "DoesNotExist"},
                    ],
                    "nodeClassRef":
                        {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "terminationGracePeriod": "1h30m",
                    "expireAfter": "Never",
                },
            },
            "disruption": {
                "consolidateAfter": "5m",
                "consolidationPolicy": "Balanced",
                "budgets": [
                    {"nodes": "10%"},
                    {"nodes": "0", "reasons": ["Drifted", "Empty"], "schedule": "0 9 * * 1-5",
                     "duration": "8h"},
                ],
            },
            "limits": {"cpu": "1000", "memory": "1000Gi", "nodes": "50"},
            "weight": 10,
        },
        "status": {
            "resources": {"cpu": "12", "memory": "48Gi"},
            "nodes": 3,
            "nodeClassObservedGeneration": 2,
            "conditions": [full_condition()],
        },
    })
}
