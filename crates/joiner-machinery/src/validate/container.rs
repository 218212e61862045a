//! Containers: names, images, ports, environment, mounts, probes, resources.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{entries, items, names, text};
use crate::quantity::Quantity;

/// What a container may refer to.
pub(super) struct Surroundings<'s> {
    pub(super) volumes: &'s BTreeSet<&'s str>,
    pub(super) claims: &'s BTreeSet<&'s str>,
    pub(super) host_network: bool,
}

/// All containers of a pod.
pub(super) fn lists(spec: &Value, path: &Path<'_>, around: &Surroundings<'_>, report: &mut Report) {
    let containers = items(spec, "containers");
    let containers_path = path.field("containers");
    if containers.is_empty() {
        report.required(&containers_path, "");
    }
    let mut seen = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for (index, one) in containers.iter().enumerate() {
        let at = containers_path.index(index);
        container(one, &at, around, report);
        unique(one, &at, &mut seen, report);
        used_ports(one, &at, &mut host_ports, report);
    }
    let init_path = path.field("initContainers");
    for (index, one) in items(spec, "initContainers").iter().enumerate() {
        let at = init_path.index(index);
        container(one, &at, around, report);
        unique(one, &at, &mut seen, report);
        let sidecar = text(one, "restartPolicy") == "Always";
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if !sidecar && !one[field].is_null() {
                report.forbidden(
                    &at.field(field),
                    "may not be set for init containers without restartPolicy=Always",
                );
            }
        }
    }
}

fn unique<'v>(
    container: &'v Value,
    path: &Path<'_>,
    seen: &mut BTreeSet<&'v str>,
    report: &mut Report,
) {
    let name = text(container, "name");
    if !name.is_empty() && !seen.insert(name) {
        report.duplicate(&path.field("name"), &container["name"]);
    }
}

fn used_ports(
    container: &Value,
    path: &Path<'_>,
    seen: &mut BTreeSet<String>,
    report: &mut Report,
) {
    let path = path.field("ports");
    for (index, port) in items(container, "ports").iter().enumerate() {
        let Some(number) = port["hostPort"].as_i64().filter(|n| *n != 0) else {
            continue;
        };
        let key = format!(
            "{}/{}/{number}",
            text(port, "protocol"),
            text(port, "hostIP")
        );
        if !seen.insert(key.clone()) {
            report.duplicate(&path.index(index).field("hostPort"), &Value::from(key));
        }
    }
}

fn container(container: &Value, path: &Path<'_>, around: &Surroundings<'_>, report: &mut Report) {
    let name = text(container, "name");
    report.name(&path.field("name"), name, names::dns_label);
    let image = text(container, "image");
    if image.is_empty() {
        report.required(&path.field("image"), "");
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        report.invalid(&path.field("image"), &container["image"], detail);
    }
    report.one_of(
        &path.field("terminationMessagePolicy"),
        &container["terminationMessagePolicy"],
        &["File", "FallbackToLogsOnError"],
    );
    if !container["restartPolicy"].is_null() {
        report.one_of(
            &path.field("restartPolicy"),
            &container["restartPolicy"],
            &["Always", "Never", "OnFailure"],
        );
    }
    ports(container, &path.field("ports"), around, report);
    environment(container, &path.field("env"), report);
    mounts(container, &path.field("volumeMounts"), around, report);
    report.one_of(
        &path.field("imagePullPolicy"),
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
    );
    let resources_path = path.field("resources");
    resources(&container["resources"], &resources_path, report);
    for (index, claim) in items(&container["resources"], "claims").iter().enumerate() {
        if !around.claims.contains(text(claim, "name")) {
            let list = resources_path.field("claims");
            report.not_found(&list.index(index).field("name"), text(claim, "name"));
        }
    }
    probes(container, path, report);
    let security = &container["securityContext"];
    if security["privileged"] == true && security["allowPrivilegeEscalation"] == false {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        report.invalid(&path.field("securityContext"), security, detail);
    }
}

fn ports(list: &Value, path: &Path<'_>, around: &Surroundings<'_>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, port) in items(list, "ports").iter().enumerate() {
        let at = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let complaints = names::port_name(name);
            report.complain(&at.field("name"), name, &complaints);
            if complaints.is_empty() && !seen.insert(name) {
                report.duplicate(&at.field("name"), &port["name"]);
            }
        }
        let number = port["containerPort"].as_i64().unwrap_or(0);
        if number == 0 {
            report.required(&at.field("containerPort"), "");
        } else {
            report.port(&at.field("containerPort"), &port["containerPort"]);
        }
        let host = port["hostPort"].as_i64().unwrap_or(0);
        if host != 0 {
            report.port(&at.field("hostPort"), &port["hostPort"]);
            if around.host_network && host != number {
                report.invalid(
                    &at.field("hostPort"),
                    &port["hostPort"],
                    "must match `containerPort` when `hostNetwork` is true",
                );
            }
        }
        let protocol = at.field("protocol");
        report.one_of(&protocol, &port["protocol"], &["SCTP", "TCP", "UDP"]);
    }
}

fn environment(container: &Value, path: &Path<'_>, report: &mut Report) {
    const SOURCES: [&str; 5] = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ];
    for (index, variable) in items(container, "env").iter().enumerate() {
        let at = path.index(index);
        report.name(&at.field("name"), text(variable, "name"), names::env_name);
        let from = &variable["valueFrom"];
        if from.is_null() {
            continue;
        }
        let from_path = at.field("valueFrom");
        let empty = Value::from("");
        if !text(variable, "value").is_empty() {
            let detail = "may not be specified when `value` is not empty";
            report.invalid(&from_path, &empty, detail);
            continue;
        }
        match SOURCES.iter().filter(|s| !from[**s].is_null()).count() {
            0 => report.invalid(
                &from_path,
                &empty,
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
                 `secretKeyRef` or `fileKeyRef`",
            ),
            1 => {}
            _ => report.invalid(
                &from_path,
                &empty,
                "may not have more than one field specified at a time",
            ),
        }
        env_source(from, &from_path, report);
    }
}

fn env_source(from: &Value, path: &Path<'_>, report: &mut Report) {
    for source in ["configMapKeyRef", "secretKeyRef"] {
        let reference = &from[source];
        if reference.is_null() {
            continue;
        }
        let at = path.field(source);
        let name = text(reference, "name");
        report.complain(&at.field("name"), name, &names::dns_subdomain(name));
        report.name(&at.field("key"), text(reference, "key"), names::config_key);
    }
    let field = text(&from["fieldRef"], "fieldPath");
    if !from["fieldRef"].is_null() && !is_pod_field(field) {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        let at = path.field("fieldRef");
        report.invalid(&at.field("fieldPath"), &Value::from(field), &detail);
    }
}

/// Fields of a pod that its containers can be told.
fn is_pod_field(field: &str) -> bool {
    matches!(
        field,
        "metadata.name"
            | "metadata.namespace"
            | "metadata.uid"
            | "spec.nodeName"
            | "spec.serviceAccountName"
            | "status.hostIP"
            | "status.hostIPs"
            | "status.podIP"
            | "status.podIPs"
    ) || ((field.starts_with("metadata.labels['") || field.starts_with("metadata.annotations['"))
        && field.ends_with("']"))
}

fn mounts(container: &Value, path: &Path<'_>, around: &Surroundings<'_>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts").iter().enumerate() {
        let at = path.index(index);
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            report.required(&at.field("name"), "");
        }
        if !around.volumes.contains(name) {
            report.not_found(&at.field("name"), name);
        }
        if place.is_empty() {
            report.required(&at.field("mountPath"), "");
        } else if !seen.insert(place) {
            report.invalid(
                &at.field("mountPath"),
                &mount["mountPath"],
                "must be unique",
            );
        }
    }
}

fn probes(container: &Value, path: &Path<'_>, report: &mut Report) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[name];
        if probe.is_null() {
            continue;
        }
        let at = path.field(name);
        handler(
            probe,
            &["exec", "httpGet", "tcpSocket", "grpc"],
            &at,
            report,
        );
        for field in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            report.not_negative(&at.field(field), &probe[field]);
        }
        let once = name != "readinessProbe";
        if once && probe["successThreshold"].as_i64().is_some_and(|n| n != 1) {
            let field = at.field("successThreshold");
            report.invalid(&field, &probe["successThreshold"], "must be 1");
        }
    }
    for name in ["postStart", "preStop"] {
        let hook = &container["lifecycle"][name];
        if !hook.is_null() {
            let lifecycle = path.field("lifecycle");
            let known = &["exec", "httpGet", "tcpSocket", "sleep"];
            handler(hook, known, &lifecycle.field(name), report);
        }
    }
}

fn handler(owner: &Value, known: &[&str], path: &Path<'_>, report: &mut Report) {
    let mut first = true;
    for name in known.iter().filter(|name| !owner[**name].is_null()) {
        let (handler, at) = (&owner[*name], path.field(name));
        if !first {
            report.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        first = false;
        match *name {
            "exec" if items(handler, "command").is_empty() => {
                report.required(&at.field("command"), "");
            }
            "httpGet" => {
                report.port_or_name(&at.field("port"), &handler["port"]);
                let scheme = at.field("scheme");
                report.one_of(&scheme, &handler["scheme"], &["HTTP", "HTTPS"]);
            }
            "tcpSocket" => report.port_or_name(&at.field("port"), &handler["port"]),
            "grpc" => report.port(&at.field("port"), &handler["port"]),
            _ => {}
        }
    }
    if first {
        report.required(path, "must specify a handler type");
    }
}

/// What a container, or a pod as a whole, asks for.
pub(super) fn resources(resources: &Value, path: &Path<'_>, report: &mut Report) {
    let mut huge = false;
    let mut plain = false;
    for list in ["limits", "requests"] {
        let list_path = path.field(list);
        for (name, amount) in entries(resources, list) {
            resource_name(name, &list_path.key(name), report);
            resource_amount(name, amount, &list_path.key(name), report);
            huge |= name.starts_with("hugepages-");
            plain |= matches!(name.as_str(), "cpu" | "memory");
        }
    }
    let requests_path = path.field("requests");
    for (name, request) in entries(resources, "requests") {
        let overcommit = is_standard(name) && !name.starts_with("hugepages-");
        let limit = &resources["limits"][name];
        if limit.is_null() {
            if !overcommit && is_resource(name) {
                let detail = "Limit must be set for non overcommitable resources";
                report.required(&path.field("limits"), detail);
            }
            continue;
        }
        let (Some(asked), Some(most)) = (Quantity::of(request), Quantity::of(limit)) else {
            continue;
        };
        let limit = limit.as_str().unwrap_or("");
        if !overcommit && asked != most {
            let detail = format!("must be equal to {name} limit of {limit}");
            report.invalid(&requests_path, request, &detail);
        } else if asked > most {
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            report.invalid(&requests_path, request, &detail);
        }
    }
    if huge && !plain {
        report.forbidden(path, "HugePages require cpu or memory");
    }
}

/// Resources of Kubernetes itself that a container may ask for.
fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

fn is_resource(name: &str) -> bool {
    is_standard(name) || name.contains('/')
}

fn resource_name(name: &str, path: &Path<'_>, report: &mut Report) {
    let complaints = names::qualified(name);
    report.complain(path, name, &complaints);
    if !complaints.is_empty() || name.contains('/') || is_standard(name) {
        return;
    }
    let known = matches!(
        name,
        "pods" | "services" | "storage" | "secrets" | "configmaps" | "persistentvolumeclaims"
    );
    if !known {
        let detail = "must be a standard resource type or fully qualified";
        report.invalid(path, &Value::from(name), detail);
    }
    let detail = "must be a standard resource for containers";
    report.invalid(path, &Value::from(name), detail);
}

fn resource_amount(name: &str, amount: &Value, path: &Path<'_>, report: &mut Report) {
    let Some(quantity) = Quantity::of(amount) else {
        return;
    };
    if quantity.is_negative() {
        report.invalid(path, amount, "must be greater than or equal to 0");
    }
    if name.contains('/') && !quantity.is_whole() {
        report.invalid(path, amount, "must be an integer");
    }
}
