//! Pods as vertical scaling sees them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::oom::{ContainerStatus, Oom, named, ran_out};
use crate::condition::Truth;
use crate::part::{FieldError, Part};
use crate::quantity::Quantity;
use crate::selector::Labels;

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Kind and name of the object that controls it.
    pub owner: Option<(String, String)>,
    /// Where it is in its life, in the API's word.
    pub phase: String,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When its node took it on.
    pub started: Option<Timestamp>,
    /// Its containers.
    pub containers: Vec<PodContainer>,
    /// Names of its init containers.
    pub init_containers: BTreeSet<String>,
    /// What its status says of containers.
    pub statuses: Vec<ContainerStatus>,
    /// What its status says of itself.
    pub conditions: Vec<PodCondition>,
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodContainer {
    /// Its name.
    pub name: String,
    /// What it requests.
    pub requests: BTreeMap<String, Quantity>,
    /// What it may use.
    pub limits: BTreeMap<String, Quantity>,
    /// Resources whose change starts it again.
    pub restarts_on: Vec<String>,
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// What it is about.
    pub kind: String,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one word.
    pub reason: String,
    /// Since when.
    pub since: Option<Timestamp>,
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
        let mut owner = None;
        for reference in meta.field("ownerReferences").items()? {
            if reference.field("controller").boolean()? == Some(true) {
                owner = Some((
                    reference.field("kind").some_text()?.to_owned(),
                    reference.field("name").some_text()?.to_owned(),
                ));
            }
        }
        let mut containers = Vec::new();
        for item in spec.field("containers").items()? {
            containers.push(PodContainer::read(&item)?);
        }
        let mut init_containers = BTreeSet::new();
        for item in spec.field("initContainers").items()? {
            init_containers.insert(item.field("name").some_text()?.to_owned());
        }
        let mut statuses = Vec::new();
        for item in status.field("containerStatuses").items()? {
            statuses.push(ContainerStatus::read(&item)?);
        }
        let mut conditions = Vec::new();
        for item in status.field("conditions").items()? {
            conditions.push(PodCondition {
                kind: item.field("type").some_text()?.to_owned(),
                status: Truth::of(item.field("status").text()?.unwrap_or_default()),
                reason: item.field("reason").text()?.unwrap_or_default().to_owned(),
                since: item.field("lastTransitionTime").time()?,
            });
        }
        Ok(Self {
            namespace: meta
                .field("namespace")
                .text()?
                .unwrap_or_default()
                .to_owned(),
            name: meta.field("name").some_text()?.to_owned(),
            labels: meta.field("labels").labels()?,
            annotations: meta.field("annotations").labels()?,
            owner,
            phase: status.field("phase").text()?.unwrap_or_default().to_owned(),
            deleting: meta.field("deletionTimestamp").is_set(),
            started: status.field("startTime").time()?,
            containers,
            init_containers,
            statuses,
            conditions,
        })
    }

    /// What the status says of a container.
    #[must_use]
    pub fn status(&self, container: &str) -> Option<&ContainerStatus> {
        self.statuses.iter().find(|status| status.name == container)
    }

    /// What a container really requests: by the status where it says so.
    #[must_use]
    pub fn requests<'p>(&'p self, container: &'p PodContainer) -> &'p BTreeMap<String, Quantity> {
        let status = self.status(&container.name);
        let real = status.and_then(|status| status.requests.as_ref());
        real.unwrap_or(&container.requests)
    }

    /// The real limits of a container: by the status where it says what is requested.
    #[must_use]
    pub fn limits<'p>(&'p self, container: &'p PodContainer) -> &'p BTreeMap<String, Quantity> {
        let status = self.status(&container.name);
        let real = status.filter(|status| status.requests.is_some());
        real.map_or(&container.limits, |status| &status.limits)
    }

    /// Where memory ran out since an older look at the pod.
    #[must_use]
    pub fn ooms_since(&self, old: &Self) -> Vec<Oom> {
        let mut all = Vec::new();
        for new in &self.statuses {
            let Some((ended, by_old)) = old.status(&new.name).and_then(|old| ran_out(old, new))
            else {
                continue;
            };
            let pod = if by_old { old } else { self };
            let container = pod.containers.iter().find(|c| c.name == new.name);
            let (Some(container), Some(time)) = (container, ended.finished) else {
                continue;
            };
            let memory = pod.requests(container).get("memory");
            all.push(Oom {
                namespace: self.namespace.clone(),
                pod: self.name.clone(),
                container: new.name.clone(),
                bytes: memory.map_or(0, |memory| memory.units()),
                time,
            });
        }
        all
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }
}

impl PodContainer {
    fn read(item: &Part<'_>) -> Result<Self, FieldError> {
        let resources = item.field("resources");
        let mut restarts_on = Vec::new();
        for policy in item.field("resizePolicy").items()? {
            if policy.field("restartPolicy").text()? == Some("RestartContainer") {
                restarts_on.push(policy.field("resourceName").some_text()?.to_owned());
            }
        }
        Ok(Self {
            name: item.field("name").some_text()?.to_owned(),
            requests: named(&resources.field("requests"))?,
            limits: named(&resources.field("limits"))?,
            restarts_on,
        })
    }
}
