//! Which taints do a node's conditions call for?

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields::condition;
use crate::scheduler::NODES;
use crate::scheduler::labels::items;
use crate::view::Action;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Conditions that keep new pods away while they hold.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    (
        "NetworkUnavailable",
        "node.kubernetes.io/network-unavailable",
    ),
];

/// Puts on what is missing and takes off what is not called for any more; nothing when all is well.
pub(crate) fn update(node: &Value, now: Timestamp) -> Option<Action> {
    let wanted = wanted(node);
    let is = |taint: &Value, (key, effect): (&str, &str)| {
        taint["key"] == key && taint["effect"] == effect
    };
    let foreign_or_wanted = |taint: &&Value| {
        let key = taint["key"].as_str().unwrap_or("");
        !is_ours(key) || wanted.iter().any(|one| is(taint, *one))
    };
    let kept: Vec<&Value> = items(&node["spec"]["taints"])
        .filter(foreign_or_wanted)
        .collect();
    let missing = wanted
        .iter()
        .filter(|one| !kept.iter().any(|taint| is(taint, **one)));
    let added = missing
        .map(|(key, effect)| json!({"key": key, "effect": effect, "timeAdded": meta::time(now)}));
    let all: Vec<Value> = kept
        .iter()
        .map(|taint| (*taint).clone())
        .chain(added)
        .collect();
    let same = all.iter().eq(items(&node["spec"]["taints"]));
    (!same).then(|| {
        let change = json!({
            "metadata": {"resourceVersion": meta::text(node, "resourceVersion")},
            "spec": {"taints": if all.is_empty() { Value::Null } else { Value::Array(all) }},
        });
        crate::fields::patch(NODES, node, change)
    })
}

fn is_ours(key: &str) -> bool {
    [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key)
        || PRESSURES.iter().any(|(_, own)| *own == key)
}

fn wanted(node: &Value) -> Vec<(&'static str, &'static str)> {
    let status = |kind: &str| condition(node, kind).and_then(|one| one["status"].as_str());
    let mut wanted = Vec::new();
    match status("Ready") {
        Some("True") => {}
        Some("Unknown") => {
            wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]);
        }
        Some(_) => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        None => wanted.push((NOT_READY, "NoSchedule")),
    }
    for (kind, key) in PRESSURES {
        if status(kind) == Some("True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if node["spec"]["unschedulable"] == true {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    wanted
}
