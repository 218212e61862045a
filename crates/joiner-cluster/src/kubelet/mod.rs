//! What do the kubelets of all nodes do?
//!
//! One controller plays them all. A node's annotation `joiner.dev/kubelet` says `false` when
//! somebody else plays its kubelet, and `stopped` when it has fallen silent.

mod addresses;
mod life;
mod machine;
mod status;

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use self::addresses::Pool;
use self::life::{PodLife, Stage};
use self::machine::Machine;
use self::status::{Addresses, is_shown, render, status_of, stopped};
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{after, difference, sooner};
use crate::scheduler::labels::items;
use crate::scheduler::{NODES, PODS};
use crate::view::{Action, Controller, Resource, Step, View};

pub(crate) use self::machine::{LEASE_NAMESPACE, LEASES};

const NAME: &str = "kubelet";

/// How nodes and pods behave unless their annotations say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seconds from a Node's creation until it is ready (`joiner.dev/boot-seconds`).
    pub boot_secs: i64,
    /// Seconds that making containers takes (`joiner.dev/start-seconds`).
    pub start_secs: i64,
    /// Seconds that an init container runs.
    pub init_secs: i64,
    /// Seconds until containers end that are not restarted (`joiner.dev/run-seconds`).
    pub run_secs: i64,
    /// Stopping takes less than this many milliseconds (`joiner.dev/stop-seconds`).
    pub stop_millis_max: u64,
    /// Cores of a Node that names no capacity.
    pub cpu: String,
    /// Memory of a Node that names no capacity.
    pub memory: String,
    /// Places for pods of a Node that names no capacity.
    pub pods: u32,
    /// Version that kubelets report.
    pub version: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            boot_secs: 0,
            start_secs: 1,
            init_secs: 1,
            run_secs: 10,
            stop_millis_max: 1000,
            cpu: "4".to_owned(),
            memory: "16Gi".to_owned(),
            pods: 110,
            version: "v1.36.3".to_owned(),
        }
    }
}

/// When to look at a pod again; `Some(None)` when only a change of it matters.
type Due = Option<Option<Timestamp>>;

/// The kubelets of all nodes.
#[derive(Default)]
pub struct Kubelets {
    settings: Settings,
    nodes: Cache<Machine>,
    pods: Cache<PodLife, Due>,
}

impl Kubelets {
    /// Kubelets with settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }
}

impl Controller for Kubelets {
    fn name(&self) -> &'static str {
        NAME
    }

    // Leases are left out: a kubelet writes them and is the last to be surprised.
    fn reads(&self) -> &'static [Resource] {
        &[NODES, PODS]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        let settings = &self.settings;
        self.nodes.refresh(
            view.objects(NODES),
            |node| Machine::read(node, settings),
            |_| true,
        );
        self.pods.refresh(
            view.objects(PODS),
            |pod| PodLife::read(pod, settings),
            |_| true,
        );
        let mut shift = Shift {
            view: *view,
            recorder: Recorder::new(view, NAME),
            pool: Pool::default(),
            step: Step::default(),
        };
        let mut hosts: BTreeMap<&str, &Machine> = BTreeMap::new();
        for (object, machine) in self.nodes.pairs() {
            if !machine.is_ours() {
                continue;
            }
            let actions =
                machine.tend(object, view, settings, &mut shift.pool, &mut shift.recorder);
            shift.step.actions.extend(actions);
            let wake = machine.wake(view);
            shift.look_again(Some(wake));
            if machine.is_up(view.now) {
                hosts.insert(&machine.name, machine);
            }
        }
        for (object, life, due) in self.pods.notes() {
            if let Some(known) = due
                && known.is_none_or(|at| view.now < at)
            {
                shift.look_again(*known);
                continue;
            }
            let Some(host) = hosts.get(life.node.as_str()) else {
                continue;
            };
            let next = shift.tend(object, life, host);
            *due = Some(next);
            shift.look_again(next);
        }
        shift.step
    }

    fn refused(&mut self, action: &Action, _message: &str, now: Timestamp) -> Option<Timestamp> {
        let (Action::Patch {
            resource: PODS,
            key,
            ..
        }
        | Action::Delete {
            resource: PODS,
            key,
            ..
        }) = action
        else {
            return None;
        };
        self.pods.forget_note(key);
        Some(after(now, 1))
    }
}

/// The work of one step.
struct Shift<'v> {
    view: View<'v>,
    recorder: Recorder<'v>,
    pool: Pool,
    step: Step,
}

impl Shift<'_> {
    fn look_again(&mut self, at: Option<Timestamp>) {
        self.step.wake = sooner(self.step.wake, at);
    }

    /// Brings a pod's status up to date and says when it will be out of date.
    fn tend(&mut self, pod: &Value, life: &PodLife, host: &Machine) -> Option<Timestamp> {
        let now = self.view.now;
        if let Some(stops_at) = life.stops_at() {
            return self.stop(pod, life, host, stops_at);
        }
        if life.finished {
            return None;
        }
        let start = life.start.unwrap_or(now);
        let (stage, next) = life.stage(start, now);
        if !is_shown(pod, stage) {
            self.show(pod, life, host, (stage, start));
        }
        next
    }

    fn stop(
        &mut self,
        pod: &Value,
        life: &PodLife,
        host: &Machine,
        stops_at: Timestamp,
    ) -> Option<Timestamp> {
        let now = self.view.now;
        if let Some(start) = life.start.filter(|_| !life.finished) {
            for container in items(&pod["spec"]["containers"]) {
                let name = container["name"].as_str().unwrap_or("");
                let message = format!("Stopping container {name}");
                let event = self.recorder.normal(pod, "Killing", &message);
                if matches!(event, Action::Create(..)) {
                    self.step.actions.push(event);
                }
            }
            if now < stops_at {
                return Some(stops_at);
            }
            // Whoever holds the pod back wants to know how it ended.
            if life.held {
                self.show(pod, life, host, (stopped(start, now), start));
            }
        }
        let asked = life.deletion.is_some_and(|(_, grace)| grace == 0);
        if !(asked && life.held) {
            self.step.actions.push(Action::Delete {
                resource: PODS,
                key: life.key.clone(),
                uid: life.uid.clone(),
                grace_secs: Some(0),
                propagation: None,
            });
        }
        None
    }

    /// Writes the status of a stage, if it is not there yet.
    fn show(
        &mut self,
        pod: &Value,
        life: &PodLife,
        host: &Machine,
        (stage, start): (Stage, Timestamp),
    ) {
        let known = pod["status"]["podIP"].as_str().map(str::to_owned);
        let ip = match (stage, known) {
            (_, Some(ip)) => Some(ip),
            (Stage::Creating, None) => None,
            (_, None) if pod["spec"]["hostNetwork"] == true => Some(host.address.clone()),
            (_, None) => Some(self.pool.pod(&self.view, &life.uid)),
        };
        let addresses = Addresses {
            host: &host.address,
            pod: ip.as_deref(),
        };
        let status = render(pod, stage, start, &addresses, self.view.now);
        let old = status_of(pod);
        let Some(change) = difference(&old, &status) else {
            return;
        };
        self.step.actions.push(Action::Patch {
            resource: PODS,
            key: life.key.clone(),
            subresource: Some("status"),
            patch: json!({
                "metadata": {"resourceVersion": meta::text(pod, "resourceVersion")},
                "status": change,
            }),
        });
        for (list, statuses) in [
            ("initContainers", "initContainerStatuses"),
            ("containers", "containerStatuses"),
        ] {
            self.announce(pod, list, &old[statuses], &status[statuses]);
        }
    }

    /// Events of containers that have been started since.
    fn announce(&mut self, pod: &Value, list: &str, old: &Value, new: &Value) {
        let id = |status: &Value| status["containerID"].as_str().unwrap_or("").to_owned();
        for (ix, status) in items(new).enumerate() {
            let started = id(status);
            if started.is_empty() || started == id(&old[ix]) {
                continue;
            }
            let image = pod["spec"][list][ix]["image"].as_str().unwrap_or("");
            let pulled = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            for (reason, message) in [
                ("Pulled", pulled.as_str()),
                ("Created", "Container created"),
                ("Started", "Container started"),
            ] {
                let event = self.recorder.normal(pod, reason, message);
                self.step.actions.push(event);
            }
        }
    }
}
