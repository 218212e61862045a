//! Nodes, namespaces, config maps and secrets.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{SPEC, entries, items, names, scheduling, text};
use crate::quantity::Quantity;

/// A node. Its taints are complained about under `metadata`, as upstream does.
pub(super) fn check(object: &Value, report: &mut Report) {
    taints(object, report);
    let status = Path::Field(&Path::Root, "status");
    for list in ["capacity", "allocatable"] {
        let path = status.field(list);
        for (name, amount) in entries(&object["status"], list) {
            if Quantity::of(amount).is_some_and(Quantity::is_negative) {
                let detail = "must be greater than or equal to 0";
                report.invalid(&path.field(name), amount, detail);
            }
        }
    }
    let path = SPEC.field("podCIDRs");
    for (index, range) in items(&object["spec"], "podCIDRs").iter().enumerate() {
        if !is_range(range.as_str().unwrap_or("")) {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            report.invalid(&path.index(index), range, detail);
        }
    }
}

/// An address, a slash, a number of bits.
fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 32,
        Ok(std::net::IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

pub(super) fn taints(object: &Value, report: &mut Report) {
    let metadata = Path::Field(&Path::Root, "metadata");
    let path = metadata.field("taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in items(&object["spec"], "taints").iter().enumerate() {
        let at = path.index(index);
        let (key, value) = (text(taint, "key"), text(taint, "value"));
        let effect = text(taint, "effect");
        report.complain(&at.field("key"), key, &names::qualified(key));
        report.complain(&at.field("value"), value, &names::label_value(value));
        if effect.is_empty() {
            report.required(&at.field("effect"), "");
        } else {
            report.one_of(&at.field("effect"), &taint["effect"], scheduling::EFFECTS);
        }
        if !seen.insert((key, effect)) {
            report.duplicate(&at, &Value::Null);
            if let Some(cause) = report.causes.last_mut() {
                // Upstream shows the taint in its own spelling.
                let added = &taint["timeAdded"];
                cause.message = format!(
                    "Duplicate value: {{\"Key\":{key:?},\"Value\":{value:?},\"Effect\":{effect:?},\
                     \"TimeAdded\":{added}}}: taints must be unique by key and effect pair"
                );
            }
        }
    }
}

pub(super) fn namespace(object: &Value, report: &mut Report) {
    let path = SPEC.field("finalizers");
    for finalizer in items(&object["spec"], "finalizers") {
        let name = finalizer.as_str().unwrap_or("");
        let complaints = names::qualified(name);
        report.complain(&path, name, &complaints);
        if complaints.is_empty() && name != "kubernetes" && !name.contains('/') {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            report.invalid(&path, finalizer, detail);
        }
    }
}

/// Most bytes in a ConfigMap or Secret.
const BYTES_MAX: usize = 1024 * 1024;

fn keys(object: &Value, field: &'static str, report: &mut Report) -> usize {
    let path = Path::Field(&Path::Root, field);
    let mut bytes = 0;
    for (key, value) in entries(object, field) {
        report.complain(&path.key(key), key, &names::config_key(key));
        bytes += value.as_str().map_or(0, str::len);
    }
    bytes
}

pub(super) fn config_map(object: &Value, report: &mut Report) {
    let data = Path::Field(&Path::Root, "data");
    for (key, _) in entries(object, "data") {
        if !object["binaryData"][key].is_null() {
            let detail = "duplicate of key present in binaryData";
            report.invalid(&data.key(key), &Value::from(key.as_str()), detail);
        }
    }
    let bytes = keys(object, "data", report) + keys(object, "binaryData", report) * 3 / 4;
    if bytes > BYTES_MAX {
        // Upstream's name for the whole of it.
        report.too_long(&Path::Field(&Path::Root, "[]"), BYTES_MAX);
    }
}

pub(super) fn secret(object: &Value, report: &mut Report) {
    let path = Path::Field(&Path::Root, "data");
    let bytes = keys(object, "data", report) * 3 / 4;
    if bytes > BYTES_MAX {
        report.too_long(&path, BYTES_MAX);
    }
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            if crate::meta::annotation(object, name).is_none_or(str::is_empty) {
                let metadata = Path::Field(&Path::Root, "metadata");
                report.required(&metadata.field("annotations").key(name), "");
            }
            &[]
        }
        _ => &[],
    };
    for key in needed.iter().filter(|key| object["data"][**key].is_null()) {
        report.required(&path.key(key), "");
    }
}
