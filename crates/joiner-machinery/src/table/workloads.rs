//! Rows of what makes pods: how many are wanted, there, and ready.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{
    NONE, condition, count, items, labels, or_none, selector, some, text, text_or, word,
};
use super::{AGE, BuiltIn, CONTAINERS, Column, IMAGES, NAME, age};
use crate::kinds::Kind;
use crate::meta;

/// The printer of a kind that is shown here.
pub(super) fn printer(kind: &Kind) -> Option<&'static BuiltIn> {
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => &DEPLOYMENTS,
        ("apps", "ReplicaSet") => &REPLICA_SETS,
        ("apps", "StatefulSet") => &STATEFUL_SETS,
        ("apps", "DaemonSet") => &DAEMON_SETS,
        ("apps", "ControllerRevision") => &CONTROLLER_REVISIONS,
        ("batch", "Job") => &JOBS,
        ("batch", "CronJob") => &CRON_JOBS,
        _ => return None,
    };
    Some(found)
}

const SELECTOR: Column = Column::wide("Selector", "Which pods belong to it.");

static DEPLOYMENTS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Ready", "Pods that are ready, of those wanted."),
        Column::text("Up-to-date", "Pods of the current template."),
        Column::text("Available", "Pods that have been ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |shown| {
        let (spec, status) = (shown.spec(), shown.status());
        let [names, images] = shown.containers(&spec["template"]);
        vec![
            shown.name(),
            json!(ready(spec, status)),
            json!(count(&status["updatedReplicas"])),
            json!(count(&status["availableReplicas"])),
            shown.age(),
            names,
            images,
            json!(selector(&spec["selector"])),
        ]
    },
);

fn ready(spec: &Value, status: &Value) -> String {
    format!(
        "{}/{}",
        count(&status["readyReplicas"]),
        count(&spec["replicas"])
    )
}

static REPLICA_SETS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::integer("Desired", "Pods wanted."),
        Column::integer("Current", "Pods there."),
        Column::integer("Ready", "Pods that are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |shown| {
        let (spec, status) = (shown.spec(), shown.status());
        let [names, images] = shown.containers(&spec["template"]);
        vec![
            shown.name(),
            json!(count(&spec["replicas"])),
            json!(count(&status["replicas"])),
            json!(count(&status["readyReplicas"])),
            shown.age(),
            names,
            images,
            json!(or_none(selector(&spec["selector"]))),
        ]
    },
);

static STATEFUL_SETS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Ready", "Pods that are ready, of those wanted."),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    |shown| {
        let [names, images] = shown.containers(&shown.spec()["template"]);
        let ready = ready(shown.spec(), shown.status());
        vec![shown.name(), json!(ready), shown.age(), names, images]
    },
);

static DAEMON_SETS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::integer("Desired", "Nodes that should run it."),
        Column::integer("Current", "Nodes that should and do."),
        Column::integer("Ready", "Nodes where its pod is ready."),
        Column::integer("Up-to-date", "Nodes with a pod of the current template."),
        Column::integer(
            "Available",
            "Nodes whose pod has been ready for long enough.",
        ),
        Column::text("Node Selector", "Labels of the nodes that should run it."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |shown| {
        let (spec, status) = (shown.spec(), shown.status());
        let [names, images] = shown.containers(&spec["template"]);
        vec![
            shown.name(),
            json!(count(&status["desiredNumberScheduled"])),
            json!(count(&status["currentNumberScheduled"])),
            json!(count(&status["numberReady"])),
            json!(count(&status["updatedNumberScheduled"])),
            json!(count(&status["numberAvailable"])),
            json!(labels(&spec["template"]["spec"]["nodeSelector"])),
            shown.age(),
            names,
            images,
            json!(or_none(selector(&spec["selector"]))),
        ]
    },
);

static CONTROLLER_REVISIONS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Controller", "What the revision is of."),
        Column::text("Revision", "Its number."),
        AGE,
    ],
    |shown| {
        let owner = meta::controller(shown.object).map(|owner| {
            let kind = text(&owner["kind"]).to_lowercase();
            let name = text(&owner["name"]);
            match text(&owner["apiVersion"]).split_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{name}"),
                None => format!("{kind}/{name}"),
            }
        });
        vec![
            shown.name(),
            json!(owner.as_deref().unwrap_or(NONE)),
            json!(count(&shown.object["revision"])),
            shown.age(),
        ]
    },
);

static JOBS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Status", "Whether the job runs, and how it ended."),
        Column::text("Completions", "Pods that have succeeded, of those needed."),
        Column::text("Duration", "How long the job has run."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |shown| {
        let spec = shown.spec();
        let [names, images] = shown.containers(&spec["template"]);
        vec![
            shown.name(),
            json!(job_status(shown.object)),
            json!(completions(spec, shown.status())),
            json!(job_duration(shown.status(), shown.now)),
            shown.age(),
            names,
            images,
            json!(or_none(selector(&spec["selector"]))),
        ]
    },
);

fn job_status(job: &Value) -> &'static str {
    let is = |of: &str| condition(&job["status"], of) == "True";
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if meta::is_deleting(job) {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(spec: &Value, status: &Value) -> String {
    let succeeded = count(&status["succeeded"]);
    match (spec["completions"].as_i64(), count(&spec["parallelism"])) {
        (Some(needed), _) => format!("{succeeded}/{needed}"),
        (None, at_once @ 2..) => format!("{succeeded}/1 of {at_once}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(status: &Value, now: Timestamp) -> String {
    let time = |field: &str| status[field].as_str().and_then(meta::parse_time);
    match time("startTime") {
        Some(start) => age::between(start, time("completionTime").unwrap_or(now)),
        None => String::new(),
    }
}

static CRON_JOBS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Schedule", "When jobs start."),
        Column::text("Timezone", "Time zone of the schedule."),
        Column::boolean("Suspend", "Whether no jobs start for now."),
        Column::integer("Active", "Jobs that run."),
        Column::text("Last Schedule", "How long ago a job started last."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    |shown| {
        let (spec, status) = (shown.spec(), shown.status());
        let job = &spec["jobTemplate"]["spec"];
        let [names, images] = shown.containers(&job["template"]);
        let last = match some(&status["lastScheduleTime"]) {
            None => NONE.to_owned(),
            Some(time) => shown.since(time),
        };
        vec![
            shown.name(),
            json!(text(&spec["schedule"])),
            json!(text_or(&spec["timeZone"], NONE)),
            json!(word(&spec["suspend"])),
            json!(items(&status["active"]).len()),
            json!(last),
            shown.age(),
            names,
            images,
            json!(or_none(selector(&job["selector"]))),
        ]
    },
);
