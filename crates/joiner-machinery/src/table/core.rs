//! Rows of services, settings, namespaces, events and endpoints.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cell::{
    NONE, Shown, UNSET, count, first_few, items, labels, or_none, plain, some, text, text_or,
};
use super::{AGE, BuiltIn, Column, NAME, nodes, pods};
use crate::kinds::Kind;
use crate::meta;

/// The printer of a kind that is shown here.
pub(super) fn printer(kind: &Kind) -> Option<&'static BuiltIn> {
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => &pods::PODS,
        ("", "Node") => &nodes::NODES,
        ("", "Service") => &SERVICES,
        ("", "ConfigMap") => &CONFIG_MAPS,
        ("", "Secret") => &SECRETS,
        ("", "ServiceAccount") => &SERVICE_ACCOUNTS,
        ("", "Namespace") => &NAMESPACES,
        ("" | "events.k8s.io", "Event") => &EVENTS,
        ("", "Endpoints") => &ENDPOINTS,
        ("discovery.k8s.io", "EndpointSlice") => &ENDPOINT_SLICES,
        ("metrics.k8s.io", _) => &METRICS,
        _ => return None,
    };
    Some(found)
}

static SERVICES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Type", "How the service is reached."),
        Column::text("Cluster-IP", "Address within the cluster."),
        Column::text("External-IP", "Addresses from outside."),
        Column::text("Port(s)", "Ports and protocols."),
        AGE,
        Column::wide("Selector", "Labels of the pods behind the service."),
    ],
    |shown| {
        let spec = shown.spec();
        let cluster_ip = items(&spec["clusterIPs"])
            .first()
            .unwrap_or(&spec["clusterIP"]);
        vec![
            shown.name(),
            json!(text(&spec["type"])),
            json!(text_or(cluster_ip, NONE)),
            json!(external_ip(spec, shown.status())),
            json!(ports(&spec["ports"])),
            shown.age(),
            json!(labels(&spec["selector"])),
        ]
    },
);

fn external_ip(spec: &Value, status: &Value) -> String {
    let own: Vec<&str> = items(&spec["externalIPs"]).iter().map(text).collect();
    match text(&spec["type"]) {
        "ClusterIP" | "NodePort" => or_none(own.join(",")),
        "ExternalName" => text(&spec["externalName"]).to_owned(),
        "LoadBalancer" => {
            let ingress = items(&status["loadBalancer"]["ingress"]).iter();
            let given: BTreeSet<&str> = ingress
                .map(|i| text_or(&i["ip"], text(&i["hostname"])))
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = given.into_iter().chain(own).collect();
            match all.is_empty() {
                true => "<pending>".to_owned(),
                false => all.join(","),
            }
        }
        _ => "<unknown>".to_owned(),
    }
}

fn ports(ports: &Value) -> String {
    let port = |port: &Value| {
        let (number, protocol) = (count(&port["port"]), text_or(&port["protocol"], "TCP"));
        match count(&port["nodePort"]) {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    };
    let ports: Vec<String> = items(ports).iter().map(port).collect();
    or_none(ports.join(","))
}

static CONFIG_MAPS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Data", "How many entries there are."),
        AGE,
    ],
    |shown| {
        let entries = entries(&shown.object["data"]) + entries(&shown.object["binaryData"]);
        vec![shown.name(), json!(entries), shown.age()]
    },
);

fn entries(map: &Value) -> usize {
    map.as_object().map_or(0, serde_json::Map::len)
}

static SECRETS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Type", "What the secret is for."),
        Column::text("Data", "How many entries there are."),
        AGE,
    ],
    |shown| {
        vec![
            shown.name(),
            json!(text(&shown.object["type"])),
            json!(entries(&shown.object["data"])),
            shown.age(),
        ]
    },
);

static SERVICE_ACCOUNTS: BuiltIn =
    BuiltIn::new(&[NAME, AGE], |shown| vec![shown.name(), shown.age()]);

static NAMESPACES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Status", "Active, or on its way out."),
        AGE,
    ],
    |shown| {
        vec![
            shown.name(),
            json!(text(&shown.status()["phase"])),
            shown.age(),
        ]
    },
);

static EVENTS: BuiltIn = BuiltIn::new(
    &[
        Column::text("Last Seen", "How long ago it happened last."),
        Column::text("Type", "Normal, or Warning."),
        Column::text("Reason", "Why it happened, in one word."),
        Column::text("Object", "What it happened to."),
        Column::wide("Subobject", "Which part of it."),
        Column::wide("Source", "Who saw it."),
        Column::text("Message", "What happened."),
        Column::wide("First Seen", "How long ago it happened first."),
        Column::wide("Count", "How often it happened."),
        Column::wide("Name", "Name of the event."),
    ],
    event,
);

fn event(shown: &Shown<'_>) -> Vec<Value> {
    let event = shown.object;
    // The newer group has other names for the same fields.
    let field = |older: &str, newer: &str| some(&event[older]).unwrap_or(&event[newer]);
    let first = field("firstTimestamp", "deprecatedFirstTimestamp");
    let first = some(first).unwrap_or(&event["eventTime"]);
    let last = field("lastTimestamp", "deprecatedLastTimestamp");
    let last = some(last).unwrap_or(first);
    let (last, times) = match some(&event["series"]) {
        None => (last, count(field("count", "deprecatedCount")).max(1)),
        Some(series) => (&series["lastObservedTime"], count(&series["count"])),
    };
    let object = field("involvedObject", "regarding");
    let kind = text(&object["kind"]).to_lowercase();
    let target = match text(&object["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let source = field("source", "deprecatedSource");
    let controller = field("reportingComponent", "reportingController");
    let component = text_or(&source["component"], text(controller));
    let source = match text_or(&source["host"], text(&event["reportingInstance"])) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    vec![
        json!(shown.since(last)),
        json!(text(&event["type"])),
        json!(text(&event["reason"])),
        json!(target),
        json!(text(&object["fieldPath"])),
        json!(source),
        json!(text(field("message", "note")).trim()),
        json!(shown.since(first)),
        json!(times),
        shown.name(),
    ]
}

static ENDPOINTS: BuiltIn = BuiltIn::new(
    &[NAME, Column::text("Endpoints", "Addresses and ports."), AGE],
    |shown| {
        let subsets = items(&shown.object["subsets"]);
        let mut list = Vec::new();
        for subset in subsets {
            let addresses = items(&subset["addresses"]).iter().map(|a| text(&a["ip"]));
            match items(&subset["ports"]) {
                [] => list.extend(addresses.map(str::to_owned)),
                ports => {
                    for port in ports {
                        let port = count(&port["port"]);
                        list.extend(addresses.clone().map(|ip| host_port(ip, port)));
                    }
                }
            }
        }
        let shown_list = match subsets {
            [] => NONE.to_owned(),
            _ => first_few(&list),
        };
        vec![shown.name(), json!(shown_list), shown.age()]
    },
);

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') {
        format!("[{ip}]:{port}")
    } else {
        format!("{ip}:{port}")
    }
}

static ENDPOINT_SLICES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("AddressType", "Family of the addresses."),
        Column::text("Ports", "Ports of every endpoint."),
        Column::text("Endpoints", "Addresses of the endpoints."),
        AGE,
    ],
    |shown| {
        let port = |port: &Value| {
            plain(&port["port"]).unwrap_or_else(|| text_or(&port["name"], "*").to_owned())
        };
        let ports: Vec<String> = items(&shown.object["ports"]).iter().map(port).collect();
        let addresses: Vec<String> = items(&shown.object["endpoints"])
            .iter()
            .flat_map(|endpoint| items(&endpoint["addresses"]))
            .map(|address| text(address).to_owned())
            .collect();
        let or_unset = |list: &[String]| match list {
            [] => UNSET.to_owned(),
            list => first_few(list),
        };
        vec![
            shown.name(),
            json!(text(&shown.object["addressType"])),
            json!(or_unset(&ports)),
            json!(or_unset(&addresses)),
            shown.age(),
        ]
    },
);

static METRICS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("cpu", "CPU in use."),
        Column::text("memory", "Memory in use."),
        Column::text("Window", "How long the usage was measured for."),
    ],
    |shown| {
        // A pod's usage is told by container; with more than one there is no single figure.
        let usage = match items(&shown.object["containers"]) {
            [one] => &one["usage"],
            _ => &shown.object["usage"],
        };
        vec![
            json!(meta::name(shown.object)),
            json!(text(&usage["cpu"])),
            json!(text(&usage["memory"])),
            json!(text(&shown.object["window"])),
        ]
    },
);
