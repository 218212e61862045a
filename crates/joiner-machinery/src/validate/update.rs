//! What must not change in an object.

use serde_json::{Map, Value};

use super::report::{Path, Report};
use super::{SPEC, items, node, storage, text, workload};
use crate::kinds::Kind;

fn at(field: &'static str) -> Path<'static> {
    Path::Field(&Path::Root, field)
}

/// What is wrong with a change, beyond what is wrong with the new object.
pub(super) fn check(kind: &Kind, old: &Value, new: &Value, report: &mut Report) {
    let (before, after) = (&old["spec"], &new["spec"]);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod(before, after, report),
        ("", "Node") => {
            node::taints(new, report);
            provider(before, after, report);
        }
        ("", "ConfigMap") => frozen(old, new, &["data", "binaryData"], report),
        ("", "Secret") => {
            report.immutable(&at("type"), &old["type"], &new["type"]);
            frozen(old, new, &["data"], report);
        }
        ("", "Service") => service(before, after, report),
        ("", "PersistentVolumeClaim") => claim(old, new, report),
        ("", "PersistentVolume") => volume(before, after, report),
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => {
            report.immutable(
                &SPEC.field("selector"),
                &before["selector"],
                &after["selector"],
            );
        }
        ("apps", "StatefulSet") => stateful_set(before, after, report),
        ("apps", "ControllerRevision") => {
            report.immutable(&at("data"), &old["data"], &new["data"]);
        }
        ("batch", "Job") => job(old, new, report),
        ("storage.k8s.io", "StorageClass") => {
            for field in [
                "parameters",
                "provisioner",
                "reclaimPolicy",
                "volumeBindingMode",
            ] {
                report.immutable(&at(field), &old[field], &new[field]);
            }
        }
        ("storage.k8s.io", "VolumeAttachment") => report.immutable(&SPEC, before, after),
        ("storage.k8s.io", "CSINode") => drivers(before, after, report),
        ("scheduling.k8s.io", "PriorityClass") => {
            if old["value"] != new["value"] {
                report.forbidden(&at("value"), "may not be changed in an update.");
            }
            report.immutable(
                &at("preemptionPolicy"),
                &old["preemptionPolicy"],
                &new["preemptionPolicy"],
            );
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            role(old, new, report);
        }
        ("node.k8s.io", "RuntimeClass") => {
            report.immutable(&at("handler"), &old["handler"], &new["handler"]);
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            report.immutable(&at("addressType"), &old["addressType"], &new["addressType"]);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            report
                .causes
                .extend(crate::crd::definition_update_causes(old, new));
        }
        _ => {}
    }
}

/// A copy of a spec without some fields.
fn without(spec: &Value, fields: &[&str]) -> Map<String, Value> {
    let entries = spec.as_object().into_iter().flatten();
    entries
        .filter(|(key, _)| !fields.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Containers without what may change in them.
fn bare(spec: &Value, list: &str) -> Vec<Map<String, Value>> {
    let containers = items(spec, list).iter();
    containers.map(|c| without(c, &["image"])).collect()
}

fn pod(before: &Value, after: &Value, report: &mut Report) {
    for list in ["containers", "initContainers"] {
        let path = SPEC.field(list);
        for (index, container) in items(after, list).iter().enumerate() {
            if text(container, "image").is_empty() {
                report.required(&path.index(index).field("image"), "");
            }
        }
    }
    if let Some(deadline) = before["activeDeadlineSeconds"].as_i64() {
        let path = SPEC.field("activeDeadlineSeconds");
        match after["activeDeadlineSeconds"].as_i64() {
            None => report.invalid(
                &path,
                &Value::Null,
                "must not update from a positive integer to nil value",
            ),
            Some(new) if new > deadline => {
                let detail = "must be less than or equal to previous value";
                report.invalid(&path, &after["activeDeadlineSeconds"], detail);
            }
            Some(_) => {}
        }
    }
    let known = items(before, "tolerations");
    let kept = |toleration: &Value| {
        let same = |other: &Value| {
            without(other, &["tolerationSeconds"]) == without(toleration, &["tolerationSeconds"])
        };
        items(after, "tolerations").iter().any(same)
    };
    if !known.iter().all(kept) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        report.forbidden(&SPEC.field("tolerations"), detail);
        return;
    }
    let gated = !items(before, "schedulingGates").is_empty();
    if !gates(before, after, report) {
        return;
    }
    let mut open = vec![
        "containers",
        "initContainers",
        "activeDeadlineSeconds",
        "tolerations",
        "schedulingGates",
    ];
    if before["terminationGracePeriodSeconds"]
        .as_i64()
        .is_some_and(|n| n < 0)
        && after["terminationGracePeriodSeconds"] == 1
    {
        open.push("terminationGracePeriodSeconds");
    }
    if gated {
        // A pod that nobody may place yet may still be narrowed down.
        open.extend(["nodeSelector", "affinity"]);
    }
    let same = without(before, &open) == without(after, &open)
        && bare(before, "containers") == bare(after, "containers")
        && bare(before, "initContainers") == bare(after, "initContainers");
    if !same {
        report.forbidden(
            &SPEC,
            "pod updates may not change fields other than `spec.containers[*].image`,\
             `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
             additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to \
             be set to 1 if it was previously negative)",
        );
    }
}

fn gates(before: &Value, after: &Value, report: &mut Report) -> bool {
    let path = SPEC.field("schedulingGates");
    let mut fine = true;
    for (index, gate) in items(after, "schedulingGates").iter().enumerate() {
        if !items(before, "schedulingGates").contains(gate) {
            let name = text(gate, "name");
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            report.forbidden(&path.index(index).field("name"), &detail);
            fine = false;
        }
    }
    fine
}

fn provider(before: &Value, after: &Value, report: &mut Report) {
    let old = text(before, "providerID");
    if !old.is_empty() && old != text(after, "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        report.forbidden(&SPEC.field("providerID"), detail);
    }
    let old = text(before, "podCIDR");
    if !old.is_empty() && old != text(after, "podCIDR") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        report.forbidden(&SPEC.field("podCIDRs"), detail);
    }
}

/// Objects that say of themselves that they will not change.
fn frozen(old: &Value, new: &Value, fields: &[&'static str], report: &mut Report) {
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        report.forbidden(&at("immutable"), detail);
    }
    for field in fields {
        if old[*field] != new[*field] {
            report.forbidden(&at(field), detail);
        }
    }
}

fn service(before: &Value, after: &Value, report: &mut Report) {
    let keeps = |spec: &Value| text(spec, "type") != "ExternalName";
    let old = text(before, "clusterIP");
    let changed = !old.is_empty() && old != text(after, "clusterIP");
    if keeps(before) && keeps(after) && changed {
        let path = SPEC.field("clusterIPs");
        let detail = "may not change once set";
        report.invalid(&path.index(0), &after["clusterIPs"], detail);
    }
}

fn claim(old: &Value, new: &Value, report: &mut Report) {
    let (before, after) = (&old["spec"], &new["spec"]);
    let mut open = vec!["volumeAttributesClassName"];
    if text(before, "volumeName").is_empty() {
        open.push("volumeName");
    }
    let bound = text(&old["status"], "phase") == "Bound";
    if bound {
        open.push("resources");
    }
    if without(before, &open) != without(after, &open) {
        report.forbidden(
            &SPEC,
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims",
        );
    }
    if bound {
        let amount =
            |spec: &Value| crate::quantity::Quantity::of(&spec["resources"]["requests"]["storage"]);
        if amount(after) < amount(before) {
            let resources = SPEC.field("resources");
            let path = resources.field("requests");
            let detail = "field can not be less than status.capacity";
            report.forbidden(&path.field("storage"), detail);
        }
    }
    report.immutable(
        &at("volumeMode"),
        &before["volumeMode"],
        &after["volumeMode"],
    );
}

fn volume(before: &Value, after: &Value, report: &mut Report) {
    let source = |spec: &Value| -> Vec<Value> {
        storage::SOURCES
            .iter()
            .map(|name| spec[*name].clone())
            .collect()
    };
    if source(before) != source(after) {
        report.forbidden(
            &SPEC.field("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation",
        );
    }
    report.immutable(
        &at("volumeMode"),
        &before["volumeMode"],
        &after["volumeMode"],
    );
}

fn stateful_set(before: &Value, after: &Value, report: &mut Report) {
    let open = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if without(before, &open) != without(after, &open) {
        report.forbidden(
            &SPEC,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
             'template', 'updateStrategy', 'revisionHistoryLimit', \
             'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}

/// A suspended job that has not started may still be told where to run.
fn job(old: &Value, new: &Value, report: &mut Report) {
    let (before, after) = (&old["spec"], &new["spec"]);
    workload::unchosen(after, report);
    let elastic =
        text(after, "completionMode") == "Indexed" && after["completions"] == after["parallelism"];
    if !elastic {
        report.immutable(
            &SPEC.field("completions"),
            &before["completions"],
            &after["completions"],
        );
    }
    report.immutable(
        &SPEC.field("selector"),
        &before["selector"],
        &after["selector"],
    );
    let template = SPEC.field("template");
    let (old_template, new_template) = (&before["template"], &after["template"]);
    let asleep = before["suspend"] == true && old["status"]["startTime"].is_null();
    let open: &[&str] = if asleep {
        &["nodeSelector", "affinity", "tolerations", "schedulingGates"]
    } else {
        &[]
    };
    let (was, is) = (&old_template["spec"], &new_template["spec"]);
    if without(was, open) != without(is, open) {
        report.invalid(&template.field("spec"), is, "field is immutable");
    } else if !asleep && old_template["metadata"] != new_template["metadata"] {
        report.invalid(&template, new_template, "field is immutable");
    }
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
    ] {
        report.immutable(&SPEC.field(field), &before[field], &after[field]);
    }
}

fn drivers(before: &Value, after: &Value, report: &mut Report) {
    let path = SPEC.field("drivers");
    for driver in items(after, "drivers") {
        let known = items(before, "drivers")
            .iter()
            .find(|old| old["name"] == driver["name"]);
        let fixed = |one: &Value| without(one, &["allocatable"]);
        if known.is_some_and(|old| fixed(old) != fixed(driver)) {
            report.invalid(&path, driver, "field is immutable");
        }
    }
}

fn role(old: &Value, new: &Value, report: &mut Report) {
    if old["roleRef"] == new["roleRef"] {
        return;
    }
    let role = &new["roleRef"];
    report.invalid(&at("roleRef"), role, "cannot change roleRef");
    if let Some(cause) = report.causes.last_mut() {
        // Upstream shows the reference in its own spelling.
        cause.message = format!(
            "Invalid value: {{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}: cannot change roleRef",
            role["apiGroup"], role["kind"], role["name"]
        );
    }
}
