//! What has changed its meaning in a pool.

use super::fields::at;
use super::remark::Remarks;
use crate::labels::DO_NOT_DISRUPT;
use serde_json::Value;

/// How nodes that are too old go since v1.
const FORCEFUL: &str = "since v1 a node of this age goes whatever budgets say, as soon as its pods are \
                        drained";

/// On the fields of a Provisioner.
pub(super) fn of_provisioner(old: &Value, remarks: &mut Remarks<'_>) {
    let spec = |field: &str| at(old, &["spec", field]);
    match spec("ttlSecondsUntilExpired") {
        Some(seconds) => remarks.note(
            "spec.ttlSecondsUntilExpired",
            format!("is spec.template.spec.expireAfter: {seconds}s now; {FORCEFUL}"),
        ),
        None => remarks.note(
            "spec.ttlSecondsUntilExpired",
            "there is none, so nodes never expired: spec.template.spec.expireAfter is Never, v1's \
             default would be 720h",
        ),
    }
    emptiness(old, remarks);
    if let Some(limits) = at(old, &["spec", "limits", "resources"]).and_then(Value::as_object) {
        let resources: Vec<&str> = limits.keys().map(String::as_str).collect();
        remarks.note(
            "spec.limits.resources",
            format!(
                "is spec.limits now ({}); nodes that are being launched count, so a limit is never \
                 exceeded",
                resources.join(", ")
            ),
        );
    }
    if let Some(weight) = spec("weight") {
        remarks.note(
            "spec.weight",
            format!("{weight} stays; among pools of the same weight the cheaper one is taken"),
        );
    }
    if spec("startupTaints").is_some() {
        remarks.note(
            "spec.startupTaints",
            "are spec.template.spec.startupTaints now; pods wait until something lifts them, as before",
        );
    }
}

/// On what has another name or no effect.
pub(super) fn gone(old: &Value, remarks: &mut Remarks<'_>) {
    for key in [
        "karpenter.sh/do-not-evict",
        "karpenter.sh/do-not-consolidate",
    ] {
        if at(old, &["spec", "annotations", key]).is_some() {
            remarks.note(
                format!("spec.annotations[{key}]"),
                format!("is {DO_NOT_DISRUPT} now, which keeps nodes that have drifted, too"),
            );
        }
    }
    if at(old, &["spec", "kubeletConfiguration", "containerRuntime"]).is_some() {
        remarks.note(
            "spec.kubeletConfiguration.containerRuntime",
            "is left out: images have one runtime",
        );
    }
}

fn emptiness(old: &Value, remarks: &mut Remarks<'_>) {
    const PACE: &str = "at most 10 % of the pool's nodes go at once, which spec.disruption.budgets \
                        can change";
    let enabled = at(old, &["spec", "consolidation", "enabled"]);
    if enabled == Some(&Value::Bool(true)) {
        remarks.note(
            "spec.consolidation.enabled",
            format!(
                "is spec.disruption.consolidationPolicy WhenEmptyOrUnderutilized with \
                 consolidateAfter 0s now; {PACE}"
            ),
        );
        return;
    }
    match at(old, &["spec", "ttlSecondsAfterEmpty"]) {
        Some(seconds) => remarks.note(
            "spec.ttlSecondsAfterEmpty",
            format!(
                "is spec.disruption.consolidationPolicy WhenEmpty with consolidateAfter {seconds}s \
                 now; {PACE}"
            ),
        ),
        None => remarks.note(
            match enabled {
                Some(_) => "spec.consolidation.enabled",
                None => "spec.consolidation",
            },
            "without it and without ttlSecondsAfterEmpty nodes stayed: spec.disruption is WhenEmpty \
             with consolidateAfter Never",
        ),
    }
}

/// On the fields of a NodePool v1beta1.
pub(super) fn of_node_pool(old: &Value, remarks: &mut Remarks<'_>) {
    let disruption = |field: &str| at(old, &["spec", "disruption", field]);
    if let Some(age) = disruption("expireAfter").and_then(Value::as_str) {
        let moved = format!("is spec.template.spec.expireAfter: {age} now");
        let message = match age {
            "Never" => moved,
            _ => format!("{moved}; {FORCEFUL}"),
        };
        remarks.note("spec.disruption.expireAfter", message);
    }
    let policy = disruption("consolidationPolicy").and_then(Value::as_str);
    let after = disruption("consolidateAfter").and_then(Value::as_str);
    match (policy, after) {
        (Some("WhenUnderutilized"), Some(_)) => remarks.note(
            "spec.disruption.consolidationPolicy",
            "WhenUnderutilized is WhenEmptyOrUnderutilized now; consolidateAfter Never stays, and \
             keeps all nodes that do not expire or drift",
        ),
        (Some("WhenUnderutilized"), None) => remarks.note(
            "spec.disruption.consolidationPolicy",
            "WhenUnderutilized is WhenEmptyOrUnderutilized with consolidateAfter 0s now",
        ),
        (Some(_) | None, _) => {}
    }
    reference(old, &["spec", "template", "spec", "nodeClassRef"], remarks);
}

/// On a reference that left something out.
pub(super) fn reference(old: &Value, path: &[&str], remarks: &mut Remarks<'_>) {
    let Some(reference) = at(old, path) else {
        return;
    };
    let lacks = |field: &str| {
        reference
            .get(field)
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
    };
    if lacks("kind") || lacks("apiVersion") {
        remarks.note(
            path.join("."),
            "group and kind are written out: karpenter.k8s.aws and EC2NodeClass where nothing was \
             said",
        );
    }
}
