//! The hash of a NodePool's template, as it stands in the annotation `karpenter.sh/nodepool-hash`.
//!
//! Nodes drift when it changes, and tools and upstream's tests read it, so it is upstream's to the
//! digit: what is hashed, under which names, in which order. Requirements, and everything outside
//! of the template, do not count.

use crate::structural::{Fields, map, numbers, set, text};
use crate::types::{DurationText, NodeClaimTemplateSpec, NodeClassRef, NodePool, Taint};

/// The hash of a pool's template, in decimal. The pool is expected as it is stored, with defaults.
#[must_use]
pub fn node_pool_hash(pool: &NodePool) -> String {
    let template = &pool.spec.template;
    let meta = template.metadata.as_ref().and_then(|meta| {
        let (labels, annotations) = (meta.labels.as_ref(), meta.annotations.as_ref());
        // Metadata that says nothing counts as none.
        (labels.is_some() || annotations.is_some()).then(|| {
            Fields::of("ObjectMeta")
                .with("Labels", labels.map(map))
                .with("Annotations", annotations.map(map))
                .hash()
        })
    });
    let hash = Fields::of("NodeClaimTemplate")
        .with("ObjectMeta", meta)
        .with("Spec", Some(spec(&template.spec)))
        .hash();
    hash.to_string()
}

fn spec(spec: &NodeClaimTemplateSpec) -> u64 {
    let grace = spec.termination_grace_period.as_ref();
    let expiry = spec.expire_after.as_ref();
    Fields::of("NodeClaimTemplateSpec")
        .with("Taints", spec.taints.as_deref().map(taints))
        .with("StartupTaints", spec.startup_taints.as_deref().map(taints))
        .with("NodeClassRef", Some(class(&spec.node_class_ref)))
        .with(
            "TerminationGracePeriod",
            grace.and_then(nanos).map(|own| {
                let own = (own > 0).then(|| numbers(&[own]));
                Fields::of("Duration").with("Duration", own).hash()
            }),
        )
        .with(
            "ExpireAfter",
            expiry.and_then(nanos).map(|own| {
                // Unlike the other one, zero counts here.
                let own = Some(numbers(&[own]));
                Fields::of("NillableDuration").with("Duration", own).hash()
            }),
        )
        .hash()
}

fn class(class: &NodeClassRef) -> u64 {
    Fields::of("NodeClassReference")
        .with("Kind", text(&class.kind))
        .with("Name", text(&class.name))
        .with("Group", text(&class.group))
        .hash()
}

fn taints(taints: &[Taint]) -> u64 {
    set(taints.iter().map(taint))
}

fn taint(taint: &Taint) -> u64 {
    Fields::of("Taint")
        .with("Key", text(&taint.key))
        .with("Value", text(taint.value.as_deref().unwrap_or_default()))
        .with("Effect", text(taint.effect.as_str()))
        // Upstream's figure depends on the time zone of the process; nobody writes it in a pool.
        .with(
            "TimeAdded",
            text(taint.time_added.as_deref().unwrap_or_default()),
        )
        .hash()
}

/// `Never`, and what is no duration, counts as none.
fn nanos(duration: &DurationText) -> Option<u64> {
    let length = duration.parse().ok().flatten()?;
    u64::try_from(length.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn hash(template: &Value) -> String {
        let pool = json!({"metadata": {"name": "p"}, "spec": {"template": template}});
        node_pool_hash(&serde_json::from_value(pool).unwrap())
    }

    fn kwok(spec: Value) -> Value {
        let mut spec = spec;
        spec["requirements"] = json!([]);
        spec["nodeClassRef"] = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass",
            "name": "default"});
        json!({"spec": spec})
    }

    #[test]
    fn core_239_digests_seen_on_real_clusters() {
        let auto = |taints: Value| {
            let mut spec = json!({"requirements": [], "expireAfter": "336h",
                "terminationGracePeriod": "24h0m0s", "nodeClassRef":
                {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}});
            if taints.is_array() {
                spec["taints"] = taints;
            }
            json!({"metadata": {}, "spec": spec})
        };
        let addons = json!([{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]);
        let ec2 = |name: &str| {
            json!({"requirements": [], "expireAfter": "720h", "nodeClassRef":
                {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name}})
        };
        let mut empty_lists = ec2("default-ec2nodeclass");
        empty_lists["taints"] = json!([]);
        empty_lists["startupTaints"] = json!([]);
        for (template, expected) in [
            (json!({"spec": ec2("default")}), "6821555240594823858"),
            (json!({"spec": empty_lists}), "11142864721958693070"),
            (auto(Value::Null), "4012513481623584108"),
            (auto(addons), "4982684901400657622"),
        ] {
            assert_eq!(hash(&template), expected, "{template}");
        }
    }

    #[test]
    fn core_239_digests_that_release_1_15_computes() {
        let with_meta = |meta: Value, spec: Value| {
            let mut template = kwok(spec);
            template["metadata"] = meta;
            template
        };
        let month = || json!({"expireAfter": "720h"});
        let taints = json!({"expireAfter": "1h30m",
            "taints": [{"key": "a", "value": "1", "effect": "NoSchedule"},
                       {"key": "b", "effect": "NoExecute"}],
            "startupTaints": [{"key": "a", "value": "", "effect": "PreferNoSchedule"}]});
        let other_order = json!({"expireAfter": "90m",
            "taints": [{"key": "b", "effect": "NoExecute"},
                       {"key": "a", "value": "1", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "a", "effect": "PreferNoSchedule"}]});
        let both = json!({"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}});
        for (template, expected) in [
            (
                with_meta(json!({"labels": {}}), month()),
                "5327702334917744615",
            ),
            (
                with_meta(json!({"annotations": {}}), month()),
                "12213481875490685897",
            ),
            (
                with_meta(both, json!({"expireAfter": "Never"})),
                "12366963878153051834",
            ),
            (kwok(json!({"expireAfter": "Never"})), "7428780003907761376"),
            (kwok(json!({})), "7428780003907761376"),
            (
                kwok(json!({"expireAfter": "0s", "terminationGracePeriod": "0s"})),
                "11201156090959835969",
            ),
            (kwok(taints), "15242286984188266337"),
            (kwok(other_order), "15242286984188266337"),
        ] {
            assert_eq!(hash(&template), expected, "{template}");
        }
    }

    #[test]
    fn core_239_what_only_steers_behavior_does_not_count() {
        let pool = |spec: Value| -> NodePool {
            let mut whole = json!({"template": kwok(json!({"expireAfter": "720h"}))});
            for (key, value) in spec.as_object().unwrap() {
                whole[key] = value.clone();
            }
            serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": whole})).unwrap()
        };
        let plain = node_pool_hash(&pool(json!({})));
        for spec in [
            json!({"weight": 7}),
            json!({"limits": {"cpu": "5"}}),
            json!({"replicas": 3}),
            json!({"disruption": {"consolidateAfter": "5m", "budgets": [{"nodes": "3"}]}}),
        ] {
            assert_eq!(node_pool_hash(&pool(spec.clone())), plain, "{spec}");
        }
        let mut required = pool(json!({}));
        required.spec.template.spec.requirements = serde_json::from_value(json!([
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
        ]))
        .unwrap();
        assert_eq!(node_pool_hash(&required), plain);
    }
}
