//! What is wrong with an object: upstream's field paths, reasons and words.
//!
//! Objects are complete here: decoded, defaulted, prepared. The rules are those that people meet;
//! [`create`] and [`update`] say nothing about fields that no rule below looks at.

mod container;
mod meta;
pub mod names;
mod node;
mod pod;
mod policy;
pub(crate) mod report;
mod scaling;
mod schedule;
mod scheduling;
mod service;
mod storage;
mod update;
mod volume;
mod workload;

use serde_json::Value;

use crate::error::Cause;
use crate::kinds::Kind;
use report::{Path, Report};

pub(crate) use policy::SYSTEM_CLASSES;

/// What is wrong with a new object of a kind. For custom kinds only the metadata is looked at here;
/// the rest is in [`crate::crd::CustomRules`].
#[must_use]
pub fn create(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut report = Report::default();
    meta::check(kind, object, &mut report);
    content(kind, object, true, &mut report);
    report.causes
}

/// What is wrong with the new version of an object: everything that [`create`] would say, and what
/// must not change.
#[must_use]
pub fn update(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let mut report = Report::default();
    meta::check_update(old, new, &mut report);
    content(kind, new, false, &mut report);
    if kind.custom.is_none() {
        update::check(kind, old, new, &mut report);
    }
    report.causes
}

/// What is wrong with the new status of an object. Status is written by controllers: only metadata
/// is looked at.
#[must_use]
pub fn update_status(old: &Value, new: &Value) -> Vec<Cause> {
    let mut report = Report::default();
    meta::check_update(old, new, &mut report);
    if matches!(
        new["kind"].as_str(),
        Some("Deployment" | "ReplicaSet" | "StatefulSet")
    ) {
        status_counts(&new["status"], &mut report);
    }
    report.causes
}

/// Counts of replicas are counts, and none is above the number of all.
fn status_counts(status: &Value, report: &mut Report) {
    let path = Path::Field(&Path::Root, "status");
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let fields = [
        "replicas",
        "fullyLabeledReplicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ];
    for field in fields {
        if count(field) < 0 {
            let detail = "must be greater than or equal to 0";
            report.invalid(&path.field(field), &Value::from(count(field)), detail);
        }
    }
    for field in &fields[1..5] {
        if !status[*field].is_null() && count(field) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            report.invalid(&path.field(field), &Value::from(count(field)), detail);
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let value = Value::from(count("availableReplicas"));
        let detail = "cannot be greater than readyReplicas";
        report.invalid(&path.field("availableReplicas"), &value, detail);
    }
}

/// Fields that a built-in kind does not have, as the warning or the refusal names them.
#[must_use]
pub fn unknown_fields(kind: &Kind, object: &Value) -> Vec<String> {
    let mut copy = object.clone();
    crate::kinds::fields::decode(kind, &mut copy).unwrap_or_default()
}

fn content(kind: &Kind, object: &Value, is_new: bool, report: &mut Report) {
    if kind.custom.is_some() {
        return;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::check(object, report),
        ("", "Node") => node::check(object, report),
        ("", "Namespace") => node::namespace(object, report),
        ("", "ConfigMap") => node::config_map(object, report),
        ("", "Secret") => node::secret(object, report),
        ("", "Service") => service::check(object, report),
        ("", "PersistentVolumeClaim") => storage::claim(&object["spec"], &SPEC, report),
        ("", "PersistentVolume") => storage::volume(&object["spec"], report),
        ("", "LimitRange") => policy::limit_range(object, report),
        ("" | "events.k8s.io", "Event") => policy::event(kind, object, report),
        ("apps", "Deployment") => workload::deployment(&object["spec"], report),
        ("apps", "ReplicaSet") => workload::replica_set(&object["spec"], report),
        ("apps", "StatefulSet") => workload::stateful_set(&object["spec"], report),
        ("apps", "DaemonSet") => workload::daemon_set(&object["spec"], report),
        ("batch", "Job") => workload::job(object, report),
        ("batch", "CronJob") => workload::cron_job(object, report),
        ("policy", "PodDisruptionBudget") => policy::budget(&object["spec"], report),
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class(object, report),
        ("coordination.k8s.io", "Lease") => policy::lease(&object["spec"], report),
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::check(kind, object, report),
        ("storage.k8s.io", "StorageClass") => storage::class(object, report),
        ("storage.k8s.io", "VolumeAttachment") => storage::attachment(&object["spec"], report),
        ("storage.k8s.io", "CSINode") => storage::csi_node(&object["spec"], report),
        ("rbac.authorization.k8s.io", _) => policy::rbac(kind, object, report),
        ("node.k8s.io", "RuntimeClass") => policy::runtime_class(object, report),
        ("discovery.k8s.io", "EndpointSlice") => service::endpoint_slice(object, report),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            report
                .causes
                .extend(crate::crd::definition_causes(object, is_new));
        }
        _ => {}
    }
}

/// `spec`.
const SPEC: Path<'static> = Path::Field(&Path::Root, "spec");

/// A text field, empty when absent.
fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object[key].as_str().unwrap_or("")
}

/// The items of a list field.
fn items<'v>(object: &'v Value, key: &str) -> &'v [Value] {
    object[key].as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map field.
fn entries<'v>(object: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    object[key].as_object().into_iter().flatten()
}

/// Labels, wherever they are: all complaints go to the one path.
fn labels(labels: &Value, path: &Path<'_>, report: &mut Report) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        report.complain(path, key, &names::qualified(key));
        let value = value.as_str().unwrap_or("");
        report.complain(path, value, &names::label_value(value));
    }
}

/// A label selector object.
fn selector(selector: &Value, path: &Path<'_>, report: &mut Report) {
    labels(&selector["matchLabels"], &path.field("matchLabels"), report);
    let list = path.field("matchExpressions");
    for (index, expression) in items(selector, "matchExpressions").iter().enumerate() {
        let at = list.index(index);
        let values = items(expression, "values");
        let operator = text(expression, "operator");
        match operator {
            "In" | "NotIn" if values.is_empty() => report.required(
                &at.field("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if !values.is_empty() => report.forbidden(
                &at.field("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "Exists" | "DoesNotExist" => {}
            _ => report.invalid(
                &at.field("operator"),
                &Value::from(operator),
                "not a valid selector operator",
            ),
        }
        let key = text(expression, "key");
        report.complain(&at.field("key"), key, &names::qualified(key));
        let values_path = at.field("values");
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or("");
            report.complain(&values_path.index(index), value, &names::label_value(value));
        }
    }
}

/// True when a selector object could be evaluated.
fn is_selector(selector: &Value) -> bool {
    let mut probe = Report::default();
    self::selector(selector, &Path::Root, &mut probe);
    probe.causes.is_empty()
}
