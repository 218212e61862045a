//! What does a pod's status say at a stage of its life?

use jiff::Timestamp;
use joiner_api::labels::ours::EXIT_CODE;
use joiner_machinery::meta;
use serde_json::{Value, json};

use super::life::Stage;
use crate::fields::{condition, is_true, set_condition};
use crate::names::{Digest, hex};
use crate::scheduler::amounts::is_sidecar;
use crate::scheduler::labels::items;

/// Addresses that go into a status.
pub(crate) struct Addresses<'a> {
    /// Of the node.
    pub(crate) host: &'a str,
    /// Of the pod; none before its sandbox is there.
    pub(crate) pod: Option<&'a str>,
}

/// One container at one moment.
enum State {
    Waiting(&'static str),
    Running(Timestamp),
    Ended {
        ran: (Timestamp, Timestamp),
        exit_code: i64,
    },
}

/// The whole status, built upon the one that is there.
pub(crate) fn render(
    pod: &Value,
    stage: Stage,
    start: Timestamp,
    addresses: &Addresses<'_>,
    now: Timestamp,
) -> Value {
    let mut status = status_of(pod);
    status["startTime"] = json!(meta::time(start));
    status["hostIP"] = json!(addresses.host);
    status["hostIPs"] = json!([{"ip": addresses.host}]);
    if let Some(ip) = addresses.pod {
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{"ip": ip}]);
    }
    status["phase"] = json!(phase(stage));
    if let Stage::Done { overdue: true, .. } = stage {
        status["reason"] = json!("DeadlineExceeded");
        status["message"] = json!("Pod was active on the node longer than the specified deadline");
    }
    let containers: Vec<Value> = items(&pod["spec"]["containers"])
        .map(|container| main_status(pod, container, stage))
        .collect();
    status["containerStatuses"] = Value::Array(containers);
    let inits = init_statuses(pod, stage, start);
    if !inits.is_empty() {
        status["initContainerStatuses"] = Value::Array(inits);
    }
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    set_conditions(pod, &mut conditions, stage, now);
    status["conditions"] = Value::Array(conditions);
    status
}

/// The status that is there, or an empty one.
pub(crate) fn status_of(pod: &Value) -> Value {
    if pod["status"].is_object() {
        return pod["status"].clone();
    }
    json!({})
}

/// True when a running pod's status says so already. This spares most pods the comparison of whole
/// statuses; pods with readiness gates always get it.
pub(crate) fn is_shown(pod: &Value, stage: Stage) -> bool {
    let Stage::Running {
        restarts,
        ready: true,
        ..
    } = stage
    else {
        return false;
    };
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    let runs = |one: &Value| {
        one["ready"] == true
            && one["restartCount"] == restarts
            && one["state"]["running"].is_object()
    };
    let kinds = [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
    ];
    status["phase"] == "Running"
        && spec["readinessGates"].is_null()
        && status["podIP"].is_string()
        && count(&status["containerStatuses"]) == count(&spec["containers"])
        && items(&status["containerStatuses"]).all(runs)
        && kinds.iter().all(|kind| is_true(pod, kind))
}

/// The stage of a pod whose containers have just been stopped.
pub(crate) const fn stopped(start: Timestamp, now: Timestamp) -> Stage {
    // What a process returns that does not handle SIGTERM.
    Stage::Done {
        ran: (start, now),
        exit_code: 143,
        overdue: false,
    }
}

fn phase(stage: Stage) -> &'static str {
    match stage {
        Stage::Creating | Stage::Init(..) => "Pending",
        Stage::Running { .. } | Stage::BackOff { .. } => "Running",
        Stage::Done {
            exit_code: 0,
            overdue: false,
            ..
        } => "Succeeded",
        Stage::Done { .. } => "Failed",
    }
}

fn main_status(pod: &Value, container: &Value, stage: Stage) -> Value {
    let has_inits = items(&pod["spec"]["initContainers"]).next().is_some();
    let (state, restarts, ready) = match stage {
        Stage::Creating if has_inits => (State::Waiting("PodInitializing"), 0, false),
        Stage::Creating => (State::Waiting("ContainerCreating"), 0, false),
        Stage::Init(..) => (State::Waiting("PodInitializing"), 0, false),
        Stage::Running {
            since,
            restarts,
            ready,
        } => (State::Running(since), restarts, ready),
        Stage::BackOff { restarts, .. } => (State::Waiting("CrashLoopBackOff"), restarts, false),
        Stage::Done { ran, exit_code, .. } => {
            let old = items(&pod["status"]["containerStatuses"]);
            let restarts = old
                .filter_map(|one| one["restartCount"].as_i64())
                .max()
                .unwrap_or(0);
            (State::Ended { ran, exit_code }, restarts, false)
        }
    };
    let mut status = container_status(pod, container, &state, restarts);
    status["ready"] = json!(ready);
    if let Stage::BackOff { ran, .. } = stage {
        let exit_code = meta::annotation(pod, EXIT_CODE);
        let exit_code = exit_code.and_then(|text| text.parse().ok()).unwrap_or(0);
        status["lastState"] = state_json(&State::Ended { ran, exit_code }, &status["containerID"]);
    }
    status
}

fn init_statuses(pod: &Value, stage: Stage, start: Timestamp) -> Vec<Value> {
    let mut number = 0;
    let render = |container: &Value| {
        let sidecar = is_sidecar(container);
        // Sidecars run from their turn on; the others end before the next one starts.
        let turn = number;
        number += i64::from(!sidecar);
        let (state, done) = match stage {
            Stage::Creating => (State::Waiting("PodInitializing"), false),
            Stage::Init(current, since) if turn == current && !sidecar => {
                (State::Running(since), false)
            }
            Stage::Init(current, since) if sidecar && turn <= current => {
                (State::Running(since), true)
            }
            Stage::Init(current, _) if turn > current || sidecar => {
                (State::Waiting("PodInitializing"), false)
            }
            Stage::Done { ran, .. } if sidecar => (State::Ended { ran, exit_code: 0 }, false),
            Stage::Init(..) | Stage::Done { .. } => (
                State::Ended {
                    ran: (start, start),
                    exit_code: 0,
                },
                true,
            ),
            Stage::Running { .. } | Stage::BackOff { .. } if sidecar => {
                (State::Running(start), true)
            }
            Stage::Running { .. } | Stage::BackOff { .. } => (
                State::Ended {
                    ran: (start, start),
                    exit_code: 0,
                },
                true,
            ),
        };
        let mut status = container_status(pod, container, &state, 0);
        status["ready"] = json!(done);
        status
    };
    items(&pod["spec"]["initContainers"]).map(render).collect()
}

fn container_status(pod: &Value, container: &Value, state: &State, restarts: i64) -> Value {
    let name = container["name"].as_str().unwrap_or("");
    let image = container["image"].as_str().unwrap_or("");
    let (id, image_id) = match state {
        State::Waiting(_) if restarts == 0 => (String::new(), String::new()),
        State::Waiting(_) | State::Running(_) | State::Ended { .. } => {
            let uid = meta::uid(pod);
            let count = u64::try_from(restarts).unwrap_or(0);
            let digest = Digest::default()
                .text(uid)
                .text(name)
                .number(count)
                .finish();
            let image_digest = hex(Digest::default().text(image).finish());
            // Both ids are as long as the real ones: 64 digits.
            let id = format!("containerd://{}", hex(digest).repeat(4));
            (id, format!("{image}@sha256:{}", image_digest.repeat(4)))
        }
    };
    let mut status = json!({
        "name": name,
        "image": image,
        "imageID": image_id,
        "restartCount": restarts,
        "ready": false,
        "started": matches!(state, State::Running(_)),
        "lastState": {},
    });
    if !id.is_empty() {
        status["containerID"] = json!(id);
    }
    status["state"] = state_json(state, &status["containerID"]);
    status
}

fn state_json(state: &State, id: &Value) -> Value {
    match state {
        State::Waiting("CrashLoopBackOff") => json!({"waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off restarting failed container",
        }}),
        State::Waiting(reason) => json!({"waiting": {"reason": reason}}),
        State::Running(since) => json!({"running": {"startedAt": meta::time(*since)}}),
        State::Ended { ran, exit_code } => json!({"terminated": {
            "exitCode": exit_code,
            "reason": if *exit_code == 0 { "Completed" } else { "Error" },
            "startedAt": meta::time(ran.0),
            "finishedAt": meta::time(ran.1),
            "containerID": id,
        }}),
    }
}

/// The kubelet's conditions in the order that people know from `kubectl describe`. Those of others
/// come first.
const ORDER: [&str; 5] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

fn set_conditions(pod: &Value, conditions: &mut Vec<Value>, stage: Stage, now: Timestamp) {
    let mut set = |kind: &str, holds: bool, why: Option<(&str, String)>| {
        let mut new = json!({
            "type": kind,
            "status": if holds { "True" } else { "False" },
            "lastProbeTime": null,
            "lastTransitionTime": meta::time(now),
        });
        if let Some((reason, message)) = why {
            new["reason"] = json!(reason);
            if !message.is_empty() {
                new["message"] = json!(message);
            }
        }
        set_condition(conditions, new);
    };
    let names = |list: &Value| {
        let names = items(list).filter_map(|one| one["name"].as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let done = matches!(stage, Stage::Done { .. });
    let initialized = !matches!(stage, Stage::Creating | Stage::Init(..))
        || items(&pod["spec"]["initContainers"]).next().is_none();
    let ready = matches!(stage, Stage::Running { ready: true, .. });
    set(
        "PodReadyToStartContainers",
        !(done || stage == Stage::Creating),
        None,
    );
    let incomplete = || {
        let names = names(&pod["spec"]["initContainers"]);
        (
            "ContainersNotInitialized",
            format!("containers with incomplete status: [{names}]"),
        )
    };
    let completed = || ("PodCompleted", String::new());
    let initial = match (initialized, stage) {
        (false, _) => Some(incomplete()),
        (true, Stage::Done { exit_code: 0, .. }) => Some(completed()),
        (true, _) => None,
    };
    set("Initialized", initialized, initial);
    let unready = match stage {
        Stage::Done { exit_code: 0, .. } => Some(completed()),
        Stage::Done { .. } => Some(("PodFailed", String::new())),
        Stage::Running { ready: true, .. } => None,
        Stage::Creating | Stage::Init(..) | Stage::Running { .. } | Stage::BackOff { .. } => {
            let names = names(&pod["spec"]["containers"]);
            Some((
                "ContainersNotReady",
                format!("containers with unready status: [{names}]"),
            ))
        }
    };
    set("ContainersReady", ready, unready.clone());
    let gates = if ready { gates(pod) } else { None };
    set("Ready", ready && gates.is_none(), unready.or(gates));
    conditions.sort_by_key(|one| ORDER.iter().position(|kind| one["type"] == *kind));
}

/// What the pod's readiness gates still wait for.
fn gates(pod: &Value) -> Option<(&'static str, String)> {
    let waiting = items(&pod["spec"]["readinessGates"]).filter_map(|gate| {
        let kind = gate["conditionType"].as_str()?;
        let status = condition(pod, kind).map(|one| one["status"].as_str().unwrap_or(""));
        match status {
            Some("True") => None,
            Some(status) => Some(format!(
                "the status of pod readiness gate \"{kind}\" is not \"True\", but {status}"
            )),
            None => Some(format!(
                "corresponding condition of pod readiness gate \"{kind}\" does not exist."
            )),
        }
    });
    let waiting: Vec<String> = waiting.collect();
    (!waiting.is_empty()).then(|| ("ReadinessGatesNotReady", waiting.join(", ")))
}
