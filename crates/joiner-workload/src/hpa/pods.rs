//! Pods as scaling sees them: which count, which do not, and what they request.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::world::Settings;
use crate::condition::Truth;
use crate::durations::after;
use crate::part::{FieldError, Part};
use crate::selector::Labels;

/// The resource whose usage says nothing while a pod starts.
pub(crate) const CPU: &str = "cpu";

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started yet.
    Pending,
    /// Its containers run.
    Running,
    /// All of them ended well.
    Succeeded,
    /// They ended, and not well.
    Failed,
    /// Its node does not say.
    Unknown,
}

/// What a pod's condition `Ready` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether it is.
    pub status: Truth,
    /// Since when.
    pub since: Timestamp,
}

/// Amounts of resources by name, in thousandths.
pub type Amounts = BTreeMap<String, i64>;

/// A container that a pod's requests count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// What it requests.
    pub requests: Amounts,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Where it is in its life.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is ready; `None` when nothing says so.
    pub ready: Option<Readiness>,
    /// When its node took it on.
    pub started: Option<Timestamp>,
    /// Its containers, and the init containers that run beside them.
    pub containers: Vec<Container>,
    /// What the pod requests as a whole.
    pub requests: Option<Amounts>,
}

impl Pod {
    /// Reads a pod.
    ///
    /// # Errors
    /// The field that cannot be read.
    pub fn read(object: &Value) -> Result<Self, FieldError> {
        let top = Part::top(object);
        let (meta, spec, status) = (
            top.field("metadata"),
            top.field("spec"),
            top.field("status"),
        );
        let phase = match status.field("phase").text()? {
            Some("Running") => Phase::Running,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            Some("Pending") => Phase::Pending,
            Some(_) | None => Phase::Unknown,
        };
        let mut ready = None;
        for condition in status.field("conditions").items()? {
            if condition.field("type").text()? == Some("Ready") {
                ready = Some(Readiness {
                    status: Truth::of(condition.field("status").text()?.unwrap_or_default()),
                    since: condition
                        .field("lastTransitionTime")
                        .time()?
                        .unwrap_or(Timestamp::MIN),
                });
                break;
            }
        }
        let requests = amounts(&spec.field("resources").field("requests"))?;
        Ok(Self {
            name: meta.field("name").some_text()?.to_owned(),
            labels: meta.field("labels").labels()?,
            phase,
            deleting: meta.field("deletionTimestamp").is_set(),
            ready,
            started: status.field("startTime").time()?,
            containers: containers(&spec)?,
            requests: (!requests.is_empty()).then_some(requests),
        })
    }

    /// Whether it runs and says that it is ready, however short a time.
    fn is_ready(&self) -> bool {
        let ready = self.ready.is_some_and(|ready| ready.status == Truth::True);
        self.phase == Phase::Running && ready
    }
}

fn containers(spec: &Part<'_>) -> Result<Vec<Container>, FieldError> {
    let mut all = Vec::new();
    for (list, always) in [("containers", true), ("initContainers", false)] {
        for container in spec.field(list).items()? {
            let beside = container.field("restartPolicy").text()? == Some("Always");
            if always || beside {
                all.push(Container {
                    name: container.field("name").some_text()?.to_owned(),
                    requests: amounts(&container.field("resources").field("requests"))?,
                });
            }
        }
    }
    Ok(all)
}

/// Reads amounts of resources.
pub(crate) fn amounts(part: &Part<'_>) -> Result<Amounts, FieldError> {
    let mut amounts = Amounts::new();
    for (name, value) in part.entries()? {
        if let Some(amount) = value.quantity()? {
            amounts.insert(name.to_owned(), amount.millis());
        }
    }
    Ok(amounts)
}

/// A sample of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) time: Timestamp,
    pub(crate) window: jiff::SignedDuration,
    pub(crate) value: i64,
}

/// Samples by the names of their pods.
pub(crate) type Samples = BTreeMap<String, Sample>;

/// Which pods count, by what they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// How many are ready and have a sample.
    pub(crate) n_ready: usize,
    /// Whose samples say nothing yet.
    pub(crate) unready: BTreeSet<String>,
    /// Without a sample.
    pub(crate) missing: BTreeSet<String>,
    /// Ended or being deleted.
    pub(crate) ignored: BTreeSet<String>,
}

impl Groups {
    /// Sorts pods by what they are for a metric of `resource`; figures of pods that are no resource have
    /// an empty name.
    pub(crate) fn of(
        pods: &[&Pod],
        samples: &Samples,
        resource: &str,
        settings: &Settings,
        now: Timestamp,
    ) -> Self {
        let mut groups = Self::default();
        for pod in pods {
            let sample = samples.get(&pod.name);
            let name = pod.name.clone();
            if pod.deleting || pod.phase == Phase::Failed {
                groups.ignored.insert(name);
            } else if pod.phase == Phase::Pending {
                groups.unready.insert(name);
            } else if let Some(sample) = sample {
                if resource == CPU && starts(pod, sample, settings, now) {
                    groups.unready.insert(name);
                } else {
                    groups.n_ready += 1;
                }
            } else {
                groups.missing.insert(name);
            }
        }
        groups
    }
}

/// Whether a pod's use of CPU is that of its start.
fn starts(pod: &Pod, sample: &Sample, settings: &Settings, now: Timestamp) -> bool {
    let (Some(ready), Some(started)) = (pod.ready, pod.started) else {
        return true;
    };
    let not_ready = ready.status == Truth::False;
    if after(started, settings.cpu_initialization_period) > now {
        return not_ready || sample.time < after(ready.since, sample.window);
    }
    // It never was ready.
    not_ready && after(started, settings.initial_readiness_delay) > ready.since
}

/// How many pods run and are ready.
///
/// # Errors
/// When there are no pods at all.
pub(crate) fn count_ready(pods: &[&Pod]) -> Result<usize, String> {
    if pods.is_empty() {
        return Err(NO_PODS.to_owned());
    }
    Ok(pods.iter().filter(|pod| pod.is_ready()).count())
}

/// What metrics say when nothing is there to count.
pub(crate) const NO_PODS: &str = "the selector of the target chooses no pods";

/// What pods request of a resource, of one container or all, in thousandths.
///
/// # Errors
/// When a pod does not say what it requests.
pub(crate) fn requests(
    pods: &[&Pod],
    resource: &str,
    container: Option<&str>,
    settings: &Settings,
) -> Result<BTreeMap<String, i64>, String> {
    let mut all = BTreeMap::new();
    for pod in pods {
        let whole = pod.requests.as_ref();
        let whole = whole.filter(|_| settings.gates.pod_level_resources && container.is_none());
        let request = match (whole, container) {
            (Some(whole), _) => whole.get(resource).copied().ok_or_else(|| {
                let name = &pod.name;
                format!("pod {name} has requests of its own, but none for {resource}")
            })?,
            (None, Some(container)) => of_container(pod, resource, container)?,
            (None, None) => of_containers(pod, resource)?,
        };
        all.insert(pod.name.clone(), request);
    }
    Ok(all)
}

fn of_container(pod: &Pod, resource: &str, name: &str) -> Result<i64, String> {
    let container = pod.containers.iter().find(|c| c.name == name);
    let container = container.ok_or_else(|| format!("pod {} has no container {name}", pod.name))?;
    request(pod, container, resource)
}

fn of_containers(pod: &Pod, resource: &str) -> Result<i64, String> {
    let mut sum = 0_i64;
    for container in &pod.containers {
        sum = sum.wrapping_add(request(pod, container, resource)?);
    }
    Ok(sum)
}

fn request(pod: &Pod, container: &Container, resource: &str) -> Result<i64, String> {
    container.requests.get(resource).copied().ok_or_else(|| {
        format!(
            "container {} of pod {} requests no {resource}; set resources.requests.{resource}",
            container.name, pod.name
        )
    })
}
