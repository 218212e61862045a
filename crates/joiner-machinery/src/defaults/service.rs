//! Defaults of services and what they lead to.

use serde_json::{Map, Value, json};

use super::{items, put, text, under};

pub(super) fn service(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "sessionAffinity", "None");
        match text(spec, "sessionAffinity") {
            "None" => {
                spec.remove("sessionAffinityConfig");
            }
            "ClientIP" => {
                let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
                let seconds = spec
                    .get("sessionAffinityConfig")
                    .map(|config| &config["clientIP"]["timeoutSeconds"]);
                if seconds.is_none_or(Value::is_null) {
                    spec.insert("sessionAffinityConfig".to_owned(), config);
                }
            }
            _ => {}
        }
        put(spec, "type", "ClusterIP");
        for port in items(spec, "ports") {
            put(port, "protocol", "TCP");
            let unset = port
                .get("targetPort")
                .is_none_or(|target| *target == 0 || *target == "");
            if unset && let Some(number) = port.get("port").cloned() {
                port.insert("targetPort".to_owned(), number);
            }
        }
        let kind = text(spec, "type").to_owned();
        let outside = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
            || (kind == "ClusterIP" && spec.contains_key("externalIPs"));
        if outside {
            put(spec, "externalTrafficPolicy", "Cluster");
        }
        if kind != "ExternalName" {
            put(spec, "internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            put(spec, "allocateLoadBalancerNodePorts", true);
        }
    });
}

pub(super) fn endpoints(map: &mut Map<String, Value>) {
    for subset in items(map, "subsets") {
        for port in items(subset, "ports") {
            put(port, "protocol", "TCP");
        }
    }
}

pub(super) fn endpoint_slice(map: &mut Map<String, Value>) {
    for port in items(map, "ports") {
        put(port, "name", "");
        put(port, "protocol", "TCP");
    }
}
