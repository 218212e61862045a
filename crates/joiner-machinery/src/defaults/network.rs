//! Defaults of what is said about networks.

use serde_json::{Map, Value, json};

use super::{existing, items, put};

pub(super) fn ingress_class(map: &mut Map<String, Value>) {
    let spec = existing(map, "spec");
    if let Some(parameters) = spec.and_then(|spec| existing(spec, "parameters")) {
        put(parameters, "scope", "Cluster");
    }
}

pub(super) fn policy(map: &mut Map<String, Value>) {
    let Some(spec) = existing(map, "spec") else {
        return;
    };
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            for port in items(rule, "ports") {
                put(port, "protocol", "TCP");
            }
        }
    }
    // Who does not say which way is meant means what comes in, and what goes out if there are rules.
    let types = if items(spec, "egress").next().is_some() {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    put(spec, "policyTypes", types);
}
