//! NodePool, v1beta1 and v1.

use super::fields::{list_at, map_at, put, shift, take};
use super::{class_reference, kubelet, requirements};
use serde_json::Value;

const SPEC: &[&str] = &["spec", "template", "spec"];
const REFERENCE: &[&str] = &["spec", "template", "spec", "nodeClassRef"];
const KUBELET: &[&str] = &["spec", "template", "spec", "kubelet"];
const EXPIRE_AFTER: &[&str] = &["spec", "template", "spec", "expireAfter"];
const OLD_EXPIRE_AFTER: &[&str] = &["spec", "disruption", "expireAfter"];

/// v1beta1 as v1.
pub(super) fn up(mut pool: Value) -> Value {
    put(&mut pool, &["apiVersion"], "karpenter.sh/v1".into());
    kubelet::raise(&mut pool, KUBELET);
    class_reference::raise(&mut pool, REFERENCE);
    if map_at(&mut pool, SPEC).is_some() {
        shift(&mut pool, OLD_EXPIRE_AFTER, EXPIRE_AFTER);
    }
    let Some(disruption) = map_at(&mut pool, &["spec", "disruption"]) else {
        return pool;
    };
    if let Some(policy) = disruption.get_mut("consolidationPolicy")
        && policy == "WhenUnderutilized"
    {
        *policy = "WhenEmptyOrUnderutilized".into();
    }
    disruption
        .entry("consolidateAfter")
        .or_insert_with(|| "0s".into());
    pool
}

/// v1 as v1beta1.
pub(super) fn down(mut pool: Value) -> Value {
    put(&mut pool, &["apiVersion"], "karpenter.sh/v1beta1".into());
    kubelet::lower(&mut pool, KUBELET);
    class_reference::lower(&mut pool, REFERENCE);
    for path in [
        &["spec", "replicas"][..],
        &["spec", "template", "spec", "terminationGracePeriod"],
    ] {
        take(&mut pool, path);
    }
    requirements::down(&mut pool, &["spec", "template", "spec", "requirements"]);
    if let Some(disruption) = map_at(&mut pool, &["spec", "disruption"]) {
        let policy = disruption.get("consolidationPolicy");
        let policy = policy.and_then(Value::as_str).unwrap_or_default();
        if policy != "WhenEmpty" {
            if policy == "WhenEmptyOrUnderutilized" || policy == "Balanced" {
                disruption.insert("consolidationPolicy".to_owned(), "WhenUnderutilized".into());
            }
            if disruption
                .get("consolidateAfter")
                .is_some_and(|after| after != "Never")
            {
                disruption.remove("consolidateAfter");
            }
        }
    }
    for budget in list_at(&mut pool, &["spec", "disruption", "budgets"])
        .into_iter()
        .flatten()
    {
        take(budget, &["reasons"]);
    }
    shift(&mut pool, EXPIRE_AFTER, OLD_EXPIRE_AFTER);
    pool
}
