//! Nodes as rows: state, roles, and what runs on them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cell::{NONE, Shown, condition, items, or_none, text, text_or};
use super::{AGE, BuiltIn, Column, NAME};

pub(super) static NODES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Status", "Whether the node is ready and takes pods."),
        Column::text("Roles", "Roles of the node, from its labels."),
        AGE,
        Column::text("Version", "Version of the kubelet."),
        Column::wide("Internal-IP", "Address within the cluster."),
        Column::wide("External-IP", "Address for the rest of the world."),
        Column::wide("OS-Image", "Operating system of the node."),
        Column::wide("Kernel-Version", "Version of the kernel."),
        Column::wide(
            "Container-Runtime",
            "What runs the containers, and its version.",
        ),
    ],
    cells,
);

fn cells(shown: &Shown<'_>) -> Vec<Value> {
    let info = &shown.status()["nodeInfo"];
    let known = |field: &str| text_or(&info[field], "<unknown>").to_owned();
    let kernel = match text(&info["architecture"]) {
        "" => known("kernelVersion"),
        architecture => format!("{} ({architecture})", known("kernelVersion")),
    };
    vec![
        shown.name(),
        json!(status(shown)),
        json!(roles(shown.object)),
        shown.age(),
        json!(text(&info["kubeletVersion"])),
        json!(address(shown.status(), "InternalIP")),
        json!(address(shown.status(), "ExternalIP")),
        json!(known("osImage")),
        json!(kernel),
        json!(known("containerRuntimeVersion")),
    ]
}

fn status(shown: &Shown<'_>) -> String {
    let ready = match condition(shown.status(), "Ready") {
        "True" => "Ready",
        "" => "Unknown",
        _ => "NotReady",
    };
    if shown.spec()["unschedulable"] == Value::Bool(true) {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

fn roles(node: &Value) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in node["metadata"]["labels"].as_object().into_iter().flatten() {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => text(value),
            None => "",
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    or_none(roles.into_iter().collect::<Vec<_>>().join(","))
}

fn address<'v>(status: &'v Value, of: &str) -> &'v str {
    let found = items(&status["addresses"]).iter().find(|a| a["type"] == of);
    found.map_or(NONE, |address| text(&address["address"]))
}
