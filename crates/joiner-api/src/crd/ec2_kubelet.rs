//! Kubelet settings of EC2NodeClass.
//!
//! Two shapes are in use: twelve checked fields, and an open map of any kubelet setting in which
//! some values are expressions. The schema takes both: known fields are checked, others are kept.

use super::build::{Field, boolean, int_or_string, int32, list, object, string, string_map};
use serde_json::json;

const RESERVABLE: &[&str] = &["cpu", "memory", "ephemeral-storage", "pid"];

const SIGNALS: &[&str] = &[
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

/// Settings of the kubelet in a node class.
pub(super) fn kubelet() -> Field {
    let description =
        "Settings of the kubelet. Fields that are not listed here are passed on unchecked.";
    settings(object(description).with("x-kubernetes-preserve-unknown-fields", true))
}

/// Adds the settings that every version has.
pub(super) fn settings(base: Field) -> Field {
    base.field(
        "clusterDNS",
        list("Addresses of the cluster's DNS.", string("An IP address.")),
    )
    .field(
        "maxPods",
        int_or_string("Most pods on a node: a number, or an expression over the type.").at_least(0),
    )
    .field("podsPerCore", int32("Most pods per processor.").at_least(0))
    .field(
        "systemReserved",
        reserved("Kept for daemons of the system."),
    )
    .field("kubeReserved", reserved("Kept for daemons of Kubernetes."))
    .field(
        "evictionHard",
        eviction("Thresholds at which pods go without notice."),
    )
    .field(
        "evictionSoft",
        eviction("Thresholds at which pods go with notice."),
    )
    .field(
        "evictionSoftGracePeriod",
        eviction("The notice for each soft threshold."),
    )
    .field(
        "evictionMaxPodGracePeriod",
        int32("Longest notice for a pod, in seconds."),
    )
    .field(
        "imageGCHighThresholdPercent",
        int32("Disk usage at which images are collected.").range(0, 100),
    )
    .field(
        "imageGCLowThresholdPercent",
        int32("Disk usage down to which images are collected.").range(0, 100),
    )
    .field("cpuCFSQuota", boolean("Whether CPU limits are enforced."))
    .rule(
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || \
             self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",
        "imageGCHighThresholdPercent must be above imageGCLowThresholdPercent",
    )
    .rule(
        covers("evictionSoft", "evictionSoftGracePeriod"),
        "every evictionSoft signal needs an evictionSoftGracePeriod",
    )
    .rule(
        covers("evictionSoftGracePeriod", "evictionSoft"),
        "every evictionSoftGracePeriod signal needs an evictionSoft threshold",
    )
}

/// Every key of one map is a key of the other.
fn covers(map: &str, other: &str) -> String {
    format!(
        "!has(self.{map}) || size(self.{map}) == 0 || \
         (has(self.{other}) && self.{map}.all(k, k in self.{other}))"
    )
}

fn keys_in(keys: &[&str]) -> (String, String) {
    let quoted = keys
        .iter()
        .map(|key| format!("'{key}'"))
        .collect::<Vec<_>>()
        .join(", ");
    (
        format!("self.all(k, k in [{quoted}])"),
        format!("keys can be {}", keys.join(", ")),
    )
}

fn reserved(description: &str) -> Field {
    string_map(description).rules(vec![
        keys_in(RESERVABLE),
        (
            "self.all(k, !self[k].startsWith('-'))".to_owned(),
            "amounts cannot be negative".to_owned(),
        ),
    ])
}

fn eviction(description: &str) -> Field {
    string_map(description)
        .rules(vec![keys_in(SIGNALS)])
        .with("maxProperties", json!(SIGNALS.len()))
}
