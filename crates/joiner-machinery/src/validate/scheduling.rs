//! Where a pod may go: affinity, tolerations, spread, gates.

use std::collections::BTreeSet;

use serde_json::Value;

use super::report::{Path, Report};
use super::{items, names, selector, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// What a taint may do.
pub(super) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Affinity to nodes and to other pods.
pub(super) fn affinity(affinity: &Value, path: &Path<'_>, report: &mut Report) {
    if affinity.is_null() {
        return;
    }
    let node = &affinity["nodeAffinity"];
    let node_path = path.field("nodeAffinity");
    if !node[REQUIRED].is_null() {
        node_selector(&node[REQUIRED], &node_path.field(REQUIRED), report);
    }
    let preferred = node_path.field(PREFERRED);
    for (index, wish) in items(node, PREFERRED).iter().enumerate() {
        let at = preferred.index(index);
        weight(wish, &at, report);
        node_term(&wish["preference"], &at.field("preference"), report);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = &affinity[kind];
        let path = path.field(kind);
        let required = path.field(REQUIRED);
        for (index, term) in items(pods, REQUIRED).iter().enumerate() {
            pod_term(term, &required.index(index), report);
        }
        let preferred = path.field(PREFERRED);
        for (index, wish) in items(pods, PREFERRED).iter().enumerate() {
            let at = preferred.index(index);
            weight(wish, &at, report);
            pod_term(
                &wish["podAffinityTerm"],
                &at.field("podAffinityTerm"),
                report,
            );
        }
    }
}

fn weight(wish: &Value, path: &Path<'_>, report: &mut Report) {
    let weight = &wish["weight"];
    if !weight.as_i64().is_some_and(|w| (1..=100).contains(&w)) {
        report.invalid(&path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn pod_term(term: &Value, path: &Path<'_>, report: &mut Report) {
    selector(&term["labelSelector"], &path.field("labelSelector"), report);
    selector(
        &term["namespaceSelector"],
        &path.field("namespaceSelector"),
        report,
    );
    let key = text(term, "topologyKey");
    let at = path.field("topologyKey");
    if key.is_empty() {
        report.required(&at, "can not be empty");
    }
    report.complain(&at, key, &names::qualified(key));
}

/// A node selector: of a pod's affinity, or of a volume.
pub(super) fn node_selector(selector: &Value, path: &Path<'_>, report: &mut Report) {
    let path = path.field("nodeSelectorTerms");
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        report.required(&path, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(term, &path.index(index), report);
    }
}

fn node_term(term: &Value, path: &Path<'_>, report: &mut Report) {
    let list = path.field("matchExpressions");
    for (index, expression) in items(term, "matchExpressions").iter().enumerate() {
        let at = list.index(index);
        let values = items(expression, "values");
        let values_path = at.field("values");
        let operator = text(expression, "operator");
        match operator {
            "In" | "NotIn" if values.is_empty() => report.required(
                &values_path,
                "must be specified when `operator` is 'In' or 'NotIn'",
            ),
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if !values.is_empty() => report.forbidden(
                &values_path,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "Exists" | "DoesNotExist" => {}
            "Gt" | "Lt" if values.len() != 1 => report.required(
                &values_path,
                "must be specified single value when `operator` is 'Lt' or 'Gt'",
            ),
            "Gt" | "Lt" => {}
            _ => report.invalid(
                &at.field("operator"),
                &Value::from(operator),
                "not a valid selector operator",
            ),
        }
        let key = text(expression, "key");
        report.complain(&at.field("key"), key, &names::qualified(key));
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or("");
            report.complain(&values_path.index(index), value, &names::label_value(value));
        }
    }
}

/// Tolerations. Values are complained about under `operator`, as upstream does.
pub(super) fn tolerations(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for (index, toleration) in items(spec, "tolerations").iter().enumerate() {
        let at = path.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            report.complain(&at.field("key"), key, &names::qualified(key));
        }
        let operator_path = at.field("operator");
        if key.is_empty() && operator != "Exists" {
            report.invalid(
                &operator_path,
                &Value::from(operator),
                "operator must be Exists when `key` is empty, which means \"match all values and \
                 all keys\"",
            );
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            report.invalid(
                &at.field("effect"),
                &Value::from(effect),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            );
        }
        match operator {
            "" | "Equal" => report.complain(&operator_path, value, &names::label_value(value)),
            "Exists" if !value.is_empty() => report.invalid(
                &operator_path,
                &toleration["value"],
                "value must be empty when `operator` is 'Exists'",
            ),
            "Exists" => {}
            _ => report.unsupported(&operator_path, operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            report.unsupported(&at.field("effect"), effect, EFFECTS);
        }
    }
}

/// Topology spread constraints.
pub(super) fn spread(list: &[Value], path: &Path<'_>, report: &mut Report) {
    const WHEN: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
    let is_positive = |value: &Value| value.as_i64().is_some_and(|n| n > 0);
    for (index, constraint) in list.iter().enumerate() {
        let at = path.index(index);
        if !is_positive(&constraint["maxSkew"]) {
            let detail = "must be greater than zero";
            report.invalid(&at.field("maxSkew"), &constraint["maxSkew"], detail);
        }
        let (key, when) = (
            text(constraint, "topologyKey"),
            text(constraint, "whenUnsatisfiable"),
        );
        if key.is_empty() {
            report.required(&at.field("topologyKey"), "can not be empty");
        } else {
            report.complain(&at.field("topologyKey"), key, &names::qualified(key));
        }
        report.one_of(
            &at.field("whenUnsatisfiable"),
            &constraint["whenUnsatisfiable"],
            WHEN,
        );
        let repeated = |other: &Value| {
            text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == when
        };
        if list[index + 1..].iter().any(repeated) {
            report.duplicate(
                &at.field("{topologyKey, whenUnsatisfiable}"),
                &Value::from(format!("{{{key}, {when}}}")),
            );
        }
        min_domains(constraint, when, &at, report);
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if !constraint[policy].is_null() {
                report.one_of(&at.field(policy), &constraint[policy], &["Honor", "Ignore"]);
            }
        }
        selector(
            &constraint["labelSelector"],
            &at.field("labelSelector"),
            report,
        );
    }
}

fn min_domains(constraint: &Value, when: &str, path: &Path<'_>, report: &mut Report) {
    let domains = &constraint["minDomains"];
    if domains.is_null() {
        return;
    }
    let at = path.field("minDomains");
    if domains.as_i64().is_none_or(|n| n <= 0) {
        report.invalid(&at, domains, "must be greater than zero");
    }
    if when != "DoNotSchedule" {
        let detail =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
        report.invalid(&at, domains, &detail);
    }
}

/// Scheduling gates.
pub(super) fn gates(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let at = path.index(index);
        let name = text(gate, "name");
        report.complain(&at, name, &names::qualified(name));
        if !seen.insert(name) {
            report.duplicate(&at, &gate["name"]);
        }
    }
}
