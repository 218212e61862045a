//! Kubelet settings as flags, for families that start the kubelet from a command line.

use std::collections::BTreeMap;

use super::{Bootstrap, go};

/// The flags, in upstream's order. A setting that says nothing has none.
pub(super) fn kubelet_flags(bootstrap: &Bootstrap<'_>) -> Vec<String> {
    let mut flags = Vec::new();
    flags.extend(node_labels(bootstrap.labels));
    let taints: Vec<String> = bootstrap.taints.iter().map(go::taint).collect();
    if !taints.is_empty() {
        let joined = go::quoted(&taints.join(","));
        flags.push(format!("--register-with-taints={joined}"));
    }
    flags.push(format!("--max-pods={}", bootstrap.max_pods));
    let Some(kubelet) = bootstrap.kubelet else {
        return flags;
    };
    if let Some(count) = kubelet.pods_per_core {
        flags.push(format!("--pods-per-core={count}"));
    }
    let grace = kubelet.eviction_soft_grace_period.as_ref();
    let grace: Option<BTreeMap<String, String>> = grace.map(|periods| {
        let text = |(signal, notice)| (String::clone(signal), go::duration(notice));
        periods.iter().map(text).collect()
    });
    let maps = [
        ("--system-reserved", kubelet.system_reserved.as_ref(), "="),
        ("--kube-reserved", kubelet.kube_reserved.as_ref(), "="),
        ("--eviction-hard", kubelet.eviction_hard.as_ref(), "<"),
        ("--eviction-soft", kubelet.eviction_soft.as_ref(), "<"),
        ("--eviction-soft-grace-period", grace.as_ref(), "="),
    ];
    flags.extend(maps.into_iter().filter_map(|(name, map, sign)| {
        let map = map.filter(|map| !map.is_empty())?;
        Some(format!("{name}={}", go::quoted(&joined(map, sign))))
    }));
    let numbers = [
        (
            "--eviction-max-pod-grace-period",
            kubelet.eviction_max_pod_grace_period,
        ),
        (
            "--image-gc-high-threshold",
            kubelet.image_gc_high_threshold_percent,
        ),
        (
            "--image-gc-low-threshold",
            kubelet.image_gc_low_threshold_percent,
        ),
    ];
    let given = numbers
        .into_iter()
        .filter_map(|(name, number)| Some((name, number?)));
    flags.extend(given.map(|(name, number)| format!("{name}={number}")));
    if let Some(quota) = kubelet.cpu_cfs_quota {
        flags.push(format!("--cpu-cfs-quota={quota}"));
    }
    flags
}

/// The flag for labels, if there are any.
pub(super) fn node_labels(labels: &BTreeMap<String, String>) -> Option<String> {
    let text = go::quoted(&joined(labels, "="));
    (!labels.is_empty()).then(|| format!("--node-labels={text}"))
}

fn joined(map: &BTreeMap<String, String>, sign: &str) -> String {
    let entries: Vec<String> = (map.iter())
        .map(|(key, value)| format!("{key}{sign}{value}"))
        .collect();
    entries.join(",")
}
