//! Services and endpoint slices.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{SPEC, items, labels, names, text};

const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

pub(super) fn check(object: &Value, report: &mut Report) {
    let spec = &object["spec"];
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports_path = SPEC.field("ports");
    let ports = items(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        report.required(&ports_path, "");
    }
    addresses(spec, kind, report);
    let mut seen = BTreeSet::new();
    for (index, one) in ports.iter().enumerate() {
        port(
            one,
            ports.len() > 1,
            &ports_path.index(index),
            &mut seen,
            report,
        );
    }
    labels(&spec["selector"], &SPEC.field("selector"), report);
    report.one_of(
        &SPEC.field("sessionAffinity"),
        &spec["sessionAffinity"],
        &["ClientIP", "None"],
    );
    if text(spec, "sessionAffinity") == "ClientIP" {
        let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
        if !seconds.as_i64().is_some_and(|n| (1..=86_400).contains(&n)) {
            let config = SPEC.field("sessionAffinityConfig");
            let client = config.field("clientIP");
            let detail = "must be greater than 0 and less than 86400";
            report.invalid(&client.field("timeoutSeconds"), seconds, detail);
        }
    }
    report.one_of(
        &SPEC.field("type"),
        &spec["type"],
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    if kind == "ClusterIP" {
        for (index, one) in ports.iter().enumerate() {
            if one["nodePort"].as_i64().is_some_and(|n| n != 0) {
                let detail = "may not be used when `type` is 'ClusterIP'";
                report.forbidden(&ports_path.index(index).field("nodePort"), detail);
            }
        }
    }
    repeated(ports, &ports_path, report);
    policies(spec, kind, report);
}

fn addresses(spec: &Value, kind: &str, report: &mut Report) {
    if kind == "ExternalName" {
        report.name(
            &SPEC.field("externalName"),
            text(spec, "externalName").trim_end_matches('.'),
            names::dns_subdomain,
        );
    }
    let path = SPEC.field("clusterIPs");
    for (index, address) in items(spec, "clusterIPs").iter().enumerate() {
        match address.as_str().unwrap_or("") {
            "None" if matches!(kind, "NodePort" | "LoadBalancer") => {
                let detail = format!("may not be set to 'None' for {kind} services");
                report.invalid(&path.index(index), address, &detail);
            }
            "None" | "" => {}
            other if other.parse::<std::net::IpAddr>().is_err() => {
                report.invalid(&path.index(index), address, ADDRESS);
            }
            _ => {}
        }
    }
    let path = SPEC.field("externalIPs");
    for (index, address) in items(spec, "externalIPs").iter().enumerate() {
        let is_address = address
            .as_str()
            .is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok());
        if !is_address {
            report.invalid(&path.index(index), address, ADDRESS);
        }
    }
}

fn port<'v>(
    port: &'v Value,
    named: bool,
    path: &Path<'_>,
    seen: &mut BTreeSet<&'v str>,
    report: &mut Report,
) {
    let name = text(port, "name");
    if named && name.is_empty() {
        report.required(&path.field("name"), "");
    } else if !name.is_empty() {
        let complaints = names::dns_label(name);
        report.complain(&path.field("name"), name, &complaints);
        if complaints.is_empty() && !seen.insert(name) {
            report.duplicate(&path.field("name"), &port["name"]);
        }
    }
    report.port(&path.field("port"), &port["port"]);
    let protocol = path.field("protocol");
    report.one_of(&protocol, &port["protocol"], &["SCTP", "TCP", "UDP"]);
    report.port_or_name(&path.field("targetPort"), &port["targetPort"]);
}

fn repeated(ports: &[Value], path: &Path<'_>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), port["port"].as_i64().unwrap_or(0));
        if !seen.insert((protocol, number)) {
            report.duplicate(&path.index(index), &Value::Null);
            if let Some(cause) = report.causes.last_mut() {
                // Upstream shows the port in its own spelling, with the key fields only.
                cause.message = format!(
                    "Duplicate value: {{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":\
                     null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
                );
            }
        }
    }
}

fn policies(spec: &Value, kind: &str, report: &mut Report) {
    let external = &spec["externalTrafficPolicy"];
    if !external.is_null() {
        let path = SPEC.field("externalTrafficPolicy");
        let reachable = matches!(kind, "NodePort" | "LoadBalancer")
            || (kind == "ClusterIP" && !items(spec, "externalIPs").is_empty());
        if reachable {
            report.one_of(&path, external, &["Cluster", "Local"]);
        } else {
            let detail = "may only be set for externally-accessible services";
            report.invalid(&path, external, detail);
        }
    }
    let internal = &spec["internalTrafficPolicy"];
    if !internal.is_null() {
        let path = SPEC.field("internalTrafficPolicy");
        report.one_of(&path, internal, &["Cluster", "Local"]);
    }
}

pub(super) fn endpoint_slice(object: &Value, report: &mut Report) {
    let path = Path::Field(&Path::Root, "addressType");
    if text(object, "addressType").is_empty() {
        report.required(&path, "");
    } else {
        report.one_of(&path, &object["addressType"], &["FQDN", "IPv4", "IPv6"]);
    }
}
