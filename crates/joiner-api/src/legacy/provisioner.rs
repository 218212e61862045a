//! Provisioner, which NodePool has replaced.

use super::fields::{at, put, take, text};
use super::remark::{Remark, Remarks};
use super::{aws_node_template, class_reference, kubelet, metadata, pool_remarks};
use crate::crd::legacy::DROPPED_KEYS;
use crate::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, aws, canonical_key};
use serde_json::{Value, json};

const CLASS: &[&str] = &["spec", "template", "spec", "nodeClassRef"];
const KUBELET: &[&str] = &["spec", "template", "spec", "kubelet"];
/// Fields that stand elsewhere, and mean what they meant.
const SHIFTED: &[(&[&str], &[&str])] = &[
    (
        &["spec", "labels"],
        &["spec", "template", "metadata", "labels"],
    ),
    (
        &["spec", "annotations"],
        &["spec", "template", "metadata", "annotations"],
    ),
    (&["spec", "taints"], &["spec", "template", "spec", "taints"]),
    (
        &["spec", "startupTaints"],
        &["spec", "template", "spec", "startupTaints"],
    ),
    (&["spec", "kubeletConfiguration"], KUBELET),
    (&["spec", "limits", "resources"], &["spec", "limits"]),
    (&["spec", "weight"], &["spec", "weight"]),
];
/// Keys any of which says enough about families.
const SAYS_FAMILIES: [&str; 4] = [
    INSTANCE_TYPE,
    aws::INSTANCE_FAMILY,
    aws::INSTANCE_CATEGORY,
    aws::INSTANCE_GENERATION,
];

/// The pool that takes the place of a Provisioner, and the class of its provider where that is inline.
pub(super) fn convert(provisioner: &Value, subject: &str, list: &mut Vec<Remark>) -> Vec<Value> {
    let mut remarks = Remarks { subject, list };
    let mut old = json!({});
    put(
        &mut old,
        &["spec"],
        at(provisioner, &["spec"])
            .cloned()
            .unwrap_or_else(|| json!({})),
    );
    let mut meta = metadata::carried(provisioner);
    take(&mut meta, &["finalizers"]);
    let mut pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": meta});
    let name = text(&pool["metadata"], "name").to_owned();
    pool_remarks::of_provisioner(&old, &mut remarks);
    pool_remarks::gone(&old, &mut remarks);
    let requirements = requirements(&mut old, &mut remarks);
    put(
        &mut pool,
        &["spec", "template", "spec", "requirements"],
        requirements,
    );
    let (class, made) = provider(&mut old, &name, &mut remarks);
    put(&mut pool, CLASS, class);
    put(
        &mut pool,
        &["spec", "template", "spec", "expireAfter"],
        expiry(&old),
    );
    put(&mut pool, &["spec", "disruption"], disruption(&old));
    for (from, to) in SHIFTED {
        if let Some(value) = take(&mut old, from) {
            put(&mut pool, to, value);
        }
    }
    metadata::rename_at(&mut pool, &["spec", "template", "metadata", "annotations"]);
    kubelet::raise(&mut pool, KUBELET);
    std::iter::once(pool).chain(made).collect()
}

/// The requirements, with those that went without saying.
fn requirements(old: &mut Value, remarks: &mut Remarks<'_>) -> Value {
    let given = take(old, &["spec", "requirements"]);
    let mut all = match given {
        Some(Value::Array(list)) => list,
        Some(_) | None => Vec::new(),
    };
    for (ix, requirement) in all.iter().enumerate() {
        let key = text(requirement, "key");
        if DROPPED_KEYS.contains(&key) {
            let path = format!("spec.requirements[{ix}]");
            remarks.hand(path, format!("the label {key} is gone: it is left out"));
        }
    }
    all.retain(|requirement| !DROPPED_KEYS.contains(&text(requirement, "key")));
    for key in DROPPED_KEYS {
        if take(old, &["spec", "labels", key]).is_some() {
            let path = format!("spec.labels[{key}]");
            remarks.hand(path, format!("the label {key} is gone: it is left out"));
        }
    }
    let implied = implied(&all);
    if !implied.is_empty() {
        let said: Vec<String> = implied.iter().map(shown).collect();
        remarks.note(
            "spec.requirements",
            format!(
                "written out what v1alpha5 added without saying so: {}",
                said.join(", ")
            ),
        );
    }
    all.extend(implied);
    all.into()
}

/// What the old webhook added.
fn implied(given: &[Value]) -> Vec<Value> {
    let says = |key: &str| {
        given
            .iter()
            .any(|one| canonical_key(text(one, "key")) == key)
    };
    let mut implied = Vec::new();
    for (key, value) in [(OS, "linux"), (ARCH, "amd64"), (CAPACITY_TYPE, "on-demand")] {
        if !says(key) {
            implied.push(json!({"key": key, "operator": "In", "values": [value]}));
        }
    }
    if !SAYS_FAMILIES.iter().any(|key| says(key)) {
        let category = aws::INSTANCE_CATEGORY;
        implied.push(json!({"key": category, "operator": "In", "values": ["c", "m", "r"]}));
        let generation = aws::INSTANCE_GENERATION;
        implied.push(json!({"key": generation, "operator": "Gt", "values": ["2"]}));
    }
    implied
}

fn shown(requirement: &Value) -> String {
    let values = requirement["values"].as_array();
    let values: Vec<&str> = values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (key, operator) = (text(requirement, "key"), text(requirement, "operator"));
    match values.as_slice() {
        [one] if operator == "Gt" => format!("{key} Gt {one}"),
        all => format!("{key} {operator} [{}]", all.join(", ")),
    }
}

/// The class of the pool, and the class itself where the settings were part of the Provisioner.
fn provider(old: &mut Value, name: &str, remarks: &mut Remarks<'_>) -> (Value, Option<Value>) {
    if let Some(inline) = take(old, &["spec", "provider"]) {
        remarks.note(
            "spec.provider",
            format!("settings of the provider are the EC2NodeClass {name} of their own now"),
        );
        let meta = json!({"name": name});
        let class = aws_node_template::class(meta, inline, "spec.provider", remarks);
        return (class_reference::named(name), Some(class));
    }
    match take(old, &["spec", "providerRef"]) {
        Some(reference) => (class_reference::of_v1alpha5(&reference), None),
        None => {
            remarks.hand(
                "spec.providerRef",
                "there is none, and a NodePool needs a node class: nodeClassRef is the EC2NodeClass \
                 default; write the name of yours",
            );
            (class_reference::named("default"), None)
        }
    }
}

fn expiry(old: &Value) -> Value {
    match at(old, &["spec", "ttlSecondsUntilExpired"]).and_then(Value::as_i64) {
        Some(seconds) => format!("{seconds}s").into(),
        None => "Never".into(),
    }
}

fn disruption(old: &Value) -> Value {
    let consolidates = at(old, &["spec", "consolidation", "enabled"]) == Some(&Value::Bool(true));
    if consolidates {
        return json!({
            "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s",
        });
    }
    let after = match at(old, &["spec", "ttlSecondsAfterEmpty"]).and_then(Value::as_i64) {
        Some(seconds) => format!("{seconds}s"),
        None => "Never".to_owned(),
    };
    json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": after})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_without_saying_is_said() {
        let keys = |given: &Value| -> Vec<String> {
            let implied = implied(given.as_array().unwrap());
            implied.iter().map(shown).collect()
        };
        assert_eq!(
            keys(&json!([])),
            [
                "kubernetes.io/os In [linux]",
                "kubernetes.io/arch In [amd64]",
                "karpenter.sh/capacity-type In [on-demand]",
                "karpenter.k8s.aws/instance-category In [c, m, r]",
                "karpenter.k8s.aws/instance-generation Gt 2",
            ]
        );
        let said = json!([
            {"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
            {"key": "karpenter.sh/capacity-type", "operator": "Exists"},
            {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["4"]},
        ]);
        assert_eq!(keys(&said), ["kubernetes.io/os In [linux]"]);
    }
}
