//! All that a recommender knows: pods, what their containers used, and the VPAs that are about them.
//!
//! Containers of one name in pods of one namespace with the same labels are alike: what is known of them
//! outlives each of them. A pass of the recommender is: VPAs, pods, usage, recommendations, checkpoints,
//! and forgetting what is old.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::aggregate::Aggregate;
use super::container::Container;
use super::oom::Oom;
use super::pod::Pod;
use super::recommend::recommend;
use super::settings::Settings;
use super::spec::{ContainerRecommendation, Vpa};
use crate::selector::{Labels, Selector};

/// How often old things are forgotten.
const FORGETTING_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// Namespace and name.
pub type Id = (String, String);

/// Pods of one namespace with the same labels, by number.
type Kind = usize;

/// A VPA with what belongs to it.
#[derive(Clone, Debug)]
struct Watched {
    vpa: Vpa,
    selector: Selector,
    /// The kinds of pods that it is about.
    kinds: BTreeSet<Kind>,
    /// What was known of containers before this process began.
    initial: BTreeMap<String, Aggregate>,
}

/// A running pod.
#[derive(Clone, Debug)]
struct Known {
    kind: Kind,
    containers: BTreeMap<String, Container>,
    init_containers: BTreeSet<String>,
}

/// How much a container used at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The container.
    pub container: String,
    /// Millicores.
    pub cpu_millis: i64,
    /// Bytes.
    pub memory_bytes: i64,
    /// When.
    pub time: Timestamp,
}

/// What a pass came to for one VPA.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recommended {
    /// What is recommended, by container.
    pub containers: Vec<ContainerRecommendation>,
    /// Whether there are pods that it is about.
    pub has_pods: bool,
}

/// All that a recommender knows.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    settings: Settings,
    kinds: Vec<(String, Labels)>,
    kind_of: BTreeMap<(String, Labels), Kind>,
    /// Pods of each kind.
    members: Vec<Vec<Id>>,
    /// Numbers that no kind has any more.
    free: Vec<Kind>,
    pods: BTreeMap<Id, Known>,
    aggregates: BTreeMap<(Kind, String), Aggregate>,
    vpas: BTreeMap<Id, Watched>,
    last_forgetting: Option<Timestamp>,
}

impl Cluster {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Follows the VPAs: these and no others, each with the selector of its pods. One with another
    /// selector begins anew.
    pub fn set_vpas(&mut self, vpas: Vec<(Vpa, Selector)>) {
        let mut old = std::mem::take(&mut self.vpas);
        for (vpa, selector) in vpas {
            let id = (vpa.namespace.clone(), vpa.name.clone());
            let same = old.remove(&id).filter(|old| old.selector == selector);
            let mut watched = match same {
                Some(watched) => Watched { vpa, ..watched },
                None => {
                    let about = |(namespace, labels): &(String, Labels)| {
                        *namespace == vpa.namespace && selector.matches(labels)
                    };
                    let kinds = self
                        .kinds
                        .iter()
                        .enumerate()
                        .filter(|(_, kind)| about(kind));
                    Watched {
                        kinds: kinds.map(|(number, _)| number).collect(),
                        vpa,
                        selector,
                        initial: BTreeMap::new(),
                    }
                }
            };
            // Without the gate all of them follow the settings, as they did from the beginning.
            if self.settings.per_vpa {
                for (name, aggregate) in &mut watched.initial {
                    instruct(aggregate, &watched.vpa, name, &self.settings);
                }
                for kind in &watched.kinds {
                    for (name, aggregate) in of_kind(&mut self.aggregates, *kind) {
                        instruct(aggregate, &watched.vpa, name, &self.settings);
                    }
                }
            }
            self.vpas.insert(id, watched);
        }
    }

    /// What was known of a container of a VPA before this process began.
    pub fn set_initial(&mut self, id: &Id, container: &str, aggregate: Aggregate) {
        if let Some(watched) = self.vpas.get_mut(id) {
            watched.initial.insert(container.to_owned(), aggregate);
        }
    }

    /// Follows the pods: these and no others.
    pub fn set_pods<'p>(&mut self, pods: impl IntoIterator<Item = &'p Pod>, now: Timestamp) {
        let mut old = std::mem::take(&mut self.pods);
        self.members.iter_mut().for_each(Vec::clear);
        for pod in pods {
            let id = (pod.namespace.clone(), pod.name.clone());
            let kind = self.kind(pod);
            self.members[kind].push(id.clone());
            let mut known = old.remove(&id).unwrap_or_else(|| Known {
                kind,
                containers: BTreeMap::new(),
                init_containers: BTreeSet::new(),
            });
            known.kind = kind;
            known.init_containers.clone_from(&pod.init_containers);
            for container in &pod.containers {
                known.containers.entry(container.name.clone()).or_default();
                self.aggregate(kind, &container.name, now);
            }
            self.pods.insert(id, known);
        }
    }

    /// The number of pods like this one, which is a new one if there was none.
    fn kind(&mut self, pod: &Pod) -> Kind {
        let key = (pod.namespace.clone(), pod.labels.clone());
        if let Some(kind) = self.kind_of.get(&key) {
            return *kind;
        }
        let kind = self.free.pop().unwrap_or(self.kinds.len());
        let start = (pod.namespace.clone(), String::new());
        for ((namespace, _), watched) in self.vpas.range_mut(start..) {
            if *namespace != pod.namespace {
                break;
            }
            if watched.selector.matches(&pod.labels) {
                watched.kinds.insert(kind);
            }
        }
        if kind == self.kinds.len() {
            self.kinds.push(key.clone());
            self.members.push(Vec::new());
        } else {
            self.kinds[kind].clone_from(&key);
        }
        self.kind_of.insert(key, kind);
        kind
    }

    /// What is known of containers that are alike, which is nothing if there were none.
    fn aggregate(&mut self, kind: Kind, container: &str, now: Timestamp) -> &mut Aggregate {
        let key = (kind, container.to_owned());
        let (settings, vpas) = (&self.settings, &self.vpas);
        self.aggregates.entry(key).or_insert_with(|| {
            let mut aggregate = Aggregate::new(settings, now);
            for watched in vpas
                .values()
                .filter(|watched| watched.kinds.contains(&kind))
            {
                instruct(&mut aggregate, &watched.vpa, container, settings);
            }
            aggregate
        })
    }

    /// Notes what a container of a pod used. What is of no known container is left out.
    pub fn add_usage(&mut self, pod: &Id, usage: &Usage, now: Timestamp) {
        let Some(known) = self.pods.get_mut(pod) else {
            return;
        };
        if known.init_containers.contains(&usage.container) {
            return;
        }
        let (kind, found) = (known.kind, known.containers.remove(&usage.container));
        let Some(mut container) = found else { return };
        let aggregate = self.aggregate(kind, &usage.container, now);
        container.add_cpu(aggregate, usage.cpu_millis, usage.time);
        container.add_memory(aggregate, usage.memory_bytes, usage.time);
        self.put_back(pod, &usage.container, container);
    }

    /// Notes where memory ran out.
    pub fn add_oom(&mut self, oom: &Oom, now: Timestamp) {
        let id = (oom.namespace.clone(), oom.pod.clone());
        let Some(known) = self.pods.get_mut(&id) else {
            return;
        };
        let (kind, found) = (known.kind, known.containers.remove(&oom.container));
        let Some(mut container) = found else { return };
        let aggregate = self.aggregate(kind, &oom.container, now);
        container.add_oom(aggregate, oom.bytes, oom.time);
        self.put_back(&id, &oom.container, container);
    }

    fn put_back(&mut self, pod: &Id, name: &str, container: Container) {
        if let Some(known) = self.pods.get_mut(pod) {
            known.containers.insert(name.to_owned(), container);
        }
    }

    /// What is known of the containers of a VPA, by their names.
    fn by_container(&mut self, id: &Id, now: Timestamp) -> BTreeMap<String, Aggregate> {
        let mut merged: BTreeMap<String, Aggregate> = BTreeMap::new();
        let Some(watched) = self.vpas.get_mut(id) else {
            return merged;
        };
        let settings = &self.settings;
        let mut merge = |name: &String, aggregate: &mut Aggregate| {
            let entry = merged.entry(name.clone());
            let sum = entry.or_insert_with(|| Aggregate::new(settings, now));
            sum.merge(aggregate);
        };
        for kind in &watched.kinds {
            for (name, aggregate) in of_kind(&mut self.aggregates, *kind) {
                merge(name, aggregate);
            }
        }
        for (name, aggregate) in &mut watched.initial {
            merge(name, aggregate);
        }
        merged
    }

    /// What is recommended for the pods of a VPA.
    pub fn recommend(&mut self, id: &Id, now: Timestamp) -> Option<Recommended> {
        let aggregates = self.by_container(id, now);
        let watched = self.vpas.get(id)?;
        let has_pods = watched
            .kinds
            .iter()
            .any(|kind| !self.members[*kind].is_empty());
        Some(Recommended {
            containers: recommend(&watched.vpa, &aggregates, &self.settings),
            has_pods,
        })
    }

    /// What a later process should know of the containers of a VPA. Peaks of memory that are not over yet
    /// are left out: they will be measured again.
    pub fn to_store(&mut self, id: &Id, now: Timestamp) -> BTreeMap<String, Aggregate> {
        let mut aggregates = self.by_container(id, now);
        let Some(watched) = self.vpas.get(id) else {
            return aggregates;
        };
        let pods = self
            .pods
            .values()
            .filter(|pod| watched.kinds.contains(&pod.kind));
        for (name, container) in pods.flat_map(|pod| &pod.containers) {
            let end = container.window_end.filter(|end| now < *end);
            if let (Some(end), Some(aggregate)) = (end, aggregates.get_mut(name)) {
                aggregate.subtract_memory(container.peak(), end);
            }
        }
        aggregates
    }

    /// Forgets what is too old to count, at most once an hour.
    pub fn forget(&mut self, now: Timestamp) {
        let last = self.last_forgetting;
        if last.is_some_and(|last| now.duration_since(last) < FORGETTING_INTERVAL) {
            return;
        }
        self.last_forgetting = Some(now);
        let pods = self.pods.values();
        let used: BTreeSet<(Kind, &str)> = pods
            .flat_map(|pod| pod.containers.keys().map(|name| (pod.kind, name.as_str())))
            .collect();
        self.aggregates.retain(|(kind, name), aggregate| {
            let is_used = used.contains(&(*kind, name.as_str()));
            (is_used || !aggregate.is_empty()) && !aggregate.is_expired(now)
        });
        self.forget_kinds();
    }

    /// Forgets kinds of pods of which there are none and nothing is known.
    fn forget_kinds(&mut self) {
        for kind in 0..self.kinds.len() {
            let is_known = of_kind(&mut self.aggregates, kind).next().is_some();
            let number = self.kind_of.get(&self.kinds[kind]);
            if is_known || !self.members[kind].is_empty() || number != Some(&kind) {
                continue;
            }
            self.kind_of.remove(&self.kinds[kind]);
            self.free.push(kind);
            for watched in self.vpas.values_mut() {
                watched.kinds.remove(&kind);
            }
        }
    }
}

/// What is known of the containers of pods of one kind, by their names.
fn of_kind(
    aggregates: &mut BTreeMap<(Kind, String), Aggregate>,
    kind: Kind,
) -> impl Iterator<Item = (&String, &mut Aggregate)> {
    let all = (kind, String::new())..(kind + 1, String::new());
    let found = aggregates.range_mut(all);
    found.map(|((_, name), aggregate)| (name, aggregate))
}

/// Tells an aggregate what a VPA says about collecting peaks of memory.
fn instruct(aggregate: &mut Aggregate, vpa: &Vpa, container: &str, settings: &Settings) {
    let collecting = vpa.policy(container).map(|policy| policy.collecting);
    let collecting = collecting.filter(|_| settings.per_vpa).unwrap_or_default();
    let default = settings.aggregation;
    aggregate.aggregation.interval = collecting.interval.unwrap_or(default.interval);
    aggregate.aggregation.n_intervals = collecting.n_intervals.unwrap_or(default.n_intervals);
    aggregate.aggregation.oom_ratio = collecting.oom_ratio.unwrap_or(default.oom_ratio);
    aggregate.aggregation.oom_min = collecting.oom_min.unwrap_or(default.oom_min);
}
