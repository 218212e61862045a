//! The kinds that make pods.

use serde_json::{Value, json};

use super::report::{Path, Report};
use super::{SPEC, is_selector, items, pod, schedule, selector, text};
use crate::meta;
use crate::selector::LabelSelector;

const TEMPLATE: Path<'static> = Path::Field(&SPEC, "template");
const SELECTOR: Path<'static> = Path::Field(&SPEC, "selector");

/// Which words a kind uses about its selector.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::ReplicaSet => "replicaset",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
            Self::Job => "job",
        }
    }
}

/// The selector, and whether it chooses the template's pods.
fn chosen(spec: &Value, kind: Kind, report: &mut Report) {
    let object = &spec["selector"];
    let is_set = !object.is_null();
    if is_set {
        selector(object, &SELECTOR, report);
        let empty = object.as_object().is_some_and(serde_json::Map::is_empty);
        if empty && kind != Kind::Job {
            let detail = format!("empty selector is invalid for {}", kind.word());
            report.invalid(&SELECTOR, object, &detail);
        }
    } else if kind != Kind::DaemonSet {
        report.required(&SELECTOR, "");
    }
    if is_set && !is_selector(object) {
        if kind != Kind::DaemonSet && kind != Kind::Job {
            report.invalid(&SELECTOR, object, "invalid label selector");
        }
        return;
    }
    unchosen(spec, report);
}

/// Complains when the selector does not choose the template's pods.
pub(super) fn unchosen(spec: &Value, report: &mut Report) {
    let labels = &spec["template"]["metadata"]["labels"];
    if !LabelSelector::of(&spec["selector"]).matches_labels(labels) {
        let metadata = TEMPLATE.field("metadata");
        report.invalid(
            &metadata.field("labels"),
            labels,
            "`selector` does not match template `labels`",
        );
    }
}

/// Pods of such a kind run for ever.
fn restart_always(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let policy = text(&spec["template"]["spec"], "restartPolicy");
    let template = path.field("template");
    let template_spec = template.field("spec");
    if matches!(policy, "OnFailure" | "Never") {
        report.unsupported(&template_spec.field("restartPolicy"), policy, &["Always"]);
    }
}

fn no_deadline(spec: &Value, kind: &str, report: &mut Report) {
    if !spec["template"]["spec"]["activeDeadlineSeconds"].is_null() {
        let template_spec = TEMPLATE.field("spec");
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        report.forbidden(&template_spec.field("activeDeadlineSeconds"), &detail);
    }
}

fn counts(spec: &Value, fields: &[&str], report: &mut Report) {
    for field in fields {
        report.not_negative(&SPEC.field(field), &spec[*field]);
    }
}

pub(super) fn deployment(spec: &Value, report: &mut Report) {
    counts(spec, &["replicas"], report);
    chosen(spec, Kind::Deployment, report);
    pod::template(&spec["template"], &TEMPLATE, report);
    restart_always(spec, &SPEC, report);
    no_deadline(spec, "ReplicaSet", report);
    strategy(&spec["strategy"], report);
    counts(
        spec,
        &[
            "minReadySeconds",
            "revisionHistoryLimit",
            "progressDeadlineSeconds",
        ],
        report,
    );
    let deadline = &spec["progressDeadlineSeconds"];
    let ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
    if deadline.as_i64().is_some_and(|d| d >= 0 && d <= ready) {
        let path = SPEC.field("progressDeadlineSeconds");
        report.invalid(&path, deadline, "must be greater than minReadySeconds");
    }
}

/// Zero, in either form.
fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || value.as_str() == Some("0%")
}

fn strategy(strategy: &Value, report: &mut Report) {
    let path = SPEC.field("strategy");
    let rolling = &strategy["rollingUpdate"];
    let rolling_path = path.field("rollingUpdate");
    match text(strategy, "type") {
        "Recreate" if !rolling.is_null() => report.forbidden(
            &rolling_path,
            "may not be specified when strategy `type` is 'Recreate'",
        ),
        "Recreate" => {}
        "RollingUpdate" => {
            for field in ["maxUnavailable", "maxSurge"] {
                report.count_or_percent(&rolling_path.field(field), &rolling[field]);
            }
            if is_zero(&rolling["maxUnavailable"]) && is_zero(&rolling["maxSurge"]) {
                report.invalid(
                    &rolling_path.field("maxUnavailable"),
                    &rolling["maxUnavailable"],
                    "may not be 0 when `maxSurge` is 0",
                );
            }
            report.at_most_all(
                &rolling_path.field("maxUnavailable"),
                &rolling["maxUnavailable"],
            );
        }
        other => {
            let shown = json!({"Type": other, "RollingUpdate": null});
            unsupported_object(&path, &shown, "\"Recreate\", \"RollingUpdate\"", report);
        }
    }
}

/// Upstream shows the whole strategy where only its type is wrong, in its own spelling and order.
fn unsupported_object(path: &Path<'_>, shown: &Value, words: &str, report: &mut Report) {
    report.unsupported(path, "", &[]);
    if let Some(cause) = report.causes.last_mut() {
        let kind = &shown["Type"];
        cause.message = format!(
            "Unsupported value: {{\"Type\":{kind},\"RollingUpdate\":null}}: supported values: {words}"
        );
    }
}

pub(super) fn replica_set(spec: &Value, report: &mut Report) {
    counts(spec, &["replicas", "minReadySeconds"], report);
    chosen(spec, Kind::ReplicaSet, report);
    pod::template(&spec["template"], &TEMPLATE, report);
    restart_always(spec, &SPEC, report);
    no_deadline(spec, "ReplicaSet", report);
}

pub(super) fn stateful_set(spec: &Value, report: &mut Report) {
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        report.invalid(
            &SPEC.field("podManagementPolicy"),
            &Value::from(policy),
            "must be 'OrderedReady' or 'Parallel'",
        );
    }
    let strategy = &spec["updateStrategy"];
    let path = SPEC.field("updateStrategy");
    match text(strategy, "type") {
        "OnDelete" if !strategy["rollingUpdate"].is_null() => report.invalid(
            &path.field("rollingUpdate"),
            &strategy["rollingUpdate"],
            "only allowed for updateStrategy 'RollingUpdate'",
        ),
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = path.field("rollingUpdate");
            let partition = &strategy["rollingUpdate"]["partition"];
            report.not_negative(&rolling.field("partition"), partition);
        }
        other => {
            report.invalid(&path, &Value::Null, "must be 'RollingUpdate' or 'OnDelete'");
            if let Some(cause) = report.causes.last_mut() {
                cause.message = format!(
                    "Invalid value: {{\"Type\":{other:?},\"RollingUpdate\":null}}: must be \
                     'RollingUpdate' or 'OnDelete'"
                );
            }
        }
    }
    counts(spec, &["replicas", "minReadySeconds"], report);
    chosen(spec, Kind::StatefulSet, report);
    pod::template(&with_claims(spec), &TEMPLATE, report);
    restart_always(spec, &SPEC, report);
    no_deadline(spec, "StatefulSet", report);
}

/// The template of a StatefulSet with a volume for each of its claims, as its pods will have them.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let mut volumes = items(&template["spec"], "volumes").to_vec();
    for claim in items(spec, "volumeClaimTemplates") {
        let name = meta::name(claim);
        if !volumes.iter().any(|volume| text(volume, "name") == name) {
            volumes.push(json!({"name": name, "emptyDir": {}}));
        }
    }
    if template["spec"].is_object() && !volumes.is_empty() {
        template["spec"]["volumes"] = Value::Array(volumes);
    }
    template
}

pub(super) fn daemon_set(spec: &Value, report: &mut Report) {
    chosen(spec, Kind::DaemonSet, report);
    pod::template(&spec["template"], &TEMPLATE, report);
    restart_always(spec, &SPEC, report);
    no_deadline(spec, "DaemonSet", report);
    counts(spec, &["minReadySeconds"], report);
    let strategy = &spec["updateStrategy"];
    let path = SPEC.field("updateStrategy");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => daemon_rolling(&strategy["rollingUpdate"], &path, report),
        other => {
            let shown = json!({"Type": other, "RollingUpdate": null});
            unsupported_object(&path, &shown, "\"RollingUpdate\", \"OnDelete\"", report);
        }
    }
    counts(spec, &["revisionHistoryLimit"], report);
}

fn daemon_rolling(rolling: &Value, path: &Path<'_>, report: &mut Report) {
    let path = path.field("rollingUpdate");
    let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
    for field in ["maxUnavailable", "maxSurge"] {
        report.count_or_percent(&path.field(field), &rolling[field]);
        report.at_most_all(&path.field(field), &rolling[field]);
    }
    if is_zero(unavailable) && is_zero(surge) {
        let detail = "cannot be 0 when maxSurge is 0";
        report.required(&path.field("maxUnavailable"), detail);
    } else if !is_zero(unavailable) && !is_zero(surge) {
        let detail = "may not be set when maxUnavailable is non-zero";
        report.invalid(&path.field("maxSurge"), surge, detail);
    }
}

pub(super) fn job(object: &Value, report: &mut Report) {
    let spec = &object["spec"];
    job_spec(spec, &SPEC, report);
    let manual = spec["manualSelector"] == true;
    let uid = text(&object["metadata"], "uid");
    let generated = &json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    if !manual && spec["selector"] != *generated {
        report.invalid(
            &SELECTOR,
            &spec["selector"],
            "`selector` not auto-generated",
        );
    }
    chosen(spec, Kind::Job, report);
}

fn job_spec(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        report.not_negative(&path.field(field), &spec[field]);
    }
    if !spec["completionMode"].is_null() {
        let mode = path.field("completionMode");
        report.one_of(&mode, &spec["completionMode"], &["NonIndexed", "Indexed"]);
        if text(spec, "completionMode") == "Indexed" && spec["completions"].is_null() {
            let detail = "when completion mode is Indexed";
            report.required(&path.field("completions"), detail);
        }
    }
    if !spec["podReplacementPolicy"].is_null() {
        let words = &["Failed", "TerminatingOrFailed"];
        let at = path.field("podReplacementPolicy");
        report.one_of(&at, &spec["podReplacementPolicy"], words);
    }
    let policy = path.field("podFailurePolicy");
    let rules = policy.field("rules");
    for (index, rule) in items(&spec["podFailurePolicy"], "rules").iter().enumerate() {
        let action = rules.index(index);
        let words = &["Count", "FailIndex", "FailJob", "Ignore"];
        report.one_of(&action.field("action"), &rule["action"], words);
        let conditions = items(rule, "onPodConditions");
        if rule["onExitCodes"].is_null() && conditions.is_empty() {
            report.invalid(&action, &Value::Null, "");
            if let Some(cause) = report.causes.last_mut() {
                let detail = "specifying one of OnExitCodes and OnPodConditions is required";
                cause.message = format!("Invalid value: {detail}");
            }
        }
    }
    let template = path.field("template");
    pod::template(&spec["template"], &template, report);
    let restart = text(&spec["template"]["spec"], "restartPolicy");
    if !matches!(restart, "OnFailure" | "Never") {
        let template_spec = template.field("spec");
        let at = template_spec.field("restartPolicy");
        if matches!(restart, "" | "Always") {
            report.required(&at, "valid values: \"OnFailure\", \"Never\"");
        } else {
            report.unsupported(&at, restart, &["OnFailure", "Never"]);
        }
    }
}

pub(super) fn cron_job(object: &Value, report: &mut Report) {
    let spec = &object["spec"];
    let path = SPEC.field("schedule");
    let times = text(spec, "schedule");
    if times.is_empty() {
        report.required(&path, "");
    } else if times.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        report.invalid(&path, &spec["schedule"], detail);
    } else if let Some(why) = schedule::error(times) {
        report.invalid(&path, &spec["schedule"], &why);
    }
    counts(spec, &["startingDeadlineSeconds"], report);
    if let Some(zone) = spec["timeZone"].as_str() {
        let path = SPEC.field("timeZone");
        if zone.is_empty() {
            let detail = "timeZone must be nil or non-empty string";
            report.invalid(&path, &spec["timeZone"], detail);
        } else if zone.eq_ignore_ascii_case("local") {
            let detail = "timeZone must be an explicit time zone as defined in \
                          https://www.iana.org/time-zones";
            report.invalid(&path, &spec["timeZone"], detail);
        } else if jiff::tz::TimeZone::get(zone).is_err() {
            let detail = format!("unknown time zone {zone}");
            report.invalid(&path, &spec["timeZone"], &detail);
        }
    }
    report.one_of(
        &SPEC.field("concurrencyPolicy"),
        &spec["concurrencyPolicy"],
        &["Allow", "Forbid", "Replace"],
    );
    let template = SPEC.field("jobTemplate");
    job_spec(
        &spec["jobTemplate"]["spec"],
        &template.field("spec"),
        report,
    );
    counts(
        spec,
        &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
        report,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_of_a_stateful_set_can_be_mounted() {
        for (mounted, expected) in [("data", 0), ("other", 1)] {
            let container = json!({"name": "c", "image": "i", "volumeMounts":
                [{"name": mounted, "mountPath": "/data"}]});
            let mut report = Report::default();
            let spec = json!({
                "template": {"spec": {"containers": [container]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
            });
            pod::template(&with_claims(&spec), &TEMPLATE, &mut report);
            let missing = report.causes.iter();
            let missing = missing.filter(|cause| cause.field.ends_with("volumeMounts[0].name"));
            assert_eq!(missing.count(), expected, "{:?}", report.causes);
        }
    }
}
