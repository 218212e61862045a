//! Kubelet settings that were part of pools.

use crate::crd::build::{Field, int_or_string, int32, map, object, string};
use crate::crd::ec2_kubelet::settings;
use crate::crd::patterns::QUANTITY;

/// The settings that pools had until v1beta1. Amounts could be numbers.
pub(super) fn kubelet() -> Field {
    settings(object("Settings of the kubelet."))
        .field("maxPods", int32("Most pods on a node.").at_least(0))
        .field(
            "systemReserved",
            reserved("Kept for daemons of the system."),
        )
        .field("kubeReserved", reserved("Kept for daemons of Kubernetes."))
}

/// The same in v1alpha5, with a setting that had its last effect with dockershim.
pub(super) fn with_runtime() -> Field {
    kubelet().field("containerRuntime", string("What runs containers."))
}

fn reserved(description: &str) -> Field {
    let amount = int_or_string("An amount such as 100m.").pattern(QUANTITY);
    map(description, amount)
        .rule(
            "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",
            "keys can be cpu, memory, ephemeral-storage, pid",
        )
        .rule(
            "self.all(k, !string(self[k]).startsWith('-'))",
            "amounts cannot be negative",
        )
}
