//! One word for the state of a pod, out of everything that its containers say.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{NONE, Shown, condition, count, items, text, text_or};
use super::{AGE, BuiltIn, Column, NAME, age};
use crate::meta;

pub(super) static PODS: BuiltIn = BuiltIn {
    conditions: has_ended,
    ..BuiltIn::new(
        &[
            NAME,
            Column::text("Ready", "Containers that are ready, of all that should be."),
            Column::text(
                "Status",
                "The state of the pod, summed up over its containers.",
            ),
            Column::text(
                "Restarts",
                "How often containers were restarted, and when last.",
            ),
            AGE,
            Column::wide("IP", "Address of the pod."),
            Column::wide("Node", "Node that the pod is bound to."),
            Column::wide("Nominated Node", "Node where others make room for the pod."),
            Column::wide("Readiness Gates", "Extra conditions that are true, of all."),
        ],
        cells,
    )
};

/// Marks the rows of pods that have ended.
fn has_ended(shown: &Shown<'_>) -> Option<Value> {
    let (phase, message) = match text(&shown.status()["phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

fn cells(shown: &Shown<'_>) -> Vec<Value> {
    let (spec, status) = (shown.spec(), shown.status());
    let summary = Summary::of(shown.object);
    let restarts = match summary.last_restart {
        Some(at) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, age::between(at, shown.now))
        }
        Some(_) | None => summary.restarts.to_string(),
    };
    let ip = match items(&status["podIPs"]).first() {
        Some(first) => &first["ip"],
        None => &status["podIP"],
    };
    vec![
        shown.name(),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        shown.age(),
        json!(text_or(ip, NONE)),
        json!(text_or(&spec["nodeName"], NONE)),
        json!(text_or(&status["nominatedNodeName"], NONE)),
        json!(readiness_gates(spec, status)),
    ]
}

fn readiness_gates(spec: &Value, status: &Value) -> String {
    let gates = items(&spec["readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| condition(status, text(&gate["conditionType"])) == "True")
        .count();
    format!("{open}/{}", gates.len())
}

/// What the containers add up to.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let phase = text(&status["phase"]);
        let gated = items(&status["conditions"])
            .iter()
            .any(|c| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated");
        let sidecars = items(&spec["initContainers"])
            .iter()
            .filter(|c| is_sidecar(c));
        let mut summary = Self {
            reason: text_or(&status["reason"], phase).to_owned(),
            ready: 0,
            total: items(&spec["containers"]).len() + sidecars.count(),
            restarts: 0,
            last_restart: None,
        };
        if gated {
            summary.reason = "SchedulingGated".to_owned();
        }
        let (initializing, sidecars) = summary.read_init_containers(spec, status);
        if !initializing || condition(status, "Initialized") == "True" {
            // Init containers that have ended no longer count, those that keep running do.
            (summary.restarts, summary.last_restart) = sidecars;
            summary.read_containers(status);
        }
        if meta::is_deleting(pod) {
            if status["reason"] == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Succeeded" | "Failed") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// True when an init container holds the pod up; and the restarts of sidecars so far.
    fn read_init_containers(
        &mut self,
        spec: &Value,
        status: &Value,
    ) -> (bool, (i64, Option<Timestamp>)) {
        let containers = items(&spec["initContainers"]);
        let mut sidecars = (0, None);
        for (ix, container) in items(&status["initContainerStatuses"]).iter().enumerate() {
            self.add_restarts(container);
            let declared = containers.iter().find(|c| c["name"] == container["name"]);
            let sidecar = declared.is_some_and(is_sidecar);
            if sidecar {
                sidecars.0 += count(&container["restartCount"]);
                sidecars.1 = sidecars.1.max(last_end(container));
            }
            let (ended, waiting) = (ended(container), waiting(container));
            if ended.is_some_and(|end| count(&end["exitCode"]) == 0) {
                continue;
            }
            if sidecar && container["started"] == Value::Bool(true) {
                self.ready += usize::from(container["ready"] == Value::Bool(true));
                continue;
            }
            self.reason = match (ended, waiting) {
                (Some(end), _) => format!("Init:{}", end_reason(end)),
                (None, Some(reason)) if reason != "PodInitializing" => format!("Init:{reason}"),
                (None, _) => format!("Init:{ix}/{}", containers.len()),
            };
            return (true, sidecars);
        }
        (false, sidecars)
    }

    fn read_containers(&mut self, status: &Value) {
        let mut running = false;
        let mut failure = None;
        // Backward, so that the first container has the last word.
        for container in items(&status["containerStatuses"]).iter().rev() {
            self.add_restarts(container);
            if let Some(reason) = waiting(container) {
                self.reason = reason.to_owned();
            } else if let Some(end) = ended(container) {
                self.reason = end_reason(end);
                if count(&end["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if container["ready"] == Value::Bool(true)
                && !container["state"]["running"].is_null()
            {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason != "Completed" {
            return;
        }
        // Some have ended well, but is that true of all of them?
        if running && condition(status, "Ready") == "True" {
            self.reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            self.reason = failure;
        } else if running {
            self.reason = "NotReady".to_owned();
        }
    }

    fn add_restarts(&mut self, container: &Value) {
        self.restarts += count(&container["restartCount"]);
        self.last_restart = self.last_restart.max(last_end(container));
    }
}

/// An init container that keeps running beside the others.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// When the container's previous run ended.
fn last_end(container: &Value) -> Option<Timestamp> {
    let end = &container["lastState"]["terminated"]["finishedAt"];
    end.as_str().and_then(meta::parse_time)
}

/// How the container ended, if it has.
fn ended(container: &Value) -> Option<&Value> {
    let end = &container["state"]["terminated"];
    (!end.is_null()).then_some(end)
}

/// Why the container waits, if it says so.
fn waiting(container: &Value) -> Option<&str> {
    let reason = text(&container["state"]["waiting"]["reason"]);
    (!reason.is_empty()).then_some(reason)
}

fn end_reason(end: &Value) -> String {
    match (text(&end["reason"]), count(&end["signal"])) {
        ("", 0) => format!("ExitCode:{}", count(&end["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
