//! Where memory ran out: what pods and evictions tell of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::part::{FieldError, Part};
use crate::quantity::Quantity;

/// The reason of a container that ended for want of memory.
pub(super) const OOM_KILLED: &str = "OOMKilled";

/// Memory ran out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oom {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// How much was requested or used, in bytes.
    pub bytes: i64,
    /// When.
    pub time: Timestamp,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub reason: String,
    /// When it had begun.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
}

/// What a container does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Doing {
    /// It waits, or says nothing.
    #[default]
    Waiting,
    /// It runs.
    Running,
    /// It has ended.
    Ended(Ended),
}

/// What a pod's status says of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerStatus {
    /// The container.
    pub name: String,
    /// How often it was started again.
    pub restarts: i64,
    /// What it does.
    pub doing: Doing,
    /// How it ended the last time.
    pub last: Option<Ended>,
    /// What it really requests, where the status says it.
    pub requests: Option<BTreeMap<String, Quantity>>,
    /// Its real limits, where the status says them.
    pub limits: BTreeMap<String, Quantity>,
}

impl ContainerStatus {
    pub(super) fn read(item: &Part<'_>) -> Result<Self, FieldError> {
        let state = item.field("state");
        let doing = if state.field("running").is_set() {
            Doing::Running
        } else {
            ended(&state.field("terminated"))?.map_or(Doing::Waiting, Doing::Ended)
        };
        let resources = item.field("resources");
        let requests = if resources.is_set() {
            Some(named(&resources.field("requests"))?)
        } else {
            None
        };
        Ok(Self {
            name: item.field("name").some_text()?.to_owned(),
            restarts: item.field("restartCount").int64()?.unwrap_or(0),
            doing,
            last: ended(&item.field("lastState").field("terminated"))?,
            requests,
            limits: named(&resources.field("limits"))?,
        })
    }
}

fn ended(part: &Part<'_>) -> Result<Option<Ended>, FieldError> {
    if !part.is_set() {
        return Ok(None);
    }
    Ok(Some(Ended {
        reason: part.field("reason").text()?.unwrap_or_default().to_owned(),
        started: part.field("startedAt").time()?,
        finished: part.field("finishedAt").time()?,
    }))
}

/// Reads amounts of any resources by name.
pub(super) fn named(part: &Part<'_>) -> Result<BTreeMap<String, Quantity>, FieldError> {
    let mut amounts = BTreeMap::new();
    for (name, value) in part.entries()? {
        if let Some(amount) = value.quantity()? {
            amounts.insert(name.to_owned(), amount);
        }
    }
    Ok(amounts)
}

/// Whether memory ran out between two looks at a container; if so, how it ended, and whether the request
/// of the older look counts.
pub(super) fn ran_out<'s>(
    old: &ContainerStatus,
    new: &'s ContainerStatus,
) -> Option<(&'s Ended, bool)> {
    let restarted = new.restarts > old.restarts;
    match (&old.doing, &new.doing) {
        (Doing::Ended(_), Doing::Ended(ended)) if restarted => Some((ended, false)),
        (Doing::Waiting | Doing::Running, Doing::Ended(ended)) => Some((ended, false)),
        (Doing::Running, Doing::Running) if restarted => Some((new.last.as_ref()?, true)),
        (
            Doing::Waiting | Doing::Running | Doing::Ended(_),
            Doing::Waiting | Doing::Running | Doing::Ended(_),
        ) => None,
    }
    .filter(|(ended, _)| ended.reason == OOM_KILLED)
}

/// Where memory ran out, by an event about an eviction. Events that do not say it in lists of one length
/// say nothing.
#[must_use]
pub fn of_eviction(event: &Value) -> Vec<Oom> {
    let object = &event["involvedObject"];
    if event["reason"] != "Evicted" || object["kind"] != "Pod" {
        return Vec::new();
    }
    let annotations = &event["metadata"]["annotations"];
    let list = |name: &str| -> Option<Vec<&str>> {
        Some(annotations[name].as_str()?.split(',').collect())
    };
    let lists = [
        "offending_containers",
        "offending_containers_usage",
        "starved_resource",
    ];
    let [Some(containers), Some(usages), Some(starved)] = lists.map(list) else {
        return Vec::new();
    };
    let time = event["metadata"]["creationTimestamp"].as_str();
    let time = time.and_then(|text| text.parse::<Timestamp>().ok());
    let (Some(time), true) = (
        time,
        containers.len() == usages.len() && usages.len() == starved.len(),
    ) else {
        return Vec::new();
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = Vec::new();
    for ((container, usage), starved) in containers.iter().zip(&usages).zip(&starved) {
        let usage = Quantity::parse(usage).ok().filter(|_| *starved == "memory");
        all.extend(usage.map(|usage| Oom {
            namespace: text(&object["namespace"]),
            pod: text(&object["name"]),
            container: (*container).to_owned(),
            bytes: usage.units(),
            time,
        }));
    }
    all
}
