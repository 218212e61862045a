//! What is wrong with a CustomResourceDefinition.

use std::collections::BTreeSet;

use serde_json::Value;

use super::structure;
use crate::error::Cause;
use crate::meta;
use crate::validate::names;
use crate::validate::report::{Path, Report};

const SPEC: Path<'static> = Path::Field(&Path::Root, "spec");
const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object[key].as_str().unwrap_or("")
}

fn items<'v>(object: &'v Value, key: &str) -> &'v [Value] {
    object[key].as_array().map_or(&[], Vec::as_slice)
}

/// Everything that is wrong with a definition. The names of one that is there already are not held
/// against its own name: that they changed is told instead.
pub(crate) fn definition_causes(crd: &Value, is_new: bool) -> Vec<Cause> {
    let mut report = Report::default();
    let spec = &crd["spec"];
    let plural = text(&spec["names"], "plural");
    let group = text(spec, "group");
    if is_new && meta::name(crd) != format!("{plural}.{group}") {
        let metadata = Path::Field(&Path::Root, "metadata");
        let detail = "must be spec.names.plural+\".\"+spec.group";
        for field in ["generateName", "name"] {
            if !meta::text(crd, field).is_empty() {
                report.invalid(&metadata.field(field), &crd["metadata"][field], detail);
            }
        }
    }
    report.name(&SPEC.field("group"), group, names::dns_subdomain);
    if text(spec, "scope").is_empty() {
        report.required(&SPEC.field("scope"), "");
    } else {
        report.one_of(
            &SPEC.field("scope"),
            &spec["scope"],
            &["Cluster", "Namespaced"],
        );
    }
    versions(spec, &mut report);
    names_causes(&spec["names"], &mut report);
    let conversion = SPEC.field("conversion");
    report.one_of(
        &conversion.field("strategy"),
        &spec["conversion"]["strategy"],
        &["None", "Webhook"],
    );
    stored(crd, &mut report);
    report.causes
}

fn names_causes(names_object: &Value, report: &mut Report) {
    let path = SPEC.field("names");
    for field in ["plural", "singular"] {
        report.name(
            &path.field(field),
            text(names_object, field),
            names::dns_1035_label,
        );
    }
    for field in ["kind", "listKind"] {
        let value = text(names_object, field);
        let at = path.field(field);
        if value.is_empty() {
            report.required(&at, "");
        } else {
            report.complain(&at, value, &names::dns_1035_label(&value.to_lowercase()));
        }
    }
    for list in ["shortNames", "categories"] {
        let at = path.field(list);
        for (index, name) in items(names_object, list).iter().enumerate() {
            let name = name.as_str().unwrap_or("");
            report.complain(&at.index(index), name, &names::dns_1035_label(name));
        }
    }
    let (kind, list) = (text(names_object, "kind"), text(names_object, "listKind"));
    if !kind.is_empty() && kind == list {
        let detail = "kind and listKind may not be the same";
        report.invalid(&path.field("listKind"), &names_object["listKind"], detail);
    }
}

fn versions(spec: &Value, report: &mut Report) {
    let path = SPEC.field("versions");
    let list = items(spec, "versions");
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (index, version) in list.iter().enumerate() {
        let at = path.index(index);
        let name = text(version, "name");
        report.complain(&at.field("name"), name, &names::dns_1035_label(name));
        unique &= seen.insert(name);
        if version["deprecated"] != true && !version["deprecationWarning"].is_null() {
            report.invalid(
                &at.field("deprecationWarning"),
                &version["deprecationWarning"],
                "can only be set for deprecated versions",
            );
        }
        // With one version upstream speaks of the fields that the first API had.
        let only = list.len() == 1;
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_null() {
            let schema_path = at.field("schema");
            report.required(&schema_path.field("openAPIV3Schema"), "");
        } else if only {
            let validation = SPEC.field("validation");
            let has_status = !version["subresources"]["status"].is_null();
            structure::check(
                schema,
                has_status,
                &validation.field("openAPIV3Schema"),
                report,
            );
        } else {
            let schema_path = at.field("schema");
            let has_status = !version["subresources"]["status"].is_null();
            structure::check(
                schema,
                has_status,
                &schema_path.field("openAPIV3Schema"),
                report,
            );
        }
        parts(version, if only { &SPEC } else { &at }, report);
    }
    if let [only] = list {
        let name = text(only, "name");
        report.complain(&SPEC.field("version"), name, &names::dns_1035_label(name));
    }
    if !unique {
        complain_of_all(list, &path, "must contain unique version names", report);
    }
    if list.iter().filter(|v| v["storage"] == true).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        complain_of_all(list, &path, detail, report);
    }
}

/// Upstream shows the versions in its own spelling and order, with what they have in common left out.
fn complain_of_all(list: &[Value], path: &Path<'_>, detail: &str, report: &mut Report) {
    let shown: Vec<String> = list
        .iter()
        .map(|version| {
            let flag = |key: &str| version[key] == true;
            format!(
                "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\
                 \"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\
                 \"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
                version["name"],
                flag("served"),
                flag("storage"),
                flag("deprecated"),
                version["deprecationWarning"]
            )
        })
        .collect();
    report.invalid(path, &Value::Null, "");
    if let Some(cause) = report.causes.last_mut() {
        cause.message = format!("Invalid value: [{}]: {detail}", shown.join(","));
    }
}

fn parts(version: &Value, path: &Path<'_>, report: &mut Report) {
    let scale = &version["subresources"]["scale"];
    if !scale.is_null() {
        let subresources = path.field("subresources");
        let at = subresources.field("scale");
        for (field, start) in [
            ("specReplicasPath", ".spec."),
            ("statusReplicasPath", ".status."),
        ] {
            match text(scale, field) {
                "" => report.required(&at.field(field), ""),
                value if !value.starts_with('.') => {
                    let detail = "must be a simple json path starting with .";
                    report.invalid(&at.field(field), &scale[field], detail);
                }
                value if !value.starts_with(start) => {
                    let start = start.trim_end_matches('.');
                    let detail = format!("should be a json path under {start}");
                    report.invalid(&at.field(field), &scale[field], &detail);
                }
                _ => {}
            }
        }
    }
    let columns = path.field("additionalPrinterColumns");
    for (index, column) in items(version, "additionalPrinterColumns")
        .iter()
        .enumerate()
    {
        let at = columns.index(index);
        if text(column, "name").is_empty() {
            report.required(&at.field("name"), "");
        }
        let kind = text(column, "type");
        if kind.is_empty() {
            let detail = "must be one of boolean,date,integer,number,string";
            report.required(&at.field("type"), detail);
        } else if !["boolean", "date", "integer", "number", "string"].contains(&kind) {
            let detail = "must be one of boolean,date,integer,number,string";
            report.invalid(&at.field("type"), &column["type"], detail);
        }
        if text(column, "jsonPath").is_empty() {
            report.required(&at.field("JSONPath"), "");
        }
    }
    selectable(version, path, report);
}

fn selectable(version: &Value, path: &Path<'_>, report: &mut Report) {
    let fields = path.field("selectableFields");
    for (index, field) in items(version, "selectableFields").iter().enumerate() {
        let json_path = text(field, "jsonPath");
        let mut node = &version["schema"]["openAPIV3Schema"];
        for key in json_path.split('.').filter(|key| !key.is_empty()) {
            node = &node["properties"][key];
        }
        if !json_path.starts_with('.') || node.is_null() {
            let at = fields.index(index);
            let detail = "is an invalid path: does not refer to a valid field";
            report.invalid(&at.field("jsonPath"), &field["jsonPath"], detail);
        }
    }
}

/// Versions that objects may be stored in must stay.
fn stored(crd: &Value, report: &mut Report) {
    let list = items(&crd["status"], "storedVersions");
    let path = STATUS.field("storedVersions");
    let has = |name: &str| {
        let versions = items(&crd["spec"], "versions");
        versions.iter().any(|version| text(version, "name") == name)
    };
    for (index, version) in list.iter().enumerate() {
        let name = version.as_str().unwrap_or("");
        if !has(name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {name} and removes {name} from status.storedVersions"
            );
            report.invalid(&path.index(index), version, &detail);
        }
    }
    if list.is_empty() {
        let detail = "must have at least one stored version";
        report.invalid(&path, &crd["status"]["storedVersions"], detail);
        return;
    }
    let versions = items(&crd["spec"], "versions").iter();
    for storage in versions
        .filter(|v| v["storage"] == true)
        .map(|v| text(v, "name"))
    {
        if !list.iter().any(|version| version == storage) {
            let detail = format!("must have the storage version {storage}");
            report.invalid(&path, &crd["status"]["storedVersions"], &detail);
        }
    }
}

/// What must not change: names and group always, the rest once the kinds are served.
pub(crate) fn definition_update_causes(old: &Value, new: &Value) -> Vec<Cause> {
    let mut report = Report::default();
    let (before, after) = (&old["spec"], &new["spec"]);
    let names_path = SPEC.field("names");
    let established = items(&old["status"], "conditions")
        .iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    if established {
        report.immutable(&SPEC.field("scope"), &before["scope"], &after["scope"]);
        report.immutable(
            &names_path.field("kind"),
            &before["names"]["kind"],
            &after["names"]["kind"],
        );
    }
    report.immutable(&SPEC.field("group"), &before["group"], &after["group"]);
    report.immutable(
        &names_path.field("plural"),
        &before["names"]["plural"],
        &after["names"]["plural"],
    );
    report.causes
}
