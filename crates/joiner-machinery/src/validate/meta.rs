//! Metadata: the same for every kind but for the form of the name.

use serde_json::Value;

use super::report::{Path, Report};
use super::{entries, items, labels, names, text};
use crate::kinds::Kind;

const META: Path<'static> = Path::Field(&Path::Root, "metadata");
/// Most bytes in all annotations together.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// What may be the name of an object of a kind.
fn name_form(kind: &Kind) -> fn(&str) -> Vec<String> {
    if kind.custom.is_some() {
        return names::dns_subdomain;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace" | "Service") => names::dns_label,
        ("rbac.authorization.k8s.io", _) => names::path_segment,
        _ => names::dns_subdomain,
    }
}

/// Metadata of a new object.
pub(crate) fn check(kind: &Kind, object: &Value, report: &mut Report) {
    let meta = &object["metadata"];
    let form = name_form(kind);
    let start = text(meta, "generateName");
    if !start.is_empty() {
        // The server appends to it, so a dash at the end is fine.
        let whole = match start.strip_suffix('-') {
            Some(start) => format!("{start}a"),
            None => start.to_owned(),
        };
        report.complain(&META.field("generateName"), start, &form(&whole));
    }
    match text(meta, "name") {
        "" => report.required(&META.field("name"), "name or generateName is required"),
        name => report.complain(&META.field("name"), name, &form(name)),
    }
    if kind.is("batch", "CronJob") && text(meta, "name").len() > 52 {
        // A job's name is longer by eleven signs, and must fit into a label.
        let name = meta["name"].clone();
        report.invalid(
            &META.field("name"),
            &name,
            "must be no more than 52 characters",
        );
    }
    if kind.namespaced {
        let namespace = text(meta, "namespace");
        let path = META.field("namespace");
        report.name(&path, namespace, names::dns_label);
    } else if !text(meta, "namespace").is_empty() {
        report.forbidden(&META.field("namespace"), "not allowed on this type");
    }
    parts(meta, report);
}

fn parts(meta: &Value, report: &mut Report) {
    if meta["generation"].as_i64().is_some_and(|n| n < 0) {
        report.not_negative(&META.field("generation"), &meta["generation"]);
    }
    labels(&meta["labels"], &META.field("labels"), report);
    let path = META.field("annotations");
    let mut bytes = 0;
    for (key, value) in entries(meta, "annotations") {
        // Annotations may be written in capitals.
        if names::qualified(key).is_empty() {
            bytes += key.len() + value.as_str().map_or(0, str::len);
            continue;
        }
        let complaints = names::qualified(&key.to_lowercase());
        report.complain(&path, key, &complaints);
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        report.too_long(&path, ANNOTATIONS_BYTES_MAX);
    }
    owners(meta, report);
    finalizers(meta, report);
}

fn owners(meta: &Value, report: &mut Report) {
    let path = META.field("ownerReferences");
    let mut controller: Option<&Value> = None;
    for owner in items(meta, "ownerReferences") {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                let detail = match field {
                    "apiVersion" => "version must not be empty",
                    _ => "must not be empty",
                };
                report.invalid(&path.field(field), &Value::from(""), detail);
            }
        }
        if owner["controller"] != Value::Bool(true) {
            continue;
        }
        if let Some(other) = controller {
            let detail = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references \
                 for {}/{} and {}/{}",
                text(other, "kind"),
                text(other, "name"),
                text(owner, "kind"),
                text(owner, "name"),
            );
            report.invalid(&path, &Value::Null, "");
            if let Some(cause) = report.causes.last_mut() {
                let shown = shown_owners(items(meta, "ownerReferences"));
                cause.message = format!("Invalid value: {shown}: {detail}");
            }
        }
        controller = Some(owner);
    }
}

/// Owners as upstream prints them, field by field in its order.
fn shown_owners(owners: &[Value]) -> String {
    const ORDER: [&str; 6] = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let shown = |owner: &Value| {
        let fields = ORDER.iter().filter(|field| !owner[**field].is_null());
        let fields: Vec<String> = fields
            .map(|field| format!("\"{field}\":{}", owner[*field]))
            .collect();
        format!("{{{}}}", fields.join(","))
    };
    let all: Vec<String> = owners.iter().map(shown).collect();
    format!("[{}]", all.join(","))
}

fn finalizers(meta: &Value, report: &mut Report) {
    let path = META.field("finalizers");
    let list = items(meta, "finalizers");
    for (index, finalizer) in list.iter().enumerate() {
        let name = finalizer.as_str().unwrap_or("");
        let complaints = names::qualified(name);
        report.complain(&path, name, &complaints);
        let standard = matches!(name, "kubernetes" | "orphan" | "foregroundDeletion");
        if !standard && !name.contains('/') {
            report.invalid(
                &path.index(index),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            );
        }
    }
    let has = |wanted: &str| list.iter().any(|f| f == wanted);
    if has("orphan") && has("foregroundDeletion") {
        report.invalid(
            &path,
            &meta["finalizers"],
            "finalizer orphan and foregroundDeletion cannot be both set",
        );
    }
}

/// Metadata of the new version of an object.
pub(crate) fn check_update(old: &Value, new: &Value, report: &mut Report) {
    let (old, new) = (&old["metadata"], &new["metadata"]);
    parts(new, report);
    if !text(old, "deletionTimestamp").is_empty() {
        let before = items(old, "finalizers");
        let added: Vec<&str> = items(new, "finalizers")
            .iter()
            .filter(|finalizer| !before.contains(finalizer))
            .filter_map(Value::as_str)
            .collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{\"{}\"}}",
                added.join("\", \"")
            );
            report.forbidden(&META.field("finalizers"), &detail);
        }
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        report.immutable(&META.field(field), &old[field], &new[field]);
    }
}
