//! HorizontalPodAutoscalers.

use serde_json::Value;

use super::report::{Path, Report};
use super::{SPEC, items, text};
use crate::kinds::Kind;

pub(super) fn check(kind: &Kind, object: &Value, report: &mut Report) {
    let spec = &object["spec"];
    let least = spec["minReplicas"].as_i64().unwrap_or(1);
    let most = spec["maxReplicas"].as_i64().unwrap_or(0);
    if least < 1 {
        let path = SPEC.field("minReplicas");
        let detail = "must be greater than or equal to 1";
        report.invalid(&path, &spec["minReplicas"], detail);
    }
    let path = SPEC.field("maxReplicas");
    if most < 1 {
        report.required(&path, "must be set and greater than 0");
    }
    if most < least {
        let detail = "must be greater than or equal to `minReplicas`";
        report.invalid(&path, &Value::from(most), detail);
    }
    target_reference(&spec["scaleTargetRef"], report);
    if kind.version == "v1" {
        let percent = &spec["targetCPUUtilizationPercentage"];
        if percent.as_i64().is_some_and(|n| n < 1) {
            // Upstream looks at all versions as the newest one.
            let metrics = SPEC.field("metrics");
            let metric = metrics.index(0);
            let resource = metric.field("resource");
            let target = resource.field("target");
            let detail = "must be greater than 0";
            report.invalid(&target.field("averageUtilization"), percent, detail);
        }
        return;
    }
    let path = SPEC.field("metrics");
    let metrics = items(spec, "metrics");
    for (index, one) in metrics.iter().enumerate() {
        metric(one, &path.index(index), report);
    }
    let outside = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if least == 0 && !metrics.iter().any(outside) {
        let detail = "must specify at least one Object or External metric to support scaling to \
                      zero replicas";
        report.forbidden(&path, detail);
    }
    behavior(&spec["behavior"], report);
}

fn target_reference(reference: &Value, report: &mut Report) {
    let path = SPEC.field("scaleTargetRef");
    for field in ["kind", "name"] {
        if text(reference, field).is_empty() {
            report.required(&path.field(field), "");
        }
    }
    if text(reference, "apiVersion").is_empty() {
        let detail = "apiVersion must specify API group";
        report.invalid(&path.field("apiVersion"), &Value::from(""), detail);
    }
}

fn metric(metric: &Value, path: &Path<'_>, report: &mut Report) {
    const KINDS: &[&str] = &[
        "ContainerResource",
        "External",
        "Object",
        "Pods",
        "Resource",
    ];
    let kind = text(metric, "type");
    let field = match kind {
        "ContainerResource" => "containerResource",
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        "" => return report.required(&path.field("type"), "must specify a metric source type"),
        _ => {
            // Said twice by upstream, too.
            report.unsupported(&path.field("type"), kind, KINDS);
            return report.unsupported(&path.field("type"), kind, KINDS);
        }
    };
    let source = &metric[field];
    let at = path.field(field);
    if source.is_null() {
        let detail = "must populate information for the given metric source";
        return report.required(&at, detail);
    }
    if !matches!(kind, "Resource" | "ContainerResource") {
        return;
    }
    if text(source, "name").is_empty() {
        report.required(&at.field("name"), "must specify a resource name");
    }
    target(&source["target"], &at.field("target"), report);
}

fn target(target: &Value, path: &Path<'_>, report: &mut Report) {
    let kind = text(target, "type");
    if kind.is_empty() {
        report.required(&path.field("type"), "must specify a metric target type");
    } else if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        report.invalid(&path.field("type"), &target["type"], detail);
    }
    let percent = &target["averageUtilization"];
    if percent.as_i64().is_some_and(|n| n < 1) {
        let detail = "must be greater than 0";
        report.invalid(&path.field("averageUtilization"), percent, detail);
    }
    let at = path.field("averageUtilization");
    match (percent.is_null(), target["averageValue"].is_null()) {
        (true, true) => report.required(
            &at,
            "must set either a target raw value or a target utilization",
        ),
        (false, false) => report.forbidden(
            &path.field("averageValue"),
            "may not set both a target raw value and a target utilization",
        ),
        (true, false) | (false, true) => {}
    }
}

fn behavior(behavior: &Value, report: &mut Report) {
    let path = SPEC.field("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &behavior[direction];
        if rules.is_null() {
            continue;
        }
        let at = path.field(direction);
        let window = &rules["stabilizationWindowSeconds"];
        let window_path = at.field("stabilizationWindowSeconds");
        report.not_negative(&window_path, window);
        if window.as_i64().is_some_and(|n| n > 3600) {
            report.invalid(&window_path, window, "must be less than or equal to 3600");
        }
        if !rules["selectPolicy"].is_null() {
            let words = &["Disabled", "Max", "Min"];
            report.one_of(&at.field("selectPolicy"), &rules["selectPolicy"], words);
        }
        let policies = at.field("policies");
        if items(rules, "policies").is_empty() {
            report.required(&policies, "must specify at least one Policy");
        }
        for (index, policy) in items(rules, "policies").iter().enumerate() {
            let at = policies.index(index);
            report.one_of(&at.field("type"), &policy["type"], &["Percent", "Pods"]);
            for field in ["value", "periodSeconds"] {
                if policy[field].as_i64().is_some_and(|n| n <= 0) {
                    let detail = "must be greater than zero";
                    report.invalid(&at.field(field), &policy[field], detail);
                }
            }
            let period = &policy["periodSeconds"];
            if period.as_i64().is_some_and(|n| n > 1800) {
                let detail = "must be less than or equal to 1800";
                report.invalid(&at.field("periodSeconds"), period, detail);
            }
        }
    }
}
