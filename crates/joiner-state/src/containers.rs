//! The containers of pods, one copy for all pods that have the same.

use std::collections::HashSet;
use std::sync::Arc;

use joiner_model::{Name, Resources};

use crate::names::Names;
use crate::requests;
use crate::wire::pod::{Container, PodSpec};
use crate::wire::text;

/// When a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContainerRole {
    /// As long as its pod.
    Main,
    /// Before the others, to its end.
    Init,
    /// From before the others on, as long as they run.
    Sidecar,
}

/// A container of a pod, as its spec has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodContainer {
    /// Name.
    pub name: Name,
    /// When it runs.
    pub role: ContainerRole,
    /// What it requests; where it requests nothing, its limit.
    pub requests: Resources,
    /// What it may use at most.
    pub limits: Resources,
}

impl PodContainer {
    fn read(container: &Container<'_>, role: ContainerRole, names: &mut Names) -> Self {
        Self {
            name: names.get(text(&container.name)),
            role,
            requests: requests::requested_by(container),
            limits: requests::limits_by(container),
        }
    }
}

/// The containers of a pod, in the order of its spec: first those that run on, then those before them.
pub(crate) fn read(spec: &PodSpec<'_>, names: &mut Names) -> Vec<PodContainer> {
    let running = spec.containers.iter().flatten();
    let running = running.map(|container| (container, ContainerRole::Main));
    let before = spec.init_containers.iter().flatten().map(|container| {
        let role = match container.restart_policy.as_deref() {
            Some("Always") => ContainerRole::Sidecar,
            _ => ContainerRole::Init,
        };
        (container, role)
    });
    let all = running.chain(before);
    all.map(|(container, role)| PodContainer::read(container, role, names))
        .collect()
}

/// One copy of every list of containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerLists {
    known: HashSet<Arc<[PodContainer]>>,
}

impl ContainerLists {
    /// The shared copy of a list.
    pub(crate) fn get(&mut self, list: Vec<PodContainer>) -> Arc<[PodContainer]> {
        if let Some(known) = self.known.get(&*list) {
            return Arc::clone(known);
        }
        let list: Arc<[PodContainer]> = list.into();
        self.known.insert(Arc::clone(&list));
        list
    }

    /// Throws away what is kept nowhere else.
    pub(crate) fn drop_unused(&mut self) {
        self.known.retain(|list| Arc::strong_count(list) > 1);
    }
}
