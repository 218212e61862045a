//! Budgets, priorities, leases, roles, runtime classes, limits and events.

use serde_json::{Value, json};

use super::report::{Path, Report};
use super::{SPEC, entries, items, names, selector, text};
use crate::kinds::Kind;
use crate::meta;
use crate::quantity::Quantity;

/// The highest priority that users may give.
const PRIORITY_MAX: i64 = 1_000_000_000;
/// Priority classes that are always there, with their priorities.
pub(crate) const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

fn at(field: &'static str) -> Path<'static> {
    Path::Field(&Path::Root, field)
}

pub(super) fn budget(spec: &Value, report: &mut Report) {
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        let (chosen, policy) = (&spec["selector"], &spec["unhealthyPodEvictionPolicy"]);
        report.invalid(&SPEC, &Value::Null, "");
        if let Some(cause) = report.causes.last_mut() {
            // Upstream shows the spec in its own spelling and order.
            cause.message = format!(
                "Invalid value: {{\"MinAvailable\":{least},\"Selector\":{chosen},\
                 \"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{policy}}}: minAvailable \
                 and maxUnavailable cannot be both set"
            );
        }
    }
    for field in ["minAvailable", "maxUnavailable"] {
        if !spec[field].is_null() {
            report.count_or_percent(&SPEC.field(field), &spec[field]);
            report.at_most_all(&SPEC.field(field), &spec[field]);
        }
    }
    selector(&spec["selector"], &SPEC.field("selector"), report);
    if !spec["unhealthyPodEvictionPolicy"].is_null() {
        report.one_of(
            &SPEC.field("unhealthyPodEvictionPolicy"),
            &spec["unhealthyPodEvictionPolicy"],
            &["AlwaysAllow", "IfHealthyBudget"],
        );
    }
}

pub(super) fn priority_class(object: &Value, report: &mut Report) {
    let name = meta::name(object);
    let value = object["value"].as_i64().unwrap_or(0);
    if name.starts_with("system-") {
        let known = SYSTEM_CLASSES.iter().find(|(own, _)| *own == name);
        let why = match known {
            Some((_, priority)) if *priority == value => None,
            Some((_, priority)) => {
                Some(format!("value of {name} PriorityClass must be {priority}"))
            }
            None => Some(format!("{name} is not a known system priority class")),
        };
        if let Some(why) = why {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {why}"
            );
            report.forbidden(&at("metadata").field("name"), &detail);
        }
    } else if value > PRIORITY_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        report.forbidden(&at("value"), &detail);
    }
    if !object["preemptionPolicy"].is_null() {
        report.one_of(
            &at("preemptionPolicy"),
            &object["preemptionPolicy"],
            &["PreemptLowerPriority", "Never"],
        );
    }
}

pub(super) fn lease(spec: &Value, report: &mut Report) {
    let seconds = &spec["leaseDurationSeconds"];
    if seconds.as_i64().is_some_and(|n| n <= 0) {
        let path = SPEC.field("leaseDurationSeconds");
        report.invalid(&path, seconds, "must be greater than 0");
    }
    report.not_negative(&SPEC.field("leaseTransitions"), &spec["leaseTransitions"]);
}

pub(super) fn runtime_class(object: &Value, report: &mut Report) {
    let handler = text(object, "handler");
    report.name(&at("handler"), handler, names::dns_label);
}

pub(super) fn rbac(kind: &Kind, object: &Value, report: &mut Report) {
    let rules = at("rules");
    for (index, rule) in items(object, "rules").iter().enumerate() {
        rule_causes(kind, rule, &rules.index(index), report);
    }
    if !kind.kind.ends_with("Binding") {
        return;
    }
    let role = &object["roleRef"];
    let path = at("roleRef");
    let known: &[&str] = if kind.namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    report.one_of(&path.field("kind"), &role["kind"], known);
    if text(role, "name").is_empty() {
        report.required(&path.field("name"), "");
    }
    let path = at("subjects");
    for (index, subject) in items(object, "subjects").iter().enumerate() {
        let at = path.index(index);
        if text(subject, "name").is_empty() {
            report.required(&at.field("name"), "");
        }
        let words = &["ServiceAccount", "User", "Group"];
        report.one_of(&at.field("kind"), &subject["kind"], words);
        let account = text(subject, "kind") == "ServiceAccount";
        if account && !kind.namespaced && text(subject, "namespace").is_empty() {
            report.required(&at.field("namespace"), "");
        }
    }
}

fn rule_causes(kind: &Kind, rule: &Value, path: &Path<'_>, report: &mut Report) {
    if items(rule, "verbs").is_empty() {
        let detail = "verbs must contain at least one value";
        report.required(&path.field("verbs"), detail);
    }
    if !items(rule, "nonResourceURLs").is_empty() {
        if kind.namespaced {
            report.invalid(
                &path.field("nonResourceURLs"),
                &rule["nonResourceURLs"],
                "namespaced rules cannot apply to non-resource URLs",
            );
        }
        return;
    }
    if items(rule, "apiGroups").is_empty() {
        let detail = "resource rules must supply at least one api group";
        report.required(&path.field("apiGroups"), detail);
    }
    if items(rule, "resources").is_empty() {
        let detail = "resource rules must supply at least one resource";
        report.required(&path.field("resources"), detail);
    }
}

pub(super) fn limit_range(object: &Value, report: &mut Report) {
    let path = SPEC.field("limits");
    for (index, limit) in items(&object["spec"], "limits").iter().enumerate() {
        let at = path.index(index);
        for (name, min) in entries(limit, "min") {
            for (field, word) in [
                ("max", "max"),
                ("defaultRequest", "default request"),
                ("default", "default"),
            ] {
                let other = &limit[field][name];
                let (Some(low), Some(high)) = (Quantity::of(min), Quantity::of(other)) else {
                    continue;
                };
                if low <= high {
                    continue;
                }
                let shown = json!([min, other]);
                let detail = format!(
                    "min value {} is greater than {word} value {}",
                    shown[0].as_str().unwrap_or(""),
                    shown[1].as_str().unwrap_or("")
                );
                let (place, value) = match field {
                    "max" => ("min", min),
                    "defaultRequest" => ("defaultRequest", other),
                    _ => ("default", min),
                };
                report.invalid(&at.field(place).key(name), value, &detail);
            }
        }
    }
}

/// An event must be about something in its own namespace; those of the new API must say when.
pub(super) fn event(kind: &Kind, object: &Value, report: &mut Report) {
    let new = kind.group == "events.k8s.io";
    let about = if new { "regarding" } else { "involvedObject" };
    let own = meta::namespace(object);
    let other = text(&object[about], "namespace");
    if !other.is_empty() && other != own {
        report.invalid(
            &at("involvedObject").field("namespace"),
            &Value::from(other),
            "does not match event.namespace",
        );
    }
    if !new || text(object, "eventTime").is_empty() && !object["deprecatedCount"].is_null() {
        return;
    }
    if text(object, "eventTime").is_empty() {
        report.required(&at("eventTime"), "");
    }
    let event_type = text(object, "type");
    if !matches!(event_type, "Normal" | "Warning") {
        let detail = format!("has invalid value: {event_type}");
        report.invalid(&at("type"), &Value::from(event_type), &detail);
    }
}
