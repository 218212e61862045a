//! Services: addresses and ports on nodes.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Context, hash};

/// The first address of services, and how many there are: 10.96.0.0/12.
const FIRST_ADDRESS: u32 = 0x0a60_0000;
const ADDRESSES: u32 = 1 << 20;
/// Ports that are opened on every node.
const FIRST_PORT: u16 = 30_000;
const PORTS: u16 = 2768;
/// No more tries than this to find something free.
const TRIES_MAX: u32 = 10_000;

/// Addresses, families and ports of a new service.
pub(super) fn create(object: &mut Value, context: &Context<'_>) {
    let seed = hash(context.uid);
    let spec = &mut object["spec"];
    let kind = spec["type"].as_str().unwrap_or("").to_owned();
    if kind == "ExternalName" {
        return;
    }
    if spec["clusterIP"].is_null() {
        let given = spec["clusterIPs"][0]
            .as_str()
            .filter(|address| !address.is_empty());
        let address = given
            .map(str::to_owned)
            .or_else(|| free_address(seed, context));
        spec["clusterIP"] = address.map_or(Value::Null, Value::from);
    }
    if spec["clusterIPs"].is_null() {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    if spec["ipFamilies"].is_null() {
        let six = spec["clusterIP"]
            .as_str()
            .is_some_and(|ip| ip.contains(':'));
        spec["ipFamilies"] = json!([if six { "IPv6" } else { "IPv4" }]);
    }
    if spec["ipFamilyPolicy"].is_null() {
        spec["ipFamilyPolicy"] = json!("SingleStack");
    }
    node_ports(spec, seed, context);
}

/// What a service keeps when its new version leaves it out, and what it gets with a new type.
pub(super) fn update(old: &Value, object: &mut Value, context: &Context<'_>) {
    let before = &old["spec"];
    let spec = &mut object["spec"];
    let kind = |spec: &Value| spec["type"].as_str().unwrap_or("").to_owned();
    if kind(spec) == "ExternalName" {
        return;
    }
    let had_address = kind(before) != "ExternalName";
    if had_address {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if spec[field].is_null() {
                spec[field] = before[field].clone();
            }
        }
        if spec["clusterIP"] != before["clusterIP"] && spec["clusterIPs"] == before["clusterIPs"] {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        keep_ports(before, spec);
        let seed = hash(crate::meta::uid(old));
        node_ports(spec, seed, context);
    } else {
        create(
            object,
            &Context {
                uid: crate::meta::uid(old),
                ..*context
            },
        );
    }
}

/// Ports on nodes stay with the port they were given to.
fn keep_ports(before: &Value, spec: &mut Value) {
    if !wants_node_ports(spec) {
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            let same = |old: &&Value| old["nodePort"] == port["nodePort"];
            let inherited = before["ports"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|p| same(&p));
            if inherited && let Some(map) = port.as_object_mut() {
                map.remove("nodePort");
            }
        }
        return;
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].as_i64().unwrap_or(0) != 0 {
            continue;
        }
        let known = before["ports"].as_array().into_iter().flatten();
        let mut same =
            known.filter(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"]);
        if let Some(number) = same.find_map(|old| old["nodePort"].as_i64()) {
            port["nodePort"] = json!(number);
        }
    }
}

fn wants_node_ports(spec: &Value) -> bool {
    match spec["type"].as_str() {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

fn free_address(seed: u64, context: &Context<'_>) -> Option<String> {
    let start = u32::try_from(seed % u64::from(ADDRESSES)).unwrap_or(0);
    let address = |step: u32| {
        // The first few are for the API server, DNS and the like; the last is for broadcasts.
        let offset = 16 + (start + step) % (ADDRESSES - 32);
        Ipv4Addr::from(FIRST_ADDRESS + offset).to_string()
    };
    let mut all = (0..TRIES_MAX).map(address);
    all.find(|address| !context.lookup.is_address_taken(address))
}

fn node_ports(spec: &mut Value, seed: u64, context: &Context<'_>) {
    if !wants_node_ports(spec) {
        return;
    }
    let mut step = 0;
    let mut taken: Vec<u16> = Vec::new();
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].as_i64().unwrap_or(0) != 0 {
            continue;
        }
        while step < PORTS {
            let start = u16::try_from(seed % u64::from(PORTS)).unwrap_or(0);
            let number = FIRST_PORT + (start + step) % PORTS;
            step += 1;
            if !taken.contains(&number) && !context.lookup.is_node_port_taken(number) {
                taken.push(number);
                port["nodePort"] = json!(number);
                break;
            }
        }
    }
}
