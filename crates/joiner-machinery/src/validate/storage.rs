//! Claims, volumes, storage classes and what attaches them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{SPEC, items, names, scheduling, selector, text};
use crate::quantity::Quantity;

const MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

fn access_modes(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let modes = items(spec, "accessModes");
    for mode in modes {
        report.one_of(path, mode, MODES);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let detail = "may not use ReadWriteOncePod with other access modes";
        report.forbidden(path, detail);
    }
}

/// The spec of a claim.
pub(super) fn claim(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let modes = path.field("accessModes");
    if items(spec, "accessModes").is_empty() {
        report.required(&modes, "at least 1 access mode is required");
    }
    if !spec["selector"].is_null() {
        selector(&spec["selector"], &path.field("selector"), report);
    }
    access_modes(spec, &modes, report);
    let storage = &spec["resources"]["requests"]["storage"];
    let resources = path.field("resources");
    let at = resources.key("storage");
    match Quantity::of(storage) {
        None => report.required(&at, ""),
        Some(amount) if amount.is_negative() || amount.is_zero() => {
            report.invalid(&at, storage, "must be greater than zero");
        }
        Some(_) => {}
    }
    class_name(spec, path, report);
    volume_mode(spec, path, report);
}

fn class_name(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        let at = path.field("storageClassName");
        report.complain(&at, class, &names::dns_subdomain(class));
    }
}

fn volume_mode(spec: &Value, path: &Path<'_>, report: &mut Report) {
    if !spec["volumeMode"].is_null() {
        let at = path.field("volumeMode");
        report.one_of(&at, &spec["volumeMode"], &["Block", "Filesystem"]);
    }
}

/// Fields of a volume's spec that say where it is.
pub(super) const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "scaleIO",
    "local",
    "csi",
];

/// The spec of a volume.
pub(super) fn volume(spec: &Value, report: &mut Report) {
    let modes = SPEC.field("accessModes");
    if items(spec, "accessModes").is_empty() {
        report.required(&modes, "");
    }
    access_modes(spec, &modes, report);
    let capacity = &spec["capacity"];
    let at = SPEC.field("capacity");
    let size = capacity.as_object().map_or(0, serde_json::Map::len);
    if size == 0 {
        report.required(&at, "");
    }
    if size != 1 || capacity["storage"].is_null() {
        report.unsupported(&at, "", &["storage"]);
        if let Some(cause) = report.causes.last_mut() {
            cause.message = format!("Unsupported value: {capacity}: supported values: \"storage\"");
        }
    } else if Quantity::of(&capacity["storage"]).is_some_and(|q| q.is_negative() || q.is_zero()) {
        let detail = "must be greater than zero";
        report.invalid(&at.key("storage"), &capacity["storage"], detail);
    }
    if !text(spec, "persistentVolumeReclaimPolicy").is_empty() {
        report.one_of(
            &SPEC.field("persistentVolumeReclaimPolicy"),
            &spec["persistentVolumeReclaimPolicy"],
            &["Delete", "Recycle", "Retain"],
        );
    }
    let affinity = &spec["nodeAffinity"];
    if !affinity.is_null() {
        let path = SPEC.field("nodeAffinity");
        if affinity["required"].is_null() {
            let detail = "must specify required node constraints";
            report.required(&path.field("required"), detail);
        } else {
            scheduling::node_selector(&affinity["required"], &path.field("required"), report);
        }
    }
    volume_source(spec, report);
    class_name(spec, &SPEC, report);
    volume_mode(spec, &SPEC, report);
}

fn volume_source(spec: &Value, report: &mut Report) {
    let mut first = true;
    for name in SOURCES.iter().filter(|name| !spec[**name].is_null()) {
        let at = SPEC.field(name);
        if !first {
            report.forbidden(&at, "may not specify more than 1 volume type");
            continue;
        }
        first = false;
        let needed: &[&str] = match *name {
            "hostPath" | "local" => &["path"],
            "csi" => &["driver", "volumeHandle"],
            _ => &[],
        };
        for field in needed
            .iter()
            .filter(|field| text(&spec[*name], field).is_empty())
        {
            report.required(&at.field(field), "");
        }
    }
    if first {
        report.required(&SPEC, "must specify a volume type");
    }
}

pub(super) fn class(object: &Value, report: &mut Report) {
    let at = |field| Path::Field(&Path::Root, field);
    let provisioner = text(object, "provisioner").to_lowercase();
    report.name(&at("provisioner"), &provisioner, names::qualified);
    if !text(object, "reclaimPolicy").is_empty() {
        report.one_of(
            &at("reclaimPolicy"),
            &object["reclaimPolicy"],
            &["Delete", "Retain"],
        );
    }
    report.one_of(
        &at("volumeBindingMode"),
        &object["volumeBindingMode"],
        &["Immediate", "WaitForFirstConsumer"],
    );
}

pub(super) fn attachment(spec: &Value, report: &mut Report) {
    if text(spec, "attacher").is_empty() {
        report.required(&SPEC.field("attacher"), "");
    }
    let source = &spec["source"];
    let count = ["inlineVolumeSpec", "persistentVolumeName"]
        .iter()
        .filter(|field| !source[**field].is_null())
        .count();
    if count != 1 {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        report.required(&SPEC.field("source"), detail);
    }
    let node = text(spec, "nodeName");
    report.complain(&SPEC.field("nodeName"), node, &names::dns_subdomain(node));
}

pub(super) fn csi_node(spec: &Value, report: &mut Report) {
    let path = SPEC.field("drivers");
    let mut seen = BTreeSet::new();
    for (index, driver) in items(spec, "drivers").iter().enumerate() {
        let at = path.index(index);
        for field in ["name", "nodeID"] {
            if text(driver, field).is_empty() {
                report.required(&at.field(field), "");
            }
        }
        let name = text(driver, "name");
        if !name.is_empty() && !seen.insert(name) {
            report.duplicate(&at.field("name"), &driver["name"]);
        }
    }
}
