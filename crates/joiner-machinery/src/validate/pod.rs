//! Pods, and the pod templates in workloads.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{SPEC, container, items, labels, names, scheduling, text, volume};

/// A pod of its own.
pub(super) fn check(object: &Value, report: &mut Report) {
    spec(&object["spec"], &SPEC, report);
    let spec = &object["spec"];
    if !text(spec, "nodeName").is_empty() && !items(spec, "schedulingGates").is_empty() {
        report.forbidden(
            &SPEC.field("nodeName"),
            "cannot be set until all schedulingGates have been cleared",
        );
    }
}

/// A template: labels and spec.
pub(super) fn template(template: &Value, path: &Path<'_>, report: &mut Report) {
    // Upstream leaves `metadata` out of the path of a template's labels.
    labels(
        &template["metadata"]["labels"],
        &path.field("labels"),
        report,
    );
    spec(&template["spec"], &path.field("spec"), report);
}

/// A spec of a pod, wherever it is.
fn spec(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let volumes = volume::list(spec, &path.field("volumes"), report);
    let claims: BTreeSet<&str> = items(spec, "resourceClaims")
        .iter()
        .map(|claim| text(claim, "name"))
        .collect();
    let surroundings = container::Surroundings {
        volumes: &volumes,
        claims: &claims,
        host_network: spec["hostNetwork"] == true,
    };
    container::lists(spec, path, &surroundings, report);
    report.one_of(
        &path.field("restartPolicy"),
        &spec["restartPolicy"],
        &["Always", "OnFailure", "Never"],
    );
    report.one_of(
        &path.field("dnsPolicy"),
        &spec["dnsPolicy"],
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    labels(&spec["nodeSelector"], &path.field("nodeSelector"), report);
    security(
        &spec["securityContext"],
        &path.field("securityContext"),
        report,
    );
    scheduling::affinity(&spec["affinity"], &path.field("affinity"), report);
    for (field, form) in [
        (
            "serviceAccountName",
            names::dns_subdomain as fn(&str) -> Vec<String>,
        ),
        ("nodeName", names::dns_subdomain),
        ("hostname", names::dns_label),
        ("subdomain", names::dns_label),
        ("priorityClassName", names::dns_subdomain),
        ("runtimeClassName", names::dns_subdomain),
    ] {
        let value = text(spec, field);
        if !value.is_empty() {
            report.complain(&path.field(field), value, &form(value));
        }
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        let value = &spec["activeDeadlineSeconds"];
        if !value
            .as_i64()
            .is_some_and(|n| (1..=i64::from(i32::MAX)).contains(&n))
        {
            let detail = "must be between 1 and 2147483647, inclusive";
            report.invalid(&path.field("activeDeadlineSeconds"), value, detail);
        }
    }
    scheduling::tolerations(spec, &path.field("tolerations"), report);
    host_aliases(spec, &path.field("hostAliases"), report);
    readiness_gates(spec, &path.field("readinessGates"), report);
    scheduling::gates(spec, &path.field("schedulingGates"), report);
    let spread = path.field("topologySpreadConstraints");
    scheduling::spread(items(spec, "topologySpreadConstraints"), &spread, report);
    let os = &spec["os"];
    if !os.is_null() {
        report.one_of(&path.field("os"), &os["name"], &["linux", "windows"]);
    }
    if !spec["resources"].is_null() {
        container::resources(&spec["resources"], &path.field("resources"), report);
    }
}

fn security(context: &Value, path: &Path<'_>, report: &mut Report) {
    for field in ["runAsUser", "runAsGroup", "fsGroup"] {
        let value = &context[field];
        let fits = value.is_null()
            || value
                .as_i64()
                .is_some_and(|n| (0..=i64::from(i32::MAX)).contains(&n));
        if !fits {
            let detail = "must be between 0 and 2147483647, inclusive";
            report.invalid(&path.field(field), value, detail);
        }
    }
}

fn host_aliases(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for (index, alias) in items(spec, "hostAliases").iter().enumerate() {
        if text(alias, "ip").parse::<std::net::IpAddr>().is_err() {
            report.invalid(
                &path.index(index).field("ip"),
                &Value::from(text(alias, "ip")),
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            );
        }
    }
}

fn readiness_gates(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for (index, gate) in items(spec, "readinessGates").iter().enumerate() {
        let condition = text(gate, "conditionType");
        let at = path.index(index);
        report.complain(
            &at.field("conditionType"),
            condition,
            &names::qualified(condition),
        );
    }
}
