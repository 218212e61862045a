//! The gauge that shows where every pod is, and how it is.

use joiner_api::labels::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE};
use joiner_state::live::{LivePod, Phase, Snapshot};

use super::Emit;
use super::nodes::{NodeRow, find};

/// One series for each pod. Labels are given in order of name, which is how they are written.
pub(super) fn each(now: &Snapshot, nodes: &[NodeRow], emit: Emit<'_>) {
    for pod in now.pods() {
        let name = pod.node.as_deref();
        let node = name.and_then(|name| find(nodes, name));
        let label = |key: &str| node.and_then(|row| row.node.meta.label(key));
        let label = |key: &str| label(key).unwrap_or_default();
        let labels = [
            ("arch", label(ARCH)),
            ("capacity_type", label(CAPACITY_TYPE)),
            ("instance_type", label(INSTANCE_TYPE)),
            ("managed", word(node.is_some_and(|row| row.managed))),
            ("name", pod.own_name()),
            ("namespace", pod.namespace()),
            ("node", name.unwrap_or_default()),
            ("nodepool", label(NODE_POOL)),
            ("owner", &owner(pod)),
            ("phase", phase(pod.phase)),
            ("ready", word(pod.ready.is_some())),
            ("scheduled", word(name.is_some())),
            ("zone", label(ZONE)),
        ];
        emit(&labels, 1.0);
    }
}

const fn word(yes: bool) -> &'static str {
    if yes { "true" } else { "false" }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
        Phase::Unknown => "Unknown",
    }
}

/// The path of its owner.
fn owner(pod: &LivePod) -> String {
    let Some(owner) = &pod.owner else {
        return String::new();
    };
    let kind = owner.kind.to_ascii_lowercase();
    let (version, namespace, name) = (&owner.api_version, pod.namespace(), &owner.name);
    format!("/apis/{version}/namespaces/{namespace}/{kind}s/{name}")
}
