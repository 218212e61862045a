//! What is wrong with the kubelet settings of a class. The schema takes any; the controller tells.

use std::collections::{BTreeMap, BTreeSet};

use joiner_api::types::{AmiFamily, Kubelet, MaxPods};
use serde_json::Value;

use crate::family;

const SIGNALS: [&str; 6] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];
const RESOURCES: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];
/// Suffixes of quantities.
const SUFFIXES: [&str; 15] = [
    "", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "n",
];

/// Everything that no kubelet takes, each naming its field.
#[must_use]
pub fn problems(kubelet: &Kubelet) -> Vec<String> {
    let mut problems = Vec::new();
    if kubelet.other.contains_key("registerWithTaints") {
        problems.push(told(
            "registerWithTaints",
            "is set by the controller; use spec.template.spec.taints of the NodePool",
        ));
    }
    let empty = BTreeMap::new();
    let soft = kubelet.eviction_soft.as_ref().unwrap_or(&empty);
    for (field, map) in [
        (
            "evictionHard",
            kubelet.eviction_hard.as_ref().unwrap_or(&empty),
        ),
        ("evictionSoft", soft),
        (
            "evictionMinimumReclaim",
            &texts(kubelet.other.get("evictionMinimumReclaim")),
        ),
    ] {
        for (signal, threshold) in map {
            problems.extend(known_signal(field, signal));
            if !is_threshold(threshold) {
                let what = format!("is {threshold:?}; write a percentage up to 100% or a quantity");
                problems.push(told(&format!("{field}[{signal}]"), &what));
            }
        }
    }
    let grace = kubelet.eviction_soft_grace_period.iter().flatten();
    let mut graced = BTreeSet::new();
    for (signal, period) in grace {
        graced.insert(signal);
        let field = "evictionSoftGracePeriod";
        problems.extend(known_signal(field, signal));
        if !matches!(period.parse(), Ok(Some(_))) {
            let what = format!("is {:?}; write a duration such as 1m30s", period.as_str());
            problems.push(told(&format!("{field}[{signal}]"), &what));
        }
    }
    for signal in soft.keys().filter(|signal| !graced.contains(signal)) {
        problems.push(told(
            &format!("evictionSoft[{signal}]"),
            "has no evictionSoftGracePeriod; add one",
        ));
    }
    for signal in graced
        .into_iter()
        .filter(|signal| !soft.contains_key(*signal))
    {
        problems.push(told(
            &format!("evictionSoftGracePeriod[{signal}]"),
            "has no evictionSoft; add it",
        ));
    }
    for (field, map) in [
        ("kubeReserved", &kubelet.kube_reserved),
        ("systemReserved", &kubelet.system_reserved),
    ] {
        for (resource, amount) in map.iter().flatten() {
            if !RESOURCES.contains(&resource.as_str()) {
                let what = format!(
                    "is no resource that can be reserved; there are {}",
                    RESOURCES.join(", ")
                );
                problems.push(told(&format!("{field}[{resource}]"), &what));
            }
            if amount.trim_start().starts_with('-') {
                problems.push(told(&format!("{field}[{resource}]"), "is negative"));
            }
        }
    }
    problems.extend(numbers(kubelet));
    problems
}

fn told(field: &str, what: &str) -> String {
    format!("spec.kubelet.{field} {what}")
}

fn known_signal(field: &str, signal: &str) -> Option<String> {
    let what = || format!("is no signal; there are {}", SIGNALS.join(", "));
    (!SIGNALS.contains(&signal)).then(|| told(&format!("{field}[{signal}]"), &what()))
}

fn numbers(kubelet: &Kubelet) -> Vec<String> {
    let mut problems = Vec::new();
    let max_pods = match kubelet.max_pods {
        Some(MaxPods::Number(count)) => Some(count),
        Some(MaxPods::Expression(_)) | None => None,
    };
    let high = kubelet.image_gc_high_threshold_percent;
    let low = kubelet.image_gc_low_threshold_percent;
    for (field, number) in [
        ("maxPods", max_pods),
        ("podsPerCore", kubelet.pods_per_core.map(i64::from)),
        (
            "evictionMaxPodGracePeriod",
            kubelet.eviction_max_pod_grace_period.map(i64::from),
        ),
    ] {
        if number.is_some_and(|number| number < 0) {
            problems.push(told(field, "is negative"));
        }
    }
    for (field, percent) in [
        ("imageGCHighThresholdPercent", high),
        ("imageGCLowThresholdPercent", low),
    ] {
        if percent.is_some_and(|percent| !(0..=100).contains(&percent)) {
            problems.push(told(field, "is no percentage between 0 and 100"));
        }
    }
    if let (Some(high), Some(low)) = (high, low)
        && high <= low
    {
        let what = "is not above imageGCLowThresholdPercent; raise it";
        problems.push(told("imageGCHighThresholdPercent", what));
    }
    problems
}

/// The texts of a map; what is no text is shown as JSON has it, and is no threshold.
fn texts(value: Option<&Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let map = value.and_then(Value::as_object);
    let entries = map.into_iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

/// A percentage up to 100, or a quantity that is not negative.
fn is_threshold(text: &str) -> bool {
    if let Some(percent) = text.strip_suffix('%') {
        let number = percent.parse::<f64>();
        return number.is_ok_and(|number| (0.0..=100.0).contains(&number));
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    number.parse::<f64>().is_ok() && SUFFIXES.contains(&suffix)
}

/// The first setting that nodes of a family do not get, if any.
#[must_use]
pub fn unsupported(kubelet: &Kubelet, family: AmiFamily) -> Option<String> {
    let is_bottlerocket = family == AmiFamily::Bottlerocket;
    let is_limited = match family {
        AmiFamily::Al2023 | AmiFamily::Custom => return None,
        AmiFamily::Al2 | AmiFamily::Bottlerocket => true,
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            family::is_windows(family)
        }
    };
    let way_out = "remove it, or use the AL2023 family";
    let refuse = |field: &str| {
        let what = format!("has no effect on nodes of the {family} family; {way_out}");
        Some(told(field, &what))
    };
    if let Some(field) = kubelet.other.keys().next().filter(|_| is_limited) {
        return refuse(field);
    }
    if is_bottlerocket && kubelet.pods_per_core.is_some_and(|count| count > 0) {
        return refuse("podsPerCore");
    }
    let n_dns = kubelet.cluster_dns.as_ref().map_or(0, Vec::len);
    let what =
        format!("has {n_dns} entries, and nodes of the {family} family take one; keep the first");
    (n_dns > 1).then(|| told("clusterDNS", &what))
}
