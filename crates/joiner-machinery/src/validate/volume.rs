//! Volumes of a pod.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{items, names, text};

/// Looks at all volumes; returns their names.
pub(super) fn list<'v>(spec: &'v Value, path: &Path<'_>, report: &mut Report) -> BTreeSet<&'v str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in items(spec, "volumes").iter().enumerate() {
        let at = path.index(index);
        let name = text(volume, "name");
        let before = report.causes.len();
        report.name(&at.field("name"), name, names::dns_label);
        if report.causes.len() == before && !seen.insert(name) {
            report.duplicate(&at.field("name"), &volume["name"]);
        }
        source(volume, &at, report);
    }
    seen
}

fn source(volume: &Value, path: &Path<'_>, report: &mut Report) {
    // Upstream looks at sources in its own order, and refuses every one after the first.
    const ORDER: &[&str] = &[
        "emptyDir",
        "hostPath",
        "gitRepo",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "secret",
        "nfs",
        "iscsi",
        "glusterfs",
        "flocker",
        "persistentVolumeClaim",
        "rbd",
        "cinder",
        "cephfs",
        "quobyte",
        "downwardAPI",
        "fc",
        "flexVolume",
        "configMap",
        "azureFile",
        "vsphereVolume",
        "photonPersistentDisk",
        "portworxVolume",
        "azureDisk",
        "storageos",
        "projected",
        "scaleIO",
        "csi",
        "ephemeral",
        "image",
    ];
    let mut first = true;
    for name in ORDER.iter().filter(|name| !volume[**name].is_null()) {
        let at = path.field(name);
        if !first {
            report.forbidden(&at, "may not specify more than 1 volume type");
            continue;
        }
        first = false;
        let source = &volume[*name];
        let field = match *name {
            "secret" => "secretName",
            "configMap" => "name",
            "persistentVolumeClaim" => "claimName",
            "hostPath" => "path",
            "csi" => "driver",
            "nfs" => "server",
            _ => continue,
        };
        let value = text(source, field);
        if value.is_empty() {
            report.required(&at.field(field), "");
        } else if *name == "hostPath" && value.split('/').any(|part| part == "..") {
            report.invalid(&at.field(field), &source[field], "must not contain '..'");
        }
    }
    if first {
        report.required(path, "must specify a volume type");
    }
}
